"""The sealed run: the exact bytes of every event, and the signed checkpoint over them.

Verification rebuilds the signed root from the bytes carried; it never encodes an event again. What is not
signed is never handed on as fact: the checkpoint is opened first, and the result says what was not checked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from affidavit.crypto import cbor
from affidavit.crypto import cbor_heads as heads
from affidavit.crypto.chain import ChainFold, VerifiedEvents
from affidavit.crypto.checkpoint import Checkpoint, VerifiedCheckpoint, open_checkpoint
from affidavit.crypto.completeness import CompletenessFold
from affidavit.crypto.container import FieldType, read_closed_map
from affidavit.crypto.event import MAX_EVENT_BYTES
from affidavit.crypto.failures import FailureCode, ProducerError, Tier, VerificationError
from affidavit.crypto.findings import Finding, FindingKind, Findings
from affidavit.crypto.governance import Governance, GovernanceFold
from affidavit.crypto.hashing import leaf_hash
from affidavit.crypto.keyring import Keyring, Trust
from affidavit.crypto.merkle import RootBuilder

_FIELDS: Final = {"events": FieldType.BYTES_LIST, "checkpoint": FieldType.BYTES}

WENT_ON: Final = "whether the run went on after this seal"
THE_WORLD: Final = "whether the events describe what happened: that rests on the runtime that wrote them"
WHOSE_KEY: Final = "whose key it is: the key id only spells out its own key, which is in no keyring given"
SIGNATURE: Final = "who vouches for it: no signature was checked (L2)"
RULES: Final = "whether actions were admitted and successes rest on checks (L4)"


@dataclass(frozen=True, slots=True)
class VerifiedRecord:
    """A sealed run that verified.

    Attributes:
        events: The exact bytes of each event.
        chain: What the structure check found: stream, first and last seq, last claimed time.
        checkpoint: The signed origin, size and root; None below L2.
        kid: The key id that signed; None below L2.
        trust: Where trust in the key comes from; `none` below L2.
        tier: The highest tier that was checked.
        governance: What L4 found; None below L4.
        findings: What was noticed without refusing.
        complete: Whether the record reaches the end of its run; None in a foreign vocabulary.
        not_checked: What this verification does not show, in plain words.
    """

    events: tuple[bytes, ...]
    chain: VerifiedEvents
    checkpoint: Checkpoint | None
    kid: bytes | None
    trust: Trust
    tier: Tier
    governance: Governance | None
    findings: tuple[Finding, ...]
    complete: bool | None
    not_checked: tuple[str, ...]


def record_head(count: int) -> bytes:
    """Return the bytes of a record before its first event, for a writer that streams.

    Each event follows as `cbor_heads.write_bytes`, then `record_tail`.

    Raises:
        ProducerError: `record.empty` for a count of 0.
    """
    if count < 1:
        raise ProducerError(FailureCode.RECORD_EMPTY, "a record needs at least one event")
    return heads.write_head(heads.MAP, 2) + heads.write_text("events") + heads.write_head(heads.ARRAY, count)


def record_tail(checkpoint: bytes) -> bytes:
    """Return the bytes of a record after its last event."""
    return heads.write_text("checkpoint") + heads.write_bytes(checkpoint)


def encode_record(events: Sequence[bytes], checkpoint: bytes) -> bytes:
    """Return the sealed run of these events and this signed checkpoint.

    Args:
        events: The exact bytes of each event, in order.
        checkpoint: The signed checkpoint over them.

    Raises:
        ProducerError: `record.empty` without events.
    """
    parts = [record_head(len(events))]
    parts.extend(heads.write_bytes(event) for event in events)
    parts.append(record_tail(checkpoint))
    return b"".join(parts)


def verify_record(
    data: bytes,
    keyring: Keyring,
    *,
    tier: Tier = Tier.L4,
    max_event_bytes: int = MAX_EVENT_BYTES,
    max_depth: int = cbor.DEFAULT_MAX_DEPTH,
) -> VerifiedRecord:
    """Verify a sealed run, up to a tier.

    1. The container is the canonical closed map.
    2. The checkpoint is signed by a key of the keyring, or by one that certifies itself (L2).
    3. There are events, as many as the signed size (L2).
    4. Each event is canonical, of one stream, in order (L1).
    5. The events rebuild the signed root (L2).
    6. The governance and ground truth rules hold (L4).

    Args:
        data: The record, and nothing more.
        keyring: The keys trusted.
        tier: Where to stop. A run has nothing that L3 checks, so L3 stops after L2.
        max_event_bytes: The longest event accepted, in bytes.
        max_depth: How many containers an event may nest.

    Raises:
        VerificationError: With the code of the first check that fails.
    """
    fields = read_closed_map(data, _FIELDS)
    events, signed = fields.octet_strings("events"), fields.octets("checkpoint")
    opened = open_checkpoint(signed, keyring) if tier >= Tier.L2 else None
    _require_size(len(events), opened)
    chain = ChainFold(max_event_bytes=max_event_bytes, max_depth=max_depth)
    rules, completeness, builder = GovernanceFold(), CompletenessFold(), RootBuilder()
    for event in events:
        decoded = chain.add(event)
        rules.add(decoded)
        completeness.add(decoded["type"])
        builder.add(leaf_hash(event))
    _require_root(builder.root(), opened)
    governance = rules.finish() if tier >= Tier.L4 else None
    structure = chain.finish()
    return VerifiedRecord(
        events=tuple(events),
        chain=structure,
        checkpoint=opened.checkpoint if opened else None,
        kid=opened.kid if opened else None,
        trust=opened.trust if opened else Trust.NONE,
        tier=Tier.L2 if tier is Tier.L3 else tier,
        governance=governance,
        findings=(
            *structure.findings,
            *_signer_findings(opened, structure, keyring),
            *(governance.findings if governance else ()),
        ),
        complete=completeness.finish(),
        not_checked=not_checked(opened, tier),
    )


def not_checked(opened: VerifiedCheckpoint | None, tier: Tier) -> tuple[str, ...]:
    """Return what a verification up to a tier leaves open, in plain words."""
    gaps = [WENT_ON]
    if opened is None:
        gaps.append(SIGNATURE)
    elif opened.trust is Trust.SELF:
        gaps.append(WHOSE_KEY)
    if tier < Tier.L4:
        gaps.append(RULES)
    return (*gaps, THE_WORLD)


def _require_size(count: int, opened: VerifiedCheckpoint | None) -> None:
    if count == 0:
        raise VerificationError(FailureCode.RECORD_EMPTY, "the record carries no events")
    if opened is not None and opened.checkpoint.size != count:
        raise VerificationError(
            FailureCode.RECORD_SIZE_MISMATCH,
            f"{count} events are carried, {opened.checkpoint.size} are signed",
            expected=opened.checkpoint.size,
            actual=count,
        )


def _require_root(root: bytes, opened: VerifiedCheckpoint | None) -> None:
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
    entry = keyring.entry(opened.kid)
    if entry is not None and entry.valid_from is not None and chain.last_time < entry.valid_from:
        findings.add(
            FindingKind.KEY_NOT_YET_VALID, "the last time that the record claims is before its key's validity"
        )
    if entry is not None and entry.valid_until is not None and chain.last_time > entry.valid_until:
        findings.add(
            FindingKind.KEY_NO_LONGER_VALID,
            "the last time that the record claims is after its key's validity",
        )
    return findings.all()
