"""A frozen set of call numbers, small because calls are handed out in one rising sequence.

It answers one question of the action ledger: did this call ever have a row? The rule: its size is bounded,
whatever a stream holds, and it never claims a call that it was not given.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

# Gaps are calls numbered but not yet decided (approvals that wait), so a run of ours has a handful. Only a
# stream that numbers its calls some other way meets the limit.
MAX_RANGES: Final = 1024
_LOW = itemgetter(0)


@dataclass(frozen=True, slots=True)
class CallSet:
    """A set of integers kept as sorted ranges that neither touch nor overlap.

    Attributes:
        ranges: Pairs of lowest and highest member, both included, rising.
    """

    ranges: tuple[tuple[int, int], ...] = ()

    def __contains__(self, call: int) -> bool:
        ranges = self.ranges
        if ranges and ranges[-1][0] <= call:  # as of a run's own calls nearly always
            return call <= ranges[-1][1]
        at = bisect_right(ranges, call, key=_LOW)
        return at > 0 and call <= self.ranges[at - 1][1]

    def add(self, call: int) -> CallSet:
        """Return the set with one more member.

        Beyond `MAX_RANGES` ranges the lowest one is forgotten.

        Args:
            call: Any integer, member already or not.
        """
        if call in self:
            return self
        if self.ranges and self.ranges[-1][1] == call - 1:
            return CallSet((*self.ranges[:-1], (self.ranges[-1][0], call)))
        at = bisect_right(self.ranges, call, key=_LOW)
        start, stop, low, high = at, at, call, call
        if at > 0 and self.ranges[at - 1][1] == call - 1:
            start, low = at - 1, self.ranges[at - 1][0]
        if at < len(self.ranges) and self.ranges[at][0] == call + 1:
            stop, high = at + 1, self.ranges[at][1]
        ranges = (*self.ranges[:start], (low, high), *self.ranges[stop:])
        return CallSet(ranges[-MAX_RANGES:])
