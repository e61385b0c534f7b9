"""`affidavit policy`, and runs that are held to one: explained before, kept to, and named in the line that resumes."""

import json
import signal
from pathlib import Path

import pytest

from affidavit.actors.policy.load import load_policy
from affidavit.actors.policy.starter import STARTER
from tests.tools.commands.endpoint import held_endpoint
from tests.tools.commands.runner import READER, Cli, lines_that_begin


@pytest.fixture
def policy(cli: Cli) -> Path:
    """A policy that lets a run read single files."""
    path = cli.home / "my policy.toml"
    path.write_text('[grant]\ntools = ["read_file"]\n[budget]\nsteps = 9\n')
    return path


def test_a_policy_is_explained_and_named_by_its_digest(cli: Cli, policy: Path) -> None:
    """Exit code 0: plain sentences, and the digest of what they mean."""
    done = cli("policy", "check", policy.name)
    assert (done.code, done.err) == (0, "")
    assert "  The tool read_file.\n  At most 9 model turns, all goals of the run together.\n" in done.out
    assert done.out.endswith(
        f"my policy.toml can be used; its digest is {load_policy(policy).digest.hex()}\n"
    )
    assert "Probably a mistake" not in done.out
    assert max(map(len, done.out.splitlines()[:-1])) <= 80


def test_json_is_one_object_with_fixed_names(cli: Cli, policy: Path) -> None:
    """The same, for programs."""
    done = cli("policy", "check", policy.name, "--json")
    told = json.loads(done.out)
    assert set(told) == {"file", "digest", "explained", "warnings"}
    assert told["digest"] == load_policy(policy).digest.hex()
    assert told["explained"]["What a run may use"][0] == "The tool read_file."


def test_a_policy_with_a_mistake_is_one_sentence_and_exit_code_2(cli: Cli, policy: Path) -> None:
    """It names the file and the place; a run under it does not begin."""
    policy.write_text("[budget]\ntokens = -1")
    said = "affidavit: my policy.toml: budget.tokens must be at least 0, not -1\n"
    checked = cli("policy", "check", policy.name)
    assert (checked.code, checked.out, checked.err) == (2, "", said)
    run = cli("run", "What is this?", "--model", READER, "--policy", policy.name)
    assert (run.code, run.out, run.err) == (2, "", said)
    assert not (cli.home / ".local").exists()


def test_what_is_probably_a_mistake_is_said_by_check_and_by_run(cli: Cli, policy: Path) -> None:
    """A tool that the workspace does not give; the run goes on all the same."""
    policy.write_text('[grant]\ntools = ["read_file", "pay"]')
    said = "grant.tools names 'pay', and there is no such tool here"
    assert f"Probably a mistake:\n  {said}\n" in cli("policy", "check", policy.name, "--workspace", ".").out
    assert "Probably" not in cli("policy", "check", policy.name).out
    run = cli("run", "What is this?", "--model", READER, "--workspace", ".", "--policy", policy.name)
    assert run.code == 0
    assert f"my policy.toml: {said}" in run.err


def test_the_policy_to_begin_with_can_be_used_as_it_is(cli: Cli) -> None:
    """`policy new` prints it, and `policy check` takes it."""
    (cli.home / "new.toml").write_text(cli("policy", "new").out)
    assert (cli.home / "new.toml").read_text() == STARTER
    checked = cli("policy", "check", "new.toml", "--workspace", ".")
    assert checked.code == 0
    assert "Probably a mistake" not in checked.out


def test_a_tool_that_the_policy_does_not_grant_is_refused_on_the_record(cli: Cli, policy: Path) -> None:
    """Though nothing on the command line limits the run; and the policy's digest is part of what it records."""
    words = ("run", "What is this?", "--model", READER, "--workspace", ".", "--json")
    held = cli(*words, "--policy", policy.name, "--id", "held")
    free = cli(*words, "--id", "free")
    assert (held.code, free.code) == (0, 0)
    events = [json.loads(line) for line in held.out.splitlines()]
    refused = [each for each in events if each["kind"] == "action.rejected"]
    assert [(each["action"], each["errorCode"]) for each in refused] == [("list_dir", "capability_denied")]
    digests = [json.loads(each.out.splitlines()[0])["detail"]["digests"] for each in (held, free)]
    assert digests[0]["policy"] != digests[1]["policy"]
    assert digests[0]["tools"] == digests[1]["tools"]


def test_the_line_that_resumes_names_the_policy_and_another_policy_is_refused(cli: Cli, policy: Path) -> None:
    """Without it, or under another, the run is not resumed; the printed line goes on to convergence."""
    with held_endpoint() as gate:
        url = {"OPENAI_BASE_URL": gate.url}
        words = ("run", "Hello", "--model", "openai:m", "--policy", policy.name, "--id", "parked")
        with cli.going(*words, OPENAI_BASE_URL=gate.url) as process:
            assert gate.asked.wait(30)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
        gate.answer.set()
        (line,) = lines_that_begin(said, "affidavit resume parked --model openai:m")
        assert line.endswith(f"--policy '{policy}'")
        without = cli("resume", "parked", **url)
        (cli.home / "other.toml").write_text("[budget]\nsteps = 8\n")
        under_another = cli("resume", "parked", "--policy", "other.toml", **url)
        resumed = cli.printed(line, **url)
    assert [each.code for each in (without, under_another, resumed)] == [2, 2, 0]
    assert "another policy" in without.err
    assert "another policy" in under_another.err
    assert "--accept-changes" in under_another.err
