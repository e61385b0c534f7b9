"""What a run's record is made of: how many events of which kind, how many bytes, and whether its seals still hold.

Reads alone, a page of rows at a time, and twice: the seals are found first, and then the root of each is built again. A signature
that can be checked without anyone's help, by a key that its id names, is checked; whose key that is, is not.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, final

from affidavit.actors.codec import STORED_TYPES, view
from affidavit.actors.errors import UnknownRun
from affidavit.actors.events import Event, Kind
from affidavit.actors.history import each_row, envelope_of, event_of
from affidavit.actors.logs.port import LogReader, Row
from affidavit.actors.pages import Progress
from affidavit.actors.run_state import size_of
from affidavit.crypto.checkpoint import Checkpoint, open_checkpoint
from affidavit.crypto.failures import FailureCode, VerificationError
from affidavit.crypto.hashing import leaf_hash
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.merkle import RootBuilder


class Signature(StrEnum):
    """What can be said of a seal's signature with no key but the one that its id names."""

    HOLDS = "holds"
    UNKNOWN_KEY = "unknown key"
    BROKEN = "BROKEN"


@dataclass(frozen=True, slots=True)
class KindCount:
    """How much of a run is of one kind.

    Attributes:
        kind: The kind.
        stored: The type under which it is stored.
        events: How many events.
        size: How many bytes they have together.
        first: The seq of the first.
        last: The seq of the last.
    """

    kind: str
    stored: str
    events: int
    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class SealSeen:
    """One seal of a run.

    Attributes:
        seq: The seq of the record.sealed event.
        size: How many events it covers, from seq 1.
        root: The root that it says was signed.
        kid: The id of the key that it says signed.
        rebuilt: Whether the stored events still give that root.
        signature: What can be said of the signature.
    """

    seq: int
    size: int
    root: bytes
    kid: bytes
    rebuilt: bool
    signature: Signature

    @property
    def holds(self) -> bool:
        """Whether nothing is known to be wrong with it."""
        return self.rebuilt and self.signature is not Signature.BROKEN


@dataclass(frozen=True, slots=True)
class Overview:
    """What a run's record is made of.

    Attributes:
        events: How many events there are.
        size: How many bytes they have together.
        kinds: By kind, in the order in which the kinds first occur.
        seals: Every seal, in order.
    """

    events: int
    size: int
    kinds: tuple[KindCount, ...]
    seals: tuple[SealSeen, ...]


async def overview(log: LogReader, run_id: str, progress: Progress | None = None) -> Overview:
    """Return what a run's record is made of.

    Args:
        log: Where the run is.
        run_id: The run's whole id.
        progress: Told how far it has come.

    Raises:
        UnknownRun: There is no such run.
        StoreDamaged: A row is missing, or holds another event than its place says.
        VerificationError: A row is not one canonical event.
        LogError: The log could not be read.

    Cancellation: a checkpoint per page of rows.
    """
    info = await log.info(run_id)
    if info is None:
        raise UnknownRun(f"there is no run {run_id}; `affidavit sessions` lists them")
    counts = _Counts(run_id, info.tip, progress)
    await each_row(log, run_id, info.tip, counts.take)
    roots = _Roots({size_of(seal) for seal in counts.seals}, info.tip, progress)
    if counts.seals:
        await each_row(log, run_id, max(roots.wanted), roots.take)
    return Overview(
        info.tip,
        counts.sizes.total(),
        counts.kinds(),
        tuple(_seen(seal, run_id, roots.found.get(size_of(seal))) for seal in counts.seals),
    )


@final
class _Counts:
    """The first pass: kinds, sizes, and the seals."""

    def __init__(self, run_id: str, tip: int, progress: Progress | None) -> None:
        self.seals: list[Event] = []
        self.events: Counter[tuple[str, str]] = Counter()
        self.sizes: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], int] = {}
        self._last: dict[tuple[str, str], int] = {}
        self._run_id = run_id
        self._tip = tip
        self._progress = progress

    async def take(self, row: Row) -> None:
        envelope = envelope_of(row, self._run_id)
        event = view(envelope)
        key = (event.kind, envelope.type)
        self.events[key] += 1
        self.sizes[key] += len(row.data)
        self._first.setdefault(key, row.seq)
        self._last[key] = row.seq
        if event.kind == Kind.RECORD_SEALED:
            self.seals.append(event)
        if self._progress is not None:
            self._progress(row.seq, 2 * self._tip)

    def kinds(self) -> tuple[KindCount, ...]:
        return tuple(
            KindCount(*key, self.events[key], self.sizes[key], first, self._last[key])
            for key, first in self._first.items()
        )


@final
class _Roots:
    """The second pass: the root over each number of events that a seal says it covers."""

    def __init__(self, wanted: set[int], tip: int, progress: Progress | None) -> None:
        self.wanted = {size for size in wanted if 1 <= size <= tip} or {0}
        self.found: dict[int, bytes] = {}
        self._builder = RootBuilder()
        self._tip = tip
        self._progress = progress

    async def take(self, row: Row) -> None:
        self._builder.add(leaf_hash(row.data))
        if row.seq in self.wanted:
            self.found[row.seq] = self._builder.root()
        if self._progress is not None:
            self._progress(self._tip + row.seq, 2 * self._tip)


def _seen(seal: Event, run_id: str, rebuilt: bytes | None) -> SealSeen:
    root, kid = seal.detail.get("root"), seal.detail.get("kid")
    return SealSeen(
        seq=seal.seq,
        size=size_of(seal),
        root=root if isinstance(root, bytes) else b"",
        kid=kid if isinstance(kid, bytes) else b"",
        rebuilt=rebuilt is not None and rebuilt == root and size_of(seal) < seal.seq,
        signature=signature_of(seal, run_id),
    )


async def seals_over(log: LogReader, run_id: str, seq: int) -> tuple[Event, ...]:
    """Return the record.sealed events of a run whose seals cover one of its events, in order.

    Raises:
        UnknownRun: There is no such run.
        StoreDamaged: A row is missing, or such a row holds another event than its place says.
        VerificationError: Such a row is not one canonical event.
        LogError: The log could not be read.

    Cancellation: a checkpoint per page of rows.
    """
    info = await log.info(run_id)
    if info is None:
        raise UnknownRun(f"there is no run {run_id}; `affidavit sessions` lists them")
    found: list[Event] = []

    async def take(row: Row) -> None:
        # The stored type stands in the bytes as it is written, so a row without it need not be decoded.
        if row.seq > seq and _SEALED in row.data:
            event = event_of(row, run_id)
            if event.kind == Kind.RECORD_SEALED and seq <= size_of(event) < event.seq:
                found.append(event)

    await each_row(log, run_id, info.tip, take)
    return tuple(found)


_SEALED: Final = STORED_TYPES[Kind.RECORD_SEALED].encode()


def signature_of(seal: Event, run_id: str) -> Signature:
    """Return what can be said of the signature of a run's record.sealed event."""
    root, kid = seal.detail.get("root"), seal.detail.get("kid")
    signed = Checkpoint(run_id, size_of(seal), root if isinstance(root, bytes) else b"")
    data = seal.detail.get("checkpoint")
    if not isinstance(data, bytes):
        return Signature.BROKEN
    try:
        opened = open_checkpoint(data, Keyring())
    except VerificationError as error:
        return Signature.UNKNOWN_KEY if error.code == FailureCode.SIGN_UNKNOWN_KEY else Signature.BROKEN
    is_same = (opened.checkpoint, opened.kid) == (signed, kid)
    return Signature.HOLDS if is_same else Signature.BROKEN
