"""What the wire formats share: how an answer is put together, what can be wrong with it, and how its JSON is read. Pure."""

from __future__ import annotations

import json
from typing import Final, Protocol, cast

from affidavit.actors.models.port import ModelReply
from affidavit.actors.models.sse import ServerEvent

MAX_REPLY_CHARS: Final = 4 * 1024 * 1024
MAX_CALLS: Final = 128
MAX_REASON_CHARS: Final = 64
_MAX_COUNT: Final = 2**53


class BadChunk(Exception):
    """An event that is not of this protocol, or more of them than any turn needs; the text says which."""


class Spliced(BadChunk):
    """What came belongs to another answer than what came before: something on the way mixed two streams."""


class StreamedFailure(Exception):
    """The endpoint reported a failure in the middle of its stream.

    Attributes:
        error: The error as it was sent.
    """

    def __init__(self, error: object) -> None:
        super().__init__("the endpoint reported a failure in its stream")
        self.error = error


class Assembly(Protocol):
    """An answer in the making."""

    @property
    def begun(self) -> bool:
        """Whether there is any content yet."""
        ...

    @property
    def finished(self) -> bool:
        """Whether the endpoint said that the turn is over."""
        ...

    @property
    def ended(self) -> bool:
        """Whether it said that its stream is over too, so that nothing more will come."""
        ...

    def add(self, event: ServerEvent) -> None:
        """Take in one event.

        Raises:
            BadChunk: It is not of this protocol, belongs to another answer (`Spliced`), or makes the answer too large.
            StreamedFailure: It reports an error.
        """
        ...

    def reply(self) -> ModelReply:
        """Return the answer as it stands."""
        ...


def parse_object(data: str) -> dict[str, object]:
    """Return the JSON object that an event's data is.

    Raises:
        BadChunk: It is none.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadChunk("something that is not JSON") from error
    if not isinstance(value, dict):
        raise BadChunk("JSON that is not an object")
    return cast("dict[str, object]", value)


def as_object(value: object) -> dict[str, object]:
    """Return a JSON object, or an empty one for anything else."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def as_text(value: object) -> str:
    """Return a JSON string, or an empty one for anything else."""
    return value if isinstance(value, str) else ""


def as_reason(value: object) -> str:
    """Return why a turn ended, in the endpoint's own word; one that is too long to be a word is `unknown`, never shortened."""
    reason = as_text(value)
    return reason if len(reason) <= MAX_REASON_CHARS else "unknown"


def as_index(value: object) -> int | None:
    """Return a JSON integer that is no boolean, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_count(value: object) -> int:
    """Return a count of tokens, or 0 for what is none."""
    count = as_index(value)
    return count if count is not None and 0 <= count < _MAX_COUNT else 0
