"""Takes evidence out of a log: the sealed record of a run, and the proof of one of its events. Reads alone; needs no key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from affidavit.actors.errors import SealRefused, StoreDamaged, UnknownRun
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import event_of, rows
from affidavit.actors.logs.port import LogReader, Row
from affidavit.actors.run_state import size_of
from affidavit.crypto.event_proof import encode_event_proof
from affidavit.crypto.hashing import leaf_hash
from affidavit.crypto.merkle import RootBuilder, Tree
from affidavit.crypto.record import encode_record


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote.

    Attributes:
        size: How many events the record holds, from seq 1.
        root: The signed root.
        kid: The id of the key that signed it.
        tip: The seq of the last event on the stream; what lies beyond `size` is not in the record.
    """

    size: int
    root: bytes
    kid: bytes
    tip: int


@dataclass(frozen=True, slots=True)
class _SealedRun:
    stored: tuple[Row, ...]
    seal: Event
    checkpoint: bytes


async def export(log: LogReader, run_id: str, file: BinaryIO) -> Exported:
    """Write the run's record, events 1 to the size of its last seal and the signed checkpoint over them.

    Args:
        log: Where the run is.
        run_id: The run's whole id.
        file: Where the record goes, opened for writing bytes.

    Raises:
        UnknownRun: There is no such run.
        SealRefused: The run was never sealed.
        StoreDamaged: The stored events are no longer those that were sealed.
        OSError: The file could not be written.
    """
    run = await _sealed_run(log, run_id)
    size = size_of(run.seal)
    builder = RootBuilder()
    for row in run.stored[:size]:
        builder.add(leaf_hash(row.data))
    root = _require_signed(builder.root(), run, run_id)
    file.write(encode_record([row.data for row in run.stored[:size]], run.checkpoint))
    return Exported(size, root, _octets(run.seal, "kid"), len(run.stored))


async def prove(log: LogReader, run_id: str, seq: int) -> bytes:
    """Return the proof of one event under the run's last seal: the event, its path to the root, and the signed root.

    Args:
        log: Where the run is.
        run_id: The run's whole id.
        seq: Which event, from 1.

    Raises:
        UnknownRun: There is no such run.
        SealRefused: No seal covers that event.
        StoreDamaged: The stored events are no longer those that were sealed.
    """
    run = await _sealed_run(log, run_id)
    size = size_of(run.seal)
    if not 1 <= seq <= size:
        raise SealRefused(f"the last seal of run {run_id} covers events 1 to {size}, not {seq}")
    tree = Tree()
    for row in run.stored[:size]:
        tree.append(leaf_hash(row.data))
    _require_signed(tree.root(size), run, run_id)
    index = seq - 1
    return encode_event_proof(
        size=size,
        index=index,
        canonical=run.stored[index].data,
        inclusion=tree.inclusion(index, size),
        checkpoint=run.checkpoint,
    )


async def _sealed_run(log: LogReader, run_id: str) -> _SealedRun:
    stored = await rows(log, run_id)
    if not stored:
        raise UnknownRun(f"there is no run {run_id}")
    for row in reversed(stored):
        event = event_of(row, run_id)
        if event.kind == Kind.RECORD_SEALED:
            if not 1 <= size_of(event) < event.seq:
                raise SealRefused(
                    f"the record.sealed event at seq {event.seq} does not cover events before it"
                )
            return _SealedRun(stored, event, _octets(event, "checkpoint"))
    raise SealRefused(f"run {run_id} was never sealed")


def _require_signed(root: bytes, run: _SealedRun, run_id: str) -> bytes:
    """Return the root that a run's rows give, if it is still the one that was signed.

    What is handed over as evidence must not be found out to be none by whoever gets it.

    Raises:
        StoreDamaged: They do not.
    """
    if root != _octets(run.seal, "root"):
        raise StoreDamaged(
            f"events 1 to {size_of(run.seal)} of run {run_id} no longer give the root that was signed: the store was changed "
            "after the seal, and `affidavit fsck` tells where"
        )
    return root


def _octets(event: Event, key: str) -> bytes:
    value = event.detail.get(key)
    if not isinstance(value, bytes):
        raise SealRefused(f"the record.sealed event at seq {event.seq} holds no {key}")
    return value
