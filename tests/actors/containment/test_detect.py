"""Whether this machine can hold commands is found out by holding one, and a lack is told in words."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from affidavit.actors.containment import detect as detecting
from affidavit.actors.containment.bubblewrap import Bubblewrap
from affidavit.actors.containment.detect import detect
from affidavit.actors.containment.levels import Level


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test finds out anew."""
    monkeypatch.setattr(detecting, "_known", {})


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder for programs that anyone can run, and that is not in /tmp, over which a sandbox made by root lays its mounts."""
    with tempfile.TemporaryDirectory(prefix="affidavit-test-", dir="/var/tmp") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def program(place: Path, script: str) -> str:
    """An executable of this text."""
    path = place / "bwrap"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


async def test_a_machine_that_can_is_told_so(kernel: Bubblewrap) -> None:
    """With something that is ready for use."""
    found = await detect()
    assert (found.level, found.reason) == (Level.KERNEL, "")
    assert isinstance(found.containment, Bubblewrap)


async def test_no_bubblewrap_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And the level is none."""
    monkeypatch.setenv("PATH", str(tmp_path))
    found = await detect()
    assert (found.level, found.containment) == (Level.NONE, None)
    assert "not installed" in found.reason


async def test_a_bubblewrap_that_fails_is_a_reason(place: Path) -> None:
    """In its own words, as where user namespaces are switched off."""
    found = await detect(program=program(place, "echo 'No permissions to create new namespace' >&2; exit 1"))
    assert found.level is Level.NONE
    assert "No permissions to create new namespace" in found.reason


@pytest.mark.parametrize(
    ("option", "instead", "reason"),
    [
        ("--seccomp", "--sync-fd", "no system call filter"),
        ("--new-session", "--share-net", "shares our network"),
    ],
)
async def test_a_protection_that_is_missing_is_a_reason(
    kernel: Bubblewrap, place: Path, option: str, instead: str, reason: str
) -> None:
    """A bwrap that leaves one out, and says nothing, is found out."""
    swap = f'for a; do shift; [ "$a" = {option} ] && a={instead}; set -- "$@" "$a"; done'
    found = await detect(program=program(place, f'{swap}; exec {shutil.which("bwrap")} "$@"'))
    assert found.level is Level.NONE
    assert reason in found.reason


async def test_it_is_found_out_once(kernel: Bubblewrap, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is remembered, apart for other paths that must stay out."""
    first = await detect()
    monkeypatch.setenv("PATH", "")
    assert await detect() is first
    assert (await detect(withheld=["/nowhere"])).reason
