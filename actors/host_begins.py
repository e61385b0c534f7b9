"""How a host begins with a session that it has opened: a goal submitted, taken up again, or gone on with by saying something.

Each is what `HostRuns.start` calls once the session and what drives it are there. It opens and closes nothing.
"""

from __future__ import annotations

from affidavit.actors.errors import RunGoing
from affidavit.actors.fork_context import Fork
from affidavit.actors.goal import GoalKey, GoalSpec
from affidavit.actors.host_runs import Begin, Run
from affidavit.actors.runtime_port import Runtime
from affidavit.actors.session import Session


def by_submitting(spec: GoalSpec, fork: Fork | None = None) -> Begin:
    """Return what begins a new run.

    Args:
        spec: Its goal.
        fork: Where it comes from, if it goes on from a point of another.
    """

    async def begin(session: Session, runtime: Runtime) -> None:
        await session.submit(runtime, spec, fork=fork)

    return begin


def by_resuming(run_id: str) -> Begin:
    """Return what takes up a run from what its log says."""

    async def begin(session: Session, runtime: Runtime) -> None:
        await session.resume(runtime, GoalKey(run_id))

    return begin


def by_saying(run_id: str, text: str, *, principal: str, causation_id: str) -> Begin:
    """Return what goes on with a run that has ended.

    Args:
        run_id: The run's whole id.
        text: What is said.
        principal: Who says it.
        causation_id: The request that this is the effect of. If its effect is on the record, nothing is said again, and a run
            that has not ended since is resumed.

    What it returns raises `RunGoing` if the run has not ended.
    """

    async def begin(session: Session, runtime: Runtime) -> None:
        is_said = bool(causation_id and session.effect_of(causation_id))
        if not session.finished and not is_said:
            raise RunGoing(f"run {run_id} has not ended; resume goes on with it")
        await session.resume(runtime, GoalKey(run_id))
        if not is_said:
            await session.say(text, principal=principal, causation_id=causation_id)

    return begin


async def going_here(known: Run | None, causation_id: str) -> Run | None:
    """Return a run of this host that what was to be said has been said on already; else wait until the host is done with it.

    Args:
        known: The run, if the host drives it or has driven it.
        causation_id: The request to say it.

    Raises:
        RunGoing: It has not ended, and it was not said.

    Cancellation: changes nothing.
    """
    if known is None or known.ended.is_set():
        return None
    if causation_id and known.session.effect_of(causation_id):
        return known
    if not known.session.finished:
        raise RunGoing(f"run {known.id} has not ended; it is being driven here")
    # It is being sealed still.
    await known.closed()
    return None
