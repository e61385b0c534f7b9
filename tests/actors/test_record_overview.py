"""What a record is made of, and which of its seals still hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.errors import UnknownRun
from affidavit.actors.events import Event, Kind
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry
from affidavit.actors.record_overview import Overview, Signature, overview, seals_over
from affidavit.actors.stream import Stream
from affidavit.crypto import SigningKey
from affidavit.crypto.checkpoint import Checkpoint, sign_checkpoint
from affidavit.crypto.hashing import leaf_hash
from affidavit.crypto.merkle import RootBuilder
from tests.actors.fakes import JumpingClock

KEY = SigningKey.from_seed(b"k" * 32)
KID = KEY.public.did_key.encode()


async def seal_of(log: MemoryLog, size: int, kid: bytes = KID) -> Event:
    """The seal over the first events of the run."""
    builder = RootBuilder()
    for row in await log.read("run", 0, size):
        builder.add(leaf_hash(row.data))
    signed = Checkpoint("run", size, builder.root())
    checkpoint = sign_checkpoint(signed, kid=kid, sign=KEY.sign)
    detail = {"size": size, "root": signed.root, "kid": kid, "checkpoint": checkpoint}
    return Event(Kind.RECORD_SEALED, detail=detail)


async def sealed_run() -> tuple[MemoryLog, Stream]:
    """A run with three events, a seal over two of them, and one over all."""
    log = MemoryLog()
    stream = Stream(log, MemoryBus(), "run", JumpingClock(1))
    await stream.append(Event(Kind.SESSION_STARTED, text="Pay"), Event(Kind.ASSISTANT, text="spine.record"))
    await stream.append(await seal_of(log, 2))
    await stream.append(await seal_of(log, 3))
    return log, stream


async def test_kinds_sizes_and_seals() -> None:
    """Every event counts once; each root is built again, and each signature that can be checked is."""
    log, _ = await sealed_run()
    told: list[tuple[int, int]] = []
    found = await overview(log, "run", lambda done, total: told.append((done, total)))
    assert found.events == 4
    assert found.size == sum(len(row.data) for row in await log.read("run"))
    assert [(each.kind, each.stored, each.events, each.first, each.last) for each in found.kinds] == [
        ("session.started", "session.started", 1, 1, 1),
        ("assistant.message", "assistant.message", 1, 2, 2),
        ("record.sealed", "spine.record", 2, 3, 4),
    ]
    assert sum(each.size for each in found.kinds) == found.size
    assert [(seal.seq, seal.size, seal.rebuilt, seal.signature) for seal in found.seals] == [
        (3, 2, True, Signature.HOLDS),
        (4, 3, True, Signature.HOLDS),
    ]
    assert all(seal.holds for seal in found.seals)
    assert told[-1] == (7, 8)


async def test_the_seals_that_cover_an_event() -> None:
    """Those whose size reaches it; a text that names the type is no seal."""
    log, _ = await sealed_run()
    covering = [[seal.seq for seal in await seals_over(log, "run", seq)] for seq in (1, 2, 3, 4)]
    assert covering == [[3, 4], [3, 4], [4], []]


async def told_of(*forged: Event) -> Overview:
    """What is said of a run to which somebody added events."""
    log, stream = await sealed_run()
    await stream.append(*forged)
    return await overview(log, "run")


async def test_a_seal_that_does_not_hold_is_told_apart() -> None:
    """Another root, another size, no signature, a key that its id does not name: each by its own word."""
    log, _ = await sealed_run()
    good = await seal_of(log, 3)
    root = replace(good, detail={**good.detail, "root": bytes(32)})
    size = replace(good, detail={**good.detail, "size": 99})
    bare = Event(Kind.RECORD_SEALED, detail={"size": 3})
    found = await told_of(root, size, bare)
    assert [(seal.rebuilt, seal.signature, seal.holds) for seal in found.seals[2:]] == [
        (False, Signature.BROKEN, False),
        (False, Signature.BROKEN, False),
        (False, Signature.BROKEN, False),
    ]
    named = MemoryLog()
    stream = Stream(named, MemoryBus(), "run", JumpingClock(1))
    await stream.append(Event(Kind.SESSION_STARTED, text="Pay"))
    await stream.append(await seal_of(named, 1, b"the auditor knows"))
    (seal,) = (await overview(named, "run")).seals
    assert (seal.rebuilt, seal.signature, seal.holds) == (True, Signature.UNKNOWN_KEY, True)


async def test_events_that_were_changed_give_no_root_any_more() -> None:
    """No seal over an event that was replaced is rebuilt, whatever else is as it was."""
    log, _ = await sealed_run()
    rows = await log.read("run")
    other = MemoryLog()
    stream = Stream(other, MemoryBus(), "run", JumpingClock(1))
    await stream.append(Event(Kind.SESSION_STARTED, text="Pay more"))
    await other.append([Entry("run", 1, tuple(row.data for row in rows[1:]))])
    assert [seal.rebuilt for seal in (await overview(other, "run")).seals] == [False, False]


async def test_a_run_that_is_not_there() -> None:
    """It is unknown, and never an empty record."""
    with pytest.raises(UnknownRun):
        await overview(MemoryLog(), "run")
    with pytest.raises(UnknownRun):
        await seals_over(MemoryLog(), "run", 1)
