"""Vectors of stand-alone proofs (L3): one fault each, beyond the published suite."""

from collections.abc import Iterator

from affidavit.crypto.consistency_proof import encode_consistency_proof
from affidavit.crypto.event_proof import encode_event_proof
from affidavit.crypto.failures import FailureCode as Code
from affidavit.crypto.hashing import EMPTY_ROOT
from affidavit.tools._vectors_cases import EVENTS, SIGNED, TREE, Case, signed, signed_tree, splice


def cases() -> Iterator[Case]:
    """Yield the vectors."""
    yield from _event_proof_cases()
    yield from _consistency_cases()


def _event_proof_cases() -> Iterator[Case]:
    path = TREE.inclusion(1)

    def proof(name: str, code: Code | None, description: str, data: bytes) -> Case:
        return Case(f"event_proof.{name}", "event_proof", "L3", code, description, (data,))

    def altered(index: int = 1, canonical: bytes = EVENTS[1], inclusion: tuple[bytes, ...] = path) -> bytes:
        return encode_event_proof(5, index, canonical, inclusion, SIGNED)

    last = encode_event_proof(5, 4, EVENTS[4], TREE.inclusion(4), SIGNED)
    yield proof("edge", None, "The last leaf, at the ragged edge of the tree.", last)
    yield proof(
        "index_is_size", Code.RECORD_INDEX_OUT_OF_RANGE, "An index equal to the size.", altered(index=5)
    )
    yield proof(
        "path_long", Code.MERKLE_INCLUSION_INVALID, "A node too many.", altered(inclusion=(*path, path[0]))
    )
    yield proof("path_short", Code.MERKLE_MISSING_NODE, "A node too few.", altered(inclusion=path[:-1]))
    other_event = altered(canonical=EVENTS[2])
    yield proof("event_other", Code.MERKLE_INCLUSION_INVALID, "Another event of the record.", other_event)
    smaller = encode_event_proof(4, 1, EVENTS[1], TREE.inclusion(1, 4), SIGNED)
    yield proof("size_other", Code.RECORD_SIZE_MISMATCH, "A size that is not the signed one.", smaller)
    narrow = (path[0][:31], *path[1:])
    yield proof(
        "node_narrow", Code.MERKLE_INCLUSION_INVALID, "A node of 31 bytes.", altered(inclusion=narrow)
    )
    yield proof("index_moved", Code.MERKLE_INCLUSION_INVALID, "Another event's index.", altered(index=2))
    yield proof(
        "event_trailing",
        Code.ENC_TRAILING_BYTES,
        "A byte after the event.",
        altered(canonical=EVENTS[1] + b"\x00"),
    )
    whole = altered()
    yield proof(
        "extra_field", Code.RECORD_NON_CANONICAL, "A field too many.", b"\xa6" + whole[1:] + b"\x61z\x00"
    )
    yield proof(
        "index_long",
        Code.RECORD_NON_CANONICAL,
        "A longer head.",
        splice(whole, b"index\x01", b"index\x18\x01"),
    )
    yield proof("trailing", Code.RECORD_DECODE, "A byte after the proof.", whole + b"\x00")
    unsized = b"\xa4" + splice(whole, b"\x64size\x05\x65index", b"\x65index")[1:]
    yield proof("field_missing", Code.RECORD_DECODE, "No size.", unsized)


def _consistency_cases() -> Iterator[Case]:
    invalid = Code.MERKLE_CONSISTENCY_INVALID
    path, before = TREE.consistency(3, 5), signed_tree(TREE, 3)

    def proof(
        name: str, code: Code | None, description: str, after: bytes, nodes: tuple[bytes, ...], old: bytes
    ) -> Case:
        data = encode_consistency_proof(after, nodes, old)
        return Case(f"consistency.{name}", "consistency", "L3", code, description, (data,))

    yield proof("ragged", None, "From size 3 to size 5.", SIGNED, path, before)
    yield proof("same", None, "One size and one root, without a path.", SIGNED, (), SIGNED)
    yield proof("same_with_path", invalid, "One size, with a path.", SIGNED, path, SIGNED)
    yield proof("fork", invalid, "One size, two roots.", SIGNED, (), signed(5, TREE.root(3)))
    yield proof("from_empty", invalid, "From size 0.", SIGNED, (), signed(0, EMPTY_ROOT))
    yield proof("shrinking", invalid, "From size 5 to size 3.", before, path, SIGNED)
    elsewhere = signed_tree(TREE, 3, origin="run/elsewhere")
    yield proof("origins", invalid, "Two origins.", SIGNED, path, elsewhere)
    yield proof("node_narrow", invalid, "A node of 31 bytes.", SIGNED, (path[0][:31], *path[1:]), before)
    yield proof("path_long", invalid, "A node too many.", SIGNED, (*path, path[0]), before)
    whole = encode_consistency_proof(SIGNED, path, before)
    for name, code, description, data in (
        ("extra_field", Code.RECORD_NON_CANONICAL, "A field too many.", b"\xa4" + whole[1:] + b"\x61z\x00"),
        (
            "field_missing",
            Code.RECORD_DECODE,
            "No earlier checkpoint.",
            b"\xa2" + whole[1 : -len(before) - 9],
        ),
        ("trailing", Code.RECORD_DECODE, "A byte after the proof.", whole + b"\x00"),
    ):
        yield Case(f"consistency.{name}", "consistency", "L3", code, description, (data,))
    yield proof("path_short", invalid, "A node too few.", SIGNED, path[:-1], before)
    flipped = (bytes((path[0][0] ^ 1,)) + path[0][1:], *path[1:])
    yield proof("node_changed", invalid, "One bit of a node changed.", SIGNED, flipped, before)
