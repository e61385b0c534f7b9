"""Work that an agent hands on, on the command line: agents of a policy, what is shown, decided and cancelled, goal by goal."""

import json
import signal
from pathlib import Path

import pytest

from tests.tools.commands.endpoint import held_endpoint
from tests.tools.commands.runner import Cli, Done, lines_that_begin

METADATA = "http://169.254.169.254/latest/meta-data"
READER = """
[[agent]]
name = "reader"
system = "You read."
tools = ["read_file", "http_fetch"]
model = "script:reader.json"
"""


def script(cli: Cli, name: str, *turns: dict[str, object]) -> str:
    """Write a script beside the command, and return the model that it is."""
    (cli.home / f"{name}.json").write_text(json.dumps({"turns": turns}))
    return f"script:{name}.json"


def turn(*calls: tuple[str, dict[str, object]]) -> dict[str, object]:
    """A turn that makes these calls."""
    return {"text": "", "tool_calls": [{"name": name, "input": given} for name, given in calls]}


def spawn(objective: str, agent: str = "reader") -> tuple[str, dict[str, object]]:
    """A call that hands work to an agent."""
    return "spawn", {"objective": objective, "agent": agent}


@pytest.fixture
def work(cli: Cli) -> tuple[object, ...]:
    """The words of a run that hands one thing to a reader, which reads a file."""
    (cli.home / "work").mkdir()
    (cli.home / "work" / "a.txt").write_text("a ledger\n")
    policy(cli, READER)
    script(cli, "reader", turn(("read_file", {"path": "a.txt"})), {"text": "It is a ledger."})
    model = script(cli, "root", turn(spawn("Read a.txt")), {"text": "Done."})
    return ("--model", model, "--workspace", "work", "--policy", "policy.toml")


def policy(cli: Cli, rules: str) -> None:
    """Write a policy that lets a run read, fetch and hand work on."""
    head = '[grant]\ntools = ["read_file", "http_fetch", "spawn"]\n'
    (cli.home / "policy.toml").write_text(head + rules)


def begin(cli: Cli, words: tuple[object, ...], *more: object, **variables: str) -> Done:
    """Run to the end, or until it is parked."""
    return cli("run", "Look", "--id", "mine", *words, *more, **variables)


def recorded(cli: Cli, *kinds: str) -> list[dict[str, object]]:
    """The run's events of some kinds."""
    every = [json.loads(line) for line in cli("replay", "mine", "--json").out.splitlines()]
    return [event for event in every if event["kind"] in kinds]


def test_a_run_hands_work_to_an_agent_of_its_policy(cli: Cli, work: tuple[object, ...]) -> None:
    """With a model of its own; each line says of which goal it is, the end counts the children, and the record verifies."""
    done = begin(cli, work)
    assert (done.code, "Probably" in done.err) == (0, False)
    assert "child 2, reader on script:reader.json: Read a.txt" in done.out
    assert "[2] read_file gave a ledger" in done.out
    assert "child 2 ended: It is a ledger." in done.out
    assert lines_that_begin(done.out, "children ") == ["children   1 done"]
    (spawned,) = recorded(cli, "child.spawned")
    assert spawned["child"] == "mine.2"
    assert [cli.printed(line).code for line in lines_that_begin(done.out, "affidavit ")] == [0, 0]


def test_spawn_alone_gives_children_that_are_like_their_parent(cli: Cli) -> None:
    """Named by --tools, without any policy or workspace; without it there is no such tool."""
    model = script(cli, "same", turn(("spawn", {"objective": "The same again"})), {"text": "Done."})
    named = cli("run", "Look", "--model", model, "--tools", "spawn", "--id", "mine")
    assert named.code == 0
    assert lines_that_begin(named.out, "children ") == ["children   2 done"]
    (refused,) = recorded(cli, "action.rejected")
    assert refused["errorCode"] == "capability_denied"
    assert "this goal is not granted the tool 'spawn'" in named.out
    without = cli("run", "Look", "--model", model, "--id", "other")
    assert "there is no tool named 'spawn'" in without.out


def test_an_agent_whose_model_cannot_be_opened_is_named(cli: Cli, work: tuple[object, ...]) -> None:
    """One sentence, exit code 2, and no run has begun."""
    policy(cli, '[[agent]]\nname = "reader"\nmodel = "openai"\n')
    done = begin(cli, work)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "agent 'reader': no model 'openai': choose" in done.err
    assert cli("replay", "mine").code == 2


def test_an_agents_own_model_is_reached_as_the_childs_own_connection(
    cli: Cli, work: tuple[object, ...]
) -> None:
    """Its endpoint is granted to the child, and so is nothing else: a blocked fetch of the child bears its goal (G8)."""
    with held_endpoint() as gate:
        gate.answer.set()
        policy(
            cli, READER.replace("script:reader.json", "openai:m") + READER.replace('"reader"', '"fetcher"')
        )
        script(cli, "reader", turn(("http_fetch", {"url": METADATA})), {"text": "Nothing."})
        script(cli, "root", turn(spawn("Think"), spawn("Fetch", "fetcher")), {"text": "Done."})
        done = begin(cli, work[:2] + work[4:], "--tools", "http_fetch,spawn", OPENAI_BASE_URL=gate.url)
    assert done.code == 0, done.err
    children = {event["text"]: event["child"] for event in recorded(cli, "child.spawned")}
    decisions = recorded(cli, "net.egress")
    assert {(event["goal"], event["host"], event.get("allowed", False)) for event in decisions} == {
        (children["Think"], "127.0.0.1", True),
        (children["Fetch"], "169.254.169.254", False),
    }


def test_a_childs_call_is_approved_from_another_terminal(cli: Cli, work: tuple[object, ...]) -> None:
    """What waits says of which child it is; approved, the resumed run goes on, and the model is opened anew."""
    policy(cli, READER + '[[approval]]\ntools = ["read_file"]\n')
    parked = begin(cli, work)
    assert parked.code == 4
    assert "read_file of child 2 waits for approval" in parked.err
    assert "children   1 running" in parked.err
    listed = cli("approve", "mine")
    assert "read_file of child 2 waits for approval" in listed.out
    assert json.loads(cli("approve", "mine", "--json").out)["goal"] == "mine.2"
    (line,) = lines_that_begin(listed.out, "affidavit approve mine ")[:1]
    decided = cli.printed(f"{line} --as ada")
    assert (decided.code, decided.out.splitlines()[0]) == (
        0,
        "approved call 4 (read_file of child 2), by ada",
    )
    (resume,) = lines_that_begin(parked.err, "affidavit resume ")
    ended = cli.printed(resume)
    assert ended.code == 0, ended.err
    assert "child 2 ended: It is a ledger." in ended.out
    assert len(recorded(cli, "approval.requested")) == 1


@pytest.mark.parametrize("named", ["2", "mine.2", "mine."])
def test_one_child_of_a_run_that_nobody_drives_is_cancelled(
    cli: Cli, work: tuple[object, ...], named: str
) -> None:
    """By the last part of its id, the whole, or a beginning; the resumed run goes on without it, and once is enough."""
    policy(cli, READER + '[[approval]]\ntools = ["read_file"]\n')
    assert begin(cli, work).code == 4
    done = cli("cancel", "mine", "--goal", named, "--reason", "not needed", "--as", "ada")
    assert (done.code, lines_that_begin(done.out, "children ")) == (0, ["children   1 failed"])
    assert "affidavit resume mine" in done.err
    again = cli("cancel", "mine", "--goal", named)
    assert (again.code, again.err) == (1, "goal mine.2 has ended already\n")
    resumed = cli("resume", "mine", *work)
    assert resumed.code == 0, resumed.err
    phases = [event for event in recorded(cli, "goal.phase") if event.get("principal")]
    assert [(event["goal"], event["principal"], event["errorClass"]) for event in phases] == [
        ("mine.2", "ada", "cancelled")
    ]
    assert "child 2 FAILED: not needed" in cli("replay", "mine").out


def test_one_child_of_a_run_of_another_terminal_is_cancelled_by_its_owner(
    cli: Cli, work: tuple[object, ...]
) -> None:
    """The owner ends it in the asker's name, and drives the run to its end."""
    with held_endpoint() as gate:
        policy(cli, READER.replace("script:reader.json", "openai:m"))
        with cli.going("run", "Look", "--id", "mine", *work, OPENAI_BASE_URL=gate.url) as owner:
            assert gate.asked.wait(30)
            done = cli("cancel", "mine", "--goal", "2", "--as", "ada", AFFIDAVIT_PASSPHRASE=None)
            told, _ = owner.communicate(timeout=60)
    assert (done.code, done.err, owner.returncode) == (0, "", 0)
    assert "child 2 FAILED: cancelled on request" in told
    (phase,) = [event for event in recorded(cli, "goal.phase") if event.get("principal")]
    assert (phase["principal"], phase["causationID"]) == ("ada", "mine.inbox/1")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_stops_while_a_child_works_takes_it_up_again(
    cli: Cli, work: tuple[object, ...], how: signal.Signals
) -> None:
    """Interrupted, or killed: resumed in another process, the child asks its own model again and folds back once (E4, S9)."""
    with held_endpoint() as gate:
        url = {"OPENAI_BASE_URL": gate.url}
        policy(cli, READER.replace("script:reader.json", "openai:m"))
        with cli.going("run", "Look", "--id", "mine", *work, **url) as owner:
            assert gate.asked.wait(30)
            owner.send_signal(how)
            _, said = owner.communicate(timeout=60)
        gate.answer.set()
        resumed = cli("resume", "mine", *work, **url)
    assert owner.returncode == (130 if how == signal.SIGINT else -how)
    assert ("children   1 running" in said) is (how == signal.SIGINT)
    assert resumed.code == 0, resumed.err
    assert "child 2 ended: Now it is done." in resumed.out
    (completed,) = recorded(cli, "child.completed")
    assert completed["child"] == "mine.2"
    assert cli("fsck").code == 0


def test_a_goal_that_is_none_is_said_in_one_sentence(cli: Cli, work: tuple[object, ...]) -> None:
    """With those that there are; of a run that has ended, that it has."""
    policy(cli, READER + '[[approval]]\ntools = ["read_file"]\n')
    assert begin(cli, work).code == 4
    none = cli("cancel", "mine", "--goal", "9")
    assert (none.code, none.err) == (
        2,
        "affidavit: run mine has handed work to no goal '9'; there are mine.2; see `affidavit cancel --help`\n",
    )
    assert cli("cancel", "mine").code == 0
    ended = cli("cancel", "mine", "--goal", "2")
    assert (ended.code, ended.err) == (1, "run mine has ended already\n")


def test_a_policy_whose_agents_nobody_can_reach_is_doubted(cli: Cli, tmp_path: Path) -> None:
    """Said by `policy check`."""
    (tmp_path / "p.toml").write_text('[[agent]]\nname = "a"\n')
    assert "[[agent]] has no effect: the tool 'spawn' is not granted" in cli("policy", "check", "p.toml").out
