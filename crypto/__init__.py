"""Records of agent runs: their bytes, hashes, signatures and proofs, made and verified.

Pure and synchronous: bytes in, and a verified value or an error with a registered code out. Nothing here
reads a file, a clock or chance. Names are loaded when they are first used, so that one costs only its own.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from affidavit.crypto.approval import ApprovalStatement as ApprovalStatement
    from affidavit.crypto.approval import VerifiedApproval as VerifiedApproval
    from affidavit.crypto.approval import sign_approval as sign_approval
    from affidavit.crypto.approval import verify_approval as verify_approval
    from affidavit.crypto.chain import VerifiedEvents as VerifiedEvents
    from affidavit.crypto.chain import verify_events as verify_events
    from affidavit.crypto.checkpoint import Checkpoint as Checkpoint
    from affidavit.crypto.checkpoint import VerifiedCheckpoint as VerifiedCheckpoint
    from affidavit.crypto.checkpoint import sign_checkpoint as sign_checkpoint
    from affidavit.crypto.checkpoint import verify_checkpoint as verify_checkpoint
    from affidavit.crypto.consistency_proof import VerifiedConsistency as VerifiedConsistency
    from affidavit.crypto.consistency_proof import encode_consistency_proof as encode_consistency_proof
    from affidavit.crypto.consistency_proof import verify_consistency as verify_consistency
    from affidavit.crypto.event import Envelope as Envelope
    from affidavit.crypto.event import decode_event as decode_event
    from affidavit.crypto.event import encode_event as encode_event
    from affidavit.crypto.event_proof import VerifiedEventProof as VerifiedEventProof
    from affidavit.crypto.event_proof import encode_event_proof as encode_event_proof
    from affidavit.crypto.event_proof import verify_event_proof as verify_event_proof
    from affidavit.crypto.failures import AffidavitError as AffidavitError
    from affidavit.crypto.failures import CodedError as CodedError
    from affidavit.crypto.failures import FailureCode as FailureCode
    from affidavit.crypto.failures import ProducerError as ProducerError
    from affidavit.crypto.failures import Tier as Tier
    from affidavit.crypto.failures import VerificationError as VerificationError
    from affidavit.crypto.findings import Finding as Finding
    from affidavit.crypto.governance import Governance as Governance
    from affidavit.crypto.hashing import leaf_hash as leaf_hash
    from affidavit.crypto.keyring import Keyring as Keyring
    from affidavit.crypto.keyring import Trust as Trust
    from affidavit.crypto.keyring_file import parse_keyring as parse_keyring
    from affidavit.crypto.keys import SigningKey as SigningKey
    from affidavit.crypto.keys import VerifyingKey as VerifyingKey
    from affidavit.crypto.merkle import Tree as Tree
    from affidavit.crypto.record import RecordWriter as RecordWriter
    from affidavit.crypto.record import VerifiedRecord as VerifiedRecord
    from affidavit.crypto.record import VerifiedRun as VerifiedRun
    from affidavit.crypto.record import encode_record as encode_record
    from affidavit.crypto.record import verify_record as verify_record
    from affidavit.crypto.record import verify_root as verify_root
    from affidavit.crypto.record import verify_run as verify_run
    from affidavit.crypto.record import write_record as write_record

_HOME = {
    "approval": ("ApprovalStatement", "VerifiedApproval", "sign_approval", "verify_approval"),
    "chain": ("VerifiedEvents", "verify_events"),
    "checkpoint": ("Checkpoint", "VerifiedCheckpoint", "sign_checkpoint", "verify_checkpoint"),
    "consistency_proof": ("VerifiedConsistency", "encode_consistency_proof", "verify_consistency"),
    "event": ("Envelope", "decode_event", "encode_event"),
    "event_proof": ("VerifiedEventProof", "encode_event_proof", "verify_event_proof"),
    "failures": (
        "AffidavitError",
        "CodedError",
        "FailureCode",
        "ProducerError",
        "Tier",
        "VerificationError",
    ),
    "findings": ("Finding",),
    "governance": ("Governance",),
    "hashing": ("leaf_hash",),
    "keyring": ("Keyring", "Trust"),
    "keyring_file": ("parse_keyring",),
    "keys": ("SigningKey", "VerifyingKey"),
    "merkle": ("Tree",),
    "record": (
        "RecordWriter",
        "VerifiedRecord",
        "VerifiedRun",
        "encode_record",
        "verify_record",
        "verify_root",
        "verify_run",
        "write_record",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
__all__ = sorted(_MODULE_OF)  # noqa: PLE0605 - the one list is the table above


def __getattr__(name: str) -> object:
    """Load a public name from its module (PEP 562)."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
