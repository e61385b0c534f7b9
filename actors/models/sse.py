"""Server-sent events out of bytes, fed in pieces of any size. Pure; bounded; knows nothing of what the events mean.

The rules are those of the HTML standard, section 9.2.6: lines end with CR, LF or both, a line that begins with a colon is a
comment, an event ends with an empty line, and one that the stream's end cuts off is no event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

_BOM: Final = b"\xef\xbb\xbf"


class EventTooLarge(Exception):
    """A line or an event is beyond its bound."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event.

    Attributes:
        name: Its type; empty where the server gave none.
        data: Its data, lines joined by LF. Bytes that are not UTF-8 are replaced.
    """

    name: str
    data: str


@final
class EventReader:
    """Takes in the bytes of one stream and gives out its events."""

    def __init__(self, most: int) -> None:
        """Begin a stream.

        Args:
            most: The most bytes of one event, comments within it included.
        """
        self._most = most
        self._line: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._first = True
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that these bytes complete.

        Raises:
            EventTooLarge: The event in the making is beyond its bound.
        """
        if self._after_cr and chunk.startswith(b"\n"):
            chunk, self._after_cr = chunk[1:], False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        events: list[ServerEvent] = []
        for piece in chunk.splitlines(keepends=True):
            self._size += len(piece)
            if self._size > self._most:
                raise EventTooLarge(f"an event of more than {self._most} bytes")
            content = piece.rstrip(b"\r\n")
            self._line.append(content)
            if len(content) != len(piece):
                self._end_of_line(events)
        return events

    def _end_of_line(self, events: list[ServerEvent]) -> None:
        line = b"".join(self._line)
        self._line.clear()
        if self._first:
            self._first, line = False, line.removeprefix(_BOM)
        if line:
            self._field(line.decode("utf-8", "replace"))
            return
        if self._data:
            events.append(ServerEvent(self._name, "\n".join(self._data)))
        self._name, self._size = "", 0
        self._data = []

    def _field(self, line: str) -> None:
        # A comment begins with the colon, so its field has no name; `id` and `retry` serve reconnection, which is not done.
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
