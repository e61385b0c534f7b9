"""What a person at a terminal is shown of a check and of what was claimed on it."""

from affidavit.actors.events import Event, Kind
from affidavit.tools.event_words import words_of
from affidavit.tools.terminal import Style, Tone
from affidavit.tools.transcript import Transcript


def verdict(detail: str, *, passed: object) -> Event:
    """A check's verdict."""
    return Event(Kind.CHECK, seq=5, detail={"check": 4, "name": "tests", "passed": passed, "detail": detail})


def test_a_check_that_passed_is_one_line() -> None:
    """However much it printed."""
    shown = Transcript(Style(), as_json=False).show(verdict("exit code 0\n" + "line\n" * 500, passed=True))
    assert shown.startswith("   5  check              tests passed: exit code 0 line line")
    assert shown.count("\n") == 1


def test_a_check_that_failed_shows_how_its_output_ends() -> None:
    """Loudly, with its first line, its last twelve, and how many were left out."""
    output = "\n".join(["exit code 1", *(f"line {number}" for number in range(40))])
    words = words_of(verdict(output, passed=False))
    assert words.tone is Tone.BAD
    assert words.text.splitlines() == [
        "tests FAILED: exit code 1",
        "[28 lines left out]",
        *(f"line {number}" for number in range(28, 40)),
    ]
    assert words_of(verdict("", passed=False)).text == "tests FAILED"


def test_only_the_boolean_true_is_a_pass() -> None:
    """A record made elsewhere may hold anything."""
    for passed in (1, "true", None):
        assert words_of(verdict("", passed=passed)).tone is Tone.BAD


def test_an_outcome_names_the_check_that_it_rests_on() -> None:
    """With its id and its name."""
    claim = Event(Kind.OUTCOME, result="success", detail={"check": 4, "name": "tests"})
    failure = Event(Kind.OUTCOME, result="failure", detail={"check": 4, "name": "tests"})
    assert words_of(claim).text == "success, as check 4 (tests) found"
    assert words_of(failure).text == "failure, as check 4 (tests) found"
    assert (words_of(claim).tone, words_of(failure).tone) == (Tone.GOOD, Tone.BAD)
