"""One goal's task: takes the steps of its mission to the end, with a task for each goal that it hands work to.

Structure. A goal's children work in a nursery of its own task, so none outlives it. A goal that is cancelled from outside closes
its own end on the record before its task ends; one that is parked leaves that to whoever resumes the run.
"""

from __future__ import annotations

from collections.abc import Callable

from affidavit.actors.crew import Hand, Stop
from affidavit.actors.errors import GoalFinished, LogError, ResumeRefused, RunFinished, ToolFailed
from affidavit.actors.events import FaultClass
from affidavit.actors.faults import words_of
from affidavit.actors.goal import GoalStatus, Phase
from affidavit.actors.mission import Mission
from affidavit.actors.nurseries import open_owned_nursery
from affidavit.actors.recovery import CANCELLED_ABOVE

_ENDED_ABOVE = Stop("", CANCELLED_ABOVE.message)


def _told_nobody(status: GoalStatus) -> None:
    """Leave it at that."""


async def drive(
    mission: Mission,
    changed: tuple[str, ...] = (),
    told: Callable[[GoalStatus], None] = _told_nobody,
) -> GoalStatus:
    """Drive a goal to its end, and record that.

    Args:
        mission: The goal's mission, where it stands.
        changed: The parts of the configuration whose change was accepted.
        told: Is given the status after each step.

    Returns:
        How it ended.

    Raises:
        LogError: The record could not be extended; the run can be resumed from what stands.
        RunFinished: The run has ended.

    Cancellation: begun actions are closed on the record, see `Dispatcher.govern`; the goal and its children can be resumed.
    """
    async with open_owned_nursery() as nursery:
        mission.crew.open(nursery)
        await mission.begin(changed)
        status = GoalStatus(Phase.RUNNING)
        while not status.phase.terminal:
            told(status)
            _take_up(mission)
            status = await _step(mission)
        await mission.crew.stop(_ENDED_ABOVE)
        await mission.finish(status)
    return status


def _take_up(mission: Mission) -> None:
    """Set to work whoever work was handed to and is not at it: just now, or before the run was taken up again."""
    for goal in mission.in_flight.values():
        if not mission.crew.has(goal):
            mission.crew.start(goal, lambda hand: _work(mission, hand))


async def _work(above: Mission, hand: Hand) -> None:
    """Drive a child, and end it on the record where it is cancelled alone."""
    try:
        await _work_on(above, hand)
    except GoalFinished:
        # It heeded its end too late, and was ended on the record without it.
        return


async def _work_on(above: Mission, hand: Hand) -> None:
    try:
        mission = above.child(hand.goal, hand.crew)
    except (ToolFailed, ResumeRefused) as error:
        await above.give_up(hand.goal, words_of(error))
        return
    hand.on_stop = lambda: mission.set_stop_fault(FaultClass.CANCELLED)
    with hand.scope:
        await drive(mission)
    if hand.scope.cancelled_caught and hand.stop is not None:
        reason = hand.stop.reason
        status = GoalStatus(Phase.STALLED, reason, error_class=FaultClass.CANCELLED)
        await mission.finish(status, hand.stop)


async def _step(mission: Mission) -> GoalStatus:
    """Take one step. Whatever else than the record fails ends the goal, on the record, and not the program."""
    try:
        return await mission.step()
    except (LogError, RunFinished, GoalFinished):
        raise
    except Exception as error:
        return mission.failed(error)
