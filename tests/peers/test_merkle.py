"""Trees and paths beside the RFC 9162 functions of scitt-cose 0.5.0, which share no code with ours."""

import base64
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from affidavit.crypto import Tree
from affidavit.crypto.hashing import EMPTY_ROOT, plain_leaf_hash
from affidavit.crypto.proofs import verify_consistency_path, verify_inclusion
from tests.crypto.samples import code_of
from tests.environment import SOAK, shared_dir
from tests.peers.peer import Peer, accepts

SIZES = 128 if SOAK else 40
ENTRIES = [f"entry {number}".encode() for number in range(SIZES)]
HEX = [entry.hex() for entry in ENTRIES]
LEAVES = [plain_leaf_hash(entry) for entry in ENTRIES]
TREE = Tree()
for leaf in LEAVES:
    TREE.append(leaf)


def texts(path: Any) -> list[str]:
    """A path in hexadecimal, as the library takes it."""
    return [node.hex() for node in path]


def test_roots_agree(peer: Peer) -> None:
    """For every size, the empty tree's included."""
    for size in range(SIZES + 1):
        assert peer("merkle_root", HEX[:size]) == TREE.root(size).hex()


def test_inclusion_paths_agree_and_each_accepts_the_other_s(peer: Peer) -> None:
    """For every index of every size, the same nodes, accepted by both; moved by one index, refused by both."""
    for size in range(1, SIZES + 1):
        root = TREE.root(size)
        for index in range(size):
            path = TREE.inclusion(index, size)
            assert peer("inclusion_proof", HEX[:size], index) == texts(path)
            assert accepts(peer, "verify_inclusion", HEX[index], index, size, texts(path), root.hex())
            moved = (index + 1) % size
            agreed = accepts(peer, "verify_inclusion", HEX[index], moved, size, texts(path), root.hex())
            ours = code_of(verify_inclusion, LEAVES[index], moved, size, path, root) is None
            assert agreed == ours == (size == 1)


def test_consistency_paths_agree_and_each_accepts_the_other_s(peer: Peer) -> None:
    """For every pair of sizes, the same nodes, accepted by both; with the old root changed, refused by both."""
    for new in range(1, SIZES + 1):
        for old in range(1, new + 1):
            path, roots = TREE.consistency(old, new), (TREE.root(old), TREE.root(new))
            assert peer("consistency_proof", HEX, old, new) == texts(path)
            for old_root in (roots[0], EMPTY_ROOT):
                theirs = accepts(
                    peer, "verify_consistency", old_root.hex(), roots[1].hex(), old, new, texts(path)
                )
                ours = code_of(verify_consistency_path, old, old_root, new, roots[1], path) is None
                assert theirs == ours == (old_root == roots[0])


def test_scitt_cose_is_laxer_about_growth_from_the_empty_tree(peer: Peer) -> None:
    """It accepts that anything extends a tree of size 0, whatever roots are claimed; we refuse, as it shows nothing."""
    claimed = (bytes(32), b"\xff" * 32)
    assert accepts(peer, "verify_consistency", claimed[0].hex(), claimed[1].hex(), 0, 5, [])
    assert code_of(verify_consistency_path, 0, claimed[0], 5, claimed[1], []) == "merkle.consistency_invalid"


def test_scitt_cose_hashes_nodes_of_any_width(peer: Peer) -> None:
    """It hashes a node of 31 bytes and compares roots; we refuse its width before anything is hashed.

    A root over such a node, which only a signer could claim, passes there and never here.
    """
    narrow = b"\x00" * 31
    root = plain_node(LEAVES[0], narrow)
    assert accepts(peer, "verify_inclusion", HEX[0], 0, 2, [narrow.hex()], root.hex())
    assert code_of(verify_inclusion, LEAVES[0], 0, 2, [narrow], root) == "merkle.inclusion_invalid"


def plain_node(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node, whatever the width of its children."""
    return sha256(b"\x01" + left + right).digest()


def test_both_judge_the_published_consistency_probes_alike(peer: Peer) -> None:
    """On every probe of another project, but those from size 0, whose difference has a test of its own."""
    folder = shared_dir("vectors", "merkle", "probes", "consistency")
    judged = 0
    for path in sorted(folder.rglob("*.json")):
        probe = json.loads(path.read_bytes())
        old, new = probe["size1"], probe["size2"]
        if not 0 < old < 1 << 62 or not new < 1 << 62:
            continue
        roots, nodes = (
            (raw(probe["root1"]), raw(probe["root2"])),
            [raw(node) for node in probe["proof"] or []],
        )
        ours = code_of(verify_consistency_path, old, roots[0], new, roots[1], nodes) is None
        theirs = accepts(peer, "verify_consistency", roots[0].hex(), roots[1].hex(), old, new, texts(nodes))
        assert theirs == ours == (not probe["wantErr"]), name_of(path)
        judged += 1
    assert judged > 50


def raw(text: str | None) -> bytes:
    """The bytes that a probe gives in base64."""
    return base64.b64decode(text or "")


def name_of(path: Path) -> str:
    """The end of a probe's path."""
    return "/".join(path.parts[-2:])
