"""How a session's goal is begun, taken up again and waited for: what stands behind `Session.submit`, `resume` and `wait`.

Crash states. Before session.started is durable: there is no run. After it: a run that nobody drives, which can be resumed. A goal
whose end stands without the session's terminal event is given it by whoever resumes the run.
"""

from __future__ import annotations

from dataclasses import replace

import trio

from affidavit.actors.errors import ResumeRefused, RunParked, SessionFailed, UnknownRun
from affidavit.actors.events import Event, Kind
from affidavit.actors.fork_context import FORK, Fork
from affidavit.actors.goal import GoalKey, GoalSpec
from affidavit.actors.reporter import Reporter
from affidavit.actors.run_state import answer_of
from affidavit.actors.runtime_port import DiscreetRuntime, Runtime
from affidavit.actors.session_core import SessionCore
from affidavit.actors.session_record import Driver, SessionRecord


async def begin_goal(
    core: SessionCore, reporter: Reporter, runtime: Runtime, spec: GoalSpec, fork: Fork | None = None
) -> GoalKey:
    """Open the run with an objective and hand its goal to a runtime; see `Session.submit`."""
    record = core.record
    spec = replace(spec, name=record.stream.id)
    _keep_secrets(record, runtime)
    detail = {"spec": spec.as_detail(), **runtime.describe(spec)}
    if fork is not None:
        detail[FORK] = fork.as_detail()
    await record.record((Event(Kind.SESSION_STARTED, text=spec.objective, detail=detail),))
    record.attach(runtime, GoalKey(spec.name))
    record.driver = Driver(runtime, GoalKey(spec.name), reporter)
    try:
        key = await _hand_over(record, reporter, runtime, spec)
    except BaseException as error:
        # Nobody watches a goal that did not begin, so nobody may wait for it either.
        record.release(f"its goal did not begin: {error}")
        raise
    core.watch()
    return key


async def _hand_over(record: SessionRecord, reporter: Reporter, runtime: Runtime, spec: GoalSpec) -> GoalKey:
    try:
        return await runtime.submit(spec, reporter)
    except Exception as error:
        # If this is cancelled, the run is parked and can be resumed.
        await record.end_unbegun(f"the goal could not be started: {error}")  # noqa: ASYNC120
        raise


async def resume_goal(core: SessionCore, reporter: Reporter, runtime: Runtime, key: GoalKey) -> None:
    """Attach to a goal that was submitted before; see `Session.resume`."""
    record, state = core.record, core.record.state
    run_id = record.stream.id
    if not state.opened:
        raise UnknownRun(f"there is no run {run_id} to resume")
    if key.name != run_id:
        raise ResumeRefused(f"goal {key.name} does not belong to run {run_id}")
    _keep_secrets(record, runtime)
    record.driver = Driver(runtime, key, reporter)
    if state.terminal is not None or state.ended_phase is not None:
        record.taken_up = True
        core.watch()
        await trio.lowlevel.checkpoint()
        if state.ended_phase is not None:
            # The goal's end may stand without the terminal event that belongs to it: another writer's crash.
            await record.end(state.ended_phase)
        return
    # What drove it last may have left an end under way, and the next one begins from what stands.
    await record.stream.settled()
    record.attach(runtime, key)
    try:
        await runtime.resume(key, reporter)
    except Exception as error:
        record.detach(f"it could not be resumed: {error}")
        raise
    except BaseException as error:
        record.release(f"its goal was not taken up again: {error}")
        raise
    core.watch()


def _keep_secrets(record: SessionRecord, runtime: Runtime) -> None:
    if isinstance(runtime, DiscreetRuntime):
        record.stream.scrub_with(runtime.scrub)


async def outcome(record: SessionRecord) -> str:
    """Wait for the terminal event of the latest submit, resume or say; see `Session.wait`."""
    state, run_id = record.state, record.stream.id
    awaited = state.round
    if awaited.terminal is None and record.driven is None and not record.stopped:
        raise RuntimeError("there is nothing to wait for: submit a goal or resume the run first")
    await awaited.done.wait()
    while awaited.terminal is None and record.failure is None and not record.stopped:
        # It was let go and, before this task ran, taken up again: what counts is the latest.
        awaited = state.round
        await awaited.done.wait()
    if awaited.terminal is not None:
        return answer_of(awaited.terminal)
    if record.failure is not None:
        raise SessionFailed(f"run {run_id} stopped: {record.failure}") from record.failure
    raise RunParked(f"run {run_id} was parked: {record.stopped}")
