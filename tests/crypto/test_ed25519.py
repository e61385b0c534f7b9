"""Ed25519 signatures, exactly as strict as the published edge cases."""

import json
from typing import Any

import pytest

from affidavit.crypto import VerifyingKey
from tests.crypto.samples import code_of
from tests.environment import shared_dir

WYCHEPROOF = json.loads(shared_dir("vectors", "ed25519", "ed25519_test.json").read_bytes())


@pytest.mark.parametrize("group", WYCHEPROOF["testGroups"], ids=lambda group: group["publicKey"]["pk"][:8])
def test_published_signature_cases(group: dict[str, Any]) -> None:
    """Each signature is accepted or refused as published; forms of a key other than Ed25519 would fail loudly."""
    assert (group["type"], group["publicKey"]["curve"]) == ("EddsaVerify", "edwards25519")
    key = VerifyingKey.from_hex(group["publicKey"]["pk"])
    assert VerifyingKey.from_pem(group["publicKeyPem"].encode()) == key
    for case in group["tests"]:
        code = code_of(key.verify, bytes.fromhex(case["sig"]), bytes.fromhex(case["msg"]))
        assert code == (None if case["result"] == "valid" else "sign.signature_invalid"), case["comment"]
