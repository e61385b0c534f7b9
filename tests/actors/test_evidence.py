"""What is taken out of a log as evidence: it verifies here and in another project's verifier, or it is refused."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import provetrail
import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.codec import encode
from affidavit.actors.errors import SealRefused, StoreDamaged, UnknownRun
from affidavit.actors.events import Event, Kind
from affidavit.actors.evidence import Exported, export, last_seal, prove, prove_extension
from affidavit.actors.goal import Phase
from affidavit.actors.history import history, rows
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.logs.port import Entry, Row
from affidavit.actors.sealer import open_sealer
from affidavit.actors.session import open_session
from affidavit.actors.signers.memory import MemorySigner
from affidavit.crypto import (
    Keyring,
    SigningKey,
    Tree,
    Trust,
    VerificationError,
    leaf_hash,
    verify_consistency,
    verify_event_proof,
    verify_record,
)
from tests import strategies
from tests.actors.runtimes import RUN, SPEAK, SPEC, FakeRuntime, new_stream, phase

KEY = SigningKey.from_seed(bytes(range(32)))
SIGNER = MemorySigner(KEY)
KEYRING = Keyring()
KEYRING.add(SIGNER.kid, SIGNER.public_key)


async def sealed_run(log: MemoryLog, *events: Event, seals: int = 1) -> None:
    """Record a run of these events, sealed along the way and at its end."""
    async with (
        open_sealer(log, SIGNER) as sealer,
        open_session(log, MemoryBus(), id=RUN, sealer=sealer) as session,
    ):
        await session.submit(FakeRuntime(), SPEC)
        for number, event in enumerate(events):
            await session.reporter.report(event)
            if number < seals - 1:
                await session.seal()
        await session.reporter.report(phase(Phase.CONVERGED))


async def exported(log: MemoryLog) -> tuple[bytes, Exported]:
    """Return the exported record and what the export says of it."""
    file = BytesIO()
    told = await export(log, RUN, file)
    return file.getvalue(), told


SAID = st.builds(
    lambda event, kind: replace(event, kind=kind),
    strategies.events(),
    st.sampled_from(["assistant.message", "tool.result", "provenance.declared"]),
)


@given(events=st.lists(SAID, max_size=3), seals=st.integers(1, 3))
async def test_an_export_verifies_here_and_in_the_peer_and_so_does_each_proof(
    events: list[Event], seals: int
) -> None:
    """V10: record and proofs of every seq, whatever was recorded, are accepted by both; the bytes are the stored ones."""
    log = MemoryLog()
    await sealed_run(log, *events, seals=seals)
    record, told = await exported(log)
    stored = [row.data for row in await rows(log, RUN)]
    verified = verify_record(record, KEYRING)
    assert list(verified.events) == stored[: told.size]
    assert verified.complete is True
    assert verified.checkpoint is not None
    assert (verified.checkpoint.origin, verified.checkpoint.size) == (RUN, told.size)
    assert (verified.checkpoint.root, verified.kid) == (told.root, told.kid)
    assert told.tip == len(stored)
    peer = provetrail.verify_run(record, {SIGNER.kid.decode(): KEY.public.raw})
    assert list(peer.events) == stored[: told.size]
    for seq in range(1, told.size + 1):
        proof = verify_event_proof(await prove(log, RUN, seq), KEYRING)
        assert (proof.index, proof.canonical) == (seq - 1, stored[seq - 1])


async def test_a_record_names_its_key_so_that_no_keyring_is_needed_to_check_it_against_itself() -> None:
    """V5: verifying asks for no secret and no store; without a keyring the trust is only the key's own."""
    log = MemoryLog()
    await sealed_run(log)
    record, _ = await exported(log)
    assert verify_record(record, Keyring()).trust is Trust.SELF
    assert verify_record(record, KEYRING).trust is Trust.KEYRING


async def test_only_what_the_last_seal_covers_is_exported_or_proved() -> None:
    """Events after it are counted, not carried; a proof of one of them is refused."""
    log = MemoryLog()
    await sealed_run(log, SPEAK)
    stream = await new_stream(log)
    await stream.append(Event(Kind.USER_MESSAGE, text="and now?"))
    record, told = await exported(log)
    assert (told.size, told.tip) == (4, 7)
    assert len(verify_record(record, KEYRING).events) == 4
    for seq in (0, -1, 5, 7, 99):
        with pytest.raises(SealRefused, match="covers events 1 to 4"):
            await prove(log, RUN, seq)


async def test_what_was_never_sealed_is_refused_and_nothing_is_written() -> None:
    """An unknown run and an unsealed one, each by its own error."""
    log, file = MemoryLog(), BytesIO()
    with pytest.raises(UnknownRun):
        await export(log, RUN, file)
    with pytest.raises(UnknownRun):
        await prove(log, RUN, 1)
    await (await new_stream(log)).append(Event(Kind.SESSION_STARTED, text="x"))
    with pytest.raises(SealRefused, match="never sealed"):
        await export(log, RUN, file)
    with pytest.raises(SealRefused, match="never sealed"):
        await prove(log, RUN, 1)
    assert file.getvalue() == b""


@pytest.mark.parametrize("size", [0, -1, 2, 3, "many", None])
async def test_a_seal_that_does_not_cover_earlier_events_is_none(size: object) -> None:
    """A record.sealed event written by something else than a session is not exported as if it were evidence."""
    log, file = MemoryLog(), BytesIO()
    stream = await new_stream(log)
    await stream.append(Event(Kind.SESSION_STARTED, text="x"))
    detail = {"size": size, "checkpoint": b"x", "root": b"x", "kid": b"x"}
    sealed = Event(Kind.RECORD_SEALED, detail=detail)
    if isinstance(size, int) and not 0 <= size <= 2:
        with pytest.raises(ValueError, match="sealed_size"):
            await stream.append(sealed)
        return
    await stream.append(sealed)
    with pytest.raises(SealRefused, match="does not cover"):
        await export(log, RUN, file)
    assert file.getvalue() == b""


async def test_rows_of_another_run_are_not_taken_for_this_ones() -> None:
    """Rows that were moved under another run's id are refused when they are read and when they are exported."""
    log = MemoryLog()
    bytes_of = encode(Event(Kind.SESSION_STARTED, text="x"), stream="theirs", seq=1, time=1)
    await log.append([Entry("ours", 0, (bytes_of,))])
    with pytest.raises(StoreDamaged, match="row 1 of run ours holds event 1 of run theirs"):
        await history(log, "ours")
    with pytest.raises(StoreDamaged, match="of run theirs"):
        await export(log, "ours", BytesIO())


@pytest.mark.parametrize("take", ["export", "prove"])
async def test_what_was_changed_after_its_seal_is_not_handed_over(take: str) -> None:
    """A row changed behind the runtime's back is found before a proof is made, and before a record is whole."""
    whole, log = MemoryLog(), MemoryLog()
    await sealed_run(whole, SPEAK)
    stored = [row.data for row in await rows(whole, RUN)]
    stored[0] = encode(Event(Kind.SESSION_STARTED, text="something else"), stream=RUN, seq=1, time=1)
    await log.append([Entry(RUN, 0, tuple(stored))])
    file = BytesIO()
    with pytest.raises(StoreDamaged, match="no longer give the root"):
        await (export(log, RUN, file) if take == "export" else prove(log, RUN, 2))
    with pytest.raises(VerificationError, match=r"record\.decode"):
        verify_record(file.getvalue(), KEYRING)


async def test_a_missing_row_is_noticed_by_whoever_reads_the_run() -> None:
    """A log that skips a seq is damaged, and reading the run's history says which event is missing."""

    class Gap:
        """A reader that has lost the second row."""

        async def read(self, stream: str, after_seq: int = 0, limit: int = 256) -> tuple[Row, ...]:
            return tuple(row for row in await whole.read(stream, after_seq, limit) if row.seq != 2)

    whole = MemoryLog()
    await sealed_run(whole, SPEAK)
    with pytest.raises(StoreDamaged, match="event 2 of run"):
        await history(Gap(), RUN)  # type: ignore[arg-type]  # only reading is asked of it


@pytest.mark.parametrize("length", [250, 256, 600])
async def test_a_long_run_is_taken_page_by_page(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an export nor a proof asks for more than a page; both say how far they have come, to the end."""
    log = MemoryLog()
    await sealed_run(log, *[SPEAK] * length)
    file, lengths, read = BytesIO(), set[int](), MemoryLog.read

    async def watched(log: MemoryLog, stream: str, after_seq: int = 0, limit: int = 256) -> tuple[Row, ...]:
        page = await read(log, stream, after_seq, limit)
        lengths.add(len(page))
        return page

    monkeypatch.setattr(MemoryLog, "read", watched)
    told: list[tuple[int, int]] = []
    exported = await export(log, RUN, file, progress=lambda *pair: told.append(pair))
    assert len(verify_record(file.getvalue(), KEYRING).events) == exported.size > length
    assert told[-1] == (exported.size, exported.size)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    for seq in (1, 256, 257, exported.size):
        if seq <= exported.size:
            told.clear()
            proof = await prove(log, RUN, seq, progress=lambda *pair: told.append(pair))
            assert verify_event_proof(proof, KEYRING).index == seq - 1
            assert told[-1] == (exported.size, exported.size)
    assert max(lengths) <= 256


async def test_the_last_seal_is_proved_to_extend_any_earlier_one() -> None:
    """V4: for every seal of a run, itself included; no other size has a proof."""
    log = MemoryLog()
    await sealed_run(log, *[SPEAK] * 300, seals=4)
    sealed = [event for event in await history(log, RUN) if event.kind == Kind.RECORD_SEALED]
    sizes = [event.detail["size"] for event in sealed]
    last = await last_seal(log, RUN)
    assert len(sizes) > 3
    for event, size in zip(sealed, sizes, strict=True):
        assert isinstance(size, int)
        proof = await prove_extension(log, RUN, size)
        found = verify_consistency(proof, KEYRING)
        assert (found.before.checkpoint.size, found.after.checkpoint.size) == (size, last.size)
        assert (found.before.checkpoint.root, found.after.checkpoint.root) == (
            event.detail["root"],
            last.root,
        )
    unsealed = next(size for size in range(1, 100) if size not in sizes)
    for size in (0, -1, unsealed, last.size + 1):
        with pytest.raises(
            SealRefused, match=f"no seal of run {RUN} covers {size} events; there are seals of"
        ):
            await prove_extension(log, RUN, size)


async def test_a_fork_of_what_was_sealed_is_not_proved_to_extend_it() -> None:
    """V4: an event under the earlier seal that was changed, with a later seal over the changed ones, is found."""
    whole, log = MemoryLog(), MemoryLog()
    await sealed_run(whole, SPEAK, SPEAK, seals=2)
    stored = [row.data for row in await rows(whole, RUN)]
    stored[0] = encode(Event(Kind.SESSION_STARTED, text="something else"), stream=RUN, seq=1, time=1)
    await log.append([Entry(RUN, 0, tuple(stored))])
    (earlier, _) = [event for event in await history(log, RUN) if event.kind == Kind.RECORD_SEALED]
    tree = Tree()
    for data in stored:
        tree.append(leaf_hash(data))
    detail = {
        **(await history(log, RUN))[-1].detail,
        **earlier.detail,
        "size": len(stored),
        "root": tree.root(),
    }
    await (await new_stream(log)).append(Event(Kind.RECORD_SEALED, detail=detail))
    size = earlier.detail["size"]
    assert isinstance(size, int)
    with pytest.raises(StoreDamaged, match="no longer give the root"):
        await prove_extension(log, RUN, size)


async def test_a_seal_says_whether_anything_came_after_it() -> None:
    """What is about the record itself does not count; anything else does, also before the seal where it is not covered."""
    log = MemoryLog()
    await sealed_run(log, SPEAK)
    assert (await last_seal(log, RUN)).covers_all is True
    seal = await last_seal(log, RUN)
    stream = await new_stream(log)
    detail = {"size": 2, "root": seal.root, "kid": seal.kid, "checkpoint": seal.checkpoint}
    await stream.append(Event(Kind.RECORD_SEALED, detail=detail))
    assert (await last_seal(log, RUN)).size == 2
    assert (await last_seal(log, RUN)).covers_all is False
    detail["size"] = (await last_seal(log, RUN)).tip
    await stream.append(Event(Kind.RECORD_SEALED, detail=detail))
    assert (await last_seal(log, RUN)).covers_all is True
    for _ in range(300):
        await stream.append(Event(Kind.USER_MESSAGE, text="and now?"))
    assert (await last_seal(log, RUN)).covers_all is False
