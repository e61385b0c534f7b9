"""Every published failure code is produced: by verifying a vector, or by asking a producer for what cannot be made.

The codes are collected from what is raised, never from what a manifest promises.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from affidavit.crypto import (
    Checkpoint,
    Envelope,
    FailureCode,
    Keyring,
    ProducerError,
    SigningKey,
    VerifyingKey,
    encode_event,
    encode_record,
    parse_keyring,
    sign_checkpoint,
    verify_events,
)
from affidavit.crypto.cose import assemble
from tests.crypto.samples import KEY, KID, VERIFIERS, code_of
from tests.environment import ROOT, shared_dir

ENVELOPE: dict[str, Any] = {"stream": "s", "seq": 1, "time": 0, "type": "t", "actor": "agent", "payload": {}}
HEAD = Checkpoint("s", 1, bytes(32))


def make(**changes: Any) -> Callable[[], object]:
    """Makes an event with fields changed."""
    return lambda: encode_event(Envelope(**(ENVELOPE | changes)))


def failing(_: bytes) -> bytes:
    """A signer whose device is gone."""
    raise OSError("the device is gone")


PRODUCERS: list[tuple[FailureCode, str, Callable[[], object]]] = [
    (FailureCode.ENC_ENCODE, "a float", make(payload={"a": 1.5})),
    (FailureCode.ENC_ENCODE, "a lone surrogate", make(type="\ud800")),
    (FailureCode.ENC_ENCODE, "a root of 31 bytes", lambda: sign(Checkpoint("s", 1, bytes(31)))),
    (FailureCode.ENC_INVALID_ACTOR, "an actor", make(actor="robot")),
    (FailureCode.ENC_TIME_OUT_OF_RANGE, "a time", make(time=1 << 63)),
    (FailureCode.CHAIN_NON_MONOTONIC_SEQ, "a seq of 0", make(seq=0)),
    (FailureCode.RECORD_EMPTY, "no events", lambda: encode_record([], b"")),
    (FailureCode.SIGN_EMPTY_KEY_ID, "no key id to sign with", lambda: sign(HEAD, kid=b"")),
    (FailureCode.SIGN_EMPTY_KEY_ID, "no key id to trust", lambda: Keyring({b"": KEY.public})),
    (FailureCode.SIGN_SIGN_FAILED, "a signer that fails", lambda: sign(HEAD, signer=failing)),
    (FailureCode.SIGN_SIGN_FAILED, "a short signature", lambda: assemble(b"", b"", bytes(63))),
    (FailureCode.SIGN_BAD_KEY, "a public key", lambda: VerifyingKey.from_raw(bytes(32))),
    (FailureCode.SIGN_BAD_KEY, "a seed", lambda: SigningKey.from_seed(b"")),
]


def sign(head: Checkpoint, kid: bytes = KID, signer: Callable[[bytes], bytes] = KEY.sign) -> bytes:
    """Signs a checkpoint."""
    return sign_checkpoint(head, kid=kid, sign=signer)


@pytest.mark.parametrize(("code", "what", "produce"), PRODUCERS, ids=[case[1] for case in PRODUCERS])
def test_a_producer_refuses_what_it_cannot_make(
    code: FailureCode, what: str, produce: Callable[[], object]
) -> None:
    """With the registered code, and with no bytes made."""
    with pytest.raises(ProducerError) as refusal:
        produce()
    assert refusal.value.code is code


def raised_by_vectors(folder: Path) -> set[FailureCode]:
    """The codes that come out when every vector of a folder is verified."""
    content = (folder / "manifest.json").read_bytes()
    manifest = json.loads(content)
    keys = parse_keyring(content) if "keyring" in manifest else Keyring()
    found = set()
    for vector in manifest["vectors"]:
        if "artifact" in vector:
            code = code_of(VERIFIERS[vector["kind"]], (folder / vector["artifact"]).read_bytes(), keys)
        else:
            code = code_of(verify_events, [(folder / name).read_bytes() for name in vector["events"]])
        found |= {code} if code is not None else set()
    return found


def raised_by_producers() -> set[FailureCode]:
    """The codes that come out when a producer is asked for what it cannot make."""
    found = set()
    for _, _, produce in PRODUCERS:
        with pytest.raises(ProducerError) as refusal:
            produce()
        found.add(refusal.value.code)
    return found


def published() -> dict[str, dict[str, Any]]:
    """The published codes that are part of this version, pinned, operational and producer ones."""
    registry = json.loads(shared_dir("vectors", "provetrail", "registry.json").read_bytes())
    known = {entry["code"]: entry for entry in registry["codes"]}
    assert {entry["status"] for entry in known.values()} == {"pinned", "operational", "producer", "deferred"}
    return {code: entry for code, entry in known.items() if entry["status"] != "deferred"}


def test_every_published_code_is_produced() -> None:
    """Pinned and operational codes by verifying or producing, producer codes by producing; and no other is."""
    suite = shared_dir("vectors", "provetrail")
    verifying = raised_by_vectors(ROOT / "tests" / "vectors")
    verifying |= raised_by_vectors(suite / "crypto") | raised_by_vectors(suite / "structural")
    producing = raised_by_producers()
    by_status = {
        status: {code for code, entry in published().items() if entry["status"] == status}
        for status in ("pinned", "operational", "producer")
    }
    assert verifying >= by_status["pinned"]
    assert verifying | producing >= by_status["operational"]
    assert producing >= by_status["producer"]
    assert verifying | producing == set(FailureCode)


def test_each_pinned_code_is_raised_on_the_vectors_that_pin_it() -> None:
    """What the registry says of each vector is what comes out of it."""
    suite = shared_dir("vectors", "provetrail")
    pinned = {code: set(entry["pinned_by"]) for code, entry in published().items() if "pinned_by" in entry}
    for folder in ("crypto", "structural"):
        for vector in json.loads((suite / folder / "manifest.json").read_bytes())["vectors"]:
            codes = {code for code, names in pinned.items() if vector["id"] in names}
            assert codes == ({vector["failure_code"]} if "failure_code" in vector else set())


def test_our_codes_are_the_published_ones_with_their_tiers() -> None:
    """We know every published code that is not deferred, with its tier, and no other."""
    known = published()
    assert {str(code) for code in FailureCode} == set(known)
    for code in FailureCode:
        if known[code].get("tier"):
            assert code.tier == known[code]["tier"]
