"""The project's shape: small files, whole packages, one name to import, a verifier that starts alone."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environment import ROOT

PACKAGES = ("actors", "crypto", "tools")
LONGEST = 400
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
MACHINE = re.compile(r"(?<![\w.])/(?:wo" + r"rk|ro" + r"ot|ho" + r"me)/\w")
RUNTIME = {"anyio", "asyncio", "cyclopts", "httpx2", "pydantic", "rich", "trio", "affidavit.actors"}

COMMAND = """
import contextlib, io, sys
import affidavit.tools.__main__ as command
sys.argv = ["affidavit", "verify", "--help"]
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    command.main()
"""


def modules(*roots: str) -> list[Path]:
    """Every module below the given top-level folders, in order."""
    return sorted(path for root in roots for path in (ROOT / root).rglob("*.py"))


def name_of(path: Path) -> str:
    """The path as a person would write it, for the ids of cases."""
    return path.relative_to(ROOT).as_posix()


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module name that the imports of the tree mention, with leading dots for a relative one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def loaded_by(program: str) -> set[str]:
    """The modules that a fresh interpreter holds after running the program."""
    probe = f"{program}\nimport sys; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", probe], cwd=ROOT / "tests", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines())


@pytest.mark.parametrize("path", modules(*PACKAGES, "tests"), ids=name_of)
def test_a_module_stays_small(path: Path) -> None:
    """No module is longer than a reader can hold."""
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST, f"{name_of(path)} has {lines} lines: split it"


@pytest.mark.parametrize("path", modules(*PACKAGES), ids=name_of)
def test_a_module_says_what_lives_in_it(path: Path) -> None:
    """Every module of the product opens with a docstring."""
    assert ast.get_docstring(ast.parse(path.read_bytes()))


@pytest.mark.parametrize("path", modules(*PACKAGES, "tests"), ids=name_of)
def test_imports_are_absolute_and_by_the_installed_name(path: Path) -> None:
    """Nothing imports a bare folder name, which exists only in the repository, or a relative one."""
    wrong = [
        name
        for name in imported(ast.parse(path.read_bytes()))
        if name.startswith(".") or name.split(".")[0] in PACKAGES
    ]
    assert wrong == []


@pytest.mark.parametrize("path", modules(*PACKAGES, "tests"), ids=name_of)
def test_nothing_is_left_unfinished_or_tied_to_a_machine(path: Path) -> None:
    """No module holds a mark of unfinished work or a path of somebody's machine."""
    text = path.read_text(encoding="utf-8")
    assert UNFINISHED.findall(text) == []
    assert MACHINE.findall(text) == []


@pytest.mark.parametrize("root", PACKAGES)
def test_each_root_tells_type_checkers_that_it_is_typed(root: str) -> None:
    """PEP 561: the marker lies in each root, since the namespace above them can hold none."""
    assert (ROOT / root / "py.typed").is_file()


def test_the_namespace_has_no_module_of_its_own() -> None:
    """PEP 420: an ``__init__`` above the roots would hide whatever else installs below ``affidavit``."""
    found = loaded_by("import affidavit; assert affidavit.__file__ is None, affidavit.__file__")
    assert "affidavit" in found


@pytest.mark.parametrize("path", modules(*PACKAGES), ids=name_of)
def test_a_folder_with_modules_is_a_package(path: Path) -> None:
    """Without an ``__init__.py`` setuptools does not find a folder, and the wheel would silently lack it."""
    assert (path.parent / "__init__.py").is_file()


@pytest.mark.parametrize(
    "program",
    [
        "import affidavit.tools.verify",
        COMMAND,
    ],
    ids=["python -m affidavit.tools.verify", "affidavit verify"],
)
def test_the_verifier_loads_no_runtime(program: str) -> None:
    """An auditor's verifier starts with crypto alone: no trio, no actors, no command-line library."""
    assert loaded_by(program) & RUNTIME == set()
