"""The levels of containment under test, and a workspace beside what must stay out of reach."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from affidavit.actors.containment.bubblewrap import Bubblewrap
from affidavit.actors.containment.detect import detect
from affidavit.actors.containment.none import NoContainment
from affidavit.actors.containment.port import Containment
from tests import environment


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace; beside it lies a file that nobody may read from inside."""
    (tmp_path / "secret").write_text("SECRET")
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
async def kernel() -> Bubblewrap:
    """The level `kernel`; without it a skip, under CI=true a failure."""
    found = await detect()
    if not isinstance(found.containment, Bubblewrap):
        environment.absent(f"commands cannot be held here: {found.reason}")
    assert isinstance(found.containment, Bubblewrap)
    return found.containment


@pytest.fixture(params=["none", "kernel"])
async def level(request: pytest.FixtureRequest) -> Containment:
    """Each level in turn."""
    if request.param == "none":
        return NoContainment()
    found = await detect()
    if found.containment is None:
        environment.absent(f"commands cannot be held here: {found.reason}")
    assert found.containment is not None
    return found.containment


@pytest.fixture
def as_root() -> None:
    """Skip where the test must be root to set its trap."""
    if os.geteuid() != 0:
        pytest.skip("only root can set this trap")
