"""Our goal runtime: drives each goal in a task of its own, says how it stands, and lets go of it in order."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from affidavit.actors.errors import LogFull, ResumeRefused
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.goal import GoalKey, GoalSpec, Phase
from affidavit.actors.logs.port import Entry
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply
from affidavit.actors.runtime import MissionExecutor, open_runtime
from affidavit.actors.runtime_port import TellingRuntime
from affidavit.crypto.event import Envelope, encode_event
from tests.actors.mission_kit import DONE, RUN, FreeModel, KeptLog, WriterOfLists, replies

KEY = GoalKey(RUN)
SPEC = GoalSpec("x", name=RUN)


async def opened() -> KeptLog:
    """A log with a run that has been opened."""
    log = KeptLog()
    await log.write(Event(Kind.SESSION_STARTED, text="x", detail={"spec": SPEC.as_detail()}))
    return log


async def wait_for_ever(position: int) -> ModelReply:
    """Be a model that never answers."""
    await trio.sleep_forever()
    raise AssertionError


async def test_a_goal_goes_from_pending_to_converged() -> None:
    """Submitted it is driven; when it has ended its status says how, and that nobody drives it."""
    writer = WriterOfLists()
    async with open_runtime(MissionExecutor(MissionConfig(replies(DONE))), await opened()) as runtime:
        assert await runtime.submit(SPEC, writer) == KEY
        first = await runtime.status(KEY)
        assert (first.phase in {Phase.PENDING, Phase.RUNNING}, first.active) == (True, True)
        await trio.testing.wait_all_tasks_blocked()
        last = await runtime.status(KEY)
    assert (last.phase, last.message, last.steps, last.active) == (Phase.CONVERGED, DONE.text, 1, False)
    assert [e.detail["phase"] for e in writer.events if e.kind == Kind.GOAL_PHASE] == ["running", "converged"]


async def test_who_asked_to_be_told_is_told_when_the_goals_task_has_ended() -> None:
    """Once, when its status says so; of one that has ended, or that there is none of, at once."""
    told: list[str] = []
    async with open_runtime(MissionExecutor(MissionConfig(replies(DONE))), await opened()) as runtime:
        assert isinstance(runtime, TellingRuntime)
        await runtime.submit(SPEC, WriterOfLists())
        runtime.tell(KEY, lambda: told.append("replaced"))
        runtime.tell(KEY, lambda: told.append("ended"))
        assert told == []
        await trio.testing.wait_all_tasks_blocked()
        assert told == ["ended"]
        runtime.tell(KEY, lambda: told.append("late"))
        runtime.tell(GoalKey("other"), lambda: told.append("unknown"))
        assert told == ["ended", "late", "unknown"]


async def test_an_observer_gets_the_reports_in_place_of_the_sessions_reporter() -> None:
    """`MissionExecutor(observer=...)` redirects what its missions report."""
    observer, unused = WriterOfLists(), WriterOfLists()
    executor = MissionExecutor(MissionConfig(replies(DONE)), observer=observer)
    async with open_runtime(executor, await opened()) as runtime:
        await runtime.submit(SPEC, unused)
        await trio.testing.wait_all_tasks_blocked()
    assert unused.appends == []
    assert observer.events[-1].detail["phase"] == Phase.CONVERGED


async def test_a_goal_is_driven_once_at_a_time() -> None:
    """A second submit or resume of a goal that is being driven is a RuntimeError, also when both come at once."""
    config = MissionConfig(FreeModel(wait_for_ever))
    async with open_runtime(MissionExecutor(config), await opened()) as runtime:
        refusals: list[RuntimeError] = []

        async def begin() -> None:
            try:
                await runtime.resume(KEY, WriterOfLists())
            except RuntimeError as error:
                refusals.append(error)

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(begin)
        assert len(refusals) == 2
        with pytest.raises(RuntimeError, match="already"):
            await runtime.submit(SPEC, WriterOfLists())


async def test_a_goal_that_was_stopped_can_be_driven_again() -> None:
    """After `stop` nothing of the goal runs; it is neither terminal nor active, and can be resumed."""
    writer = WriterOfLists()
    async with open_runtime(
        MissionExecutor(MissionConfig(FreeModel(wait_for_ever))), await opened()
    ) as runtime:
        await runtime.submit(SPEC, writer)
        await trio.testing.wait_all_tasks_blocked()
        await runtime.stop(KEY, fault=FaultClass.INTERRUPTED)
        status = await runtime.status(KEY)
        assert (status.phase, status.active) == (Phase.RUNNING, False)
        assert writer.events[-1].error_class == FaultClass.INTERRUPTED
        await runtime.stop(KEY, fault=FaultClass.INTERRUPTED)
        await runtime.resume(KEY, WriterOfLists())
        assert (await runtime.status(KEY)).active


async def test_stopping_a_goal_that_nobody_drives_is_no_error() -> None:
    """A runtime asked to stop a goal that it does not know does nothing; asked for its status, it says KeyError."""
    async with open_runtime(MissionExecutor(MissionConfig(replies(DONE))), KeptLog()) as runtime:
        await runtime.stop(KEY, fault=FaultClass.CANCELLED)
        with pytest.raises(KeyError):
            await runtime.status(KEY)


async def test_a_stream_without_a_goal_is_refused() -> None:
    """There is nothing to drive on an empty stream."""
    async with open_runtime(MissionExecutor(MissionConfig(replies(DONE))), KeptLog()) as runtime:
        with pytest.raises(ResumeRefused, match="no goal"):
            await runtime.resume(KEY, WriterOfLists())


async def test_a_record_that_cannot_be_extended_is_told_by_the_status() -> None:
    """A log error ends the goal's task, harms no other goal, and comes out of `status`."""
    log = await opened()
    async with open_runtime(MissionExecutor(MissionConfig(replies(DONE))), log) as runtime:
        await runtime.submit(SPEC, WriterOfLists(fail_at=3))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(LogFull):
            await runtime.status(KEY)


async def test_leaving_the_runtime_parks_its_goals() -> None:
    """What is still driven when the block ends has its begun action closed as interrupted, and no end of the goal."""
    writer = WriterOfLists()
    async with open_runtime(
        MissionExecutor(MissionConfig(FreeModel(wait_for_ever))), await opened()
    ) as runtime:
        await runtime.submit(SPEC, writer)
        await trio.testing.wait_all_tasks_blocked()
    assert writer.events[-1].kind == Kind.ACTION_COMPLETED
    assert writer.events[-1].error_class == FaultClass.INTERRUPTED
    phases = [e.detail["phase"] for e in writer.events if e.kind == Kind.GOAL_PHASE]
    assert phases == [Phase.RUNNING]


async def test_no_step_follows_an_append_that_failed() -> None:
    """Whichever append of a run fails, the mission asks for no further one."""
    for number in range(1, 7):
        writer = WriterOfLists(fail_at=number)
        async with open_runtime(MissionExecutor(MissionConfig(replies(DONE))), await opened()) as runtime:
            await runtime.submit(SPEC, writer)
            await trio.testing.wait_all_tasks_blocked()
        assert writer.asked == min(number, 4)


async def test_a_run_with_events_of_an_unknown_version_is_not_resumed() -> None:
    """What a newer program wrote may mean something that this one cannot know, so it does not go on over it."""
    log = await opened()
    newer = encode_event(
        Envelope(
            stream=RUN,
            seq=2,
            time=1,
            type="goal.phase",
            actor="system",
            payload={"phase": "running"},
            schema_version=2,
        )
    )
    await log.append([Entry(RUN, 1, (newer,))])
    async with open_runtime(MissionExecutor(MissionConfig(replies(DONE))), log) as runtime:
        with pytest.raises(ResumeRefused, match="is of schema version 2"):
            await runtime.resume(KEY, WriterOfLists())
