"""Every screen: its text at two sizes, any size at all, and nothing in it that could steer a terminal."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.events import Event, Kind
from affidavit.tools.cells import columns
from affidavit.tools.console import parts, transcript_region
from affidavit.tools.console.ink import Line
from affidavit.tools.console.screen import Frame, Screen
from affidavit.tools.console.ui import FAR, Anchor, Mode, Ui
from affidavit.tools.console.view import View, fold
from affidavit.tools.console.words_of_model import words_of_model
from tests.strategies import garbage_events
from tests.tools.console.snapshots import FOLDER, screens, text_of
from tests.tools.console.streams import RUN, SCENES, fanned_out, finished, numbered, view_of, waiting

MADE = screens()


@pytest.mark.parametrize("name", sorted(MADE))
def test_each_screen_is_as_it_was_seen(name: str) -> None:
    """The screen equals the file; `python -m tests.tools.console.snapshots` writes it anew after a look at the difference."""
    assert (FOLDER / name).read_text(encoding="utf-8") == MADE[name]


def test_no_screen_is_left_over() -> None:
    """Each file is of a screen that there is."""
    assert sorted(path.name for path in FOLDER.glob("*.txt")) == sorted(MADE)


def check(frame: Frame, width: int, height: int) -> None:
    """A frame has exactly the size of the screen, and printable text alone."""
    assert len(frame) == height
    for line in frame:
        text = "".join(piece.text for piece in line)
        assert text.isprintable()
        assert columns(text) == width
        assert not any(piece.control for piece in line)


@pytest.mark.parametrize("name", sorted(SCENES))
@pytest.mark.parametrize(
    "size", [(1, 1), (2, 2), (9, 4), (20, 8), (39, 11), (40, 12), (80, 24), (100, 5), (300, 90)]
)
def test_every_screen_fits_every_size(name: str, size: tuple[int, int]) -> None:
    """Whatever the terminal's size, a frame fills it and does not go beyond."""
    scene = SCENES[name]()
    check(Screen().frame(scene.view, scene.ui, *size), *size)


@given(
    st.lists(garbage_events(), max_size=8),
    st.integers(1, 130),
    st.integers(1, 45),
    st.sampled_from(list(Mode)),
    st.booleans(),
)
def test_any_run_can_be_shown(
    events: list[Event], width: int, height: int, mode: Mode, unfolded: bool
) -> None:
    """No event can break a frame, whatever the size and whatever is being asked."""
    view = View(RUN)
    for event in numbered(events):
        view = fold(view, event)
    asked = next(iter(view.waiting.pending), None)
    check(Screen().frame(view, Ui(mode=mode, tools=unfolded, asked=asked), width, height), width, height)


MARKDOWN = st.text(st.sampled_from("ab \n#*_`[]()<>!|-=~&;\\1.>\t\x1b\u202e\x9b世é\u0301"), max_size=200)


@given(MARKDOWN | st.text(max_size=80), st.integers(1, 60))
def test_words_of_a_model_cannot_steer_the_terminal(text: str, width: int) -> None:
    """Whatever markdown a model writes, its lines are printable text without links or control codes."""
    for line in words_of_model(text, width):
        for piece in line:
            assert piece.text.isprintable()
            assert not piece.control
            assert piece.style is None or piece.style.link is None


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<b>bold</b> &#27;[2J", "<b>bold</b> &#27;[2J"),
        ("<!-- a comment -->", "<!-- a comment -->"),
        ("[text](https://evil.example)", "text (https://evil.example)"),
        ("![alt](https://evil.example/x.png)", "!alt (https://evil.example/x.png)"),
        ("[a]: https://evil.example", "[a]: https://evil.example"),
        ("[bold red]x[/]", "[bold red]x[/]"),
    ],
)
def test_markdown_hides_nothing(written: str, shown: str) -> None:
    """HTML, comments, the target of a link and of an image, definitions and markup of the renderer are all to be seen."""
    assert "".join(piece.text for line in words_of_model(written, 78) for piece in line).strip() == shown


def test_arguments_longer_than_the_screen_can_be_turned_to_the_end() -> None:
    """Every character of what a person decides about comes by as the pages are turned."""
    arguments = "".join(f"{number:04d}," for number in range(2_000))
    (pending,) = view_of(waiting()).waiting.pending
    asked = replace(pending, arguments=arguments)
    seen = set()
    for page in range(60):
        ui = Ui(mode=Mode.APPROVE, asked=asked, page=page)
        seen |= set(text_of(Screen().frame(view_of(waiting()), ui, 80, 24)).splitlines())
    whole = "".join(sorted({line.strip() for line in seen if line.startswith("  ") and "," in line}))
    assert all(f"{number:04d}" in whole.replace("\n", "") for number in (0, 999, 1_999))


def shown_to_the_end(ui: Ui, screen: Screen, view: View, size: tuple[int, int]) -> tuple[Ui, str]:
    """The state once every page has been turned at a size, and all that was on the screen on the way."""
    seen = ""
    for page in range(10_000):
        turned = screen.having_read(view, replace(ui, page=page), *size)
        seen += text_of(screen.frame(view, turned, *size))
        ui = replace(turned, page=page)
        if turned.read.is_whole or turned.page < page:
            break
    return ui, seen


@pytest.mark.parametrize("size", [(16, 3), (40, 10), (20, 4), (80, 24), (200, 60)])
def test_what_is_approved_was_on_the_screen_whole(size: tuple[int, int]) -> None:
    """At any size it counts as read only after each page, in order: a page that is jumped over leaves it unread."""
    view = view_of(waiting())
    (pending,) = view.waiting.pending
    ui = Ui(mode=Mode.APPROVE, asked=replace(pending, arguments="".join(f"<{n:05d}>" for n in range(4_000))))
    screen = Screen()
    first = screen.having_read(view, ui, *size)
    assert not first.read.is_whole
    assert not screen.having_read(view, replace(first, page=9_999), *size).read.is_whole
    read, seen = shown_to_the_end(ui, screen, view, size)
    assert read.read.is_whole
    letters = "".join(line.removeprefix("  ") for line in seen.splitlines() if line.startswith("  "))
    assert all(f"<{n:05d}>" in letters for n in range(4_000))


@pytest.mark.parametrize("size", [(15, 40), (1, 1)])
def test_what_is_cut_at_the_edge_counts_as_read_by_nobody(size: tuple[int, int]) -> None:
    """On a screen too narrow for its lines nothing can be approved."""
    view = view_of(waiting())
    (pending,) = view.waiting.pending
    ui, _ = shown_to_the_end(Ui(mode=Mode.APPROVE, asked=pending), Screen(), view, size)
    assert not ui.read.is_whole


def test_look_alikes_are_pointed_out_where_it_is_decided() -> None:
    """Beneath the arguments stands what in them may be taken for something else, as `approve` says it."""
    view = view_of(waiting())
    (pending,) = view.waiting.pending
    ui = Ui(mode=Mode.APPROVE, asked=replace(pending, arguments='{"to": "\u0430dmin\u3164\ufe0f"}'))
    shown = text_of(Screen().frame(view, ui, 120, 40))
    assert "CYRILLIC SMALL LETTER A" in shown
    assert "dmin\\u3164\\ufe0f" in shown


def test_scrolled_back_the_screen_stands_still() -> None:
    """While a person reads what came before, new events move nothing; back at the end it follows again."""
    screen, ui, events = Screen(), Ui(), numbered(finished())
    view = View(RUN)
    for event in events[:-6]:
        view = fold(view, event)
    size = screen.transcript_size(view, ui, 80, 24)
    anchor = screen.transcript.scrolled(view, ui, *size, 4)
    assert isinstance(anchor, Anchor)
    held = replace(ui, anchor=anchor)
    before = screen.transcript.lines(view, held, *size)
    for event in events[-6:]:
        view = fold(view, event)
    assert screen.transcript.lines(view, held, *size) == before
    assert screen.transcript.scrolled(view, held, *size, -FAR) is None
    top = screen.transcript.scrolled(view, held, *size, FAR)
    lines = screen.transcript.lines(view, replace(ui, anchor=top), *size)
    assert "Find out what this project does" in "".join(piece.text for piece in lines[0])


def test_a_ring_of_parents_is_shown_all_the_same() -> None:
    """A record made elsewhere may name children as each other's parents; each still has its row."""
    children = view_of(fanned_out()).status.fanout
    ring = (replace(children[0], parent=children[1].id), replace(children[1], parent=children[0].id))
    view = view_of(fanned_out())
    view = replace(view, status=replace(view.status, fanout=ring))
    text = text_of(Screen().frame(view, Ui(), 120, 40))
    assert "audit-1" in text
    assert "audit-2" in text


def test_a_frame_sets_no_more_than_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of hundreds of long answers only the parts on the screen are set, also when a person scrolls to the oldest."""
    set_so_far = []

    def setting(text: str, width: int) -> tuple[Line, ...]:
        set_so_far.append(text)
        return words_of_model(text, width)

    monkeypatch.setattr(transcript_region, "words_of_model", setting)
    answer = "A paragraph of some words.\n\n" * 200
    view = view_of([Event(Kind.ASSISTANT, text=answer)] * 100)
    screen = Screen()
    screen.frame(view, Ui(), 80, 24)
    assert len(set_so_far) == 1
    size = screen.transcript_size(view, Ui(), 80, 24)
    for by in (3, 12, FAR):
        anchor = screen.transcript.scrolled(view, Ui(), *size, by)
        screen.frame(view, Ui(anchor=anchor), 80, 24)
    assert len(set_so_far) <= 4


def test_what_was_held_stays_on_the_screen_when_it_is_let_go() -> None:
    """Scrolled back while a run goes on for so long that those entries are kept no more, the oldest that are kept are shown."""
    view = view_of([Event(Kind.ASSISTANT, text=f"answer {number}") for number in range(450)])
    text = text_of(Screen().frame(view, Ui(anchor=Anchor((3, 0))), 80, 24))
    assert "answer 50" in text


@given(st.text(st.sampled_from("ab \n`~"), max_size=200), st.integers(4, 40))
def test_the_parts_of_a_text_are_the_text(text: str, size: int) -> None:
    """Nothing is lost or doubled by cutting, and no part is longer than one may be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART", size)
        cut = list(parts.parts_of(text))
    assert "".join(part for _, part in cut) == text
    assert all(0 < len(part) <= size for _, part in cut)


def test_a_block_of_code_that_is_cut_goes_on_as_one() -> None:
    """Every part of a long block is read as code, and what follows the block is not."""
    text = "```text\n" + "*a line*\n\n" * 400 + "```\n*words*"
    cut = list(parts.parts_of(text))
    assert len(cut) > 2
    assert [lead for lead, _ in cut] == ["", *["```\n"] * (len(cut) - 1)]
    shown = [
        "".join(piece.text for line in words_of_model(lead + part, 78) for piece in line)
        for lead, part in cut
    ]
    assert all("*a line*" in each for each in shown[:-1])
    assert "*words*" not in shown[-1]
    assert "words" in shown[-1]
