"""The demo's attacks on a sealed record: each makes a changed copy, which the verifier must refuse.

The last one is the strongest there is: the holder of the signing key takes an admission out and signs again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from affidavit.actors.signers.port import Signer
from affidavit.crypto.checkpoint import Checkpoint, assemble_checkpoint, signing_input
from affidavit.crypto.event import decode_event
from affidavit.crypto.failures import AffidavitError, VerificationError
from affidavit.crypto.hashing import leaf_hash
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.merkle import Tree
from affidavit.crypto.record import encode_record, verify_record


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack and what became of it.

    Attributes:
        title: What was done, in a few words.
        file: What the changed copy is called.
        record: Its bytes.
        code: The registered code it was refused with.
    """

    title: str
    file: str
    record: bytes
    code: str


async def attacks(
    events: Sequence[bytes], checkpoint: bytes, signer: Signer, keyring: Keyring
) -> list[Attack]:
    """Attack a record in four ways and have each copy verified.

    Args:
        events: The record's event bytes.
        checkpoint: Its signed checkpoint.
        signer: The key that signed it, for the attack from within.
        keyring: What the auditor trusts.

    Raises:
        AffidavitError: An attack was not refused, which would be a defect of this program.
    """
    middle = len(events) // 2
    changed = bytearray(events[middle])
    changed[-1] ^= 1
    start = _first(events, "dispatch.start")
    unadmitted = [*events[:start], *events[start + 1 :]]
    copies = [
        (
            "one bit of an event changed",
            "changed-bit",
            [*events[:middle], bytes(changed), *events[middle + 1 :]],
        ),
        ("the last three events cut off", "cut-tail", list(events[:-3])),
        ("one event dropped from the middle", "dropped-event", [*events[:middle], *events[middle + 1 :]]),
    ]
    made = [(title, name, encode_record(kept, checkpoint)) for title, name, kept in copies]
    resealed = encode_record(unadmitted, await _sign(unadmitted, signer))
    made.append(("admission removed, signed anew by the key's owner", "un-admitted", resealed))
    return [
        Attack(title, f"{name}.tampered", record, _refusal(record, keyring)) for title, name, record in made
    ]


def _first(events: Sequence[bytes], stored_type: str) -> int:
    return next(index for index, event in enumerate(events) if decode_event(event).type == stored_type)


async def _sign(events: Sequence[bytes], signer: Signer) -> bytes:
    tree = Tree()
    for event in events:
        tree.append(leaf_hash(event))
    checkpoint = Checkpoint(origin=decode_event(events[0]).stream, size=tree.size, root=tree.root())
    signature = await signer.sign(signing_input(checkpoint, kid=signer.kid))
    return assemble_checkpoint(checkpoint, kid=signer.kid, signature=signature)


def _refusal(record: bytes, keyring: Keyring) -> str:
    try:
        verify_record(record, keyring)
    except VerificationError as error:
        return str(error.code)
    raise AffidavitError("a tampered record was accepted: this is a defect, please report it")
