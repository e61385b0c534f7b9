"""A sealed run written piece by piece: the same bytes as at once, and never a record with another number of events."""

from collections.abc import Iterator

import pytest

from affidavit.crypto import (
    Checkpoint,
    FailureCode,
    ProducerError,
    encode_record,
    sign_checkpoint,
    write_record,
)
from affidavit.crypto.record import RecordWriter
from tests.crypto.samples import KEY, KID, STREAM, checkpoint, event, events, tree

SIZES = (1, 2, 23, 24, 300, 511, 512, 513, 1025)


@pytest.mark.parametrize("count", SIZES)
def test_a_record_is_written_as_it_is_encoded(count: int) -> None:
    """From an iterator, or hashed on the way and signed at the end: byte for byte what is encoded at once."""
    carried = [*events(count - 1), event(count, payload={"text": "x" * 70_000})]
    signed = checkpoint(tree(carried))
    whole = encode_record(carried, signed)
    written: list[bytes] = []
    write_record(iter(carried), count, signed, written.append)
    assert b"".join(written) == whole

    written.clear()
    writer = RecordWriter(count, written.append)
    for start in range(0, count, 100):
        writer.add(carried[start : start + 100])
    head = Checkpoint(STREAM, count, writer.root())
    writer.finish(sign_checkpoint(head, kid=KID, sign=KEY.sign))
    assert b"".join(written) == whole


def test_a_writer_is_held_to_the_number_it_announced() -> None:
    """Too few events and too many are refused by both writers, with both numbers; none at all is refused at once."""
    carried = events(3)
    for count in (2, 4):
        with pytest.raises(ProducerError) as refusal:
            write_record(carried, count, b"", bytearray().extend)
        assert refusal.value.code is FailureCode.RECORD_SIZE_MISMATCH
        assert (refusal.value.expected, refusal.value.actual) == (count, 3)
    few, many = RecordWriter(4, bytearray().extend), RecordWriter(2, bytearray().extend)
    few.add(carried)
    for step in (few.root, lambda: few.finish(b""), lambda: many.add(carried)):
        with pytest.raises(ProducerError) as refusal:
            step()
        assert refusal.value.code is FailureCode.RECORD_SIZE_MISMATCH
    for begin in (
        lambda: RecordWriter(0, bytearray().extend),
        lambda: write_record([], 0, b"", bytearray().extend),
    ):
        with pytest.raises(ProducerError) as refusal:
            begin()
        assert refusal.value.code is FailureCode.RECORD_EMPTY


def test_a_writer_asks_for_events_only_as_it_writes_them() -> None:
    """It holds no more than a few hundred events at a time."""
    taken = written = ahead = 0

    def counted(count: int) -> Iterator[bytes]:
        nonlocal taken
        for data in events(count):
            taken += 1
            yield data

    def write(block: bytes) -> None:
        nonlocal written, ahead
        ahead = max(ahead, taken - written)
        written += block.count(b"schema_version")

    write_record(counted(2000), 2000, b"", write)
    assert (taken, written) == (2000, 2000)
    assert ahead <= 512
