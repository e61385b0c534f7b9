"""A fork: a new run that goes on from a point of another, with its conversation and none of its events (G4, S9)."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.conversation import Conversation, fold
from affidavit.actors.errors import ForkRefused, UnknownRun
from affidavit.actors.events import Event, Kind
from affidavit.actors.evidence import export
from affidavit.actors.fork_context import FORK, Fork, begins_with
from affidavit.actors.forking import MAX_CONTEXT, is_whole
from affidavit.actors.goal import GoalSpec
from affidavit.actors.history import history
from affidavit.actors.host import Host, open_host
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import Message, ModelReply, ToolCall
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.crypto import Keyring, verify_consistency, verify_record
from affidavit.crypto.checkpoint import verify_checkpoint
from affidavit.crypto.consistency_proof import encode_consistency_proof
from affidavit.crypto.failures import VerificationError
from affidavit.crypto.hashing import leaf_hashes
from affidavit.crypto.path_builder import consistency
from tests.actors.mission_kit import RUN, SIGNER, FakeTool, KeptLog, WatchedModel, calls, replies, run_to_end

FORKED = "fork-1"
SPEC = GoalSpec("Settle the ledger.", system="Be brief.", max_steps=7)
LOOK = ModelReply(
    "I look.", calls("look", "look").tool_calls, "tool_use", blocks='[{"type":"text","text":"I look."}]'
)
SETTLED = ModelReply("It is settled.", blocks='[{"type":"text","text":"It is settled."}]')
BOX = Toolbox([FakeTool("look", idempotent=True)])
KEYRING = Keyring()
KEYRING.add(SIGNER.kid, SIGNER.public_key)


async def parent(*more: ModelReply) -> tuple[MemoryLog, MissionConfig, WatchedModel]:
    """Return a log with a run that looked twice and settled it, and what it was driven with."""
    log, model = MemoryLog(), WatchedModel(replies(LOOK, SETTLED, *more))
    config = MissionConfig(model, BOX)
    await run_to_end(log, config, SPEC)
    return log, config, model


async def forked(host: Host, at: int, config: MissionConfig, text: str = "") -> tuple[Event, ...]:
    """Fork the parent, wait for the fork's sealed end, and return its events."""
    run = await host.fork(RUN, at, config, text, id=FORKED)
    await run.closed()
    return await history(host.log, FORKED)


def at_kind(events: tuple[Event, ...], kind: str, number: int = -1) -> int:
    """Return the seq of one of the events of a kind."""
    return [event.seq for event in events if event.kind == kind][number]


async def test_a_fork_shows_the_model_what_its_parent_would_have_shown() -> None:
    """Forked before the parent's second turn, with nothing said: the same messages, blocks and calls, to the last byte."""
    log, config, model = await parent()
    at = at_kind(await history(log, RUN), Kind.TURN_COMPLETED, 0)
    shown = model.requests[1]
    async with open_host(log, signer=SIGNER) as host:
        events = await forked(host, at, config)
    assert model.requests[2] == shown
    assert shown.messages[1].blocks
    assert len(shown.messages[1].tool_calls) == 2
    assert (events[0].text, fold(events).last_text) == (SPEC.objective, "It is settled.")


async def test_what_is_said_comes_behind_the_conversation_and_is_the_forks_objective() -> None:
    """Forked at the parent's end: everything it had, then the words; the fork has its parent's system prompt and limits."""
    log, config, model = await parent(ModelReply("Otherwise."))
    before = await history(log, RUN)
    async with open_host(log, signer=SIGNER) as host:
        events = await forked(host, len(before), config, "What if not?")
    assert model.requests[-1].messages == (
        *fold(before).messages,
        Message("user", "What if not?"),
    )
    spec = fold(events).spec
    assert spec is not None
    assert (spec.objective, spec.system, spec.max_steps, spec.name) == (
        "What if not?",
        "Be brief.",
        7,
        FORKED,
    )
    assert events[0].actor == "system"
    assert [event.turn for event in events if event.kind == Kind.TURN_STARTED] == [1]
    assert await history(log, RUN) == before


async def test_no_act_of_the_parent_is_copied() -> None:
    """The fork's record opens with its own objective, and its first action is its own; it verifies alone at L4."""
    log, config, _ = await parent(ModelReply("Otherwise."))
    tip = len(await history(log, RUN))
    async with open_host(log, signer=SIGNER) as host:
        events = await forked(host, tip, config, "What if not?")
    assert [event.kind for event in events[:4]] == [
        Kind.SESSION_STARTED,
        Kind.GOAL_PHASE,
        Kind.TURN_STARTED,
        Kind.ACTION_ADMITTED,
    ]
    assert [event.call for event in events if event.kind == Kind.ACTION_ADMITTED] == [1]
    file = BytesIO()
    await export(log, FORKED, file)
    record = verify_record(file.getvalue(), KEYRING)
    assert record.complete is True
    assert record.governance is not None
    assert record.governance.admitted == 1


@pytest.mark.parametrize("at", [1, 8, 15])
async def test_the_checkpoint_in_a_fork_agrees_with_an_export_of_its_parent(at: int) -> None:
    """It is over exactly the parent's events 1 to n, signed, and a consistency proof leads from it to the parent's record."""
    log, config, _ = await parent(ModelReply("Otherwise."))
    events = await history(log, RUN)
    at = next(seq for seq in range(at, len(events) + 1) if is_whole(fold(events[:seq])))
    async with open_host(log, signer=SIGNER) as host:
        started = (await forked(host, at, config, "What if not?"))[0]
    file = BytesIO()
    await export(log, RUN, file)
    record = verify_record(file.getvalue(), KEYRING)
    origin = started.detail[FORK]
    assert isinstance(origin, Mapping)
    checkpoint = verify_checkpoint(origin["checkpoint"], KEYRING).checkpoint
    assert (origin["run"], origin["n"]) == (checkpoint.origin, checkpoint.size) == (RUN, at)
    assert record.checkpoint is not None
    builder = consistency(at, record.checkpoint.size)
    builder.extend(leaf_hashes(record.events))
    sealed = [event for event in await history(log, RUN) if event.kind == Kind.RECORD_SEALED][-1]
    proof = encode_consistency_proof(sealed.detail["checkpoint"], builder.path(), origin["checkpoint"])  # type: ignore[arg-type]
    found = verify_consistency(proof, KEYRING)
    assert (found.before.checkpoint.size, found.after.checkpoint) == (at, record.checkpoint)


async def test_a_fork_can_be_made_exactly_where_no_call_is_open() -> None:
    """At every event of the parent: either it is made, or one sentence names the nearest events at which it could be."""
    log, config, _ = await parent(ModelReply("Otherwise."))
    events = await history(log, RUN)
    made: list[int] = []
    async with open_host(log, signer=SIGNER) as host:
        for at in range(1, len(events) + 1):
            try:
                run = await host.fork(RUN, at, config, "What if?", id=f"fork-{at}")
            except ForkRefused as refusal:
                named = [int(word) for word in str(refusal).rpartition(": ")[2].split() if word.isdecimal()]
                assert named
                assert all(is_whole(fold(events[:seq])) for seq in named)
                continue
            await run.closed()
            made.append(at)
    unanswered = {
        event.seq
        for event in events
        if fold(events[: event.seq]).pending or fold(events[: event.seq]).book.open_actions
    }
    assert unanswered.isdisjoint(made)
    assert at_kind(events, Kind.ASSISTANT, 0) not in made
    assert {1, at_kind(events, Kind.TURN_COMPLETED, 0), at_kind(events, Kind.CONVERGED), len(events)} <= set(
        made
    )


async def test_a_fork_of_a_fork_holds_the_whole_conversation() -> None:
    """The second fork's model is shown what was said in the first run, in the first fork, and now."""
    log, config, model = await parent(ModelReply("One."), ModelReply("Two."))
    async with open_host(log, signer=SIGNER) as host:
        first = await forked(host, len(await history(log, RUN)), config, "And one?")
        run = await host.fork(FORKED, len(first), config, "And two?", id="fork-2")
        assert await run.session.wait() == "Two."
    assert [message.text for message in model.requests[-1].messages if message.role != "tool"] == [
        "Settle the ledger.",
        "I look.",
        "It is settled.",
        "And one?",
        "One.",
        "And two?",
    ]


async def test_a_fork_is_a_run_like_any_other() -> None:
    """It is gone on with by `say`, and cut at any append it is resumed with the same conversation."""
    log, config, _ = await parent(ModelReply("One."), ModelReply("Two."))
    kept = KeptLog()
    kept.inner, kept.own, kept.read = log, log.own, log.read
    kept.info, kept.list, kept.tips = log.info, log.list, log.tips
    tip = len(await history(log, RUN))
    async with open_host(kept, signer=SIGNER) as host:
        run = await host.fork(RUN, tip, config, "And one?", id=FORKED)
        await run.closed()
        run = await host.say(FORKED, config, "And two?", principal="ada")
        assert await run.session.wait() == "Two."
    for count in range(1, len(kept.appends) + 1):
        part = await kept.cut(count)
        events = await history(part, FORKED)
        if not events or fold(events).terminal is not None:
            continue
        async with open_host(part, signer=SIGNER) as host:
            run = await host.resume(FORKED, config)
            assert await run.session.wait() in {"One.", "Two."}


async def test_what_cannot_be_forked_is_refused_in_one_sentence_and_leaves_no_run() -> None:
    """No such event, no such run, nothing to go on with, too long a conversation, no signer."""
    log, config, _ = await parent()
    tip = len(await history(log, RUN))
    async with open_host(log, signer=SIGNER) as host:
        for at, why in ((0, "has events 1 to"), (tip + 1, "has events 1 to"), (tip, "the last word")):
            with pytest.raises(ForkRefused, match=why):
                await host.fork(RUN, at, config, id=FORKED)
        with pytest.raises(UnknownRun):
            await host.fork("nobody", 1, config, id=FORKED)
    async with open_host(log) as host:
        with pytest.raises(RuntimeError, match="no signer"):
            await host.fork(RUN, 1, config, id=FORKED)
    long = MemoryLog()
    book = MissionConfig(
        replies(ModelReply("x" * 300_000), ModelReply("y" * 300_000), ModelReply("z" * 300_000)), BOX
    )
    async with open_host(long, signer=SIGNER) as host:
        run = await host.submit(SPEC, book, id=RUN)
        for _ in range(2):
            await run.closed()
            run = await host.say(RUN, book, "More.", principal="ada")
        await run.closed()
        size = len(await history(long, RUN))
        with pytest.raises(ForkRefused, match=f"a fork can begin with {MAX_CONTEXT:,}"):
            await host.fork(RUN, size, book, "More.", id=FORKED)
    assert await log.info(FORKED) is None
    assert await long.info(FORKED) is None


async def test_events_that_are_not_those_that_were_sealed_are_not_signed_anew() -> None:
    """A changed store is found before a checkpoint over a part of it is signed, also where the seal lies behind that part."""
    log, config, _ = await parent()
    other = MemoryLog()
    async with open_host(other, signer=SIGNER) as host:
        await (await host.submit(SPEC, config, id=RUN)).closed()
    events = await history(other, RUN)
    first = KeptLog()
    for event in (await history(log, RUN))[:1] + events[1:]:
        await first.write(event)
    async with open_host(first, signer=SIGNER) as host:
        with pytest.raises(VerificationError, match="not those that were sealed"):
            await host.fork(RUN, 1, config, "What if?", id=FORKED)
    assert await first.info(FORKED) is None


async def test_a_run_that_is_going_can_be_forked_and_is_not_disturbed() -> None:
    """Its parent is read alone; here it waits for its model meanwhile."""
    log, gate = MemoryLog(), trio.Event()
    model = replies(LOOK, SETTLED, SETTLED)
    asked = model.generate

    async def generate(request: object) -> ModelReply:
        reply = await asked(request)  # type: ignore[arg-type]
        if reply is SETTLED and not gate.is_set():
            await gate.wait()
        return reply

    model.generate = generate  # type: ignore[method-assign]
    config = MissionConfig(model, BOX)
    async with open_host(log, signer=SIGNER) as host:
        run = await host.submit(SPEC, config, id=RUN)
        await trio.testing.wait_all_tasks_blocked()
        at = at_kind(await history(log, RUN), Kind.TURN_COMPLETED, 0)
        gate.set()
        fork = await host.fork(RUN, at, config, id=FORKED)
        assert await fork.session.wait() == await run.session.wait() == "It is settled."


TEXT = st.text(max_size=5)
CALLS = st.lists(st.builds(ToolCall, TEXT, TEXT, TEXT), max_size=2).map(tuple)
MESSAGES = st.lists(
    st.builds(
        Message, st.sampled_from(["user", "assistant", "tool"]), TEXT, CALLS, TEXT, st.booleans(), TEXT
    ),
    min_size=1,
    max_size=4,
)


@given(messages=MESSAGES, said=st.booleans())
def test_a_context_reads_back_as_it_was(messages: list[Message], said: bool) -> None:
    """Every message with every field, and the objective behind it if it was said."""
    detail = {FORK: Fork("r", 1, b"", tuple(messages), said).as_detail()}
    assert begins_with(detail, "go") == [*messages, *([Message("user", "go")] if said else [])]


@pytest.mark.parametrize(
    "fork",
    [
        None,
        1,
        {},
        {"context": "words"},
        {"context": [1, {"role": "king"}, {"text": 2}], "said": False},
        {"context": []},
    ],
)
def test_what_is_no_context_of_ours_is_left_aside(fork: object) -> None:
    """Anybody may have written an event; the run then begins with its objective."""
    assert begins_with({FORK: fork}, "go") == [Message("user", "go")]


def test_a_conversation_that_was_never_opened_is_not_whole() -> None:
    """There is no goal to go on with."""
    assert not is_whole(Conversation())
