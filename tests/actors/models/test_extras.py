"""The extras that sentences for people name are those that the project has, and the checks run with all of them."""

from __future__ import annotations

import re
import tomllib

from tests.environment import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]


def test_every_extra_that_is_named_is_there() -> None:
    """Whoever pastes the command out of an error or of the manual gets what it promises."""
    texts = [*(ROOT / "actors").rglob("*.py"), *(ROOT / "tools").rglob("*.py"), ROOT / "README.md"]
    texts += (ROOT / "docs").glob("*.md")
    named = {
        name for path in texts for name in re.findall(r"affidavit\[(\w+)\]", path.read_text(encoding="utf-8"))
    }
    assert named <= EXTRAS.keys()
    assert {"local", "openai", "anthropic", "keyring"} <= named


def test_the_checks_have_every_extra_installed() -> None:
    """So that nothing about one of them is left aside there."""
    lock = (ROOT / ".ci" / "constraints" / "dev.txt").read_text(encoding="utf-8")
    for extra in ("local", "openai", "anthropic", "keyring"):
        for requirement in EXTRAS[extra]:
            assert requirement in PROJECT["dependency-groups"]["dev"]
            name = re.split(r"[<>=!~ ]", requirement)[0]
            assert re.search(rf"(?m)^{re.escape(name)}==", lock), f"{name} is not locked"
