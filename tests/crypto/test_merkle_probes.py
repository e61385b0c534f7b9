"""Published trees: reference roots, and another library's proofs, each good or with one mutation."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from affidavit.crypto import Envelope, Tree, encode_event, leaf_hash
from affidavit.crypto.hashing import plain_leaf_hash
from affidavit.crypto.merkle import RootBuilder
from affidavit.crypto.proofs import verify_consistency_path, verify_inclusion
from tests.crypto.samples import code_of
from tests.environment import shared_dir

ROOTS = json.loads(shared_dir("vectors", "merkle", "roots.json").read_bytes())
PROBES = shared_dir("vectors", "merkle", "probes")


def probes(kind: str) -> list[Path]:
    """Every probe of a kind."""
    found = sorted((PROBES / kind).rglob("*.json"))
    assert found, "an empty folder would test nothing"
    return found


def name_of(path: Path) -> str:
    """The id of a case."""
    return path.relative_to(PROBES).with_suffix("").as_posix()


def raw(text: str | None) -> bytes:
    """The bytes that a probe gives in base64."""
    return base64.b64decode(text or "")


def nodes(probe: dict[str, Any]) -> list[bytes]:
    """The path of a probe."""
    return [raw(node) for node in probe["proof"] or []]


@pytest.mark.parametrize("path", probes("inclusion"), ids=name_of)
def test_inclusion_probe(path: Path) -> None:
    """An inclusion proof is accepted exactly where the publisher says so."""
    probe = json.loads(path.read_bytes())
    arguments = (
        raw(probe["leafHash"]),
        probe["leafIdx"],
        probe["treeSize"],
        nodes(probe),
        raw(probe["root"]),
    )
    assert (code_of(verify_inclusion, *arguments) is not None) == probe["wantErr"]


@pytest.mark.parametrize("path", probes("consistency"), ids=name_of)
def test_consistency_probe(path: Path) -> None:
    """A consistency proof is accepted exactly where the publisher says so."""
    probe = json.loads(path.read_bytes())
    old, new = (probe["size1"], raw(probe["root1"])), (probe["size2"], raw(probe["root2"]))
    found = code_of(verify_consistency_path, *old, *new, nodes(probe))
    assert found == ("merkle.consistency_invalid" if probe["wantErr"] else None)


def test_published_reference_roots() -> None:
    """The roots over the RFC 6962 reference leaves are the published ones."""
    tree = Tree()
    for text in ROOTS["rfc6962_reference_leaves_hex"]:
        tree.append(plain_leaf_hash(bytes.fromhex(text)))
    assert ROOTS["rfc6962_roots_by_size"]
    for size, root in ROOTS["rfc6962_roots_by_size"].items():
        assert tree.root(int(size)).hex() == root


def test_published_event_roots() -> None:
    """The roots over the published stream of events are the published ones, for both ways to build one."""
    wanted = {int(size): root for size, root in ROOTS["provetrail_roots_by_size"].items()}
    tree, builder = Tree(), RootBuilder()
    assert tree.root().hex() == builder.root().hex() == wanted[0]
    for seq in range(1, max(wanted) + 1):
        time = 1_700_000_000_000_000_000 + seq
        data = encode_event(Envelope("run/hidden", seq, time, "action.dispatched", "agent", {}))
        if seq == 1:
            assert data.hex() == ROOTS["provetrail_first_event_hex"]
            assert leaf_hash(data).hex() == ROOTS["provetrail_first_leaf_hex"]
        assert tree.append(leaf_hash(data)) == seq - 1
        builder.add(leaf_hash(data))
        if seq in wanted:
            assert tree.root().hex() == builder.root().hex() == wanted[seq]
