"""Whether a record reaches the end of its run, told from the types of its events alone."""

from typing import Final, final

TERMINAL_TYPES: Final = frozenset({"session.converged", "session.stalled"})
# What the sealer adds about the record itself; it may follow the end of a run.
RECORD_TYPES: Final = frozenset({"spine.record", "record.sealed", "record.verified", "record.rejected"})
_OURS: Final = TERMINAL_TYPES | {"session.started"}


@final
class CompletenessFold:
    """Takes the types of a record's events in order."""

    __slots__ = ("_last", "_speaks_ours")

    def __init__(self) -> None:
        self._last = ""
        self._speaks_ours = False

    def add(self, event_type: str) -> None:
        """Take the next event's type."""
        if event_type not in RECORD_TYPES:
            self._last = event_type
            self._speaks_ours = self._speaks_ours or event_type in _OURS

    def part(self) -> tuple[str, bool]:
        """Return what was taken, for another fold to join."""
        return self._last, self._speaks_ours

    def join(self, part: tuple[str, bool]) -> None:
        """Take what another fold made of the events that follow."""
        last, speaks_ours = part
        self._last = last or self._last
        self._speaks_ours = self._speaks_ours or speaks_ours

    def finish(self) -> bool | None:
        """Return whether the last event about the run is its terminal one; None in a foreign vocabulary."""
        return self._last in TERMINAL_TYPES if self._speaks_ours else None

    def end(self) -> str | None:
        """Return the type of the terminal event that the record ends with; None where it reaches no end."""
        return self._last if self._last in TERMINAL_TYPES else None
