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


def _public(key: str, kid: str) -> Any:
    return COSEKey.new({1: 1, 2: bytes.fromhex(kid), 3: ED25519, -1: 6, -2: bytes.fromhex(key)})


CALLS = {
    "cose_payload": cose_payload,
    "cose_sign": cose_sign,
    "cose_key": cose_key,
    "read_cose_key": read_cose_key,
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
