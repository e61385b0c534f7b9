"""This project's own vectors: verdict and code of each, made anew from fixed keys."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from affidavit.crypto import FailureCode, Keyring, parse_keyring, verify_events
from affidavit.tools import vectors
from tests.crypto.samples import VERIFIERS, by_id, code_of
from tests.environment import ROOT

FOLDER = ROOT / "tests" / "vectors"
MANIFEST = json.loads((FOLDER / "manifest.json").read_bytes())


def keyring() -> Keyring:
    """The key that the manifest names."""
    return parse_keyring((FOLDER / "manifest.json").read_bytes())


@pytest.mark.parametrize("vector", MANIFEST["vectors"], ids=by_id)
def test_own_vector(vector: dict[str, Any]) -> None:
    """A vector of ours is accepted, or refused with the code that it names."""
    if vector["kind"] == "events":
        found = code_of(verify_events, [(FOLDER / name).read_bytes() for name in vector["events"]])
    else:
        found = code_of(VERIFIERS[vector["kind"]], (FOLDER / vector["artifact"]).read_bytes(), keyring())
    assert found == vector.get("failure_code")


def test_every_code_of_a_verifier_has_a_vector_of_ours() -> None:
    """Our vectors are complete by themselves, for whoever has only this repository."""
    tried = {vector.get("failure_code") for vector in MANIFEST["vectors"]} - {None}
    producer_only = {FailureCode.ENC_ENCODE} | {code for code in FailureCode if code.tier is None}
    assert tried == set(FailureCode) - producer_only


def test_a_vector_is_named_by_its_one_defect() -> None:
    """Ids and files are unique, and the file's name is the id's."""
    vectors_of_id = {vector["id"]: vector for vector in MANIFEST["vectors"]}
    assert len(vectors_of_id) == len(MANIFEST["vectors"])
    for name, vector in vectors_of_id.items():
        for path in vector.get("events", [vector.get("artifact")]):
            assert Path(path).stem.startswith(name.replace(".", "_"))
            assert path.startswith(f"{vector['expect']}/")
        assert ("failure_code" in vector) == (vector["expect"] == "reject")


def test_stored_vectors_are_what_the_fixed_keys_give() -> None:
    """The stored files are exactly those that `--check` makes, and none besides."""
    assert vectors.main([str(FOLDER), "--check"]) == 0


def test_check_names_a_changed_missing_or_added_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` fails on any difference and names the file."""
    copy = tmp_path / "vectors"
    shutil.copytree(FOLDER, copy)
    changed, missing, *_ = sorted(copy.rglob("*.cbor"))
    changed.write_bytes(b"\x00")
    missing.unlink()
    extra = copy / "accept" / "notes"
    extra.write_bytes(b"\x00")
    assert vectors.main([str(copy), "--check"]) == 1
    said = capsys.readouterr().err
    for path in (changed, missing, extra):
        assert path.relative_to(copy).as_posix() in said
    assert vectors.main([str(copy)]) == 1, "a file too many stays a difference"
    extra.unlink()
    assert vectors.main([str(copy)]) == 0
