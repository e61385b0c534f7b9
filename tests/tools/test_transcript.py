"""How events are laid out: one place for each column, wrapped to the screen, and nothing that could steer a terminal."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.events import Event, Kind
from affidavit.tools.terminal import Style
from affidavit.tools.transcript import Transcript
from tests.strategies import events

PIPE = Style()


def shown(event: Event, style: Style = PIPE, *, as_json: bool = False) -> str:
    """An event's lines."""
    return Transcript(style, as_json=as_json).show(event)


@given(events(), st.sampled_from([None, 20, 40, 80, 200]))
def test_no_event_can_steer_a_terminal(event: Event, width: int | None) -> None:
    """Whatever an event holds, its lines are printable text, the first with its seq, and end with a line's end."""
    text = shown(event, Style(width=width))
    lines = text.split("\n")
    assert lines.pop() == ""
    assert lines[0].startswith(f"{event.seq:>4}")
    assert all(letter.isprintable() for line in lines for letter in line)


@given(st.text(st.sampled_from("abc  \n\t-"), min_size=1, max_size=400), st.integers(20, 120))
def test_lines_fit_the_screen(text: str, width: int) -> None:
    """No line is wider than the screen, and every word of the text is there, in order."""
    event = Event(Kind.ASSISTANT, seq=7, text=text)
    lines = shown(event, Style(width=width)).splitlines()
    assert max(map(len, lines)) <= max(width, len("   7  assistant.message"))
    words = "".join("".join(lines).split()).removeprefix("7assistant.message")
    assert words == "".join(text.split())


def test_a_tool_result_is_folded_to_one_line() -> None:
    """A long result becomes one line that says how long it was."""
    event = Event(Kind.TOOL_RESULT, seq=3, tool="read_file", result="line\n" * 1000)
    text = shown(event, Style(width=80))
    assert text.count("\n") == 1
    assert len(text) <= 81
    assert text.endswith("characters)\n")


def test_the_answer_is_not_said_twice() -> None:
    """The final answer stands in full unless the line before it said it."""
    transcript = Transcript(PIPE, as_json=False)
    said = Event(Kind.ASSISTANT, seq=1, text="42")
    assert "42" in transcript.show(said)
    assert "(the answer above)" in transcript.show(Event(Kind.CONVERGED, seq=2, text="42"))
    assert "43" in transcript.show(Event(Kind.CONVERGED, seq=3, text="43"))


def test_an_unknown_kind_is_shown() -> None:
    """What this version does not know is shown with its kind and its text."""
    assert shown(Event("weather.changed", seq=9, text="rain")) == "   9  weather.changed    rain\n"


def test_refusals_and_failures_are_marked_without_colour_too() -> None:
    """The words say it, so that nobody has to see red."""
    refused = Event(Kind.ACTION_REJECTED, seq=1, action="pay", call=4, error_code="capability_denied")
    failed = Event(Kind.TOOL_RESULT, seq=2, tool="pay", result="no", is_error=True)
    blocked = Event(Kind.EGRESS_DECISION, seq=3, host="169.254.169.254", reason="link-local")
    assert "REFUSED call 4: pay (capability_denied)" in shown(refused)
    assert "pay FAILED: no" in shown(failed)
    assert "REFUSED connection to 169.254.169.254: link-local" in shown(blocked)
    ported = replace(blocked, detail={"port": 80, "name": "metadata.example"})
    assert "REFUSED connection to 169.254.169.254:80 (metadata.example): link-local" in shown(ported)
    assert "connection to [2001:db8::1]:443 allowed" in shown(
        Event(Kind.EGRESS_DECISION, seq=4, host="2001:db8::1", allowed=True, detail={"port": 443})
    )


def test_a_request_for_approval_shows_the_exact_arguments() -> None:
    """All of them, unfolded, where their tool call was shown and is the one that the request is bound to; else none."""
    arguments = '{"to": "' + "x" * 400 + '"}'
    call = Event(Kind.TOOL_CALL, seq=1, tool="pay", tool_use_id="t1", input=arguments, args_digest=b"a" * 32)
    detail: dict[str, object] = {"args": b"a" * 32, "expires": 10**18, "approvers": ["ada"], "signed": True}
    asked = Event(Kind.APPROVAL_REQUESTED, seq=2, action="pay", call=4, tool_use_id="t1", detail=detail)
    transcript = Transcript(PIPE, as_json=False)
    transcript.show(call)
    text = transcript.show(asked)
    assert "call 4: pay WAITS for approval by ada, signed, until 2001-09-09 01:46:40 UTC" in text
    assert arguments in text
    other = replace(asked, detail=detail | {"args": b"b" * 32})
    assert "x" * 400 not in transcript.show(other)
    assert "x" * 400 not in shown(asked)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            Event(
                Kind.APPROVAL_DECIDED,
                action="pay",
                call=4,
                principal="ada",
                reason="ok",
                detail={"decision": "approved"},
            ),
            "call 4: pay APPROVED by ada (on the host's word): ok",
        ),
        (
            Event(
                Kind.APPROVAL_DECIDED,
                action="pay",
                call=4,
                principal="ada",
                detail={"decision": "refused", "statement": b"x"},
            ),
            "call 4: pay REFUSED by ada (signed)",
        ),
        (
            Event(Kind.APPROVAL_DECIDED, action="pay", call=4, detail={"decision": "expired"}),
            "call 4: pay was approved by nobody in time",
        ),
        (Event(Kind.BRAKE_ENGAGED, principal="ada", reason="stop"), "BRAKE pulled by ada: stop"),
        (Event(Kind.BRAKE_RELEASED, principal="bob"), "brake released by bob"),
        (
            Event(Kind.ACTION_ADMITTED, action="pay", call=4, trust="trusted", detail={"approval": 9}),
            "call 4: pay, trusted, as approved at event 9",
        ),
    ],
)
def test_rulings_say_who_and_why(event: Event, words: str) -> None:
    """Each in a sentence of its own, and an approval says whether it was signed."""
    assert shown(event).rstrip().endswith(words)
