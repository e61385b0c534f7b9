"""Tables: as wide as the terminal and never wider, plain columns in a pipe, and nothing in a cell that could steer a screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.tools.cells import columns
from affidavit.tools.tables import Cell, Column, table_text
from affidavit.tools.terminal import Style, Tone

HEADS = (Column("ID"), Column("SIZE", right=True, spare=True), Column("WORDS", flexible=True))
ROWS = (
    (Cell("one"), Cell("7"), Cell("short", Tone.GOOD)),
    (Cell("number-two"), Cell("1234"), Cell("words that go on " * 8, Tone.BAD)),
)


def test_in_a_pipe_columns_are_plain() -> None:
    """Padded with blanks, nothing cut that is not very long, no blanks at the ends of lines, and no colour."""
    assert table_text(Style(), HEADS, ROWS) == (
        "ID          SIZE  WORDS\n"
        "one            7  short\n"
        f"number-two  1234  {('words that go on ' * 8).rstrip()}\n"
    )


def test_on_a_terminal_the_last_column_is_cut_to_fit() -> None:
    """Every line fits, and what was cut is marked."""
    text = table_text(Style(width=40), HEADS, ROWS)
    assert text == (
        "ID          SIZE  WORDS\none            7  short\nnumber-two  1234  words that go on wo...\n"
    )


def test_a_narrow_terminal_goes_without_what_can_be_spared() -> None:
    """A column to spare is left out before the flexible one gets less than it needs."""
    assert table_text(Style(width=30), HEADS, ROWS).splitlines()[0] == "ID          WORDS"


def test_colour_is_shown_where_it_may_be() -> None:
    """Tones become escapes on a terminal that shows them, and only there."""
    assert "\x1b[32mshort" in table_text(Style(colour=True, width=80), HEADS, ROWS)
    assert "\x1b" not in table_text(Style(width=80), HEADS, ROWS)


@given(
    text=st.text(max_size=60),
    width=st.integers(40, 120) | st.none(),
    colour=st.booleans(),
)
def test_no_text_can_break_a_row(text: str, width: int | None, colour: bool) -> None:
    """Whatever a cell holds, each row is one line, as wide as the terminal at most."""
    heads = (Column("A"), Column("B", flexible=True))
    lines = table_text(Style(False, width), heads, [(Cell("x"), Cell(text))]).split("\n")
    assert len(lines) == 3
    assert width is None or all(columns(line) <= width for line in lines)
    if colour and width:
        assert len(table_text(Style(True, width), heads, [(Cell("x"), Cell(text))]).split("\n")) == 3


@pytest.mark.parametrize("width", [20, 80])
def test_a_long_cell_that_is_not_flexible_is_folded_whole(width: int) -> None:
    """An id is never cut, since it is there to be copied."""
    name = "run-" + "x" * 30
    text = table_text(
        Style(width=width), (Column("ID"), Column("WORDS", flexible=True)), [(Cell(name), Cell("w"))]
    )
    assert name in text.replace("\n", "").replace(" ", "").replace("IDWORDS", "").replace("w", "")
