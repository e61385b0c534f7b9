"""Numbers kept in little room: a map of 64-bit integers in sorted arrays, and a set of them as intervals.

An entry takes sixteen bytes, however sparse and in whatever order a hostile record names its numbers; numbers
that follow one another share one entry. Every operation costs the logarithm of what is kept, and moves at most
one short block.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, final

_BLOCK: Final = 1024  # entries; a full block is split in two


@final
class PackedMap:
    """A map from 64-bit integers with sign to the like."""

    __slots__ = ("_firsts", "_keys", "_size", "_values")

    def __init__(self) -> None:
        # Blocks in order, none of them empty; the first key of each stands in a list of its own.
        self._firsts: list[int] = []
        self._keys: list[array[int]] = []
        self._values: list[array[int]] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def get(self, key: int) -> int | None:
        """Return the value of a key; None where there is none."""
        found = self.floor(key)
        return found[1] if found is not None and found[0] == key else None

    def floor(self, key: int) -> tuple[int, int] | None:
        """Return the entry of the greatest key that is not above `key`; None where there is none."""
        block = bisect_right(self._firsts, key) - 1
        if block < 0:
            return None
        keys = self._keys[block]
        place = bisect_right(keys, key) - 1
        return keys[place], self._values[block][place]

    def put(self, key: int, value: int) -> None:
        """Set the value of a key."""
        block = max(bisect_right(self._firsts, key) - 1, 0)
        if not self._keys:
            self._open(0, array("q", (key,)), array("q", (value,)))
            self._size = 1
            return
        keys, values = self._keys[block], self._values[block]
        place = bisect_left(keys, key)
        if place < len(keys) and keys[place] == key:
            values[place] = value
            return
        self._size += 1
        if place == len(keys) == _BLOCK:
            # Rising keys fill one block after another, instead of leaving each half full.
            self._open(block + 1, array("q", (key,)), array("q", (value,)))
            return
        keys.insert(place, key)
        values.insert(place, value)
        if place == 0:
            self._firsts[block] = key
        if len(keys) > _BLOCK:
            half = _BLOCK // 2
            self._open(block + 1, keys[half:], values[half:])
            self._keys[block], self._values[block] = keys[:half], values[:half]

    def pop(self, key: int) -> int | None:
        """Remove a key and return its value; None where there is none."""
        block = bisect_right(self._firsts, key) - 1
        if block < 0:
            return None
        keys = self._keys[block]
        place = bisect_right(keys, key) - 1
        if keys[place] != key:
            return None
        del keys[place]
        value = self._values[block].pop(place)
        self._size -= 1
        if not keys:
            del self._firsts[block], self._keys[block], self._values[block]
        elif place == 0:
            self._firsts[block] = keys[0]
        return value

    def pop_last(self) -> tuple[int, int] | None:
        """Remove the entry of the greatest key and return it; None where there is none."""
        if not self._keys:
            return None
        keys, values = self._keys[-1], self._values[-1]
        self._size -= 1
        found = keys.pop(), values.pop()
        if not keys:
            del self._firsts[-1], self._keys[-1], self._values[-1]
        return found

    def items(self) -> Iterator[tuple[int, int]]:
        """Yield the entries, keys rising."""
        for keys, values in zip(self._keys, self._values, strict=True):
            yield from zip(keys, values, strict=True)

    def _open(self, block: int, keys: "array[int]", values: "array[int]") -> None:
        self._firsts.insert(block, keys[0])
        self._keys.insert(block, keys)
        self._values.insert(block, values)


@final
class IdSet:
    """A set of 64-bit integers with sign, kept as intervals."""

    __slots__ = ("_first", "_last", "_runs")

    def __init__(self) -> None:
        # The highest run of numbers stands apart, since nearly everything happens there; it is empty where its first
        # number is above its last. Of the runs below it, the first number and the last.
        self._first, self._last = 0, -1
        self._runs = PackedMap()

    def __contains__(self, number: int) -> bool:
        if number >= self._first:
            return number <= self._last
        run = self._runs.floor(number)
        return run is not None and number <= run[1]

    def __bool__(self) -> bool:
        return self._first <= self._last

    def __len__(self) -> int:
        """Return how many runs there are."""
        return len(self._runs) + bool(self)

    def add(self, number: int) -> None:
        """Add a number."""
        if self._first > self._last:
            self._first = self._last = number
        elif number > self._last:
            if number > self._last + 1:
                self._runs.put(self._first, self._last)
                self._first = number
            self._last = number
        elif number < self._first:
            self._add_below(number)

    def discard(self, number: int) -> bool:
        """Remove a number, and return whether it was there."""
        if not self._first <= number <= self._last:
            return self._discard_below(number)
        if self._first == self._last:
            self._first, self._last = self._runs.pop_last() or (0, -1)
        elif number == self._last:
            self._last -= 1
        else:
            if number > self._first:
                self._runs.put(self._first, number - 1)
            self._first = number + 1
        return True

    def _add_below(self, number: int) -> None:
        run = self._runs.floor(number)
        if run is not None and number <= run[1]:
            return
        first = run[0] if run is not None and run[1] == number - 1 else number
        if number == self._first - 1:
            self._runs.pop(first)
            self._first = first
        else:
            after = self._runs.pop(number + 1)
            self._runs.put(first, number if after is None else after)

    def _discard_below(self, number: int) -> bool:
        run = self._runs.floor(number)
        if run is None or number > run[1]:
            return False
        first, last = run
        if first == number:
            self._runs.pop(first)
        else:
            self._runs.put(first, number - 1)
        if number < last:
            self._runs.put(number + 1, last)
        return True
