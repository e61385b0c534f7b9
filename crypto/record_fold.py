"""The parts of a record joined in order, and the verdict on the whole once its checkpoint is known.

Whoever checks the parts, in one process or in several, the answer is made here, so it is the same. A fault of
an event is held back until the container, the signature and the size have been judged.
"""

from collections.abc import Sequence
from typing import final

from affidavit.crypto.approval_fold import ApprovalFold
from affidavit.crypto.chain import ChainFold, VerifiedEvents
from affidavit.crypto.checkpoint import VerifiedCheckpoint, open_checkpoint
from affidavit.crypto.completeness import CompletenessFold
from affidavit.crypto.event_check import too_long
from affidavit.crypto.event_scan import BATCH
from affidavit.crypto.failures import FailureCode, Tier, VerificationError
from affidavit.crypto.findings import Finding, FindingKind, Findings
from affidavit.crypto.fork_origin import ForkNote, judge_fork
from affidavit.crypto.governance import GovernanceFold
from affidavit.crypto.keyring import Keyring, Trust
from affidavit.crypto.merkle import Frontier
from affidavit.crypto.record_part import Checks, Part, PartFold, pieces
from affidavit.crypto.record_verdict import VerifiedRun, not_checked
from affidavit.crypto.shown_args import ArgsFold
from affidavit.crypto.validity import of_record


@final
class RecordFold:
    """Takes the parts of one record, in order.

    Attributes:
        fault: The first fault of an event; None while there is none. Nothing after it counts.
    """

    __slots__ = (
        "_approvals",
        "_args",
        "_chain",
        "_fork",
        "_frontier",
        "_last",
        "_reach",
        "_rules",
        "_tier",
        "count",
        "fault",
    )

    def __init__(self, tier: Tier = Tier.L4) -> None:
        self._tier = tier
        self._chain = ChainFold()
        self._rules = GovernanceFold()
        self._approvals = ApprovalFold()
        self._args = ArgsFold()
        self._reach = CompletenessFold()
        self._fork: ForkNote | None = None
        self._frontier = Frontier()
        self._last: bytes | None = None
        self.count = 0
        self.fault: VerificationError | None = None

    def add(self, part: Part) -> None:
        """Take the next part. Never raises for what its events hold.

        Raises:
            RuntimeError: Where it is not the one that follows.
        """
        if self.fault is not None:
            return
        if part.index != self.count or self._last is not None:
            raise RuntimeError(f"part {part.index} does not follow {self.count} events in whole parts")
        self.count += part.count
        if part.chain is not None:
            try:
                self._chain.join(part.chain)
            except VerificationError as error:
                self.fault = error
                return
        if part.fault is not None:
            self.fault = part.fault
            return
        if part.root is not None and part.count == BATCH:
            self._frontier.push(part.root)
        else:
            self._last = part.root
        self._reach.join(part.reach)
        self._fork = self._fork or part.fork
        for step in part.steps:
            self._rules.take(step)
        self._approvals.join(part.notes, part.steps)
        self._args.join(part.args)

    def root(self) -> bytes:
        """Return the root over the events taken."""
        return self._frontier.root(self._last)

    def finish(self, opened: VerifiedCheckpoint | None, keyring: Keyring) -> VerifiedRun:
        """Return the verdict: events, then the root, then the rules.

        Args:
            opened: The checkpoint, its size compared already; None below L2.
            keyring: The keys trusted.

        Raises:
            VerificationError: With the code of the first check that fails.
        """
        if self.fault is not None:
            raise self.fault
        require_root(self.root(), opened)
        governance = self._rules.finish() if self._tier >= Tier.L4 else None
        approvals, noticed = self._approvals.finish(keyring)
        structure = self._chain.finish()
        return VerifiedRun(
            chain=structure,
            checkpoint=opened.checkpoint if opened else None,
            kid=opened.kid if opened else None,
            trust=opened.trust if opened else Trust.NONE,
            tier=Tier.L2 if self._tier is Tier.L3 else self._tier,
            governance=governance,
            findings=(
                *structure.findings,
                *_signer_findings(opened, structure, keyring),
                *(governance.findings if governance else ()),
                *noticed,
                *self._args.finish(),
            ),
            complete=self._reach.finish(),
            not_checked=not_checked(opened, self._tier, is_fork=self._fork is not None),
            approvals=approvals if governance else None,
            fork=judge_fork(self._fork, keyring) if self._fork else None,
            end=self._reach.end(),
        )


@final
class EventsCheck:
    """Checks the events of a record a few at a time, for a caller that must not stop for long.

    Each call of `add` costs about as much as its events; thirty-two to sixty-four of them take well under a
    millisecond. Nothing of an event is kept.

    Attributes:
        count: How many events were handed over.
    """

    __slots__ = ("_checks", "_fold", "_part", "_tier", "count")

    def __init__(self, tier: Tier = Tier.L4, checks: Checks | None = None) -> None:
        """Begin.

        Args:
            tier: Where to stop.
            checks: What to do with each event; what the tier asks for by default.
        """
        self._tier = tier
        self._checks = Checks.up_to(tier) if checks is None else checks
        self._fold = RecordFold(tier)
        self._part = PartFold(self._checks, 0)
        self.count = 0

    @property
    def fault(self) -> VerificationError | None:
        """The first fault of an event; None while there is none. No further event needs to be added then."""
        return self._fold.fault or self._part.fault

    def add(self, events: Sequence[bytes]) -> None:
        """Take the next events. Never raises for what they hold."""
        self.count += len(events)
        if self.fault is not None:
            return
        for piece in pieces(events, self._part.count):
            self._part.add(piece)
            if self._part.is_full:
                self._fold.add(self._part.finish())
                self._part = PartFold(self._checks, self._part.next_index)

    def refuse_too_long(self, length: int) -> None:
        """Take an event of which only the length is known: it is longer than allowed."""
        if self.fault is None:
            self._part.refuse(too_long(length, self._checks.max_event_bytes))

    def finish(self) -> RecordFold:
        """Return the whole, to be judged with its checkpoint."""
        if not self._part.is_empty:
            self._fold.add(self._part.finish())
            self._part = PartFold(self._checks, self._part.next_index)
        return self._fold

    def conclude(self, checkpoint: bytes, keyring: Keyring) -> VerifiedRun:
        """Return the verdict on the events and a signed checkpoint, as on a record that carries them.

        Raises:
            VerificationError: With the code of the first check that fails, in the order of `record.verify_run`.
        """
        opened = open_checkpoint(checkpoint, keyring) if self._tier >= Tier.L2 else None
        require_size(self.count, opened)
        return self.finish().finish(opened, keyring)


def require_size(count: int, opened: VerifiedCheckpoint | None) -> None:
    """Check that there are events, and as many as are signed.

    Raises:
        VerificationError: `record.empty`, `record.size_mismatch`.
    """
    if count == 0:
        raise VerificationError(FailureCode.RECORD_EMPTY, "the record carries no events")
    if opened is not None and opened.checkpoint.size != count:
        raise VerificationError(
            FailureCode.RECORD_SIZE_MISMATCH,
            f"{count} events are carried, {opened.checkpoint.size} are signed",
            expected=opened.checkpoint.size,
            actual=count,
        )


def require_root(root: bytes, opened: VerifiedCheckpoint | None) -> None:
    """Check that the events rebuild the signed root.

    Raises:
        VerificationError: `record.root_mismatch`.
    """
    if opened is not None and opened.checkpoint.root != root:
        raise VerificationError(
            FailureCode.RECORD_ROOT_MISMATCH,
            "the events do not rebuild the signed root",
            expected=opened.checkpoint.root,
            actual=root,
        )


def _signer_findings(
    opened: VerifiedCheckpoint | None, chain: VerifiedEvents, keyring: Keyring
) -> tuple[Finding, ...]:
    if opened is None:
        return ()
    findings = Findings()
    if opened.checkpoint.origin != chain.stream:
        findings.add(
            FindingKind.ORIGIN_DIFFERS,
            f"the signed origin is {opened.checkpoint.origin!r}, the stream is {chain.stream!r}",
        )
    return (*findings.all(), *of_record(keyring, opened.kid, chain.last_time))
