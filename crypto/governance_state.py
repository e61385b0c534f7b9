"""Where each call and each check of a record stands, for the rules of tier L4 to ask.

Every number is in exactly one place at a time, and packed: a hostile record of sparse numbers costs sixteen
bytes a number, an honest one that counts up next to nothing.
"""

from heapq import nsmallest
from typing import Final, NamedTuple, final

from affidavit.crypto.packed_ids import IdSet, PackedMap

_MOST_PLACES: Final = 1024


@final
class Calls:
    """Where each call stands; a call that is nowhere is unknown.

    Attributes:
        ended: Admitted and ended.
        refused_started: Refused and admitted, in whichever order, ended or not.
        open_count: How many were admitted, and neither ended nor refused.
    """

    __slots__ = (
        "_first_open",
        "_highest",
        "_is_full",
        "_open",
        "_refused",
        "ended",
        "open_count",
        "refused_started",
    )

    def __init__(self) -> None:
        self.ended = IdSet()
        self.refused_started = IdSet()
        self.open_count = 0
        self._open = IdSet()
        self._refused = IdSet()  # and never admitted
        # The seqs of the longest open calls. Once full it takes no more, so what it holds came before what it lacks.
        self._first_open: dict[int, int] = {}
        self._is_full = False
        self._highest: int | None = None

    def start(self, call: int, seq: int) -> None:
        """Take an admission."""
        if self._highest is None or call > self._highest:
            # A number above all before it stands nowhere yet: that is every call of an honest record.
            self._highest = call
        elif self._refused.discard(call):
            self.refused_started.add(call)
            return
        elif call in self._open or call in self.ended or call in self.refused_started:
            return
        self._open.add(call)
        self.open_count += 1
        if not self._is_full:
            self._first_open[call] = seq
            self._is_full = len(self._first_open) == _MOST_PLACES

    def end(self, call: int) -> bool:
        """Take an end, and return whether it is the first of an admission that was not refused."""
        if not self._close(call):
            return False
        self.ended.add(call)
        return True

    def refuse(self, call: int) -> bool:
        """Take a refusal, and return whether it contradicts an end."""
        self._highest = call if self._highest is None else max(self._highest, call)
        ended = self.ended.discard(call)
        if ended or self._close(call):
            self.refused_started.add(call)
        elif call not in self.refused_started:
            self._refused.add(call)
        return ended

    def was_refused(self, call: int) -> bool:
        """Return whether a call was refused and never admitted."""
        return call in self._refused

    def first_open(self) -> dict[int, int]:
        """Return the calls that are open longest, each with the seq of its admission, in that order.

        Of very many that were open at one time, those that came late are left out.
        """
        return self._first_open

    def _close(self, call: int) -> bool:
        if not self._open.discard(call):
            return False
        self.open_count -= 1
        self._first_open.pop(call, None)
        return True


class Unfounded(NamedTuple):
    """A claim of success without a check that passed: its place, the check, and whether that is known to have failed."""

    place: int
    check: int
    failed: bool


@final
class GroundTruth:
    """What is known of each check, and which claims of success still wait for one."""

    __slots__ = ("_both", "_failed", "_owed", "_passed")

    def __init__(self) -> None:
        self._passed = IdSet()
        self._failed = IdSet()
        self._both = IdSet()
        # Claimed as passed, and not so yet: index of the first claim, doubled, and 1 more where it failed.
        self._owed = PackedMap()

    def check(self, check: int, *, passed: bool) -> bool:
        """Take a check, and return whether it contradicts another of the same number for the first time."""
        if check in self._both:
            return False
        owed = self._owed.get(check)
        if not passed:
            if owed is not None:
                self._owed.put(check, owed | 1)
            elif self._passed.discard(check):
                self._both.add(check)
                return True
            else:
                self._failed.add(check)
            return False
        if owed is not None:
            self._owed.pop(check)
        if (owed is not None and owed & 1) or self._failed.discard(check):
            self._both.add(check)
            return True
        self._passed.add(check)
        return False

    def claim(self, check: int, index: int) -> None:
        """Take a claim of success, at the index of its event, that rests on a check."""
        if check not in self._passed and check not in self._both and self._owed.get(check) is None:
            self._owed.put(check, index << 1 | self._failed.discard(check))

    @property
    def unfounded_count(self) -> int:
        """How many checks have not passed that a success rests on."""
        return len(self._owed)

    def unfounded(self, limit: int) -> list[Unfounded]:
        """Return the checks that have not passed and that a success rests on, at most `limit` of them, first claims first."""
        claims = ((mark >> 1, check, bool(mark & 1)) for check, mark in self._owed.items())
        return [Unfounded(*claim) for claim in nsmallest(limit, claims)]
