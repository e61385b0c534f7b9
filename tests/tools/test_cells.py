"""Text is laid out by the columns it takes, so that none of it leaves its place on a terminal."""

import hypothesis.strategies as st
from hypothesis import given

from affidavit.tools.cells import columns, cut_cells, wrap

LINES = st.text(st.sampled_from("ab 世界é\u0301🎉-  "), max_size=60)


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
