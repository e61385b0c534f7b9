"""What tests of sessions and sealing are given: an empty log, a signer that can be broken, and a sealer over both."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.sealer import Sealer, open_sealer
from tests.actors.fakes import FailingSigner
from tests.actors.sealing_kit import SIGNER


@pytest.fixture
def log() -> MemoryLog:
    """The log of one test."""
    return MemoryLog()


@pytest.fixture
def signer() -> FailingSigner:
    """A signer that can be broken."""
    return FailingSigner(SIGNER)


@pytest.fixture
async def sealer(log: MemoryLog, signer: FailingSigner) -> AsyncIterator[Sealer]:
    """A sealer over the log."""
    async with open_sealer(log, signer) as opened:
        yield opened
