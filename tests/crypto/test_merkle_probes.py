"""The published probes of another log's library: good proofs, and each with one mutation."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from affidavit.crypto.proofs import verify_consistency_path, verify_inclusion
from tests.crypto.samples import code_of
from tests.environment import shared_dir

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
