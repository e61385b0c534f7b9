"""A sealed run read in blocks and in parts: the verdict is that of the whole, and memory does not grow with the run."""

import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto import (
    FailureCode,
    Tier,
    VerificationError,
    byte_source,
    encode_record,
    event_scan,
    record_fold,
    record_part,
    verify_record,
    verify_root,
    verify_run,
)
from affidavit.crypto.byte_source import ByteSource, Read, reader_over
from affidavit.crypto.cbor_heads import write_bytes
from affidavit.crypto.cose import MAX_MESSAGE_BYTES
from affidavit.crypto.record import conclude, record_head, record_tail
from affidavit.crypto.record_fold import EventsCheck, RecordFold
from affidavit.crypto.record_part import Checks, parts_of
from affidavit.crypto.record_reader import RecordReader
from affidavit.crypto.record_wire import decode_part, encode_part
from tests.crypto.samples import checkpoint, code_of, event, events, keyring, sealed, steps, tree

SEVEN = events(7)
SIGNED = checkpoint(tree(SEVEN))
RECORD = encode_record(SEVEN, SIGNED)
UNRULY = steps(("dispatch.start", {"call": 1}), ("dispatch.end", {"call": 2}), ("note", {}))
LATE = sealed([*SEVEN[:5], event(9, stream="another"), b"\xa0"])
GAPS = sealed([SEVEN[1], SEVEN[3], *SEVEN[5:]])
LONG = sealed([*SEVEN, event(8, payload={"text": "x" * 5000}), event(9)])


def drip(data: bytes, sizes: Iterator[int]) -> Read:
    """A reader that gives less than it is asked for, as a pipe or a signal may make it."""
    read = reader_over(data)
    return lambda count: read(min(count, next(sizes)))


def outcome(check: Any, *arguments: Any, **options: Any) -> Any:
    """What a check returns, or the code, place and evidence with which it refuses."""
    try:
        return check(*arguments, **options)
    except VerificationError as error:
        return error.code, error.detail, error.index, error.expected, error.actual


def in_parts(data: bytes, tier: Tier, length: int) -> Any:
    """The verdict where ranges are found first and each is checked by itself, as several processes do it."""
    reader = RecordReader(reader_over(data), len(data), max_event_bytes=1 << 20)
    fold = RecordFold(tier)
    for where in reader.ranges(length):
        for part in parts_of(reader_over(data[where.start : where.end]), where, Checks.up_to(tier)):
            fold.add(decode_part(encode_part(part)))
    return conclude(reader, fold, keyring(), tier)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of two events, and blocks of a few bytes, so that small records have many of each."""
    for module in (event_scan, record_part, record_fold):
        monkeypatch.setattr(module, "BATCH", 2)
    monkeypatch.setattr(byte_source, "BLOCK_BYTES", 5)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("tier", list(Tier))
@pytest.mark.parametrize("data", [RECORD, UNRULY, LATE, GAPS, LONG, sealed(SEVEN[:1])])
def test_parts_of_a_record_give_the_verdict_of_the_whole(data: bytes, tier: Tier) -> None:
    """Checked in ranges of two or four events and joined, every verdict and refusal is that of one pass."""
    whole = outcome(verify_run, reader_over(data), len(data), keyring(), tier=tier)
    assert [outcome(in_parts, data, tier, length) for length in (2, 4, 100)] == [whole] * 3


@given(st.data())
def test_any_change_gets_one_answer_however_it_is_read(data: st.DataObject) -> None:
    """Changed, cut or stretched anywhere: whole, dripping in small reads, and in parts, the answer is the same."""
    base = data.draw(st.sampled_from([RECORD, UNRULY, LATE, GAPS]))
    at = data.draw(st.integers(0, len(base)))
    removed, added = data.draw(st.integers(0, 3)), data.draw(st.binary(max_size=3))
    changed = base[:at] + added + base[at + removed :]
    tier = data.draw(st.sampled_from(list(Tier)))
    sizes = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=5))
    whole = outcome(verify_run, reader_over(changed), len(changed), keyring(), tier=tier)
    dripping = drip(changed, (size for _ in iter(int, 1) for size in sizes))
    assert outcome(verify_run, dripping, len(changed), keyring(), tier=tier) == whole
    assert outcome(in_parts, changed, tier, 1024) == whole
    in_memory = outcome(verify_record, changed, keyring(), tier=tier)
    assert in_memory == whole or in_memory.chain == whole.chain


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_events_checked_a_few_at_a_time_give_the_same_verdict(count: int, step: int) -> None:
    """A caller that hands over its rows in slices of any length folds them to the same root and the same findings."""
    carried = events(count)
    check = EventsCheck()
    for start in range(0, count, step):
        check.add(carried[start : start + step])
    fold = check.finish()
    assert (fold.root(), fold.count) == (tree(carried).root(), count)
    found = verify_record(sealed(carried), keyring())
    assert found.checkpoint is not None
    assert check.conclude(checkpoint(tree(carried)), keyring()).chain == found.chain


def test_slices_are_refused_as_a_record_is() -> None:
    """Without a container: the signature first, then the number, then the events, then the root."""
    broken = SIGNED[:-1] + bytes((SIGNED[-1] ^ 1,))
    cases: list[tuple[list[bytes], bytes, str]] = [
        ([b"\xa0"], broken, "sign.signature_invalid"),
        ([], SIGNED, "record.empty"),
        (SEVEN[:6], SIGNED, "record.size_mismatch"),
        ([*SEVEN[:6], b"\xa0"], SIGNED, "enc.non_canonical_cbor"),
        ([*SEVEN[:6], event(9)], SIGNED, "record.root_mismatch"),
    ]
    for carried, signed, code in cases:
        check = EventsCheck()
        for data in carried:
            check.add([data])
        assert code_of(check.conclude, signed, keyring()) == code


def test_the_root_alone_says_nothing_of_the_events() -> None:
    """Container, signature, size and root are checked; events that are not even CBOR pass, and a changed one does not."""
    odd = sealed([b"not CBOR", b"", SEVEN[0]])
    found = verify_root(reader_over(odd), len(odd), keyring())
    assert found.checkpoint.size == 3
    assert code_of(verify_record, odd, keyring()) is not None
    for data, code in (
        (odd.replace(b"not CBOR", b"now CBOR"), FailureCode.RECORD_ROOT_MISMATCH),
        (odd + b"\x00", FailureCode.RECORD_DECODE),
        (encode_record(SEVEN[:6], SIGNED), FailureCode.RECORD_SIZE_MISMATCH),
        (record_head(1)[:-1] + b"\x80" + record_tail(SIGNED), FailureCode.RECORD_EMPTY),
        (encode_record(SEVEN, SIGNED[:-1] + b"\x00"), FailureCode.SIGN_SIGNATURE_INVALID),
    ):
        assert code_of(verify_root, reader_over(data), len(data), keyring()) == code


def test_an_event_that_is_too_long_is_refused_in_its_turn() -> None:
    """It is passed over and not held; an event before it that is at fault is named first, the container before both."""
    limit: dict[str, Any] = {"max_event_bytes": 1000}
    code = (FailureCode.ENC_DECODE, "event 8: an event of 5093 bytes exceeds 1000", 7, 1000, 5093)
    assert len(event(8, payload={"text": "x" * 5000})) == 5093
    for check in (
        lambda data: verify_record(data, keyring(), **limit),
        lambda data: verify_run(reader_over(data), len(data), keyring(), **limit),
    ):
        assert outcome(check, LONG) == code
    assert code_of(verify_record, LONG, keyring()) is None
    earlier = sealed([SEVEN[0], SEVEN[0], event(2, payload={"text": "x" * 5000})])
    assert code_of(verify_record, earlier, keyring(), **limit) == FailureCode.CHAIN_NON_MONOTONIC_SEQ
    assert code_of(verify_record, LONG + b"\x00", keyring(), **limit) == FailureCode.RECORD_DECODE


def test_a_part_ends_with_its_first_fault() -> None:
    """One that is too long, or one that is none: its part says so, and no part follows."""
    for data, limit, index in ((LONG, 1000, 7), (sealed([*SEVEN[:2], b"x" * 70, *SEVEN[3:]]), 1 << 20, 2)):
        (where,) = RecordReader(reader_over(data), len(data), max_event_bytes=limit).ranges(1024)
        found = list(
            parts_of(reader_over(data[where.start : where.end]), where, Checks(max_event_bytes=limit))
        )
        fault = found[-1].fault
        assert len(found) == 1
        assert fault is not None
        assert (fault.code, fault.index) == (FailureCode.ENC_DECODE, index)


def test_no_event_longer_than_the_limit_is_held_for_the_root() -> None:
    """Where only the root is rebuilt, an event beyond the limit of the format is refused all the same."""
    data = sealed([SEVEN[0], bytes((1 << 20) + 1)])
    assert outcome(verify_root, reader_over(data), len(data), keyring())[:3] == (
        FailureCode.ENC_DECODE,
        "event 2: an event of 1048577 bytes exceeds 1048576",
        1,
    )


def test_a_checkpoint_longer_than_any_message_is_refused() -> None:
    """It is not held either, and the container that carries it is judged first."""
    data = encode_record(SEVEN, SIGNED + bytes(MAX_MESSAGE_BYTES))
    assert code_of(verify_record, data, keyring()) == FailureCode.SIGN_SIGNATURE_INVALID
    assert code_of(verify_record, data[:-1], keyring()) == FailureCode.RECORD_DECODE


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xb1" + RECORD[1:] + bytes(50), "17 fields"),
        (b"\xa3" + RECORD[1:] + b"\x79\x01\x01" + b"x" * 257 + b"\x00", "a field name of 257 bytes"),
        (b"\xa3" + RECORD[1:] + b"\x61x\x9a\x00\x01\x00\x01" + bytes(65_537), "65536 parts or more"),
        (b"\xa3" + RECORD[1:] + b"\x61x" + b"\x81" * 65 + b"\x00", "deeper than 64"),
        (b"\xa3" + RECORD[1:] + b"\x61x\x5b\x7f" + bytes(7), "declares"),
    ],
)
def test_what_no_artifact_has_is_not_followed_far(data: bytes, said: str) -> None:
    """Many or long field names and huge unknown fields are refused where they begin to cost."""
    refusal = outcome(verify_record, data, keyring())
    assert refusal[0] == FailureCode.RECORD_DECODE
    assert said in refusal[1]


def test_a_file_that_turns_out_shorter_is_refused() -> None:
    """A reader that ends before the size it was said to have is a record that is cut off, and no endless loop."""
    for end in (0, 1, 10, len(RECORD) // 2, len(RECORD) - 1):
        assert (
            code_of(verify_run, reader_over(RECORD[:end]), len(RECORD), keyring())
            == FailureCode.RECORD_DECODE
        )


def test_a_reader_is_never_asked_beyond_the_size() -> None:
    """What is added to a file while it is read is not looked at."""
    asked: list[int] = []
    read = reader_over(RECORD + b"more")

    def counted(count: int) -> bytes:
        asked.append(count)
        return read(count)

    verify_run(counted, len(RECORD), keyring())
    assert sum(asked) == len(RECORD)


def test_what_reading_raises_comes_out() -> None:
    """An I/O error is no verdict."""

    def failing(_: int) -> bytes:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        verify_run(failing, 10, keyring())


def test_parts_must_follow_one_another() -> None:
    """Out of order, doubled, or after one that is not whole, a part is a fault of the program."""
    reader = RecordReader(reader_over(RECORD), len(RECORD), max_event_bytes=1 << 20)
    (where,) = reader.ranges(1024)
    (part,) = parts_of(reader_over(RECORD[where.start : where.end]), where, Checks())
    fold = RecordFold()
    fold.add(part)
    with pytest.raises(RuntimeError, match="does not follow"):
        fold.add(part)


@pytest.mark.parametrize("data", [SEVEN[0], b"", b"\x80", b"\x87\x00\x00\x00\x00\x40\x80\x00"])
def test_bytes_that_are_no_part_are_an_error(data: bytes) -> None:
    """Whatever a process that went wrong sends, it is never taken for a part."""
    with pytest.raises(ValueError, match="no part"):
        decode_part(data)


def test_a_record_cannot_be_judged_before_its_end() -> None:
    """Asking for the checkpoint of a record that was not read is a fault of the program."""
    reader = RecordReader(reader_over(RECORD), len(RECORD), max_event_bytes=1 << 20)
    with pytest.raises(RuntimeError, match="not read to its end"):
        reader.checkpoint()


@pytest.mark.parametrize("length", [0, 1, 23, 24, 255, 256, 65_535, 65_536])
def test_events_of_every_head_length_are_cut_out(length: int) -> None:
    """Each form of head, around its limits; a longer spelling is cut out as well and noted as a departure."""
    content = bytes(length)
    for width, first in ((0, 0x40 + length), (1, 0x58), (2, 0x59), (4, 0x5A), (8, 0x5B)):
        if (width == 0 and length > 23) or (width and length >= 1 << 8 * width):
            continue
        item = (
            bytes((first,)) + length.to_bytes(width, "big") + content if width else bytes((first,)) + content
        )
        data, noted = item * 3, list[str]()
        source = ByteSource(reader_over(data), len(data))
        found = [e for batch in event_scan.event_batches(source, 3, noted.append, 1 << 20) for e in batch]
        assert (found, bool(noted)) == ([content] * 3, item != write_bytes(content))
        passed = ByteSource(reader_over(data), len(data))
        event_scan.skip_events(passed, 3, noted.append)
        assert passed.left == source.left == 0


class Endless:
    """A record of many equal-sized events, made while it is read."""

    def __init__(self, count: int, carried: Sequence[bytes], tail: bytes) -> None:
        each = b"".join(map(write_bytes, carried))
        self.size = len(record_head(count)) + len(each) * (count // len(carried)) + len(tail)
        self._pending = record_head(count)
        self._blocks = iter([each] * (count // len(carried)) + [tail])

    def read(self, count: int) -> bytes:
        """Read on."""
        if not self._pending:
            self._pending = next(self._blocks, b"")
        block, self._pending = self._pending[:count], self._pending[count:]
        return block


def peak_of(count: int) -> int:
    """The most memory that checking a root over so many events takes."""
    hundred = events(100)
    record = Endless(count, hundred, record_tail(SIGNED))
    tracemalloc.start()
    try:
        assert code_of(verify_root, record.read, record.size, keyring()) == FailureCode.RECORD_SIZE_MISMATCH
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_record() -> None:
    """Ten times the events take the same few megabytes, less than the record itself."""
    peak_of(100)
    small, large = peak_of(10_000), peak_of(100_000)
    assert large < small + 100_000
    assert large < 4_000_000
