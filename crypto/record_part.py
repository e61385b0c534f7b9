"""Some of a record's events checked by themselves: what one process, or one batch, can say without the others.

A part holds what its own bytes show and what is left to judge where parts meet; `record_fold` joins them in order.
Every part but the last has `event_scan.BATCH` events, so its root is that of a complete subtree.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from affidavit.crypto import cbor
from affidavit.crypto.approval_notes import NOTED, ApprovalNote, read_note
from affidavit.crypto.byte_source import ByteSource, Read
from affidavit.crypto.chain import ChainFold, ChainPart
from affidavit.crypto.completeness import CompletenessFold
from affidavit.crypto.event_check import too_long
from affidavit.crypto.event_form import MAX_EVENT_BYTES
from affidavit.crypto.event_scan import BATCH, EventRange, EventTooLong, event_batches
from affidavit.crypto.failures import FailureCode, Tier, VerificationError
from affidavit.crypto.fork_origin import ForkNote, read_fork
from affidavit.crypto.governance_steps import Step, read_step
from affidavit.crypto.hashing import leaf_hashes, subtree_root
from affidavit.crypto.shown_args import BINDS, NO_ARGS, ArgsPart, ArgsReader


@dataclass(frozen=True, slots=True)
class Checks:
    """What is done with each event.

    Attributes:
        hashed: Its leaf is hashed into the root (from L2 on).
        read: It is decoded, checked and put in its place (L1); without it only the root is rebuilt.
        judged: What it means for admissions and outcomes is kept for the end (L4).
        max_event_bytes: The longest event accepted, in bytes.
        max_depth: How many containers an event may nest.
    """

    hashed: bool = True
    read: bool = True
    judged: bool = True
    max_event_bytes: int = MAX_EVENT_BYTES
    max_depth: int = cbor.DEFAULT_MAX_DEPTH

    @classmethod
    def up_to(
        cls,
        tier: Tier,
        *,
        max_event_bytes: int = MAX_EVENT_BYTES,
        max_depth: int = cbor.DEFAULT_MAX_DEPTH,
    ) -> "Checks":
        """Return what a verification that stops at a tier does."""
        return cls(
            hashed=tier >= Tier.L2,
            judged=tier >= Tier.L4,
            max_event_bytes=max_event_bytes,
            max_depth=max_depth,
        )


@dataclass(frozen=True, slots=True)
class Part:
    """What a part of a record shows.

    Attributes:
        index: Zero-based position of its first event.
        count: How many events were taken; at a fault, at most those before it.
        root: The root over them, where they were hashed.
        chain: How they follow one another; None where none was read.
        steps: What L4 has to judge.
        reach: What completeness is told from.
        fault: Why the event after them is refused; None while none is.
        notes: What its events say about approvals.
        fork: What the record's first event says of a parent, where this part holds it.
        args: What its events show of the arguments of calls.
    """

    index: int
    count: int
    root: bytes | None
    chain: ChainPart | None
    steps: tuple[Step, ...]
    reach: tuple[str, bool]
    fault: VerificationError | None
    notes: tuple[ApprovalNote, ...] = ()
    fork: ForkNote | None = None
    args: ArgsPart = NO_ARGS


@final
class PartFold:
    """Takes the events of one part, in order.

    Attributes:
        count: How many events were taken.
        fault: Why the event after them is refused; None while none is.
    """

    __slots__ = (
        "_args",
        "_chain",
        "_checks",
        "_fork",
        "_index",
        "_leaves",
        "_notes",
        "_reach",
        "_steps",
        "count",
        "fault",
    )

    def __init__(self, checks: Checks, index: int) -> None:
        """Begin a part whose first event is at a zero-based index."""
        self._checks = checks
        self._index = index
        self._chain = ChainFold(
            max_event_bytes=checks.max_event_bytes, max_depth=checks.max_depth, index=index
        )
        self._reach = CompletenessFold()
        self._leaves: list[bytes] = []
        self._steps: list[Step] = []
        self._notes: list[ApprovalNote] = []
        self._args = ArgsReader()
        self._fork: ForkNote | None = None
        self.fault: VerificationError | None = None
        self.count = 0

    @property
    def next_index(self) -> int:
        """Where the event after those that were taken stands in the record."""
        return self._index + self.count

    @property
    def is_full(self) -> bool:
        """Whether no further event belongs to this part."""
        return self.count == BATCH or self.fault is not None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to say about this part."""
        return self.count == 0 and self.fault is None

    def add(self, events: Sequence[bytes]) -> None:
        """Take the next events. Never raises for what they hold; after a fault they are not looked at."""
        if self.fault is not None:
            return
        if self._checks.read:
            try:
                self._read(events)
            except VerificationError as error:
                self.fault = error
                return
        if self._checks.hashed:
            self._leaves += leaf_hashes(events)
        self.count += len(events)

    def refuse(self, fault: VerificationError) -> None:
        """Refuse the next event for a reason that is not in its bytes."""
        if self.fault is None:
            self.fault = fault.at(self._index + self.count)

    def finish(self) -> Part:
        """Return what was found."""
        return Part(
            self._index,
            self.count,
            subtree_root(self._leaves) if self._leaves else None,
            self._chain.part(),
            tuple(self._steps),
            self._reach.part(),
            self.fault,
            tuple(self._notes),
            self._fork,
            self._args.part(),
        )

    def _read(self, events: Sequence[bytes]) -> None:
        chain, reach, judged, keep = self._chain, self._reach, self._checks.judged, self._steps.append
        for index, data in enumerate(events, self._index + self.count):
            fields = chain.add(data)
            reach.add(fields["type"])
            if index == 0:
                self._fork = read_fork(fields)
            if not judged:
                continue
            step = read_step(fields, index)
            if step is not None:
                keep(step)
            # Asked here, since for most events a call would cost more than it finds.
            note = read_note(fields, index) if fields["type"] in NOTED else None
            if note is not None:
                self._notes.append(note)
            if fields["type"] in BINDS:
                self._args.add(fields)


def parts_of(read: Read, where: EventRange, checks: Checks) -> Iterator[Part]:
    """Check the events of a range, and yield them part by part, up to the first that holds a fault.

    Args:
        read: Reads on from the start of the range.
        where: The range; its index is a multiple of `BATCH`.
        checks: What to do with each event.

    Raises:
        VerificationError: `enc.decode` where the range does not hold what it did when it was found.
    """
    source = ByteSource(read, where.end - where.start)
    fold, ended = PartFold(checks, where.index), False
    batches = event_batches(source, where.count, _ignore, checks.max_event_bytes)
    try:
        for events in batches:
            # After a fault the rest is cut, so that a range that changed is noticed, and not looked at.
            for piece in () if ended else pieces(events, fold.count):
                fold.add(piece)
                if fold.is_full:
                    yield fold.finish()
                    ended = fold.fault is not None
                    if ended:
                        break
                    fold = PartFold(checks, fold.next_index)
    except EventTooLong as stop:
        fold.refuse(too_long(stop.length, checks.max_event_bytes))
    else:
        if source.left:
            raise VerificationError(
                FailureCode.ENC_DECODE, f"{source.left} bytes follow the events of a range"
            )
    if not ended and not fold.is_empty:
        yield fold.finish()


def pieces(events: Sequence[bytes], taken: int) -> Iterator[Sequence[bytes]]:
    """Yield events so that none of the lists goes beyond the part of which `taken` events stand already."""
    room = BATCH - taken
    if len(events) <= room:
        yield events
        return
    yield events[:room]
    for start in range(room, len(events), BATCH):
        yield events[start : start + BATCH]


def _ignore(what: str) -> None:
    # Whoever found the range has noted what departs from the form.
    pass
