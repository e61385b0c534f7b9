"""What is fuzzed: each decoder as a function of bytes that returns whether it accepted them.

A target lets out only what is a fault of the product. Where a signature would end every run at the door, the target
signs what it was given, so that what lies behind is reached.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from affidavit.crypto import cbor, cose
from affidavit.crypto.chain import verify_events
from affidavit.crypto.checkpoint import (
    CONTENT_TYPE,
    Checkpoint,
    encode_payload,
    sign_checkpoint,
    verify_checkpoint,
)
from affidavit.crypto.consistency_proof import verify_consistency
from affidavit.crypto.container import FieldType, read_closed_map
from affidavit.crypto.event import decode_event, encode_event
from affidavit.crypto.event_proof import verify_event_proof
from affidavit.crypto.failures import AffidavitError, ProducerError, VerificationError
from affidavit.crypto.hashing import leaf_hash
from affidavit.crypto.key_forms import read_public_key
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.keyring_file import encode_keyring, parse_keyring
from affidavit.crypto.keys import SigningKey
from affidavit.crypto.merkle import Tree
from affidavit.crypto.record import encode_record, verify_record, verify_run

KEY: Final = SigningKey.from_seed(bytes(range(33, 65)))
KID: Final = b"affidavit-vectors"
RING: Final = Keyring({KID: KEY.public})
VECTORS: Final = Path(__file__).resolve().parent.parent / "vectors"

Target = Callable[[bytes], bool]


def accepts(check: Callable[..., object], *arguments: object) -> bool:
    """Say whether a check accepts; anything but its coded refusal comes out."""
    try:
        check(*arguments)
    except VerificationError:
        return False
    return True


def decoder(data: bytes) -> bool:
    """Canonical CBOR; what is accepted encodes back to the same bytes."""
    try:
        value = cbor.decode(data)
    except VerificationError:
        return False
    assert cbor.encode(value) == data
    return True


def event(data: bytes) -> bool:
    """An event; what is accepted encodes back to the same bytes, unless it holds a float."""
    try:
        envelope = decode_event(data)
    except VerificationError:
        return False
    try:
        again = encode_event(envelope)
    except ProducerError:
        return True
    assert again == data
    return True


def stream(data: bytes) -> bool:
    """A stream of events, cut at each byte 0xFF."""
    return accepts(verify_events, data.split(b"\xff"))


def record(data: bytes) -> bool:
    """A record as it is, whole and in dribbles: the verdict is one."""
    whole = refusal_of(verify_record, data, RING)
    dribbled = refusal_of(verify_run, dribble(data), len(data), RING)
    assert whole == dribbled
    return whole is None


def refusal_of(check: Callable[..., object], *arguments: object) -> tuple[str, int | None] | None:
    """The code and place with which a check refuses; None where it accepts."""
    try:
        check(*arguments)
    except VerificationError as error:
        return error.code, error.index
    return None


def dribble(data: bytes) -> Callable[[int], bytes]:
    """A reader that never returns more than a few bytes at once."""
    place = 0

    def read(count: int) -> bytes:
        nonlocal place
        start, place = place, place + min(count, 1 + place % 7)
        return data[start:place]

    return read


def sealed(data: bytes) -> bool:
    """The events of a record, sealed anew, so that structure and rules are reached whatever the events are."""
    try:
        fields = read_closed_map(data, {"events": FieldType.BYTES_LIST, "checkpoint": FieldType.BYTES})
    except VerificationError:
        return False
    events = fields.octet_strings("events")
    tree = Tree()
    for part in events:
        tree.append(leaf_hash(part))
    if not events:
        return False
    head = Checkpoint("run/vectors", tree.size, tree.root())
    return record(encode_record(events, sign_checkpoint(head, kid=KID, sign=KEY.sign)))


def checkpoint(data: bytes) -> bool:
    """A checkpoint as it is."""
    return accepts(verify_checkpoint, data, RING)


def payload(data: bytes) -> bool:
    """A checkpoint's payload, signed."""
    signed = cose.sign1(data, content_type=CONTENT_TYPE, kid=KID, sign=KEY.sign)
    return accepts(verify_checkpoint, signed, RING)


def header(data: bytes) -> bool:
    """A protected header, signed."""
    body = encode_payload(Checkpoint("run/vectors", 1, bytes(32)))
    signed = cose.assemble(data, body, KEY.sign(cose.signature_input(data, body)))
    return accepts(verify_checkpoint, signed, RING)


def event_proof(data: bytes) -> bool:
    """The proof of one event."""
    return accepts(verify_event_proof, data, RING)


def consistency(data: bytes) -> bool:
    """The proof between two checkpoints."""
    return accepts(verify_consistency, data, RING)


def keyring(data: bytes) -> bool:
    """A keyring file; what is accepted is written and read back alike."""
    try:
        entries = parse_keyring(data).entries
    except AffidavitError:
        return False
    assert parse_keyring(encode_keyring(entries)).entries == entries
    return True


def public_key(data: bytes) -> bool:
    """A public key in any form."""
    try:
        read_public_key(data)
    except ProducerError:
        return False
    return True


def leaking(data: bytes) -> bool:
    """Lets an error out on purpose, to show that the harness sees one."""
    if data[:1] == b"!":
        raise ValueError("let out on purpose")
    return False


TARGETS: Final[dict[str, Target]] = {
    target.__name__: target
    for target in (
        *(decoder, event, stream, record, sealed, checkpoint),
        *(payload, header, event_proof, consistency, keyring, public_key),
    )
}
_KINDS: Final = {
    "record": {"run", "governance"},
    "sealed": {"run", "governance"},
    "checkpoint": {"checkpoint"},
    "event_proof": {"event_proof"},
    "consistency": {"consistency"},
}


def seeds(name: str) -> Iterable[bytes]:
    """The inputs that a target starts from: our own vectors of its kind, or a few that it accepts."""
    if name in _KINDS:
        return [data for vector, data in _vectors() if vector["kind"] in _KINDS[name]]
    events = [data for vector, data in _vectors() if vector["kind"] == "events"]
    did, raw = KEY.public.did_key.encode(), b"\x58\x20" + KEY.public.raw
    others: dict[str, list[bytes]] = {
        "decoder": events,
        "event": events,
        "stream": [*events, b"\xff".join(events[:2])],
        "payload": [encode_payload(Checkpoint("run/vectors", 1, bytes(32)))],
        "header": [cose.protected_header(CONTENT_TYPE, KID)],
        "keyring": [encode_keyring(RING.entries), (VECTORS / "manifest.json").read_bytes()[:400]],
        "public_key": [
            *(did, KEY.public.hex.encode(), KEY.public.to_openssh_public("someone")),
            b"\xa5\x01\x01\x02\x41a\x03\x32\x20\x06\x21" + raw,
        ],
        "leaking": [b"harmless"],
    }
    return others[name]


def _vectors() -> Iterable[tuple[dict[str, Any], bytes]]:
    for vector in json.loads((VECTORS / "manifest.json").read_bytes())["vectors"]:
        for name in vector["events"] if "events" in vector else [vector["artifact"]]:
            yield vector, (VECTORS / name).read_bytes()
