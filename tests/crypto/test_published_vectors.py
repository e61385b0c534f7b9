"""The published conformance suite: our verdict and our code on every vector, and the same bytes from our producer."""

import json
from pathlib import Path
from typing import Any

import pytest

from affidavit.crypto import (
    Checkpoint,
    Envelope,
    Keyring,
    SigningKey,
    decode_event,
    encode_consistency_proof,
    encode_event,
    encode_event_proof,
    encode_record,
    parse_keyring,
    sign_checkpoint,
    verify_events,
)
from affidavit.crypto.hashing import EMPTY_ROOT
from tests.crypto.samples import VERIFIERS, by_id, code_of, tree
from tests.environment import shared_dir

SUITE = shared_dir("vectors", "provetrail")
STRUCTURAL = json.loads((SUITE / "structural" / "manifest.json").read_bytes())
CRYPTO = json.loads((SUITE / "crypto" / "manifest.json").read_bytes())


@pytest.fixture(scope="module")
def keyring() -> Keyring:
    """The key that the suite names."""
    return parse_keyring((SUITE / "crypto" / "manifest.json").read_bytes())


@pytest.mark.parametrize("vector", STRUCTURAL["vectors"], ids=by_id)
def test_structural_vector(vector: dict[str, Any]) -> None:
    """A stream of the suite is accepted, or refused with the code that the suite names."""
    carried = [(SUITE / "structural" / name).read_bytes() for name in vector["events"]]
    assert code_of(verify_events, carried) == vector.get("failure_code")


@pytest.mark.parametrize("vector", CRYPTO["vectors"], ids=by_id)
def test_crypto_vector(vector: dict[str, Any], keyring: Keyring) -> None:
    """An artifact of the suite is accepted, or refused with the code that the suite names."""
    data = (SUITE / "crypto" / vector["artifact"]).read_bytes()
    assert code_of(VERIFIERS[vector["kind"]], data, keyring) == vector.get("failure_code")


def test_every_stored_artifact_is_listed() -> None:
    """No file of the suite is passed over because a manifest leaves it out."""
    listed = {SUITE / "crypto" / vector["artifact"] for vector in CRYPTO["vectors"]}
    listed |= {SUITE / "structural" / name for vector in STRUCTURAL["vectors"] for name in vector["events"]}
    assert set(SUITE.rglob("*.cbor")) == listed


# The suite's fixed inputs, as its readme lists them.
KEY = SigningKey.from_seed(bytes(range(1, 33)))
KID = b"provetrail-conformance-root"
ORIGIN = "run/conformance"
EVENTS = [
    encode_event(Envelope(ORIGIN, seq, 1_700_000_000_000_000_000, "action.dispatched", "agent", {}))
    for seq in range(1, 6)
]


def stored(name: str) -> bytes:
    """A valid artifact of the suite."""
    return (SUITE / "crypto" / "valid" / f"crypto_{name}_01.cbor").read_bytes()


def signed(size: int, root: bytes) -> bytes:
    """A checkpoint under the suite's key."""
    return sign_checkpoint(Checkpoint(ORIGIN, size, root), kid=KID, sign=KEY.sign)


def test_our_producer_makes_the_published_artifacts() -> None:
    """From the suite's fixed inputs come the suite's bytes: events, checkpoint, record and both proofs."""
    built = tree(EVENTS)
    three, five = signed(3, built.root(3)), signed(5, built.root())
    assert EVENTS[0] == (SUITE / "structural" / "valid" / "valid_minimal_01.cbor").read_bytes()
    assert signed(0, EMPTY_ROOT) == stored("checkpoint_empty_tree")
    assert three == stored("checkpoint_valid")
    assert encode_record(EVENTS[:3], three) == stored("run_valid")
    assert encode_event_proof(3, 1, EVENTS[1], built.inclusion(1, 3), three) == stored("event_proof_valid")
    two = signed(2, built.root(2))
    assert encode_consistency_proof(five, built.consistency(2, 5), two) == stored("consistency_valid")


@pytest.mark.parametrize("path", sorted(SUITE.glob("structural/valid/*.cbor")), ids=lambda path: path.stem)
def test_a_valid_event_encodes_back_to_its_bytes(path: Path) -> None:
    """Decoding and encoding a valid event gives the same bytes."""
    assert encode_event(decode_event(path.read_bytes())) == path.read_bytes()
