"""One artifact judged: crypto does it, and this keeps the answer in the shape that is printed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from affidavit.crypto.approval_fold import ShownApprovals
from affidavit.crypto.chain import verify_events
from affidavit.crypto.checkpoint import VerifiedCheckpoint, verify_checkpoint
from affidavit.crypto.consistency_proof import verify_consistency
from affidavit.crypto.event_proof import verify_event_proof
from affidavit.crypto.failures import FailureCode, Tier, VerificationError
from affidavit.crypto.findings import Finding, FindingKind
from affidavit.crypto.fork_origin import ForkOrigin
from affidavit.crypto.governance import Governance
from affidavit.crypto.keyring import Keyring, Trust, show_kid
from affidavit.crypto.record_verdict import THE_WORLD, UNTIMED, WENT_ON, WHOSE_KEY
from affidavit.crypto.validity import is_bounded
from affidavit.tools._verify_input import Artifact, Kind
from affidavit.tools._verify_run import Asked, verify_run_file

REBUILT: Final = "whether any events lead to this root: a checkpoint carries none"
REST: Final = "the other events of the run, and whether they keep the rules (L4)"
UNSIGNED: Final = "who vouches for it: events alone carry no signature (L2)"


@dataclass(frozen=True, slots=True)
class Earlier:
    """The earlier of two checkpoints; the names are those of `--json`."""

    size: int
    root: str
    kid: str
    key_name: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of one artifact; the names are those of `--json`."""

    file: str | list[str] | None
    kind: Kind
    verdict: str
    trust: Trust = Trust.NONE
    tier: Tier | None = None
    failure_code: FailureCode | None = None
    detail: str | None = None
    index: int | None = None
    expected: str | None = None
    actual: str | None = None
    events: int | None = None
    size: int | None = None
    root: str | None = None
    kid: str | None = None
    key_name: str | None = None
    origin: str | None = None
    complete: bool | None = None
    gapless: bool | None = None
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[str, ...] = ()
    governance: Governance | None = None
    approvals: ShownApprovals | None = None
    fork: ForkOrigin | None = None
    end: str | None = None
    before: Earlier | None = None
    proved: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether every check that was made held."""
        return self.verdict == "accept"


def judge(artifact: Artifact, asked: Asked) -> Verdict:
    """Return the verdict on one artifact other than bare events. Never raises for what it holds.

    Args:
        artifact: The artifact.
        asked: How it is to be checked.

    Raises:
        OSError: A run cannot be read to its end.
    """
    try:
        match artifact.kind:
            case Kind.CHECKPOINT:
                return _checkpoint(artifact, asked.keyring)
            case Kind.EVENT_PROOF:
                return _event_proof(artifact, asked)
            case Kind.CONSISTENCY:
                return _consistency(artifact, asked.keyring)
            case _:
                return _run(artifact, asked)
    except VerificationError as error:
        return _rejected(artifact.name, artifact.kind, error)


def judge_events(names: Sequence[str], events: Iterable[bytes], max_depth: int) -> Verdict:
    """Return the verdict on files that together are one stream of events, one event in each (L1).

    Args:
        names: The files.
        events: What they hold, read as it is asked for; what reading raises comes out.
        max_depth: How many containers an event may nest.
    """
    file = names[0] if len(names) == 1 else list(names) or None
    try:
        found = verify_events(events, max_depth=max_depth)
    except VerificationError as error:
        return _rejected(file, Kind.EVENTS, error)
    return Verdict(
        file,
        Kind.EVENTS,
        "accept",
        tier=Tier.L1,
        events=found.count,
        findings=found.findings,
        not_checked=(WENT_ON, UNSIGNED, THE_WORLD),
    )


def _rejected(file: str | list[str] | None, kind: Kind, error: VerificationError) -> Verdict:
    return Verdict(
        file,
        kind,
        "reject",
        tier=error.tier,
        failure_code=error.code,
        detail=error.detail,
        index=error.index,
        expected=_shown(error.expected),
        actual=_shown(error.actual),
        not_checked=("everything after the check that failed",),
    )


def _shown(value: object) -> str | None:
    """Return one of the two values that disagree, as text."""
    if value is None:
        return None
    return value.hex() if isinstance(value, bytes) else str(value)


def _run(artifact: Artifact, asked: Asked) -> Verdict:
    found = verify_run_file(artifact, asked)
    signed, kid = found.checkpoint, found.kid
    return Verdict(
        artifact.name,
        artifact.kind,
        "accept",
        trust=found.trust,
        tier=found.tier,
        events=found.chain.count,
        size=signed.size if signed else None,
        root=signed.root.hex() if signed else None,
        kid=None if kid is None else show_kid(kid),
        key_name=None if kid is None else _name_of(kid, asked.keyring),
        origin=signed.origin if signed else None,
        complete=found.complete,
        gapless=all(finding.kind is not FindingKind.SEQ_GAP for finding in found.findings),
        findings=found.findings,
        not_checked=found.not_checked,
        governance=found.governance,
        approvals=found.approvals,
        fork=found.fork,
        end=found.end,
    )


def _checkpoint(artifact: Artifact, keyring: Keyring) -> Verdict:
    found = verify_checkpoint(artifact.data, keyring)
    gaps = _open_questions(found.trust, keyring, found.kid, WENT_ON, REBUILT)
    return _signed(artifact, found, keyring, Tier.L2, gaps)


def _event_proof(artifact: Artifact, asked: Asked) -> Verdict:
    keyring = asked.keyring
    found = verify_event_proof(artifact.data, keyring, max_depth=asked.max_depth)
    event = found.envelope
    signed = VerifiedCheckpoint(found.checkpoint, found.kid, found.trust)
    gaps = _open_questions(found.trust, keyring, found.kid, WENT_ON, REST, THE_WORLD)
    return replace(
        _signed(artifact, signed, keyring, Tier.L3, gaps),
        events=1,
        findings=found.findings,
        proved=f"number {found.index + 1} of {found.size}: {event.type!r} by {event.actor}, seq {event.seq}"
        f" of stream {event.stream!r}",
    )


def _consistency(artifact: Artifact, keyring: Keyring) -> Verdict:
    found = verify_consistency(artifact.data, keyring)
    after, before = found.after, found.before
    gaps = _open_questions(found.trust, keyring, after.kid, WENT_ON, REBUILT, others=(before.kid,))
    earlier = Earlier(
        before.checkpoint.size,
        before.checkpoint.root.hex(),
        show_kid(before.kid),
        _name_of(before.kid, keyring),
    )
    return replace(_signed(artifact, after, keyring, Tier.L3, gaps), trust=found.trust, before=earlier)


def _signed(
    artifact: Artifact,
    opened: VerifiedCheckpoint,
    keyring: Keyring,
    tier: Tier,
    open_questions: tuple[str, ...],
) -> Verdict:
    return Verdict(
        artifact.name,
        artifact.kind,
        "accept",
        trust=opened.trust,
        tier=tier,
        size=opened.checkpoint.size,
        root=opened.checkpoint.root.hex(),
        kid=show_kid(opened.kid),
        key_name=_name_of(opened.kid, keyring),
        origin=opened.checkpoint.origin,
        not_checked=open_questions,
    )


def _open_questions(
    trust: Trust, keyring: Keyring, kid: bytes, *always: str, others: tuple[bytes, ...] = ()
) -> tuple[str, ...]:
    gaps = always
    if is_bounded(keyring, (kid, *others)):
        gaps = (*gaps, UNTIMED)
    return gaps if trust is Trust.KEYRING else (*gaps, WHOSE_KEY)


def _name_of(kid: bytes, keyring: Keyring) -> str | None:
    entry = keyring.entry(kid)
    return entry.name or None if entry is not None else None
