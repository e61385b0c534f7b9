"""`run` and `watch` on terminals of their own: what is decided there, stopped there (E4), and printed elsewhere (E6)."""

import json
import termios

import pytest

from tests.tools.commands.runner import Cli, lines_that_begin
from tests.tools.console.terminals import ALL_APPROVALS, ONE_APPROVAL, seated, words_of_a_run


def test_watch_ends_on_the_same_screen_as_run(cli: Cli) -> None:
    """A second process shows what the first one shows, to the last line but the one for the keys."""
    with seated(cli, words_of_a_run(cli.home, ONE_APPROVAL), (120, 40)) as run:
        run.shows("read_file waits for approval")
        with seated(cli, ["watch", "live-1"], (120, 40)) as watch:
            watch.shows("read_file waits for approval")
            watch.type("a")
            watch.shows("decide in another terminal: affidavit approve live-1")
            run.type("a")
            run.shows("with exactly these arguments")
            run.type("y")
            assert (run.ends(), watch.ends()) == (0, 0)
            ran, watched = run.pty.glass.last.splitlines(), watch.pty.glass.last.splitlines()
    assert run.seen.startswith(b"affidavit run: starting\r\n")
    assert "converged" in ran[0]
    assert any("● verified" in line for line in ran)
    assert watched[:-1] == ran[:-1]
    # What is left on the screen of everyday: the last events, and the lines to export and verify by.
    left = run.pty.glass.after.replace("\r\n", "\n")
    assert "record.verified" in left
    done = [cli.printed(line) for line in lines_that_begin(left, "affidavit ") if "starting" not in line]
    assert [each.code for each in done] == [0, 0]


@pytest.mark.parametrize(
    "moment", ["at the first frame", "while it waits", "while a call is being decided about"]
)
@pytest.mark.parametrize("keys", ["\x03", "qq"])
def test_e4_stopping_in_the_view_parks_the_run(cli: Cli, moment: str, keys: str) -> None:
    """E4: exit code 130, the terminal as before, a line that resumes, and the store is whole, at whatever moment."""
    with seated(cli, words_of_a_run(cli.home, ALL_APPROVALS)) as seat:
        before = termios.tcgetattr(seat.pty.slave)
        seat.until(lambda: "?1049" in seat.pty.glass.modes)
        if moment != "at the first frame":
            seat.shows("list_dir waits for approval")
        if moment == "while a call is being decided about":
            seat.type("a")
            seat.shows("with exactly these arguments")
            if keys == "qq":
                seat.type("n")
        seat.type(keys)
        assert seat.ends() == 130
        assert termios.tcgetattr(seat.pty.slave) == before
    assert "?1049" not in seat.pty.glass.modes
    left = seat.pty.glass.after.replace("\r\n", "\n")
    assert "SIGINT: the run is being parked" in left
    assert cli("fsck").code == 0
    listed = [json.loads(line) for line in cli("sessions", "--json").out.splitlines()]
    if listed:
        (listed_run,) = listed
        assert listed_run["sealed"] == listed_run["events"]
        (line,) = lines_that_begin(left, "affidavit resume live-1")
        assert cli.printed(line).code == 4


def test_a_call_is_refused_with_a_reason_and_the_run_goes_on(cli: Cli) -> None:
    """What is typed as the reason stands on the record, in the name of this system's user."""
    with seated(cli, words_of_a_run(cli.home, ONE_APPROVAL)) as seat:
        seat.shows("read_file waits for approval")
        seat.type("rnot that file\r")
        assert seat.ends() == 0
    events = [json.loads(line) for line in cli("replay", "live-1", "--json").out.splitlines()]
    (decided,) = [event for event in events if event["kind"] == "approval.decided"]
    assert (decided["reason"], decided["actor"]) == ("not that file", "human")


def test_a_terminal_that_nobody_reads_does_not_block_the_run(cli: Cli) -> None:
    """The terminal takes nothing from the first frame on; the run goes on to its end, sealed, as a second process sees."""
    script = json.dumps(
        {
            "turns": [
                *(
                    {"text": "x" * 200, "tool_calls": [{"name": "list_dir", "input": {"path": "."}}]}
                    for _ in range(30)
                ),
                {"text": "done"},
            ]
        }
    )
    words = words_of_a_run(cli.home, '[grant]\ntools = ["list_dir"]\n', "--max-steps", "40")
    (cli.home / "script.json").write_text(script)
    with seated(cli, words, (300, 90)) as seat:
        watched = ""
        while "record.verified" not in watched:
            # Nobody reads the terminal meanwhile; whatever it held has long filled it.
            found = cli("watch", "live-1", "--plain")
            watched = found.out
        assert seat.ends() == 0


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (["--plain"], {}),
        ([], {"AFFIDAVIT_PLAIN": "1"}),
        ([], {"NO_COLOR": "1"}),
        ([], {"TERM": "dumb"}),
        ([], {"TERM": None}),
        ([], {"LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
        (["--json"], {}),
    ],
)
def test_e6_lines_are_printed_wherever_they_are_asked_for(
    cli: Cli, words: list[str], environment: dict[str, str | None]
) -> None:
    """E6: on a terminal that is not a full one, or for who asks, there is no full screen, and every event has its lines."""
    run = words_of_a_run(cli.home, '[grant]\ntools = ["list_dir", "read_file"]\n', *words)
    with seated(cli, run, (80, 24), **environment) as seat:
        code = seat.ends()
    assert code == 0
    assert "?1049" not in seat.pty.glass.modes
    assert b"\x1b[?" not in seat.seen
    assert b"session.converged" in seat.seen


@pytest.mark.parametrize("command", ["run", "watch"])
def test_e6_what_is_redirected_has_no_codes(cli: Cli, command: str) -> None:
    """E6: into a pipe go lines without a single control character, however good the terminal is that started it."""
    ran = cli(
        *words_of_a_run(cli.home, '[grant]\ntools = ["list_dir", "read_file"]\n'), TERM="xterm-256color"
    )
    shown = ran if command == "run" else cli("watch", "live-1", TERM="xterm-256color")
    assert shown.code == 0
    assert "starting" not in shown.err
    assert "session.converged" in shown.out
    assert all(letter.isprintable() for letter in shown.out.replace("\n", ""))


def test_e4_a_terminal_that_is_closed_parks_the_run(cli: Cli) -> None:
    """E4: the window is closed while the run waits; it is parked and sealed, and another terminal resumes it."""
    with seated(cli, words_of_a_run(cli.home, ALL_APPROVALS)) as seat:
        seat.shows("list_dir waits for approval")
        seat.hang_up()
        assert seat.process.wait(60) == 130
    (listed,) = [json.loads(line) for line in cli("sessions", "--json").out.splitlines()]
    assert listed["sealed"] == listed["events"]
    with seated(cli, ["resume", "live-1", "--workspace", "workspace", "--policy", "policy.toml"]) as seat:
        seat.shows("list_dir waits for approval")
        assert "> What is this?" in seat.pty.glass.text
        seat.type("\x03")
        assert seat.ends() == 130


def test_e4_watching_can_be_left_and_taken_up_again(cli: Cli) -> None:
    """E4: leaving a watch harms no run, says where to go on, and from there what came before is not in the transcript."""
    cli(*words_of_a_run(cli.home, ONE_APPROVAL, "--no-wait"))
    with seated(cli, ["watch", "live-1"]) as seat:
        seat.shows("read_file waits for approval")
        seat.type("qq")
        assert seat.ends() == 130
    left = seat.pty.glass.after
    assert "stopped watching; the run is not affected" in left
    after = left.partition("To go on: --after ")[2].split()[0]
    with seated(cli, ["watch", "live-1", "--after", after]) as seat:
        seat.shows("waits for you")
        seat.type("q")
        seat.shows("q again leaves")
        seat.type("q")
        assert seat.ends() == 130
