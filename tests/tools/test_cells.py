"""Text is laid out by the columns it takes, so that none of it leaves its place on a terminal."""

import hypothesis.strategies as st
from hypothesis import given

from affidavit.tools.cells import chopped, columns, cut_cells, wrap

LINES = st.text(st.sampled_from("ab 世界é\u0301🎉-  \u0915\u0903\ufe0f\u2764"), max_size=60)


@given(LINES, st.integers(4, 30))
def test_no_wrapped_line_is_wider_than_asked(text: str, width: int) -> None:
    """Every line takes at most the columns there are, whatever width its characters have."""
    assert [line for line in wrap(text, width) if columns(line) > width] == []


@given(LINES, st.integers(4, 30))
def test_wrapping_loses_only_blanks(text: str, width: int) -> None:
    """Every character but the blanks stands in the lines, in order."""
    assert "".join("".join(wrap(text, width)).split()) == "".join(text.split())


def test_wide_text_does_not_reach_the_left_edge_as_a_line_of_its_own() -> None:
    """Forty wide characters are eighty columns: at a width of forty they are two lines, each as long as the other."""
    assert list(wrap("世" * 40, 40)) == ["世" * 20, "世" * 20]


@given(LINES, st.integers(0, 30))
def test_a_cut_line_fits_and_begins_the_text(text: str, width: int) -> None:
    """What is kept of a line is its beginning, and fits."""
    kept = cut_cells(text, width)
    assert text.startswith(kept)
    assert columns(kept) <= max(width, 0)


def test_what_terminals_disagree_about_counts_as_the_most_that_it_may_take() -> None:
    """A vowel sign is drawn in a column of its own by some, and a heart with a selector in two: neither leaves its line."""
    assert columns("\u0915\u0903" * 20) == 40
    assert columns("\u2764\ufe0f") == 2
    assert columns("e\u0301") == 1


@given(LINES, st.integers(2, 30))
def test_chopping_loses_nothing(text: str, width: int) -> None:
    """Every character stands in a line, in order, and each line fits."""
    lines = chopped(text, width)
    assert "".join(lines) == text
    assert all(columns(line) <= width for line in lines)
