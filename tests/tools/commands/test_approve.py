"""A run that waits for a person: parked with an exit code of its own, decided from another terminal, never asked twice (G3)."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.tools.commands.runner import COMMAND, READER, Cli, Done

POLICY = """\
[grant]
tools = ["list_dir", "read_file"]
[[approval]]
tools = ["read_file"]
"""
SIGNED = "approvers = ['ada']\nsigned = true\n[approver_keys]\nada = "
CALL = 4  # list_dir is call 2, between two calls of the model


@pytest.fixture
def policy(cli: Cli) -> Path:
    """A policy under which reading needs approval, in a home with something to read."""
    (cli.home / "workspace").mkdir()
    (cli.home / "workspace" / "README.md").write_text("# A ledger\n")
    path = cli.home / "policy.toml"
    path.write_text(POLICY)
    return path


def words(cli: Cli, policy: Path) -> tuple[object, ...]:
    """The options of `run` and `resume`."""
    return ("--model", READER, "--workspace", cli.home / "workspace", "--policy", policy)


def run(cli: Cli, policy: Path, *more: object) -> Done:
    """Run until a person is needed."""
    return cli("run", "What is this?", "--id", "mine", *words(cli, policy), *more)


def events(cli: Cli, kind: str) -> list[dict[str, object]]:
    """The run's events of a kind."""
    every = [json.loads(line) for line in cli("replay", "mine", "--json").out.splitlines()]
    return [event for event in every if event["kind"] == kind]


def test_without_a_terminal_the_run_is_parked_and_says_how_to_go_on(cli: Cli, policy: Path) -> None:
    """Exit code 4, sealed; each line that it prints works as it stands; every view says what it waits for, with the arguments."""
    parked = run(cli, policy)
    assert parked.code == 4
    assert '{"path": "README.md", "limit": 20}' in parked.out
    lines = parked.err.splitlines()
    approve = lines[lines.index("To decide about it:") + 1]
    resume = lines[lines.index("To go on with the run:") + 1]
    assert approve == f"affidavit approve mine {CALL}"
    assert f"waiting {CALL}" in cli("sessions").out
    assert f"state      waits for approval of call {CALL}" in cli("replay", "mine").out
    listed = cli("approve", "mine")
    assert (listed.code, listed.out.splitlines()[2]) == (0, '  with {"path": "README.md", "limit": 20}')
    assert approve in listed.out
    decided = cli.printed(f"{approve} --reason 'as agreed' --as ada", AFFIDAVIT_PASSPHRASE=None)
    assert (decided.code, decided.err.splitlines()[-1]) == (0, "affidavit resume mine")
    assert decided.out == 'approved call 4 (read_file), by ada\n  with {"path": "README.md", "limit": 20}\n'
    ended = cli.printed(resume)
    assert ended.code == 0
    assert "as approved at event" in ended.out
    assert len(events(cli, "approval.requested")) == 1
    (event,) = events(cli, "approval.decided")
    assert (event["actor"], event["principal"], event["reason"]) == ("human", "ada", "as agreed")
    assert (cli("approve", "mine").out, cli("approve", "mine", CALL).code) == ("", 1)


def test_resuming_what_nobody_has_decided_parks_again_and_asks_nothing_anew(cli: Cli, policy: Path) -> None:
    """Exit code 4 again, still one request, and the lines again."""
    assert run(cli, policy).code == 4
    again = cli("resume", "mine", *words(cli, policy))
    assert again.code == 4
    assert f"affidavit approve mine {CALL}" in again.err
    assert len(events(cli, "approval.requested")) == 1
    assert events(cli, "action.rejected") == []


def test_a_refusal_reaches_the_model_and_the_run_goes_on(cli: Cli, policy: Path) -> None:
    """The tool does not run; who refused and why are on the record."""
    assert run(cli, policy).code == 4
    assert cli("approve", "mine", CALL, "--refuse", "--reason", "private", "--as", "bob").code == 0
    assert cli("resume", "mine", *words(cli, policy)).code == 0
    results = [event["result"] for event in events(cli, "tool.result")]
    assert results[-1] == "refused: bob refused it: private"


@pytest.mark.parametrize("where", ["terminal", "asked to"])
def test_a_run_that_waits_on_is_told_by_another_process_and_goes_on(
    cli: Cli, policy: Path, where: str
) -> None:
    """On a terminal, or with --wait: it prints the line for another terminal, and converges once somebody has decided there."""
    master, slave = os.openpty()
    stdin, more = (slave, ()) if where == "terminal" else (subprocess.DEVNULL, ("--wait",))
    command = [COMMAND, "run", "What?", "--id", "mine", *words(cli, policy), *more, "--json"]
    with (
        (cli.home / "told").open("w") as told,
        subprocess.Popen(
            [str(word) for word in command],
            cwd=cli.home,
            env=cli.environment(),
            stdin=stdin,
            stdout=told,
            stderr=subprocess.PIPE,
            text=True,
        ) as owner,
    ):
        assert owner.stderr is not None
        # Up to the line that is asked for, or to the end of a process that never says it.
        lines = iter(owner.stderr.readline, "")
        assert f"affidavit approve mine {CALL}\n" in lines
        decided = cli("approve", "mine", CALL, "--as", "ada", AFFIDAVIT_PASSPHRASE=None)
        owner.communicate(timeout=60)
    os.close(master)
    os.close(slave)
    assert (decided.code, decided.err, owner.returncode) == (0, "", 0)
    kinds = [json.loads(line)["kind"] for line in (cli.home / "told").read_text().splitlines()]
    assert kinds.count("approval.decided") == 1
    (event,) = events(cli, "approval.decided")
    assert event["causationID"] == "mine.inbox/1"


def test_an_approver_signs_with_a_key_of_their_own(cli: Cli, policy: Path) -> None:
    """Nobody without it is taken; the statement stands on the record."""
    made = json.loads(cli("keys", "new", "--store", "ada", "--json").out)
    cli("keys", "new", "--store", "eve")
    policy.write_text(POLICY + SIGNED + f'"{made["public_key_hex"]}"\n')
    assert run(cli, policy).code == 4
    unsigned = cli("approve", "mine", CALL, "--as", "ada")
    assert unsigned.code == 2
    assert "must be signed" in unsigned.err
    forged = cli("approve", "mine", CALL, "--as", "ada", "--key", "eve/keys/default")
    assert forged.code == 1
    assert "the signature on call 4 is not by ada's key" in forged.err
    stranger = cli("approve", "mine", CALL, "--as", "eve", "--key", "eve/keys/default")
    assert (stranger.code, "ada may" in stranger.err) == (1, True)
    signed = cli("approve", "mine", CALL, "--as", "ada", "--key", "ada/keys/default")
    assert (signed.code, signed.out.splitlines()[0]) == (0, "approved call 4 (read_file), by ada, signed")
    assert cli("resume", "mine", *words(cli, policy)).code == 0
    cli("export", "mine", "--out", "mine.provetrail")
    checked = cli("verify", "mine.provetrail")
    assert checked.code == 3  # no key was given
    assert "  signed by    ada, 1 of them; that key is in no keyring given\n" in checked.out
    assert made["fingerprint"] in checked.out
    (event,) = events(cli, "approval.decided")
    assert "statement" in event["detail"]  # type: ignore[operator]  # a mapping in the JSON of an event


def test_what_waits_is_listed_for_programs(cli: Cli, policy: Path) -> None:
    """One JSON object for each call, with the exact arguments and their digest."""
    assert run(cli, policy).code == 4
    (line,) = cli("approve", "mine", "--json").out.splitlines()
    listed = json.loads(line)
    assert (listed["call"], listed["action"], listed["signed"]) == (CALL, "read_file", False)
    assert json.loads(listed["arguments"]) == {"path": "README.md", "limit": 20}
    assert json.loads(cli("sessions", "--json").out)["waits_for"] == [CALL]


def test_misuse_is_said_in_one_sentence(cli: Cli, policy: Path) -> None:
    """A refusal of nothing, a call that does not wait, a list as a decision."""
    assert run(cli, policy).code == 4
    for words_, code in (
        (("approve", "mine", "--refuse"), 2),
        (("approve", "mine", 4, "--json"), 2),
        (("approve", "mine", 99), 1),
        (("approve", "mine", 0), 2),
        (("approve", "nobody", 1), 2),
    ):
        done = cli(*words_)
        assert (done.code, len(done.err.splitlines())) == (code, 1)


def test_the_brake_is_told_of_wherever_a_decision_is(cli: Cli, policy: Path) -> None:
    """In the list, in its JSON, and before a decision, with the line that lets it go; a decision is taken all the same."""
    assert run(cli, policy).code == 4
    assert "brake" not in cli("approve", "mine").err
    assert cli("brake", "mine", "--as", "ann").code == 0
    listed = cli("approve", "mine")
    assert listed.code == 0
    assert "the brake of run mine is on, so every call is refused" in listed.err
    assert listed.err.splitlines()[-1] == "affidavit brake mine --release"
    assert json.loads(cli("approve", "mine", "--json").out)["braked"] is True
    decided = cli("approve", "mine", CALL)
    assert decided.code == 0
    assert "the brake of run mine is on" in decided.err
    assert "with the --policy and the --workspace that it had" in decided.err


def test_a_call_that_does_not_wait_is_answered_with_where_to_look(cli: Cli, policy: Path) -> None:
    """The line that lists what waits works as it stands."""
    assert run(cli, policy).code == 4
    wrong = cli("approve", "mine", CALL + 1)
    assert (wrong.code, wrong.out) == (1, "")
    assert wrong.err == (
        "run mine does not wait for a decision about call 5; `affidavit approve mine` lists what it waits for\n"
    )
