"""What the tests of sealing share: a key, and runs to seal."""

# ruff: noqa: PT012  # what leaves a block is only seen around the whole block

from __future__ import annotations

from io import BytesIO

import pytest

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.codec import encode
from affidavit.actors.events import Event, Kind
from affidavit.actors.evidence import export
from affidavit.actors.fanout import RecordState
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.sealer import Sealer
from affidavit.actors.session import Session, open_session
from affidavit.actors.signers.memory import EphemeralSigner
from affidavit.crypto import (
    Keyring,
    VerifiedRecord,
    verify_record,
)
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime

SIGNER = EphemeralSigner()
KEYRING = Keyring()
KEYRING.add(SIGNER.kid, SIGNER.public_key)
SEALED = [Kind.RECORD_SEALED, Kind.RECORD_VERIFIED]


async def record(log: MemoryLog) -> VerifiedRecord:
    """Export the run and return what verifying it gives."""
    file = BytesIO()
    await export(log, RUN, file)
    return verify_record(file.getvalue(), KEYRING)


def badge(session: Session) -> RecordState:
    """Return where the run's record stands."""
    return session.projection.record


async def change(log: MemoryLog, seq: int) -> None:
    """Change a stored row behind everybody's back, to another canonical event."""
    (row,) = await log.read(RUN, seq - 1, 1)
    forged = encode(Event(Kind.ASSISTANT, text="forged"), stream=RUN, seq=seq, time=0)
    assert forged != row.data
    log._streams[RUN].rows[seq - 1] = forged


async def parked(log: MemoryLog, sealer: Sealer | None) -> None:
    """Record a run that was parked."""
    with pytest.raises(ZeroDivisionError):
        async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
            await session.submit(FakeRuntime(), SPEC)
            await session.reporter.report(SPEAK)
            raise ZeroDivisionError


async def finished(log: MemoryLog, sealer: Sealer | None) -> None:
    """Record a run that converged."""
    async with open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session:
        runtime = FakeRuntime()
        await session.submit(runtime, SPEC)
        runtime.converge()
