"""One artifact judged: crypto does it, and this keeps the answer in the shape that is printed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from affidavit.crypto.chain import verify_events
from affidavit.crypto.checkpoint import Checkpoint, verify_checkpoint
from affidavit.crypto.consistency_proof import verify_consistency
from affidavit.crypto.event_proof import verify_event_proof
from affidavit.crypto.failures import FailureCode, Tier, VerificationError
from affidavit.crypto.findings import Finding
from affidavit.crypto.governance import Governance
from affidavit.crypto.keyring import Keyring, Trust, show_kid
from affidavit.crypto.record_verdict import THE_WORLD, WENT_ON, WHOSE_KEY
from affidavit.tools._verify_input import Artifact, Kind
from affidavit.tools._verify_run import verify_run_file

REBUILT: Final = "whether any events lead to this root: a checkpoint carries none"
REST: Final = "the other events of the run, and whether they keep the rules (L4)"
UNSIGNED: Final = "who vouches for it: events alone carry no signature (L2)"


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
    origin: str | None = None
    complete: bool | None = None
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[str, ...] = ()
    governance: Governance | None = None
    before: int | None = None
    proved: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether every check that was made held."""
        return self.verdict == "accept"


def judge(artifact: Artifact, keyring: Keyring, tier: Tier, jobs: int | None = None) -> Verdict:
    """Return the verdict on one artifact other than bare events. Never raises for what it holds.

    Args:
        artifact: The artifact.
        keyring: The keys trusted.
        tier: Where to stop.
        jobs: How many processes check a run; None to choose by its size.

    Raises:
        OSError: A run cannot be read to its end.
    """
    try:
        match artifact.kind:
            case Kind.CHECKPOINT:
                return _checkpoint(artifact, keyring)
            case Kind.EVENT_PROOF:
                return _event_proof(artifact, keyring)
            case Kind.CONSISTENCY:
                return _consistency(artifact, keyring)
            case _:
                return _run(artifact, keyring, tier, jobs)
    except VerificationError as error:
        return _rejected(artifact.name, artifact.kind, error)


def judge_events(names: Sequence[str], events: Iterable[bytes]) -> Verdict:
    """Return the verdict on files that together are one stream of events, one event in each (L1).

    Args:
        names: The files.
        events: What they hold, read as it is asked for; what reading raises comes out.
    """
    file = names[0] if len(names) == 1 else list(names) or None
    try:
        found = verify_events(events)
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
        tier=error.code.tier,
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


def _run(artifact: Artifact, keyring: Keyring, tier: Tier, jobs: int | None) -> Verdict:
    found = verify_run_file(artifact, keyring, tier, jobs)
    signed = found.checkpoint
    return Verdict(
        artifact.name,
        artifact.kind,
        "accept",
        trust=found.trust,
        tier=found.tier,
        events=found.chain.count,
        size=signed.size if signed else None,
        root=signed.root.hex() if signed else None,
        kid=show_kid(found.kid) if found.kid is not None else None,
        origin=signed.origin if signed else None,
        complete=found.complete,
        findings=found.findings,
        not_checked=found.not_checked,
        governance=found.governance,
    )


def _checkpoint(artifact: Artifact, keyring: Keyring) -> Verdict:
    found = verify_checkpoint(artifact.data, keyring)
    return _signed(artifact, found.checkpoint, found.kid, found.trust, Tier.L2, (WENT_ON, REBUILT))


def _event_proof(artifact: Artifact, keyring: Keyring) -> Verdict:
    found = verify_event_proof(artifact.data, keyring)
    event = found.envelope
    verdict = _signed(
        artifact, found.checkpoint, found.kid, found.trust, Tier.L3, (WENT_ON, REST, THE_WORLD), events=1
    )
    return replace(
        verdict,
        proved=f"number {found.index + 1} of {found.size}: {event.type!r} by {event.actor}, seq {event.seq}"
        f" of stream {event.stream!r}",
    )


def _consistency(artifact: Artifact, keyring: Keyring) -> Verdict:
    found = verify_consistency(artifact.data, keyring)
    after = found.after
    before = found.before.checkpoint.size
    return _signed(
        artifact, after.checkpoint, after.kid, found.trust, Tier.L3, (WENT_ON, REBUILT), before=before
    )


def _signed(
    artifact: Artifact,
    checkpoint: Checkpoint,
    kid: bytes,
    trust: Trust,
    tier: Tier,
    open_questions: tuple[str, ...],
    *,
    events: int | None = None,
    before: int | None = None,
) -> Verdict:
    return Verdict(
        artifact.name,
        artifact.kind,
        "accept",
        trust=trust,
        tier=tier,
        events=events,
        size=checkpoint.size,
        root=checkpoint.root.hex(),
        kid=show_kid(kid),
        origin=checkpoint.origin,
        not_checked=open_questions if trust is Trust.KEYRING else (*open_questions, WHOSE_KEY),
        before=before,
    )
