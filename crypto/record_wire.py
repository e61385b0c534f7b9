"""A part of a record as bytes, for a process that checks it to hand to the one that joins the parts.

Both run the same version on the same machine, and the one started the other: this is no format for anyone else.
"""

from typing import Any

from affidavit.crypto import cbor
from affidavit.crypto.approval_notes import pack_notes, unpack_notes
from affidavit.crypto.chain import ChainPart
from affidavit.crypto.failures import FailureCode, VerificationError
from affidavit.crypto.findings import Finding, FindingKind
from affidavit.crypto.fork_origin import ForkNote
from affidavit.crypto.governance_steps import pack_steps, unpack_steps
from affidavit.crypto.record_part import Part
from affidavit.crypto.shown_args import ArgsPart, Owed


def encode_part(part: Part) -> bytes:
    """Return a part as bytes."""
    return cbor.encode(
        [
            part.index,
            part.count,
            part.root,
            None if part.chain is None else _chain(part.chain),
            pack_steps(part.steps, part.index),
            list(part.reach),
            None if part.fault is None else _fault(part.fault),
            pack_notes(part.notes, part.index),
            None if part.fork is None else list(part.fork),
            [[list(item) for item in kept] for kept in part.args],
        ]
    )


def decode_part(data: bytes) -> Part:
    """Return the part that `encode_part` made bytes of.

    Raises:
        ValueError: It made no such bytes.
    """
    try:
        index, count, root, chain, steps, reach, fault, notes, fork, args = cbor.decode(data)
        return Part(
            index,
            count,
            root,
            None if chain is None else _read_chain(*chain),
            tuple(unpack_steps(steps, index)),
            (reach[0], reach[1]),
            None if fault is None else _read_fault(*fault),
            unpack_notes(notes, index),
            None if fork is None else ForkNote(*fork),
            _read_args(*args),
        )
    except (TypeError, ValueError, IndexError, VerificationError) as error:
        raise ValueError("this is no part of a record") from error


def _chain(chain: ChainPart) -> list[Any]:
    findings: list[Any] = [
        [str(found.kind), found.detail, found.count, list(found.seqs), list(found.ids)]
        for found in chain.findings
    ]
    return [chain.stream, chain.count, chain.first_seq, chain.last_seq, chain.last_time, findings]


def _read_chain(
    stream: str, count: int, first_seq: int, last_seq: int, last_time: int, findings: list[Any]
) -> ChainPart:
    found = tuple(
        Finding(FindingKind(kind), detail, times, tuple(seqs), tuple(ids))
        for kind, detail, times, seqs, ids in findings
    )
    return ChainPart(stream, count, first_seq, last_seq, last_time, found)


def _read_args(shown: list[Any], differ: list[Any], owed: list[Any]) -> ArgsPart:
    return ArgsPart(
        tuple((key, digest) for key, digest in shown),
        tuple((seq, call) for seq, call in differ),
        tuple(Owed(*item) for item in owed),
    )


def _fault(fault: VerificationError) -> list[Any]:
    return [str(fault.code), fault.detail, fault.index, fault.expected, fault.actual]


def _read_fault(
    code: str, detail: str, index: int | None, expected: object, actual: object
) -> VerificationError:
    return VerificationError(FailureCode(code), detail, index=index, expected=expected, actual=actual)
