"""Keys: told apart however their bytes are cut, and what each may do to a run."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.tools.console.keymap import MAX_LINE, Decide, Intent, Scroll, Stop, press, settled, typed
from affidavit.tools.console.keys import MAX_PASTE, Key, KeyReader, Name
from affidavit.tools.console.ui import Mode, Read, Typed, Ui
from affidavit.tools.console.view import View
from tests.tools.console.streams import ARGS, RUN, finished, view_of, waiting

UI = Ui(owns=True, can_decide=True)
WAITING = view_of(waiting())


def letters(text: str) -> list[Key]:
    """The keys of a text."""
    return [Key(Name.CHARACTER, each) for each in text]


def pressed(keys: list[Key], ui: Ui = UI, view: View = WAITING) -> tuple[Ui, list[Intent]]:
    """The state after keys, and all that was wanted."""
    intents = []
    for key in keys:
        ui, intent = press(ui, key, view)
        intents.append(intent)
    return ui, [each for each in intents if each is not None]


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"ay", letters("ay")),
        ("é世".encode(), letters("é世")),
        (b"\x1b[A\x1bOB\x1b[5~", [Key(Name.UP), Key(Name.DOWN), Key(Name.PAGE_UP)]),
        (b"\r\x7f", [Key(Name.ENTER), Key(Name.BACKSPACE)]),
        (b"\x1b[200~a\r\x1b[Ay\x1b[201~b", [Key(Name.PASTE, "a\r\x1b[Ay"), *letters("b")]),
        (b"\x1b[15;2~x", letters("x")),
        (b"\x00\x02", []),
    ],
)
def test_bytes_are_keys_however_they_are_cut(data: bytes, keys: list[Key]) -> None:
    """The same keys come out whether the bytes arrive at once or one by one."""
    assert KeyReader().feed(data) == keys
    reader = KeyReader()
    assert [key for at in range(len(data)) for key in reader.feed(data[at : at + 1])] == keys


def test_a_lone_escape_is_one_once_nothing_follows() -> None:
    """Escape is the beginning of other keys too, so it counts when no more has come."""
    reader = KeyReader()
    assert reader.feed(b"\x1b") == []
    assert reader.is_unsure
    assert reader.flush() == [Key(Name.ESCAPE)]
    assert not reader.is_unsure


@given(st.lists(st.binary(max_size=12), max_size=12))
def test_no_bytes_break_the_reader(pieces: list[bytes]) -> None:
    """Whatever is typed, the reader goes on, and holds a bounded part of it."""
    reader = KeyReader()
    for data in pieces:
        for key in reader.feed(data):
            assert len(key.text) <= MAX_PASTE
    reader.flush()


def test_a_paste_without_an_end_is_bounded() -> None:
    """A program that pastes for ever fills no memory, and none of it is a key."""
    reader = KeyReader()
    assert reader.feed(b"\x1b[200~") == []
    for _ in range(100):
        assert reader.feed(b"y" * 1000) == []
    (pasted,) = reader.feed(b"\x1b[201~")
    assert pasted == Key(Name.PASTE, "y" * MAX_PASTE)


def test_approving_takes_two_keys_and_names_the_arguments_that_were_shown() -> None:
    """`a` asks, `y` approves the call with the very digest on the screen; anything else leaves it waiting."""
    asked, nothing = pressed(letters("a"))
    assert (asked.mode, nothing) == (Mode.APPROVE, [])
    assert asked.asked == WAITING.waiting.pending[0]
    assert pressed(letters("y"), asked) == (asked, [])  # nothing of it has been shown yet
    asked = replace(asked, read=Read(80, 9, is_whole=True))
    after, (wanted,) = pressed(letters("y"), asked)
    assert (after.mode, wanted) == (Mode.LOOK, Decide(7, approved=True, args=ARGS))
    for key in [*letters("nqa"), Key(Name.ENTER), Key(Name.ESCAPE), Key(Name.PASTE, "y")]:
        assert pressed([key], asked)[1] == []


def test_refusing_takes_a_line() -> None:
    """`r` asks why; Enter refuses with the reason as it was edited, Escape does not."""
    keys = [*letters("rtoo mu"), Key(Name.HOME), *letters("much: "), Key(Name.END), Key(Name.BACKSPACE)]
    ui, nothing = pressed(keys)
    assert (ui.typed.text, nothing) == ("much: too m", [])
    assert pressed([Key(Name.ENTER)], ui)[1] == [Decide(7, approved=False, args=ARGS, reason="much: too m")]
    assert pressed([Key(Name.ESCAPE)], ui)[1] == []


def test_stopping_takes_the_key_twice() -> None:
    """`q` asks, a second one stops, anything else goes on."""
    assert pressed(letters("qq"))[1] == [Stop()]
    assert pressed(letters("qxq"))[1] == []


@given(st.text(max_size=40))
def test_pasted_text_does_nothing_to_a_run(text: str) -> None:
    """Nothing that is pasted decides or stops, whatever the keys meant before it."""
    paste = Key(Name.PASTE, text)
    for mode in Mode:
        ui = replace(UI, mode=mode, asked=WAITING.waiting.pending[0])
        assert press(ui, paste, WAITING)[1] is None


def test_what_cannot_be_decided_here_says_where_it_can() -> None:
    """Who only watches, or must sign, is told the command; arguments that are not on the record cannot be approved."""
    watching = pressed(letters("a"), Ui())[0]
    assert "affidavit approve" in watching.notice
    (pending,) = WAITING.waiting.pending
    signed = replace(WAITING, waiting=replace(WAITING.waiting, pending=(replace(pending, signed=True),)))
    assert "must be signed" in pressed(letters("r"), view=signed)[0].notice
    swapped = replace(WAITING, waiting=replace(WAITING.waiting, pending=(replace(pending, arguments=None),)))
    assert pressed(letters("a"), view=swapped)[0].mode is Mode.LOOK
    assert pressed(letters("r"), view=swapped)[0].mode is Mode.REFUSE
    assert "nothing waits" in pressed(letters("a"), view=View(RUN))[0].notice


def test_a_call_that_was_decided_elsewhere_is_asked_about_no_longer() -> None:
    """The question goes away with what it was about, so that `y` cannot be meant for something else."""
    asked = pressed(letters("a"))[0]
    assert settled(asked, WAITING) is asked
    after = settled(asked, view_of(finished()))
    assert (after.mode, after.asked) == (Mode.LOOK, None)
    assert "waits no longer" in after.notice


def test_keys_fold_and_scroll() -> None:
    """Panels, tools and the place in the transcript are a person's own."""
    ui, scrolled = pressed([*letters("gft"), Key(Name.UP), Key(Name.END)])
    assert (ui.governance, ui.fanout, ui.tools) == (False, False, True)
    assert [each.by > 0 for each in scrolled if isinstance(each, Scroll)] == [True, False]
    assert pressed(letters("?x"))[0].mode is Mode.LOOK


@given(
    st.lists(
        st.sampled_from([*letters("ab"), Key(Name.PASTE, "c\nd\x1b"), *map(Key, Name)]),
        max_size=30,
    )
)
def test_a_typed_line_is_one_printable_line(keys: list[Key]) -> None:
    """However it is edited, the cursor stays within it and it can be shown."""
    line = Typed()
    for key in keys:
        line = typed(line, key)
        assert 0 <= line.at <= len(line.text) <= MAX_LINE
        assert line.text.isprintable()
