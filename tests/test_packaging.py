"""What is installed is what is in the tree: the wheel's modules, its markers, its declared dependencies."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.environment import ROOT

PACKAGES = ("actors", "crypto", "tools")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel that AFFIDAVIT_WHEEL names, else one built from a copy, so that the tree stays as it was."""
    given = os.environ.get("AFFIDAVIT_WHEEL")
    if given:
        return zipfile.ZipFile(given)
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "setup.py", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, copy)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(target)], cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (built,) = target.glob("*.whl")
    return zipfile.ZipFile(built)


def tree_files(pattern: str) -> set[str]:
    """The files of the three folders that match, under their installed names."""
    return {
        Path("affidavit", path.relative_to(ROOT)).as_posix()
        for root in PACKAGES
        for path in (ROOT / root).rglob(pattern)
    }


@pytest.mark.slow
def test_the_wheel_holds_every_module_of_the_tree_and_no_other(wheel: zipfile.ZipFile) -> None:
    """No sub-package is dropped, and nothing lands in site-packages outside ``affidavit``."""
    assert tree_files("*.py") == {name for name in wheel.namelist() if name.endswith(".py")}


@pytest.mark.slow
def test_the_wheel_holds_the_typed_markers_and_the_licence(wheel: zipfile.ZipFile) -> None:
    """Those who import the installed package see its types and its terms."""
    names = wheel.namelist()
    assert tree_files("py.typed") == {name for name in names if name.endswith("py.typed")}
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")] != []


def test_the_extra_and_the_group_named_test_are_the_same() -> None:
    """``pip install -e '.[test]'`` and ``pip install --group test`` install the same, for any pip."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["optional-dependencies"]["test"] == project["dependency-groups"]["test"]


@pytest.mark.parametrize("name", ["dev", "run", "verify", "smollm2"])
def test_a_constraint_file_pins_by_hash_and_names_no_index(name: str) -> None:
    """Each locked package has a version and a hash, and no line ties the lock to a machine or an index."""
    text = (ROOT / ".ci" / "constraints" / f"{name}.txt").read_text(encoding="utf-8")
    entries = [
        entry for entry in text.replace("\\\n", " ").splitlines() if entry and not entry.startswith("#")
    ]
    assert entries != []
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []
    assert "://" not in text
    assert not any(
        line.startswith(("--index", "--extra-index", "--find-links")) for line in text.splitlines()
    )
