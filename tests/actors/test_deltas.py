"""Answers in the making: shown in order, joined for the slow, lost for the late, free of secrets, and never on the record."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.deltas import MAX_PENDING_CHARS, LiveFeed, LiveText, LiveTexts
from affidavit.actors.errors import ModelError
from affidavit.actors.events import Kind
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import Delta, ModelReply, ModelRequest
from affidavit.actors.secrets import NO_SECRETS, REMOVED, Secrets
from tests.actors.mission_kit import GOAL, FreeModel, ended, session_and_runtime

SECRET = "sk-0123456789abcdef"


def piece(offset: int, text: str, call: int = 1, *, thinking: bool = False) -> LiveText:
    """A piece of turn 1."""
    return LiveText("", 1, call, thinking, offset, text)


async def test_a_reader_that_keeps_up_gets_every_piece_by_itself() -> None:
    """In order, each once, with its place."""
    live = LiveTexts()
    with live.subscribe() as reader:
        for number, text in enumerate("abc"):
            live.show(piece(number, text))
            assert await anext(reader) == piece(number, text)


async def test_pieces_are_joined_while_a_reader_is_busy() -> None:
    """What goes on where the last one ended is one piece; another call, and thinking, are not."""
    live = LiveTexts()
    with live.subscribe() as reader:
        for shown in (
            piece(0, "ab"),
            piece(2, "c"),
            piece(0, "hm", thinking=True),
            piece(3, "d"),
            piece(0, "x", call=2),
        ):
            live.show(shown)
        live.close()
        assert [each async for each in reader] == [
            piece(0, "abc"),
            piece(0, "hm", thinking=True),
            piece(3, "d"),
            piece(0, "x", call=2),
        ]


async def test_a_reader_that_stands_still_loses_the_oldest_and_holds_up_nobody() -> None:
    """What is kept for it is bounded, and the place of what is left says how much was lost."""
    live = LiveTexts()
    with live.subscribe() as slow:
        for number in range(3000):
            live.show(piece(number * 100, "x" * 100, call=1 + number // 1000))
        live.close()
        got = [each async for each in slow]
    assert sum(len(each.text) for each in got) == MAX_PENDING_CHARS
    assert got[-1].offset + len(got[-1].text) == 300_000
    assert got[0].offset > 0


async def test_a_reader_waits_and_ends_with_its_block_or_the_session(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nothing to read is waited for; cancelling loses nothing; a closed session ends it, for the late too."""
    live = LiveTexts()
    with live.subscribe() as reader:
        with trio.move_on_after(1) as scope:
            await anext(reader)
        assert scope.cancelled_caught
        live.show(piece(0, "a"))
        with trio.CancelScope() as gone:
            gone.cancel()
            await anext(reader)
        assert (await anext(reader)).text == "a"
        live.close()
        with pytest.raises(StopAsyncIteration):
            await anext(reader)
    with live.subscribe() as late, pytest.raises(StopAsyncIteration):
        await anext(late)
    live.show(piece(1, "b"))


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from(["a", "sk-", "0123", "456789abcdef", SECRET, "sk-0"])))
)
def test_no_secret_is_shown_however_it_is_cut(deltas: list[tuple[bool, str]]) -> None:
    """The pieces of words and of thinking, each put together, are gapless and hold no secret that came without a break."""
    shown: list[LiveText] = []
    feed = LiveFeed(shown.append, Secrets(frozenset({SECRET})), turn=1, call=2)
    for thinking, text in deltas:
        feed.take(Delta(text, thinking))
    feed.end()
    for channel in (False, True):
        mine = [each for each in shown if each.thinking == channel]
        offsets = [sum(len(each.text) for each in mine[:at]) for at in range(len(mine))]
        assert [each.offset for each in mine] == offsets
    runs: list[tuple[bool, str]] = []
    for thinking, text in deltas:
        if runs and runs[-1][0] == thinking:
            runs[-1] = (thinking, runs[-1][1] + text)
        else:
            runs.append((thinking, text))
    for thinking, text in runs:
        if SECRET in text:
            assert REMOVED in "".join(each.text for each in shown if each.thinking == thinking)
    for each in shown:
        assert SECRET not in each.text


def test_words_are_shown_at_once_where_no_secret_can_begin() -> None:
    """Only what may become a secret is held back, and only for as long as it may."""
    shown: list[str] = []
    feed = LiveFeed(lambda each: shown.append(each.text), Secrets(frozenset({SECRET})), turn=1, call=1)
    for text in ("all is well", " sk", "-0", "x", " done s"):
        feed.take(Delta(text))
    assert shown == ["all is well", " ", "sk-0x", " done "]
    feed.end()
    assert shown[-1] == "s"


class TalkingModel(FreeModel):
    """A model that shows its answer in pieces, fails the first time, and is opened with a key."""

    def __init__(self) -> None:
        async def never(position: int) -> ModelReply:
            raise AssertionError(position)

        super().__init__(never)
        self.secrets = (SECRET,)
        self.attempts = 0

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Speak."""
        self.attempts += 1
        assert request.on_delta is not None
        request.on_delta(Delta("Hm. ", thinking=True))
        for text in ("The key is ", SECRET[:5], SECRET[5:], "."):
            request.on_delta(Delta(text))
            await trio.lowlevel.checkpoint()
        if self.attempts == 1:
            raise ModelError("busy", fault="transient")
        return ModelReply(f"The key is {SECRET}.")


async def test_a_session_shows_its_answers_in_the_making_and_records_them_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Who asks sees each attempt by itself, free of secrets; the record has the answer whole, once, and no piece of it."""
    log = MemoryLog()
    seen: list[LiveText] = []
    async with session_and_runtime(log, MissionConfig(TalkingModel())) as (session, runtime):

        async def watch() -> None:
            with session.subscribe_live() as live:
                async for each in live:
                    seen.append(each)  # noqa: PERF401  # what was seen counts even if the watcher is cancelled

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await trio.testing.wait_all_tasks_blocked()
            await session.submit(runtime, GOAL)
            answer = await session.wait()
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await session.seal()
    run = await ended(log, answer, "")
    assert answer == f"The key is {REMOVED}."
    assert {each.call for each in seen} == {1, 2}
    for call in (1, 2):
        words = "".join(each.text for each in seen if each.call == call and not each.thinking)
        assert words == answer
        assert "".join(each.text for each in seen if each.call == call and each.thinking) == "Hm. "
    assert [event.text for event in run.of(Kind.ASSISTANT)] == [answer]
    assert (
        sum("The key is" in repr(event) for event in run.events)
        == len(run.of(Kind.ASSISTANT, Kind.GOAL_PHASE, Kind.CONVERGED)) - 1
    )


async def test_live_texts_end_with_their_session() -> None:
    """A reader of a session that is closed is let go."""
    async with session_and_runtime(MemoryLog(), MissionConfig(TalkingModel())) as (session, _):
        pass
    with session.subscribe_live() as live:
        assert [each async for each in live] == []


def test_a_feed_without_secrets_passes_everything_on() -> None:
    """Nothing is held back where nothing could be hidden."""
    shown: list[str] = []
    feed = LiveFeed(lambda each: shown.append(each.text), NO_SECRETS, turn=1, call=1)
    for text in ("a", "", "b"):
        feed.take(Delta(text))
    assert shown == ["a", "b"]
