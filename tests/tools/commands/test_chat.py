"""`affidavit chat`: turns of one run, said on standard input; each is driven and sealed before the next is asked for."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.tools.commands.runner import COMMAND, SECONDS, Cli, lines_that_begin

PAY = {
    "text": "I pay.",
    "tool_calls": [{"name": "read_file", "input": {"path": "note.txt"}, "id": "t1"}],
}
ASKING = "grant.tools = ['read_file']\n[[approval]]\ntools = ['read_file']\n"


@pytest.fixture
def model(cli: Cli) -> str:
    """A model that has three answers."""
    return script(cli, {"text": "Four."}, {"text": "Because."}, {"text": "Bye."})


def script(cli: Cli, *turns: object) -> str:
    """A model that says these turns, as the command line names it."""
    path = cli.home / "answers.json"
    path.write_text(json.dumps({"turns": turns}))
    return f"script:{path}"


def said(cli: Cli, run_id: str = "@last") -> list[str]:
    """What was said in a run and answered, in order."""
    events = [json.loads(line) for line in cli("replay", run_id, "--json").out.splitlines()]
    return [
        event["text"]
        for event in events
        if event["kind"] in {"session.started", "user.message", "assistant.message"}
    ]


def test_each_line_is_a_turn_of_one_run_and_the_record_verifies(cli: Cli, model: str) -> None:
    """Blank lines say nothing, a backslash joins lines, /exit ends it; one run, sealed to its end."""
    done = cli.told("Two and two?\n\n  \nWhy?\\\nReally?\n/exit\nnot said\n", "chat", "--model", model)
    assert done.code == 0, done.err
    assert said(cli) == ["Two and two?", "Four.", "Why?\nReally?", "Because."]
    assert "you> " not in done.out
    assert "verified, sealed 9/9)" in done.out
    export, verify, again = lines_that_begin(done.out, "affidavit ")
    assert cli.printed(export).code == 0
    assert cli.printed(verify).code == 0
    assert again.startswith("affidavit chat ")
    assert cli("sessions", "--json").out.count("\n") == 1


def test_a_conversation_is_gone_on_with_by_name_and_from_the_list(cli: Cli, model: str) -> None:
    """The last line needs no end; the list is numbered, newest first."""
    assert cli.told("Two and two?", "chat", "--model", model).code == 0
    again = cli.told("Why?", "chat", "@last")
    assert again.code == 0
    assert "going on with run " in again.err
    picked = cli.told("1\nThen?\n", "chat", "--pick")
    assert picked.code == 0, picked.err
    assert "Which one? 1 to 1:" in picked.err
    assert said(cli) == ["Two and two?", "Four.", "Why?", "Because.", "Then?", "Bye."]


@pytest.mark.parametrize("choice", ["", "0\n", "2\n", "one\n"])
def test_a_choice_that_is_none_is_said_to_be_that(cli: Cli, model: str, choice: str) -> None:
    """One sentence, and exit code 2."""
    cli.told("Two and two?", "chat", "--model", model)
    picked = cli.told(choice, "chat", "--pick")
    assert picked.code == 2
    assert "write a number from 1 to 1" in picked.err
    assert "Traceback" not in picked.err


def test_a_turn_that_stalls_is_told_and_the_next_goes_on(cli: Cli, model: str) -> None:
    """The exit code is that of the last turn, and the conversation is on the record all the same."""
    done = cli.told("1?\n2?\n3?\n4?\n", "chat", "--model", model)
    assert done.code == 1
    assert "stalled: the model could not be asked" in done.out
    assert said(cli) == ["1?", "Four.", "2?", "Because.", "3?", "Bye.", "4?"]


def test_nothing_said_begins_nothing(cli: Cli, model: str) -> None:
    """No run, no key, and a sentence."""
    done = cli.told("\n  \n", "chat", "--model", model)
    assert (done.code, done.out) == (0, "")
    assert "nothing was said" in done.err
    assert "there is no store" in cli("sessions").err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("chat",), "--model"),
        (("chat", "nobody"), "there is no store"),
        (("chat", "@last", "--pick"), "--pick"),
        (("chat", "--model", "script:x", "--tools", "read_file"), "--workspace"),
        (
            ("chat", "--model", "script:x", "--tools", "http_fetch,nothing", "--workspace", "."),
            "no tool 'nothing'",
        ),
    ],
)
def test_misuse_is_one_sentence(cli: Cli, words: tuple[str, ...], sentence: str) -> None:
    """Exit code 2, and what to do."""
    done = cli.told("hello\n", *words)
    assert done.code == 2
    assert sentence in done.err
    assert "Traceback" not in done.err


def test_a_line_that_is_too_long_is_refused_and_what_was_said_stands(cli: Cli, model: str) -> None:
    """The turns before it are sealed."""
    done = cli.told(b"Two and two?\n" + b"x" * 400_000 + b"\n", "chat", "--model", model)
    assert done.code == 2
    assert "longer than" in done.err
    assert said(cli) == ["Two and two?", "Four."]


def test_bytes_that_are_no_text_are_marked(cli: Cli, model: str) -> None:
    """They become U+FFFD, and break nothing."""
    assert cli.told(b"Two \xff?\n", "chat", "--model", model).code == 0
    assert said(cli)[0] == "Two \ufffd?"


def test_a_turn_that_needs_a_person_parks_in_a_pipe_and_is_gone_on_with(cli: Cli) -> None:
    """Exit code 4 with the line that decides; once approved, `chat` takes the turn to its end before it asks for more."""
    (cli.home / "note.txt").write_text("hello")
    (cli.home / "policy.toml").write_text(ASKING)
    model = script(cli, PAY, {"text": "It says hello."}, {"text": "Bye."})
    options = ("--model", model, "--workspace", ".", "--policy", "policy.toml")
    parked = cli.told("What does the note say?\nAnd now?\n", "chat", *options)
    assert parked.code == 4, parked.err
    (decide, *_) = lines_that_begin(parked.err, "affidavit approve")
    assert cli.printed(decide).code == 0
    done = cli.told("And now?\n", "chat", "@last", *options)
    assert done.code == 0, done.err
    assert said(cli)[-3:] == ["It says hello.", "And now?", "Bye."]


def test_json_is_events_alone(cli: Cli, model: str) -> None:
    """Each line of standard output is one event; what people are told is on standard error."""
    done = cli.told("1?\n2?\n", "chat", "--model", model, "--json")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert "affidavit export" in done.err


@contextmanager
def at_a_terminal(cli: Cli, model: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A chat that is typed to, and the end of its terminal that a person types at; its output is piped."""
    owner, terminal = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "chat", "--model", model, "--plain"],
        cwd=cli.home,
        env=cli.environment(),
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as chat:
        os.close(terminal)
        try:
            yield chat, owner
        finally:
            # A test that fails hangs up, so that the chat ends as well.
            os.close(owner)


def test_a_paste_of_several_lines_is_one_message(cli: Cli, model: str) -> None:
    """On a terminal they come together and are said together; none of them is taken for a key of the view."""
    with at_a_terminal(cli, model) as (chat, owner):
        assert chat.stdout is not None
        assert chat.stdout.read(5) == "you> "
        os.write(owner, b"Two and two?\nq\nq\nin words\n")
        for line in chat.stdout:
            if "verified, sealed 9/9)" in line:
                break
        os.write(owner, b"/exit\n")
        chat.communicate(timeout=SECONDS)
    assert chat.returncode == 0
    assert said(cli) == ["Two and two?\nq\nq\nin words", "Four."]


def test_e4_ctrl_c_at_the_prompt_leaves_and_says_how_to_go_on(cli: Cli, model: str) -> None:
    """E4: on a terminal, between two turns: exit 130 at once, the record sealed, the line that goes on with it."""
    with at_a_terminal(cli, model) as (chat, owner):
        assert chat.stdout is not None
        os.write(owner, b"Two and two?\n")
        # The prompt has no end of line, and comes before the first line and after the summary of the turn.
        for line in chat.stdout:
            if "verified, sealed 9/9)" in line:
                break
        assert chat.stdout.read(5) == "you> "
        chat.send_signal(signal.SIGINT)
        _, told = chat.communicate(timeout=SECONDS)
    assert chat.returncode == 130
    (again,) = lines_that_begin(told, "affidavit chat ")
    assert cli("fsck").code == 0
    assert cli.printed(f"echo Why? | {again}").code == 0
    assert said(cli) == ["Two and two?", "Four.", "Why?", "Because."]
