"""Lays events out as lines: seq, kind, the words. Wrapped on a terminal, one width for all; nothing but plain text elsewhere.

Text from a model or a tool is escaped first, so that it can move no cursor and change no colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, final

from affidavit.actors.event_json import to_json_line
from affidavit.actors.events import Event, Kind
from affidavit.tools._verify_report import plain
from affidavit.tools.cells import columns, cut_cells, wrap
from affidavit.tools.event_words import words_of
from affidavit.tools.terminal import Style, Tone
from affidavit.tools.words import Words

_SEQ: Final = 4
_KIND: Final = 17
_INDENT: Final = _SEQ + _KIND + 4
# On a narrower screen the words of later lines begin further left.
_ROOM: Final = 34
_FOLD: Final = 160
_SAME: Final = "(the answer above)"


@final
class Transcript:
    """Turns the events of one run, in order, into text.

    It remembers the last answer, so as not to say it twice, and the open tool calls, so as to show what a person is to approve.
    """

    def __init__(self, style: Style, *, as_json: bool) -> None:
        """Lay out for a stream of this style; as JSON, one line for each event."""
        self._style = style
        self._as_json = as_json
        self._answer = ""
        self._calls: dict[tuple[str, str], Event] = {}

    def show(self, event: Event) -> str:
        """Return an event's lines, the last one ended."""
        if self._as_json:
            return to_json_line(event) + "\n"
        words = words_of(event, self._arguments(event))
        if event.kind == Kind.ASSISTANT:
            self._answer = event.text
        elif event.kind == Kind.CONVERGED and event.text and event.text == self._answer:
            words = Words(_SAME, words.tone)
        return "".join(f"{line}\n" for line in self._lines(event, words))

    def _arguments(self, event: Event) -> str | None:
        """Return the exact arguments that a request for approval is bound to, if its tool call was shown."""
        place = (event.goal, event.tool_use_id)
        if event.kind == Kind.TOOL_CALL:
            self._calls[place] = event
        elif event.kind == Kind.TOOL_RESULT:
            self._calls.pop(place, None)
        elif event.kind == Kind.APPROVAL_REQUESTED:
            call = self._calls.get(place)
            return call.input if call is not None and call.args_digest == event.detail.get("args") else None
        return None

    def _lines(self, event: Event, words: Words) -> Iterator[str]:
        width = self._style.width
        indent = _INDENT if width is None or width >= _INDENT + _ROOM else _SEQ + 2
        head = f"{event.seq:>{_SEQ}}  {plain(event.kind):<{_KIND}}"
        room = _FOLD if width is None else width - indent
        texts = [_fold(words.text, room)] if words.folded else words.text.splitlines() or [""]
        if indent != _INDENT:
            yield self._style.paint(head.rstrip(), Tone.QUIET)
        shown = list(_wrapped(texts, None if width is None else width - indent))
        for number, text in enumerate(shown):
            painted = self._style.paint(text, words.tone)
            if number == 0 and indent == _INDENT:
                yield f"{self._style.paint(head, Tone.QUIET)}  {painted}".rstrip()
            else:
                yield f"{' ' * indent}{painted}".rstrip()


def _wrapped(texts: Iterable[str], width: int | None) -> Iterator[str]:
    for text in texts:
        clean = plain(text.expandtabs(4))
        if width is None:
            yield clean
        else:
            yield from wrap(clean, width)


def _fold(text: str, room: int) -> str:
    """Return a text on one line, cut to the room there is, saying how long it was if it was cut."""
    line = " ".join(text.split())
    if columns(line) <= room:
        return line
    tail = f" ... ({len(text):,} characters)"
    if len(tail) > room // 2:
        tail = "..."
    return cut_cells(line, room - len(tail)) + tail
