"""What a run has begun and not ended: actions, tool calls, goals that work was handed to. A fold that keeps ids alone.

It tells whether anything is owed to the transcript, so that only then the log is read to say what; see `recovery`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

from affidavit.actors.events import Event, Kind

# An action by its call, a tool call by its goal and id, a goal by its id. One set, since each session that waits has one.
_End = int | tuple[str, str] | str


@final
class OpenEnds:
    """The open ends of one run. Total: an end that was never begun changes nothing."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        """Begin with an empty stream."""
        self._open: set[_End] = set()

    def apply(self, event: Event) -> None:
        """Fold one event of the run."""
        step = _STEPS.get(event.kind)
        if step is not None:
            step(self._open, event)

    @property
    def has_actions(self) -> bool:
        """Whether an action has begun and not ended."""
        return any(isinstance(end, int) for end in self._open)

    def left_by(self, events: Iterable[Event]) -> bool:
        """Tell whether anything would be open still, once these events are recorded as well."""
        after = OpenEnds()
        after._open |= self._open
        for event in events:
            after.apply(event)
        return bool(after._open)


_Step = Callable[[set[_End], Event], None]

_STEPS: Final[dict[str, _Step]] = {
    Kind.ACTION_ADMITTED: lambda ends, event: ends.add(event.call),
    Kind.ACTION_COMPLETED: lambda ends, event: ends.discard(event.call),
    Kind.ACTION_REJECTED: lambda ends, event: ends.discard(event.call),
    Kind.TOOL_CALL: lambda ends, event: ends.add((event.goal, event.tool_use_id)),
    Kind.TOOL_RESULT: lambda ends, event: ends.discard((event.goal, event.tool_use_id)),
    Kind.CHILD_SPAWNED: lambda ends, event: ends.add(event.child),
    Kind.CHILD_COMPLETED: lambda ends, event: ends.discard(event.child),
}
