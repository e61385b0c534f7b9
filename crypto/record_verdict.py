"""What is said of a sealed run that verified, and what its verification leaves open."""

from dataclasses import dataclass
from typing import Final

from affidavit.crypto.approval_fold import ShownApprovals
from affidavit.crypto.chain import VerifiedEvents
from affidavit.crypto.checkpoint import Checkpoint, VerifiedCheckpoint
from affidavit.crypto.failures import Tier
from affidavit.crypto.findings import Finding
from affidavit.crypto.fork_origin import ForkOrigin
from affidavit.crypto.governance import Governance
from affidavit.crypto.keyring import Trust

WENT_ON: Final = "whether the run went on after this seal"
THE_WORLD: Final = "whether the events describe what happened: that rests on the runtime that wrote them"
WHOSE_KEY: Final = "whose key it is: the key id only spells out its own key, which is in no keyring given"
UNTIMED: Final = "whether the key was valid when it signed: nothing in it tells when that was"
BEFORE: Final = "whether it begins with what its parent really said: that takes the parent's own record"
SIGNATURE: Final = "who vouches for it: no signature was checked (L2)"
RULES: Final = "whether actions were admitted and successes rest on checks (L4)"


@dataclass(frozen=True, slots=True)
class VerifiedRun:
    """A sealed run that verified.

    Attributes:
        chain: What the structure check found: stream, number of events, first and last seq, last claimed time.
        checkpoint: The signed origin, size and root; None below L2.
        kid: The key id that signed; None below L2.
        trust: Where trust in the key comes from; `none` below L2.
        tier: The highest tier that was checked.
        governance: What L4 found; None below L4.
        findings: What was noticed without refusing.
        complete: Whether the record reaches the end of its run; None in a foreign vocabulary.
        not_checked: What this verification does not show, in plain words.
        approvals: What people decided, and who signed for it; None below L4.
        fork: Where it goes on from; None where it says nothing of that.
        end: How the run ended, as the type of its terminal event; None where the record does not reach that.
    """

    chain: VerifiedEvents
    checkpoint: Checkpoint | None
    kid: bytes | None
    trust: Trust
    tier: Tier
    governance: Governance | None
    findings: tuple[Finding, ...]
    complete: bool | None
    not_checked: tuple[str, ...]
    approvals: ShownApprovals | None
    fork: ForkOrigin | None
    end: str | None


@dataclass(frozen=True, slots=True)
class VerifiedRecord(VerifiedRun):
    """A sealed run that verified, with the exact bytes of each event."""

    events: tuple[bytes, ...]


def not_checked(opened: VerifiedCheckpoint | None, tier: Tier, *, is_fork: bool) -> tuple[str, ...]:
    """Return what a verification up to a tier leaves open, in plain words."""
    gaps = [WENT_ON]
    if opened is None:
        gaps.append(SIGNATURE)
    elif opened.trust is Trust.SELF:
        gaps.append(WHOSE_KEY)
    if tier < Tier.L4:
        gaps.append(RULES)
    if is_fork:
        gaps.append(BEFORE)
    return (*gaps, THE_WORLD)
