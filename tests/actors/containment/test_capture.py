"""What is kept of an output, for any output in any pieces."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.containment.capture import Capture


@given(pieces=st.lists(st.binary(max_size=40), max_size=20), kept=st.integers(1, 60))
def test_beginning_end_length_and_digest(pieces: list[bytes], kept: int) -> None:
    """However it arrives: the first half of what may be kept, the last half, and the truth about the whole."""
    capture = Capture(kept)
    for piece in pieces:
        capture.feed(piece)
    whole = b"".join(pieces)
    found = capture.result()
    assert found.length == len(whole)
    assert found.sha256 == hashlib.sha256(whole).digest()
    assert len(found.head) + len(found.tail) == min(kept, len(whole))
    assert whole.startswith(found.head)
    assert whole.endswith(found.tail)
    assert found.left_out == max(0, len(whole) - kept)
    if not found.left_out:
        assert found.head + found.tail == whole


def test_memory_stays_bounded_for_single_bytes() -> None:
    """A flood of single bytes does not leave a queue as long as itself."""
    capture = Capture(100)
    for number in range(10_000):
        capture.feed(bytes([number % 256]))
    assert len(capture._tail) <= 51
    assert len(capture.result().tail) == 50
