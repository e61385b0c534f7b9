"""An approver's own signature over what they decided: a statement in a COSE_Sign1 message.

The statement names the run, the call and the digest of its exact arguments, so it holds for that one call and no other. What the
record says beside it is compared by whoever reads the record.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final

from affidavit.crypto import cbor, cose
from affidavit.crypto.failures import FailureCode, ProducerError, VerificationError
from affidavit.crypto.hashing import HASH_SIZE
from affidavit.crypto.keyring import Keyring, Trust

CONTENT_TYPE: Final = "application/vnd.affidavit.approval+cbor"
APPROVED: Final = "approved"
REFUSED: Final = "refused"


@dataclass(frozen=True, slots=True)
class ApprovalStatement:
    """What an approver puts their name to.

    Attributes:
        run: The stream that the call belongs to.
        call: The call's correlation id.
        action: The tool.
        args: The 32-byte digest that binds its exact arguments.
        decision: `approved` or `refused`.
        principal: Who decides.
        reason: Why, in their words.
        request: The seq of the request.
        expires: Unix nanoseconds after which the approval holds no more.
    """

    run: str
    call: int
    action: str
    args: bytes
    decision: str
    principal: str
    reason: str
    request: int
    expires: int


@dataclass(frozen=True, slots=True)
class VerifiedApproval:
    """A statement whose signature held, the key id that signed it, and where trust in the key comes from."""

    statement: ApprovalStatement
    kid: bytes
    trust: Trust


_TYPES: Final = {
    "run": str,
    "call": int,
    "action": str,
    "args": bytes,
    "decision": str,
    "principal": str,
    "reason": str,
    "request": int,
    "expires": int,
}
_NAMES: Final = tuple(field.name for field in fields(ApprovalStatement))


def approval_statement(statement: ApprovalStatement) -> bytes:
    """Return the canonical bytes that are signed.

    Raises:
        ProducerError: `enc.encode` where a part has no canonical form or is none that can be.
    """
    if not _is_sound(statement):
        raise ProducerError(
            FailureCode.ENC_ENCODE,
            "an approval is `approved` or `refused`, for arguments of a 32-byte digest",
        )
    return cbor.encode({name: getattr(statement, name) for name in _NAMES})


def sign_approval(statement: ApprovalStatement, *, kid: bytes, sign: Callable[[bytes], bytes]) -> bytes:
    """Return the signed statement.

    Args:
        statement: What to sign.
        kid: Id of the signing key; never empty.
        sign: Returns the 64-byte Ed25519 signature over its argument.

    Raises:
        ProducerError: `enc.encode`, `sign.empty_key_id`, `sign.sign_failed`.
    """
    return cose.sign1(approval_statement(statement), content_type=CONTENT_TYPE, kid=kid, sign=sign)


def approval_signing_input(statement: ApprovalStatement, *, kid: bytes) -> bytes:
    """Return the bytes to sign, for a signer that has to wait; `assemble_approval` takes the signature.

    Raises:
        ProducerError: `enc.encode`, `sign.empty_key_id`.
    """
    return cose.to_be_signed(approval_statement(statement), content_type=CONTENT_TYPE, kid=kid)


def assemble_approval(statement: ApprovalStatement, *, kid: bytes, signature: bytes) -> bytes:
    """Return the signed statement of a signature made over `approval_signing_input`.

    Raises:
        ProducerError: `enc.encode`; `sign.sign_failed` where the signature is not 64 bytes.
    """
    return cose.assemble(cose.protected_header(CONTENT_TYPE, kid), approval_statement(statement), signature)


def verify_approval(data: bytes, keyring: Keyring) -> VerifiedApproval:
    """Return the statement of a signed message.

    Raises:
        VerificationError: `sign.bad_content_type`, `sign.unknown_key`, or `sign.signature_invalid` for every other fault of
            form, signature or content.
    """
    opened = cose.open_sign1(data, content_type=CONTENT_TYPE, keyring=keyring)
    return VerifiedApproval(_read(opened.payload), opened.kid, opened.trust)


def require_statement(verified: VerifiedApproval, expected: ApprovalStatement) -> VerifiedApproval:
    """Return a verified statement that says exactly what is expected of it.

    Raises:
        VerificationError: `sign.signature_invalid`, naming the first part that differs.
    """
    for name in _NAMES:
        said, wanted = getattr(verified.statement, name), getattr(expected, name)
        if said != wanted:
            raise VerificationError(
                FailureCode.SIGN_SIGNATURE_INVALID,
                f"the signed statement on call {expected.call} is for another {name}",
                expected=wanted,
                actual=said,
            )
    return verified


def _is_sound(statement: ApprovalStatement) -> bool:
    return len(statement.args) == HASH_SIZE and statement.decision in (APPROVED, REFUSED)


def _read(payload: bytes) -> ApprovalStatement:
    try:
        value = cbor.decode(payload)
    except VerificationError as error:
        raise VerificationError(
            FailureCode.SIGN_SIGNATURE_INVALID, f"the signed statement is not canonical: {error.detail}"
        ) from error
    if value.__class__ is dict and {name: part.__class__ for name, part in value.items()} == _TYPES:
        statement = ApprovalStatement(**value)
        if _is_sound(statement):
            return statement
    raise VerificationError(
        FailureCode.SIGN_SIGNATURE_INVALID, "the signed payload is no statement about an approval"
    )
