"""What is pointed out in the arguments that a person is to approve."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.tools.lookalikes import lookalike_line

HEAD = "contains characters that look like others: "


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            '{"to": "p\u0430ypal"}',
            '"p\u0430ypal" has \u0430 U+0430 CYRILLIC SMALL LETTER A among LATIN letters',
        ),
        ('{"to": "\u0430\u0440\u0440.com"}', "m U+006D LATIN SMALL LETTER M"),
        ("AC\u200bME", "U+200B ZERO WIDTH SPACE cannot be seen"),
        ("AC\u202eME", "U+202E RIGHT-TO-LEFT OVERRIDE cannot be seen"),
        ("AC\u3164ME", "U+3164 HANGUL FILLER cannot be seen"),
        ("\uff21CME", "\uff21 U+FF21 FULLWIDTH LATIN CAPITAL LETTER A looks like A"),
        ("\U0001d400CME", "U+1D400 MATHEMATICAL BOLD CAPITAL A looks like A"),
        ('{"to": "\\u0430cme"}', "\\u0430 stands for \u0430 U+0430 CYRILLIC SMALL LETTER A"),
        ('{"to": "\\u0041cme"}', "\\u0041 stands for A U+0041 LATIN CAPITAL LETTER A"),
        ('{"to": "\\ud835\\udc00"}', "stands for \U0001d400 U+1D400"),
    ],
)
def test_what_may_be_taken_for_something_else(text: str, found: str) -> None:
    """Named by its code point and by its name, and shown where it can be seen."""
    line = lookalike_line(text)
    if "\u0440" in text:
        assert line.startswith(f'{HEAD}"\u0430\u0440\u0440.com" has ')
    else:
        assert line == HEAD + found or found in line


@pytest.mark.parametrize(
    "text",
    [
        '{"to": "ACME", "amount": "200.50"}',
        "Grüße aus Zürich, naïve café",
        "счёт за ноябрь and the invoice",
        "請求書を送ってください カタカナ",
        "서울에서 회의",
        "x = 3 µs",
        '{"n": "\\n and \\u000a"}',
        "",
    ],
)
def test_what_people_write_is_left_alone(text: str) -> None:
    """Accents, whole words of another script, and scripts that are written together."""
    assert lookalike_line(text) == ""


def test_only_the_first_few_are_named() -> None:
    """And how many more there are."""
    line = lookalike_line("".join(chr(0xFF21 + n) + " " for n in range(9)))
    assert line.endswith("; and 4 more")
    assert line.count("looks like ") == 5


@given(st.text(max_size=80))
def test_what_is_said_cannot_steer_a_terminal(text: str) -> None:
    """Whatever the text holds, the line is one line of printable letters."""
    assert all(letter.isprintable() for letter in lookalike_line(text))
