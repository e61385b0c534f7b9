"""An approver's signed statement: what it is made of, and everything that is refused about one."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto import FailureCode, Keyring, ProducerError, SigningKey, VerificationError, cbor, cose
from affidavit.crypto.approval import (
    CONTENT_TYPE,
    ApprovalStatement,
    approval_signing_input,
    approval_statement,
    assemble_approval,
    require_statement,
    sign_approval,
    verify_approval,
)
from affidavit.crypto.keyring import Trust

ADA = SigningKey.from_seed(b"a" * 32)
KID = ADA.public.did_key.encode()
STATEMENT = ApprovalStatement("run-1", 4, "pay", b"d" * 32, "approved", "ada", "as agreed", 16, 10**18)
SIGNED = sign_approval(STATEMENT, kid=KID, sign=ADA.sign)


def test_a_statement_that_was_signed_is_read_back() -> None:
    """As it was, with the key id; trusted if the keyring holds the key, else by itself alone."""
    assert verify_approval(SIGNED, Keyring()).trust is Trust.SELF
    found = verify_approval(SIGNED, Keyring({KID: ADA.public}))
    assert (found.statement, found.kid, found.trust) == (STATEMENT, KID, Trust.KEYRING)


def test_a_signer_that_has_to_wait_makes_the_same_message() -> None:
    """The bytes to sign can be asked for, and the signature be put in later."""
    signature = ADA.sign(approval_signing_input(STATEMENT, kid=KID))
    assert assemble_approval(STATEMENT, kid=KID, signature=signature) == SIGNED
    with pytest.raises(ProducerError):
        approval_signing_input(STATEMENT, kid=b"")


@given(st.integers(0, len(SIGNED) - 1), st.integers(1, 255))
def test_no_byte_of_it_can_be_changed(place: int, change: int) -> None:
    """Each is either signed or part of the one form there is."""
    changed = bytearray(SIGNED)
    changed[place] ^= change
    with pytest.raises(VerificationError):
        verify_approval(bytes(changed), Keyring({KID: ADA.public}))


def _payload(**changes: Any) -> bytes:
    value = cbor.decode(approval_statement(STATEMENT)) | changes
    return cbor.encode({name: part for name, part in value.items() if part is not ...})


@pytest.mark.parametrize(
    "payload",
    [
        _payload(decision="perhaps"),
        _payload(args=b"short"),
        _payload(call="4"),
        _payload(call=True),
        _payload(reason=...),
        _payload(more=1),
        b"\xa0",
        b"\xff",
        cbor.encode([1, 2]),
    ],
)
def test_a_payload_that_is_no_statement_is_refused(payload: bytes) -> None:
    """Even where its signature holds."""
    data = cose.sign1(payload, content_type=CONTENT_TYPE, kid=KID, sign=ADA.sign)
    with pytest.raises(VerificationError) as caught:
        verify_approval(data, Keyring())
    assert caught.value.code is FailureCode.SIGN_SIGNATURE_INVALID


def test_a_signature_for_another_purpose_is_no_approval() -> None:
    """The content type is signed: a checkpoint of the same bytes is none."""
    data = cose.sign1(approval_statement(STATEMENT), content_type="text/plain", kid=KID, sign=ADA.sign)
    with pytest.raises(VerificationError) as caught:
        verify_approval(data, Keyring())
    assert caught.value.code is FailureCode.SIGN_BAD_CONTENT_TYPE


OTHERS: dict[str, Callable[[ApprovalStatement], ApprovalStatement]] = {
    "run": lambda each: replace(each, run="run-2"),
    "call": lambda each: replace(each, call=5),
    "action": lambda each: replace(each, action="note"),
    "args": lambda each: replace(each, args=b"e" * 32),
    "decision": lambda each: replace(each, decision="refused"),
    "principal": lambda each: replace(each, principal="bob"),
    "reason": lambda each: replace(each, reason=""),
    "request": lambda each: replace(each, request=17),
    "expires": lambda each: replace(each, expires=0),
}


def test_each_part_of_a_statement_counts() -> None:
    """One that is for something else is refused, and the part that differs is named."""
    found = verify_approval(SIGNED, Keyring())
    assert require_statement(found, STATEMENT) is found
    assert OTHERS.keys() == {field.name for field in fields(ApprovalStatement)}
    for name, change in OTHERS.items():
        with pytest.raises(VerificationError, match=f"another {name}"):
            require_statement(found, change(STATEMENT))


def test_what_can_be_no_statement_is_not_signed() -> None:
    """An unknown decision, and a digest of another length."""
    for bad in (replace(STATEMENT, decision="expired"), replace(STATEMENT, args=b"")):
        with pytest.raises(ProducerError):
            sign_approval(bad, kid=KID, sign=ADA.sign)
