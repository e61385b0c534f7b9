"""A window onto bytes that are pulled in blocks, so that an input of any size is read in constant memory.

The window is as long as one block and what was asked for at once; callers bound that. No declared length is
believed beyond the bytes that can still follow. Nothing here opens a file: whoever does hands in its reader.
"""

from collections.abc import Callable
from typing import Final, final

from affidavit.crypto import cbor_heads as heads
from affidavit.crypto.cbor_heads import Head
from affidavit.crypto.failures import FailureCode, VerificationError

Read = Callable[[int], bytes]

# Large enough that the calls cost nothing, small enough that what is cut out of a block stays a few megabytes.
BLOCK_BYTES: Final = 1 << 18
_LONGEST_HEAD: Final = 9
_MOST_SKIPPED: Final = 1 << 16


@final
class ByteSource:
    """The bytes at hand, and a way to more.

    Attributes:
        data: The window.
        pos: Where in the window reading goes on; a caller that reads in place moves it.
    """

    __slots__ = ("_base", "_end", "_read", "data", "pos")

    def __init__(self, read: Read, size: int) -> None:
        """Read `size` bytes and not one more.

        Args:
            read: Returns up to as many bytes as asked for; none at the end of the input.
            size: How many bytes there are.
        """
        self._read = read
        self._base = 0  # how many bytes came before the window
        self._end = size
        self.data = b""
        self.pos = 0

    @property
    def offset(self) -> int:
        """How many bytes were consumed."""
        return self._base + self.pos

    @property
    def left(self) -> int:
        """How many bytes can still follow."""
        return self._end - self._base - self.pos

    def fill(self, wanted: int) -> bool:
        """Have at least `wanted` bytes at hand; False, with what there is at hand, where the input has fewer."""
        have = len(self.data) - self.pos
        target = min(wanted, self.left)
        if have < target:
            parts = [self.data[self.pos :]] if have else []
            while have < target:
                block = self._read(min(max(target - have, BLOCK_BYTES), self.left - have))
                if not block:
                    # Shorter than it was said to be: it ends here.
                    self._end = self.offset + have
                    break
                parts.append(block)
                have += len(block)
            self._base += self.pos
            self.data, self.pos = b"".join(parts), 0
        return have >= wanted

    def head(self) -> Head:
        """Consume the head of an item.

        Raises:
            VerificationError: `enc.decode` or `enc.indefinite_length`, as `cbor_heads.read_head`.
        """
        if len(self.data) - self.pos < _LONGEST_HEAD:
            self.fill(_LONGEST_HEAD)
        try:
            head = heads.read_head(self.data, self.pos)
        except VerificationError as error:
            what = (
                "an item of indefinite length"
                if error.code is FailureCode.ENC_INDEFINITE_LENGTH
                else "a head that is reserved or cut off"
            )
            raise VerificationError(error.code, f"{what} at byte {self.offset}") from error
        self.pos = head.end
        return head

    def take(self, length: int) -> bytes:
        """Consume the content of a string; the caller bounds `length`.

        Raises:
            VerificationError: `enc.decode` where the input ends before.
        """
        self._require(length)
        if not self.fill(length):
            raise _cut_off(length, len(self.data) - self.pos)
        start, self.pos = self.pos, self.pos + length
        return self.data[start : self.pos]

    def skip(self, length: int) -> None:
        """Consume the content of a string of any length, keeping none of it.

        Raises:
            VerificationError: `enc.decode` where the input ends before.
        """
        self._require(length)
        wanted = length
        while wanted:
            step = min(wanted, len(self.data) - self.pos)
            self.pos += step
            wanted -= step
            if wanted and not self.fill(1):
                raise _cut_off(length, length - wanted)

    def skip_item(self, max_depth: int) -> None:
        """Consume a well-formed item, building nothing.

        Raises:
            VerificationError: As `head` and `skip`; `enc.decode` beyond `max_depth`, or beyond so many items that
                no artifact has a use for them.
        """
        open_counts = [1]
        for _ in range(_MOST_SKIPPED):
            while open_counts and open_counts[-1] == 0:
                open_counts.pop()
            if not open_counts:
                return
            open_counts[-1] -= 1
            head = self.head()
            if head.major in (heads.BYTES, heads.TEXT):
                self.skip(head.arg)
            elif head.major in (heads.ARRAY, heads.MAP, heads.TAG):
                if len(open_counts) > max_depth:
                    raise VerificationError(FailureCode.ENC_DECODE, f"nested deeper than {max_depth} levels")
                per_entry = 2 if head.major == heads.MAP else 1
                count = 1 if head.major == heads.TAG else self.bound_count(head, per_entry)
                open_counts.append(count * per_entry)
        raise VerificationError(FailureCode.ENC_DECODE, f"an unknown item of {_MOST_SKIPPED} parts or more")

    def bound_count(self, head: Head, per_entry: int = 1) -> int:
        """Return a container's declared entry count, bounded by the bytes that can still follow.

        Raises:
            VerificationError: `enc.decode` where the count could not fit in them.
        """
        if head.arg * per_entry > self.left:
            raise VerificationError(
                FailureCode.ENC_DECODE, f"a container declares {head.arg} entries, more than fit"
            )
        return head.arg

    def _require(self, length: int) -> None:
        if length > self.left:
            raise _cut_off(length, self.left)


def reader_over(data: bytes) -> Read:
    """Return a reader of bytes that are in memory already."""
    pos = 0

    def read(count: int) -> bytes:
        nonlocal pos
        start, pos = pos, min(len(data), pos + count)
        return data[start:pos]

    return read


def _cut_off(declared: int, left: int) -> VerificationError:
    return VerificationError(FailureCode.ENC_DECODE, f"a string declares {declared} bytes, {left} are left")
