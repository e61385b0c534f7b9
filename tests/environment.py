"""What a test may ask of the machine it runs on.

Holds the one rule for absent things: on a user's machine a test that lacks a tool or the published vectors is
skipped with a reason; under ``CI=true`` the same lack is a failure. Never looks at the product.
"""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CI = os.environ.get("CI") == "true"
SOAK = os.environ.get("AFFIDAVIT_SOAK") == "1"

# How much a soak does. Every property is tried more often; thousands of times only what looks for rare orders of events, so
# that the whole ends within half an hour.
SOAK_EXAMPLES = 300
MACHINE_EXAMPLES = 1500 if SOAK else 60
LIFE_EXAMPLES = 1500 if SOAK else 100
CUT_EXAMPLES = 150 if SOAK else 25


def absent(reason: str) -> None:
    """Skips the test or module that asks, or fails it under ``CI=true``.

    Args:
        reason: What is missing, in words.
    """
    if CI:
        pytest.fail(f"{reason} (a failure because CI=true)", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def require_tool(name: str) -> str:
    """Finds a program.

    Args:
        name: The command, such as ``ssh-keygen``.

    Returns:
        Its path. The test is skipped, or fails under ``CI=true``, when there is none.
    """
    path = shutil.which(name)
    if path is None:
        absent(f"the program {name} is not installed")
    return str(path)


def require_venv(name: str) -> Path:
    """Finds one of the virtual environments that the checks make beside the product's own.

    Args:
        name: Its folder below ``.ci/venvs``, such as ``"peers"``.

    Returns:
        Its folder. The test is skipped, or fails under ``CI=true``, when there is none.
    """
    path = ROOT / ".ci" / "venvs" / name
    if not (path / "locked").exists():
        absent(
            f"the environment .ci/venvs/{name} is not here; .ci/run makes it from .ci/constraints/{name}.txt"
        )
    return path


def shared_dir(*parts: str) -> Path:
    """Finds the folder of published contract files and vectors, which is no part of the repository.

    Args:
        parts: A path below it, such as ``"vectors", "merkle"``.

    Returns:
        The path: below ``AFFIDAVIT_SHARED`` when that is set, else below ``shared`` beside the repository.
        The test is skipped, or fails under ``CI=true``, when it does not exist.
    """
    path = Path(os.environ.get("AFFIDAVIT_SHARED", ROOT.parent / "shared")).joinpath(*parts)
    if not path.exists():
        absent("the published vectors are not here; AFFIDAVIT_SHARED names their folder")
    return path
