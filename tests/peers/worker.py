"""Runs in the environment of the other libraries: answers one call per line, and imports nothing of this project.

A call is a JSON array of a function's name and its arguments, with bytes in hexadecimal; the answer is an
object with `value`, or with `refused` and the name of the exception's class.
"""

import json
import sys
from typing import Any

import cbor2
from cwt import COSE, COSEKey  # type: ignore[import-not-found] # installed where this runs, not where types are checked
from scitt_cose import merkle  # type: ignore[import-not-found]

ED25519 = -19
LEAF_DOMAIN = b"provetrail/event/v1\n"


def cose_payload(message: str, key: str, kid: str) -> str:
    """The payload of a message whose signature holds."""
    return bytes(COSE.new().decode(bytes.fromhex(message), _public(key, kid))).hex()


def cose_sign(payload: str, seed: str, key: str, kid: str, content_type: str) -> str:
    """A message signed by this library, with our three protected labels."""
    private = COSEKey.new(
        {1: 1, 2: bytes.fromhex(kid), 3: ED25519, -1: 6, -2: bytes.fromhex(key), -4: bytes.fromhex(seed)}
    )
    protected = {1: ED25519, 3: content_type, 4: bytes.fromhex(kid)}
    return bytes(COSE.new().encode_and_sign(bytes.fromhex(payload), private, protected=protected)).hex()


def cose_key(key: str, kid: str) -> str:
    """A public key as this library tells its labels, in deterministic CBOR."""
    return cbor2.dumps(_public(key, kid).to_dict(), canonical=True).hex()


def read_cose_key(data: str) -> dict[str, str]:
    """The public key, and its id, of a COSE_Key that this library reads."""
    labels = COSEKey.from_bytes(bytes.fromhex(data)).to_dict()
    return {"key": labels[-2].hex(), "kid": labels[2].hex()}


def record(data: str, key: str, kid: str) -> bool:
    """Whether a record's events rebuild its signed root, by the two libraries together."""
    fields = cbor2.loads(bytes.fromhex(data))
    signed = _signed(fields["checkpoint"], key, kid)
    root = merkle.merkle_root([_entry(event) for event in fields["events"]])
    return bool(len(fields["events"]) == signed["size"] and root == signed["root"].hex())


def event_proof(data: str, key: str, kid: str) -> bool:
    """Whether an event's proof holds, by the two libraries together."""
    fields = cbor2.loads(bytes.fromhex(data))
    signed = _signed(fields["checkpoint"], key, kid)
    path = [node.hex() for node in fields["inclusion"]]
    entry = _entry(fields["canonical"])
    held = merkle.verify_inclusion(entry, fields["index"], fields["size"], path, signed["root"].hex())
    return bool(held and fields["size"] == signed["size"])


def extension(data: str, key: str, kid: str) -> bool:
    """Whether a consistency proof holds, by the two libraries together."""
    fields = cbor2.loads(bytes.fromhex(data))
    old, new = (_signed(fields[name], key, kid) for name in ("before", "after"))
    path = [node.hex() for node in fields["proof"]]
    return bool(
        merkle.verify_consistency(old["root"].hex(), new["root"].hex(), old["size"], new["size"], path)
    )


def _entry(event: bytes) -> str:
    return (LEAF_DOMAIN + len(event).to_bytes(8, "big") + event).hex()


def _signed(message: bytes, key: str, kid: str) -> dict[str, Any]:
    payload: dict[str, Any] = cbor2.loads(bytes.fromhex(cose_payload(message.hex(), key, kid)))
    return payload


def _public(key: str, kid: str) -> Any:
    return COSEKey.new({1: 1, 2: bytes.fromhex(kid), 3: ED25519, -1: 6, -2: bytes.fromhex(key)})


CALLS = {
    "cose_payload": cose_payload,
    "cose_sign": cose_sign,
    "cose_key": cose_key,
    "read_cose_key": read_cose_key,
    "record": record,
    "event_proof": event_proof,
    "extension": extension,
    "merkle_root": merkle.merkle_root,
    "inclusion_proof": merkle.inclusion_proof,
    "verify_inclusion": merkle.verify_inclusion,
    "consistency_proof": merkle.consistency_proof,
    "verify_consistency": merkle.verify_consistency,
}


def main() -> None:
    """Answer until the input ends."""
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = {"value": CALLS[name](*arguments)}
        except Exception as error:
            answer = {"refused": type(error).__name__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
