"""Takes evidence out of a log: the sealed record of a run, the proof of one of its events, the proof that a seal extends another.

Reads alone, and needs no key. A run may be of any size: its rows are read a page at a time, and none is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, Final

from affidavit.actors.errors import SealRefused, StoreDamaged, UnknownRun
from affidavit.actors.events import RECORD_KINDS, Event, Kind
from affidavit.actors.logs.port import LogReader
from affidavit.actors.pages import Progress, each_page, last_event, page
from affidavit.actors.run_state import size_of
from affidavit.crypto.consistency_proof import encode_consistency_proof
from affidavit.crypto.event_proof import encode_event_proof
from affidavit.crypto.failures import VerificationError
from affidavit.crypto.hashing import leaf_hash, leaf_hashes
from affidavit.crypto.path_builder import consistency, inclusion
from affidavit.crypto.proofs import root_from_inclusion, verify_consistency_path
from affidavit.crypto.record import RecordWriter

_NAMED: Final = 10  # seals that a refusal names


@dataclass(frozen=True, slots=True)
class Seal:
    """The last seal of a run.

    Attributes:
        size: How many events it covers, from seq 1.
        root: The signed root.
        kid: The id of the key that signed it.
        checkpoint: The signed checkpoint.
        covers_all: Whether nothing was recorded since, but what is about the record itself.
        tip: The seq of the last event on the stream.
    """

    size: int
    root: bytes
    kid: bytes
    checkpoint: bytes
    covers_all: bool
    tip: int


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote.

    Attributes:
        size: How many events the record holds, from seq 1.
        root: The signed root.
        kid: The id of the key that signed it.
        tip: The seq of the last event on the stream; what lies beyond `size` is not in the record.
        covers_all: Whether what lies beyond is only about the record itself.
    """

    size: int
    root: bytes
    kid: bytes
    tip: int
    covers_all: bool


async def last_seal(log: LogReader, run_id: str) -> Seal:
    """Return the last seal of a run, looking from its end.

    Args:
        log: Where the run is.
        run_id: The run's whole id.

    Raises:
        UnknownRun: There is no such run.
        SealRefused: The run was never sealed, or what says so is no seal.
        StoreDamaged: A row is missing, or holds another event than its place says.
        VerificationError: A row is not one canonical event.
        LogError: The log could not be read.

    Cancellation: a checkpoint per page of rows.
    """
    info = await log.info(run_id)
    if info is None:
        raise UnknownRun(f"there is no run {run_id}")
    seal = await last_event(log, run_id, (0, info.tip), lambda event: event.kind == Kind.RECORD_SEALED)
    if seal is None:
        raise SealRefused(f"run {run_id} was never sealed")
    size = _covered(seal)
    later = await last_event(log, run_id, (size, info.tip), lambda event: event.kind not in RECORD_KINDS)
    return Seal(
        size=size,
        root=_octets(seal, "root"),
        kid=_octets(seal, "kid"),
        checkpoint=_octets(seal, "checkpoint"),
        covers_all=later is None,
        tip=info.tip,
    )


async def export(
    log: LogReader, run_id: str, file: BinaryIO, *, progress: Progress | None = None
) -> Exported:
    """Write the run's record, events 1 to the size of its last seal and the signed checkpoint over them.

    The record's last bytes are written only once the events are known to be those that were signed: after an error,
    whatever was written by then is no record, and it is the caller's to throw away.

    Args:
        log: Where the run is.
        run_id: The run's whole id.
        file: Where the record goes, opened for writing bytes.
        progress: Told how far it has come.

    Raises:
        UnknownRun: There is no such run.
        SealRefused: The run was never sealed.
        StoreDamaged: The stored events are no longer those that were sealed.
        OSError: The file could not be written.

    Cancellation: a checkpoint per page of rows; the file then holds no record.
    """
    seal = await last_seal(log, run_id)
    writer = RecordWriter(seal.size, file.write)
    await each_page(log, run_id, seal.size, writer.add, progress)
    root = _require_signed(writer.root(), seal, run_id)
    writer.finish(seal.checkpoint)
    return Exported(seal.size, root, seal.kid, seal.tip, seal.covers_all)


async def prove(log: LogReader, run_id: str, seq: int, *, progress: Progress | None = None) -> bytes:
    """Return the proof of one event under the run's last seal: the event, its path to the root, and the signed root.

    Args:
        log: Where the run is.
        run_id: The run's whole id.
        seq: Which event, from 1.
        progress: Told how far it has come.

    Raises:
        UnknownRun: There is no such run.
        SealRefused: No seal covers that event.
        StoreDamaged: The stored events are no longer those that were sealed.

    Cancellation: a checkpoint per page of rows.
    """
    found = await event_path(log, run_id, seq, progress=progress)
    return encode_event_proof(
        size=found.seal.size,
        index=seq - 1,
        canonical=found.canonical,
        inclusion=found.path,
        checkpoint=found.seal.checkpoint,
    )


@dataclass(frozen=True, slots=True)
class EventPath:
    """How one event stands under a seal.

    Attributes:
        seal: The run's last seal.
        canonical: The event's exact bytes.
        path: The sibling hashes from its leaf upwards; they lead to the seal's root.
    """

    seal: Seal
    canonical: bytes
    path: tuple[bytes, ...]


async def event_path(log: LogReader, run_id: str, seq: int, *, progress: Progress | None = None) -> EventPath:
    """Return how one event stands under the run's last seal, having rebuilt the root that was signed.

    Args, raises and cancellation: as `prove`.
    """
    seal = await last_seal(log, run_id)
    if not 1 <= seq <= seal.size:
        raise SealRefused(f"the last seal of run {run_id} covers events 1 to {seal.size}, not {seq}")
    builder = inclusion(seq - 1, seal.size)
    await each_page(log, run_id, seal.size, lambda events: builder.extend(leaf_hashes(events)), progress)
    (proved,) = await page(log, run_id, seq - 1, seq)
    path = builder.path()
    root = root_from_inclusion(leaf_hash(proved.data), seq - 1, seal.size, path)
    _require_signed(root, seal, run_id)
    return EventPath(seal, proved.data, path)


async def prove_extension(
    log: LogReader, run_id: str, size: int, *, progress: Progress | None = None
) -> bytes:
    """Return the proof that the run's last seal extends an earlier one: both signed roots, and the path between them.

    Args:
        log: Where the run is.
        run_id: The run's whole id.
        size: How many events the earlier seal covers.
        progress: Told how far it has come.

    Raises:
        UnknownRun: There is no such run.
        SealRefused: No seal covers exactly that many events.
        StoreDamaged: The stored events are no longer those that were sealed, then or now.

    Cancellation: a checkpoint per page of rows.
    """
    after = await last_seal(log, run_id)
    sizes: list[int] = []

    def is_meant(event: Event) -> bool:
        if event.kind == Kind.RECORD_SEALED:
            sizes.append(size_of(event))
        return event.kind == Kind.RECORD_SEALED and size_of(event) == size

    before = await last_event(log, run_id, (0, after.tip), is_meant)
    if before is None:
        known = ", ".join(map(str, sizes[:_NAMED])) + (", ..." if len(sizes) > _NAMED else "")
        raise SealRefused(f"no seal of run {run_id} covers {size} events; there are seals of {known}")
    builder = consistency(_covered(before), after.size)
    await each_page(log, run_id, after.size, lambda events: builder.extend(leaf_hashes(events)), progress)
    path = builder.path()
    try:
        verify_consistency_path(size, _octets(before, "root"), after.size, after.root, path)
    except VerificationError as error:
        raise StoreDamaged(_changed(after.size, run_id)) from error
    return encode_consistency_proof(after.checkpoint, path, _octets(before, "checkpoint"))


def _covered(seal: Event) -> int:
    size = size_of(seal)
    if not 1 <= size < seal.seq:
        raise SealRefused(f"the record.sealed event at seq {seal.seq} does not cover events before it")
    return size


def _require_signed(root: bytes, seal: Seal, run_id: str) -> bytes:
    """Return the root that a run's rows give, if it is still the one that was signed.

    What is handed over as evidence must not be found out to be none by whoever gets it.

    Raises:
        StoreDamaged: They do not.
    """
    if root != seal.root:
        raise StoreDamaged(_changed(seal.size, run_id))
    return root


def _changed(size: int, run_id: str) -> str:
    return (
        f"events 1 to {size} of run {run_id} no longer give the root that was signed: the store was changed "
        "after the seal, and `affidavit fsck` tells where"
    )


def _octets(event: Event, key: str) -> bytes:
    value = event.detail.get(key)
    if not isinstance(value, bytes):
        raise SealRefused(f"the record.sealed event at seq {event.seq} holds no {key}")
    return value
