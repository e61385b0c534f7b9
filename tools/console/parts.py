"""Cuts a long answer into parts that are set one by one, so that a screen costs no more than what is to be seen on it.

Setting markdown is slow for a stranger's text of any length. Cuts fall between paragraphs where there are some, else between
lines or words; a block of code that is cut goes on as one in the next part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

PART: Final = 1_500
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


def parts_of(text: str) -> Iterator[tuple[str, str]]:
    """Go through the parts of a text: what must stand before one for it to be read as it is meant, and the part itself.

    The parts together are the text.
    """
    fence = ""
    while text:
        end = _cut(text)
        part, text = text[:end], text[end:]
        yield (f"{fence}\n" if fence else "", part)
        fence = _fence_after(part, fence)


def _cut(text: str) -> int:
    if len(text) <= PART:
        return len(text)
    for between in ("\n\n", "\n", " "):
        at = text.rfind(between, PART // 2, PART)
        if at >= 0:
            return at + len(between)
    return PART


def _fence_after(part: str, fence: str) -> str:
    """Return the mark of the block of code that is open after a part; empty for none."""
    for line in part.splitlines():
        found = _FENCE.match(line)
        if found is None:
            continue
        mark = found.group(1)
        if not fence:
            fence = mark
        elif mark[0] == fence[0] and len(mark) >= len(fence):
            fence = ""
    return fence
