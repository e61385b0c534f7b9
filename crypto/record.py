"""The sealed run verified: the exact bytes of every event, and the signed checkpoint over them.

Verification rebuilds the signed root from the bytes carried; it never encodes an event again. What is not
signed is never handed on as fact: events are judged as they are read, and nothing is said of them before the
checkpoint, which stands last, has been opened. A record in memory and one in a file take the same way.
"""

from typing import Final

from affidavit.crypto import cbor
from affidavit.crypto.byte_source import Read, reader_over
from affidavit.crypto.checkpoint import VerifiedCheckpoint, open_checkpoint
from affidavit.crypto.event_form import MAX_EVENT_BYTES
from affidavit.crypto.failures import Tier
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.record_fold import EventsCheck, RecordFold, require_root, require_size
from affidavit.crypto.record_part import Checks
from affidavit.crypto.record_reader import RecordReader
from affidavit.crypto.record_verdict import (
    RULES,
    SIGNATURE,
    THE_WORLD,
    WENT_ON,
    WHOSE_KEY,
    VerifiedRecord,
    VerifiedRun,
)
from affidavit.crypto.record_write import (
    RecordWriter,
    encode_record,
    record_head,
    record_tail,
    write_record,
)

# Everything about a sealed run can be had from here.
__all__ = [
    "RULES",
    "SIGNATURE",
    "THE_WORLD",
    "WENT_ON",
    "WHOSE_KEY",
    "RecordWriter",
    "VerifiedRecord",
    "VerifiedRun",
    "encode_record",
    "record_head",
    "record_tail",
    "verify_record",
    "verify_root",
    "verify_run",
    "write_record",
]

# What `verify_root` does with each event.
ROOT_ALONE: Final = Checks(read=False, judged=False)


def verify_record(
    data: bytes,
    keyring: Keyring,
    *,
    tier: Tier = Tier.L4,
    max_event_bytes: int = MAX_EVENT_BYTES,
    max_depth: int = cbor.DEFAULT_MAX_DEPTH,
) -> VerifiedRecord:
    """Verify a sealed run that is in memory, up to a tier, and return its events with the verdict.

    Args:
        data: The record, and nothing more.
        keyring: The keys trusted.
        tier: Where to stop. A run has nothing that L3 checks, so L3 stops after L2.
        max_event_bytes: The longest event accepted, in bytes.
        max_depth: How many containers an event may nest.

    Raises:
        VerificationError: As `verify_run`.
    """
    checks = Checks.up_to(tier, max_event_bytes=max_event_bytes, max_depth=max_depth)
    events: list[bytes] = []
    found = _verify(
        RecordReader(reader_over(data), len(data), max_event_bytes=max_event_bytes),
        keyring,
        tier,
        checks,
        events,
    )
    return VerifiedRecord(
        found.chain,
        found.checkpoint,
        found.kid,
        found.trust,
        found.tier,
        found.governance,
        found.findings,
        found.complete,
        found.not_checked,
        found.approvals,
        found.fork,
        found.end,
        events=tuple(events),
    )


def verify_run(
    read: Read,
    size: int,
    keyring: Keyring,
    *,
    tier: Tier = Tier.L4,
    max_event_bytes: int = MAX_EVENT_BYTES,
    max_depth: int = cbor.DEFAULT_MAX_DEPTH,
) -> VerifiedRun:
    """Verify a sealed run of any size, up to a tier, in memory that does not grow with it.

    1. The container is the canonical closed map.
    2. The checkpoint is signed by a key of the keyring, or by one that certifies itself (L2).
    3. There are events, as many as the signed size (L2).
    4. Each event is canonical, of one stream, in order (L1).
    5. The events rebuild the signed root (L2).
    6. The governance and ground truth rules hold (L4).

    Args:
        read: Returns up to as many bytes as asked for, from the record's first to its last; what it raises comes out.
        size: How many bytes the record has.
        keyring: The keys trusted.
        tier: Where to stop. A run has nothing that L3 checks, so L3 stops after L2.
        max_event_bytes: The longest event accepted, in bytes.
        max_depth: How many containers an event may nest.

    Raises:
        VerificationError: With the code of the first check that fails.
    """
    checks = Checks.up_to(tier, max_event_bytes=max_event_bytes, max_depth=max_depth)
    reader = RecordReader(read, size, max_event_bytes=max_event_bytes)
    return _verify(reader, keyring, tier, checks, None)


def verify_root(read: Read, size: int, keyring: Keyring) -> VerifiedCheckpoint:
    """Return the checkpoint of a sealed run whose events rebuild the signed root; no event is looked into.

    This is L2 without L1: that the events are canonical and in order, and keep any rule, stays open. It serves
    where that was checked before and the bytes have travelled since.

    Args:
        read: As for `verify_run`.
        size: As for `verify_run`.
        keyring: The keys trusted.

    Raises:
        VerificationError: `record.*` or `sign.*`; `enc.decode` for an event that is too long to be held.
    """
    reader = RecordReader(read, size, max_event_bytes=MAX_EVENT_BYTES)
    fold = _fold(reader, EventsCheck(Tier.L2, ROOT_ALONE), None)
    return conclude_root(reader, fold, keyring)


def conclude(reader: RecordReader, fold: RecordFold, keyring: Keyring, tier: Tier) -> VerifiedRun:
    """Return the verdict on a record that was read to its end, whoever folded its events.

    Raises:
        VerificationError: With the code of the first check that fails.
    """
    opened = _open(reader, keyring) if tier >= Tier.L2 else None
    if opened is None:
        reader.checkpoint()
        require_size(reader.count, None)
    return fold.finish(opened, keyring)


def conclude_root(reader: RecordReader, fold: RecordFold, keyring: Keyring) -> VerifiedCheckpoint:
    """Return the checkpoint of a record that was read to its end, as `verify_root`.

    Raises:
        VerificationError: With the code of the first check that fails.
    """
    opened = _open(reader, keyring)
    if fold.fault is not None:
        raise fold.fault
    require_root(fold.root(), opened)
    return opened


def _verify(
    reader: RecordReader, keyring: Keyring, tier: Tier, checks: Checks, keep: list[bytes] | None
) -> VerifiedRun:
    return conclude(reader, _fold(reader, EventsCheck(tier, checks), keep), keyring, tier)


def _fold(reader: RecordReader, check: EventsCheck, keep: list[bytes] | None) -> RecordFold:
    for events in reader.events():
        check.add(events)
        if keep is not None:
            keep += events
        reader.is_wanted = check.fault is None
    if reader.too_long is not None:
        check.refuse_too_long(reader.too_long[1])
    return check.finish()


def _open(reader: RecordReader, keyring: Keyring) -> VerifiedCheckpoint:
    opened = open_checkpoint(reader.checkpoint(), keyring)
    require_size(reader.count, opened)
    return opened
