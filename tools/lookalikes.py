"""Characters that a person may take for others: invisible ones, other scripts within a word, letters in disguise, escapes.

It goes by the names and classes of Unicode alone and holds no table of look-alikes, so it does not find all of them: a word that
is written in one foreign script from end to end is not pointed out. What it says can be shown on a terminal as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from affidavit.tools._verify_report import plain

_MOST: Final = 5
_SHOWN: Final = 24  # letters of a word that are shown
# What belongs to one word: a name, an address, a file's name.
_WORD: Final = re.compile(r"[\w.@-]+")
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?")
# Words of a name that say that nothing can be seen of the character; some of these count as letters.
_UNSEEN: Final = ("FILLER", "BLANK", "INVISIBLE", "VARIATION SELECTOR", "GRAPHEME JOINER")
# These are written together.
_EAST_ASIAN: Final = frozenset(
    {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"}
)


def lookalike_line(text: str) -> str:
    """Return one line that points out what may be taken for something else in a text; empty where nothing was found."""
    found = list(dict.fromkeys(_found(text)))
    if not found:
        return ""
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return f"contains characters that look like others: {'; '.join(found[:_MOST])}{more}"


def spelled_out(text: str) -> str:
    """Return a text in which every character that cannot be seen is spelled out."""
    if text.isascii():
        return plain(text)
    return plain("".join(ascii(each)[1:-1] if _is_unseen(each) else each for each in text))


def _is_unseen(letter: str) -> bool:
    if letter.isascii():
        return False
    name = unicodedata.name(letter, "a character without a name")
    return not letter.isprintable() or any(word in name for word in _UNSEEN)


def _found(text: str) -> Iterator[str]:
    for letter in dict.fromkeys(text):
        yield from _of_letter(letter)
    for word in _WORD.findall(text):
        yield from _of_word(word)
    for match in _ESCAPE.finditer(text):
        yield from _of_escape(match)


def _of_letter(letter: str) -> Iterator[str]:
    if letter.isascii():
        return
    if _is_unseen(letter):
        yield f"{_named(letter)} cannot be seen"
        return
    plainer = unicodedata.normalize("NFKC", letter)
    if plainer != letter and plainer.isascii() and plainer.strip():
        yield f"{_named(letter)} looks like {plainer}"


def _of_word(word: str) -> Iterator[str]:
    scripts: dict[str, str] = {}
    letters = [each for each in word if each.isalpha() and unicodedata.normalize("NFKC", each) == each]
    for letter in letters:
        scripts.setdefault(_script(letter), letter)
    if len(scripts) < 2:  # noqa: PLR2004 - one script alone is no mixture
        return
    common = max(scripts, key=lambda script: sum(_script(each) == script for each in letters))
    odd = ", ".join(_named(letter) for script, letter in scripts.items() if script != common)
    shown = word if len(word) <= _SHOWN else f"{word[:_SHOWN]}..."
    yield f'"{plain(shown)}" has {odd} among {common} letters'


def _of_escape(match: re.Match[str]) -> Iterator[str]:
    high, low = match.groups()
    try:
        letter = bytes.fromhex(high + (low or "")).decode("utf-16-be")
    except UnicodeDecodeError:
        return
    if len(letter) == 1 and letter.isprintable():
        yield f"{match[0]} stands for {_named(letter)}"


def _script(letter: str) -> str:
    """Return the script of a letter, as the first word of its name says it."""
    first = unicodedata.name(letter, "UNNAMED").split()[0]
    return "EAST ASIAN" if first in _EAST_ASIAN else first


def _named(letter: str) -> str:
    name = unicodedata.name(letter, "")
    shown = f"{letter} " if letter.isprintable() and not any(word in name for word in _UNSEEN) else ""
    return f"{shown}U+{ord(letter):04X}{f' {name}' if name else ''}"
