"""Commands and fetches of an agent on the command line: there only where they are named, contained, and on the record."""

import json
from pathlib import Path

import pytest
import trio

from affidavit.actors.containment.detect import detect
from tests.environment import absent
from tests.tools.commands.runner import Cli, Done

METADATA = "http://169.254.169.254/latest/meta-data"
LOOK = 'id -u; cat a.txt; ls -a "$STORE" "$HOME"; echo new > b.txt; curl -sS -m 5 http://169.254.169.254/ || true'


@pytest.fixture
def contained() -> None:
    """Commands can be contained here; without it a skip, under CI=true a failure."""
    found = trio.run(detect)
    if found.containment is None:
        absent(f"commands cannot be contained here: {found.reason}")


def agent(
    cli: Cli,
    grant: list[str],
    *calls: tuple[str, dict[str, str]],
    rules: str = "",
    store: Path | None = None,
    **more: str | None,
) -> Done:
    """Run a scripted agent that makes these calls, under a policy that grants these tools."""
    workspace = cli.home / "work"
    workspace.mkdir(exist_ok=True)
    (workspace / "a.txt").write_text("a ledger\n")
    turn = {"text": "I look.", "tool_calls": [{"name": name, "input": given} for name, given in calls]}
    (cli.home / "script.json").write_text(json.dumps({"turns": [turn, {"text": "Done."}]}))
    (cli.home / "policy.toml").write_text(f"[grant]\ntools = {json.dumps(grant)}\n{rules}")
    words = ("run", "Look", "--model", "script:script.json", "--workspace", "work", "--policy", "policy.toml")
    return cli(*words, "--store", store or cli.home / "store", "--id", "r", "--json", **more)


def events(done: Done, *kinds: str) -> list[dict[str, object]]:
    """The events of these kinds that a run printed."""
    return [event for event in map(json.loads, done.out.splitlines()) if event["kind"] in kinds]


def verified(cli: Cli, done: Done) -> Done:
    """Export the run and verify it, by the lines that the run printed."""
    lines = [
        line for line in done.err.splitlines() if line.startswith(("affidavit export", "affidavit verify"))
    ]
    results = [cli.printed(line) for line in lines]
    assert [each.code for each in results] == [0, 0]
    return results[-1]


@pytest.mark.usefixtures("contained")
def test_a_command_is_contained_and_its_refused_connection_is_on_the_record(cli: Cli) -> None:
    """It works in the workspace as nobody in particular, sees no store and no home, and reaches nothing; L4 holds."""
    done = agent(cli, ["run_command"], ("run_command", {"command": LOOK}))
    assert done.code == 0, done.err
    (result,) = events(done, "tool.result")
    text = str(result["result"])
    assert "a ledger" in text
    assert "script.json" not in text
    assert "runs" not in text
    (admitted,) = (event for event in events(done, "action.admitted") if event["action"] == "run_command")
    assert admitted["trust"] == "semi-trusted"
    assert admitted["detail"]["containment"] == "kernel"  # type: ignore[index]
    assert (cli.home / "work" / "b.txt").read_text() == "new\n"
    assert "L4" in verified(cli, done).out


def test_where_nothing_contains_it_a_command_is_refused(cli: Cli, tmp_path: Path) -> None:
    """Without bubblewrap a semi-trusted command does not run: containment_insufficient, said beforehand and recorded."""
    nothing = tmp_path / "no programs"
    nothing.mkdir()
    done = agent(cli, ["run_command"], ("run_command", {"command": "touch b.txt"}), PATH=str(nothing))
    assert done.code == 0, done.err
    assert "run_command will be refused" in done.err
    (rejected,) = events(done, "action.rejected")
    assert rejected["fault"] == "containment_insufficient"
    assert not (cli.home / "work" / "b.txt").exists()


@pytest.mark.parametrize(
    ("path", "store", "variable"),
    [
        ("store/notes", "work/store", None),
        ("secret", "store", "AFFIDAVIT_PASSPHRASE_FILE"),
        ("secret", "store", "AFFIDAVIT_SECRETS_FILE"),
        ("secret", "store", "ANTHROPIC_API_KEY_FILE"),
    ],
)
def test_what_belongs_to_the_operator_is_shown_to_no_agent(
    cli: Cli, path: str, store: str, variable: str | None
) -> None:
    """The store, or the file that a variable names for a secret, lies in the workspace: no tool reads it, and no command runs."""
    (cli.home / "work" / "store").mkdir(parents=True)
    for name in ("store/notes", "secret"):
        (cli.home / "work" / name).write_text("hunter2 hunter2")
    phrase, secrets, key = (
        "work/secret" if variable == name else None
        for name in ("AFFIDAVIT_PASSPHRASE_FILE", "AFFIDAVIT_SECRETS_FILE", "ANTHROPIC_API_KEY_FILE")
    )
    done = agent(
        cli,
        ["read_file", "run_command"],
        ("read_file", {"path": path}),
        ("run_command", {"command": f"cat {path}"}),
        store=cli.home / store,
        AFFIDAVIT_PASSPHRASE_FILE=phrase,
        AFFIDAVIT_PASSPHRASE=None if phrase else "only for tests",
        AFFIDAVIT_SECRETS_FILE=secrets,
        ANTHROPIC_API_KEY_FILE=key,
    )
    assert done.code == 0, done.err
    assert "run_command will be refused" in done.err
    (rejected,) = events(done, "action.rejected")
    assert rejected["fault"] == "containment_insufficient"
    assert "is withheld" in done.out
    assert "hunter2" not in done.out


def test_a_fetch_goes_nowhere_that_no_rule_allows(cli: Cli) -> None:
    """A link-local address is refused, the decision stands on the record, and the record verifies."""
    done = agent(cli, ["http_fetch"], ("http_fetch", {"url": METADATA}))
    assert done.code == 0, done.err
    (decision,) = events(done, "net.egress")
    assert (decision["host"], decision.get("allowed", False)) == ("169.254.169.254", False)
    assert "L4" in verified(cli, done).out


def test_nobody_has_commands_or_the_net_who_was_not_named_them(cli: Cli) -> None:
    """Neither tool exists for a run that names neither: each call is refused as unknown, on the record."""
    done = agent(
        cli, ["read_file"], ("run_command", {"command": "touch b.txt"}), ("http_fetch", {"url": METADATA})
    )
    assert [event["fault"] for event in events(done, "action.rejected")] == ["unknown_tool", "unknown_tool"]
    assert not (cli.home / "work" / "b.txt").exists()


def test_a_parked_run_finds_the_same_tools_again(cli: Cli) -> None:
    """What goal and policy name is there again on resume, so nothing has changed and nothing need be accepted."""
    rules = '[[approval]]\ntools = ["http_fetch"]\n'
    parked = agent(cli, ["http_fetch"], ("http_fetch", {"url": METADATA}), rules=rules)
    assert parked.code == 4, parked.err
    approve = next(line for line in parked.err.splitlines() if line.startswith("affidavit approve"))
    (resume,) = (line for line in parked.err.splitlines() if line.startswith("affidavit resume"))
    assert cli.printed(approve).code == 0
    again = cli.printed(resume)
    assert again.code == 0, again.err
    assert "169.254.169.254" in again.out
