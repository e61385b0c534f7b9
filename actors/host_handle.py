"""What a program holds of a host: `Host`, made by `affidavit.actors.host.open_host`."""

from __future__ import annotations

from typing import Final, final

import trio

from affidavit.actors.adopting import Adopted, ConfigFor, adopt
from affidavit.actors.approvals import Decision
from affidavit.actors.brake_all import Braked, brake_all
from affidavit.actors.buses.port import Bus
from affidavit.actors.clock import Clock
from affidavit.actors.events import Event
from affidavit.actors.forking import branch_of
from affidavit.actors.goal import GoalSpec
from affidavit.actors.host_begins import by_resuming, by_saying, by_submitting, going_here
from affidavit.actors.host_runs import HostRuns, OnFailure, OpenRuntime, Run
from affidavit.actors.ids import check_run_id, new_run_id
from affidavit.actors.logs.port import Log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.sealer import Sealer
from affidavit.actors.timer import Timer


@final
class Host:
    """Runs sessions over one log. Made by `open_host`."""

    def __init__(
        self,
        log: Log,
        bus: Bus,
        sealer: Sealer | None,
        clock: Clock,
        timer: Timer,
        nursery: trio.Nursery,
        on_failure: OnFailure,
    ) -> None:
        """Use `open_host`."""
        self.log: Final = log
        self.bus: Final = bus
        self._sealer = sealer
        self._clock = clock
        self._runs = HostRuns(log, bus, sealer, clock, timer, nursery, on_failure)

    async def submit(
        self, spec: GoalSpec, config: MissionConfig | OpenRuntime, *, id: str | None = None
    ) -> Run:
        """Start a new run and return once its session.started is durable and its goal is being driven.

        Args:
            spec: The goal.
            config: Model, tools and limits; or what opens a runtime of the program's own, which then drives the run.
            id: The run's id; a fresh UUIDv7 by default.

        Raises:
            ValueError: The id is not one token.
            RuntimeError: A run of this id exists.
            RunOwned: Another owner has the run.
            LogError: The run could not be recorded.
        """
        run_id = check_run_id(id) if id is not None else new_run_id(self._clock.now_ns())
        return await self._runs.start(run_id, config, by_submitting(spec), accept_changes=False)

    async def resume(
        self, run_id: str, config: MissionConfig | OpenRuntime, *, accept_changes: bool = False
    ) -> Run:
        """Take over a run that nobody drives and continue it from what its log says. A finished run is only sealed.

        Args:
            run_id: The run's whole id.
            config: As for `submit`.
            accept_changes: Whether it may go on with a model, tools or policy other than it started with. A runtime of the
                program's own judges that by itself.

        Raises:
            UnknownRun: There is no such run.
            RunOwned: Another owner has it.
            ResumeRefused: Something changed that was not accepted.
            LogError: The run could not be read or recorded.
        """
        await self._runs.require(run_id)
        return await self._runs.start(run_id, config, by_resuming(run_id), accept_changes=accept_changes)

    async def say(
        self,
        run_id: str,
        config: MissionConfig | OpenRuntime,
        text: str,
        *,
        principal: str,
        accept_changes: bool = False,
        causation_id: str = "",
    ) -> Run:
        """Go on with a run that has ended: take it over, record what a person says, and drive it on; see `Session.say`.

        Args:
            run_id: The run's whole id.
            config: As for `submit`.
            text: What is said.
            principal: Who says it.
            accept_changes: Whether it may go on with a model, tools or policy other than it was last driven with.
            causation_id: The request that this is the effect of. If its effect is on the record, nothing is said again, and a run
                that has not ended since is resumed.

        Raises:
            ValueError: Nothing is said, or too much at once, or by nobody.
            UnknownRun: There is no such run.
            RunGoing: It has not ended.
            RunOwned: Another owner has it; ask that one by way of its inbox.
            ResumeRefused: Something changed that was not accepted; nothing was recorded.
            LogError: The run could not be read or recorded.
        """
        await self._runs.require(run_id)
        here = await going_here(self._runs.get(run_id), causation_id)
        if here is not None:
            return here
        begin = by_saying(run_id, text, principal=principal, causation_id=causation_id)
        return await self._runs.start(run_id, config, begin, accept_changes=accept_changes)

    async def fork(
        self, run_id: str, at: int, config: MissionConfig, text: str = "", *, id: str | None = None
    ) -> Run:
        """Start a new run that goes on from a point of another, with that one's goal; see `affidavit.actors.forking`.

        Args:
            run_id: The other run's whole id. It is read alone, and may be going on.
            at: The seq of its event after which the fork goes on.
            config: Model, tools and limits.
            text: What is said there; empty to go on with what the other run was at.
            id: The new run's id; a fresh UUIDv7 by default.

        Raises:
            RuntimeError: The host has no signer, or a run of the new id exists.
            UnknownRun: There is no such run.
            ForkRefused: The conversation is not whole there, is too long, or has nothing to go on with.
            VerificationError: The other run's events are not those that were sealed.
            LogError: It could not be read, or the new run not be recorded.
        """
        if self._sealer is None:
            raise RuntimeError("a fork holds a signed checkpoint of its parent, and this host has no signer")
        branch = await branch_of(self.log, self._sealer, run_id, at, text)
        fork_id = check_run_id(id) if id is not None else new_run_id(self._clock.now_ns())
        begin = by_submitting(branch.spec, branch.fork)
        return await self._runs.start(fork_id, config, begin, accept_changes=False)

    async def adopt(self, config_for: ConfigFor, *, accept_changes: bool = False) -> tuple[Adopted, ...]:
        """Resume every run of the log that has not ended and that nobody drives; by default a host leaves them as they are.

        Args:
            config_for: Given a run's session.started, says what is to drive it; None leaves that run as it is.
            accept_changes: As for `resume`.

        Returns:
            What came of it for each run that has not ended: the run, or why it was not taken up.

        Raises:
            LogError: The runs could not be listed.
        """

        async def take_up(run_id: str, config: MissionConfig | OpenRuntime) -> Run:
            known = self._runs.get(run_id)
            if known is not None and not known.ended.is_set():
                return known
            return await self.resume(run_id, config, accept_changes=accept_changes)

        return await adopt(self.log, config_for, take_up)

    async def seal(self, run_id: str) -> Event:
        """Seal a run that nobody drives, having closed what its last driver left open.

        Returns:
            The record.sealed event.

        Raises:
            UnknownRun: There is no such run.
            RunOwned: Another owner has it.
            RuntimeError: The host has no signer.
            VerificationError: The record does not verify.
        """
        await self._runs.require(run_id)
        async with self._runs.session(run_id) as session:
            await session.attend()
            return await session.seal()

    async def cancel(self, run_id: str, *, principal: str, reason: str) -> Event:
        """End a run as cancelled: one that this host drives, or one that nobody drives.

        Args:
            run_id: The run's whole id.
            principal: Who asks.
            reason: Why.

        Returns:
            The terminal event that stands; an earlier one if the run had ended already.

        Raises:
            UnknownRun: There is no such run.
            RunOwned: Another owner has it; ask that one by way of its inbox.
            LogError: It could not be recorded.
        """
        async with self._runs.taken(run_id) as session:
            return await session.cancel(principal=principal, reason=reason)

    async def cancel_goal(self, run_id: str, goal: str, *, principal: str, reason: str) -> Event:
        """End one goal that a run has handed work to, and those below it; see `Session.cancel_goal`.

        Returns:
            The goal's child.completed event.

        Raises:
            UnknownGoal: The run has no such goal.
            UnknownRun: There is no such run.
            RunFinished: The run has ended.
            RunOwned: Another owner has it; ask that one by way of its inbox.
            LogError: It could not be recorded.
        """
        async with self._runs.taken(run_id) as session:
            return await session.cancel_goal(goal, principal=principal, reason=reason)

    async def approve(
        self,
        run_id: str,
        call: int,
        *,
        principal: str,
        reason: str = "",
        args: bytes | None = None,
        statement: bytes = b"",
    ) -> Event:
        """Approve a call that waits for it: of a run that this host drives, or of one that nobody drives.

        Args:
            run_id: The run's whole id.
            call: The call's number, as approval.requested says it.
            principal: Who approves.
            reason: Why, in their words.
            args: The digest of the arguments that they were shown; None to take those that were asked with.
            statement: The approval signed by them, see `affidavit.crypto.approval`.

        Returns:
            The approval.decided event.

        Raises:
            ApprovalRefused: Nothing waits under this number, or this person may not approve it.
            RunFinished: The run has ended.
            UnknownRun: There is no such run.
            RunOwned: Another owner has it; ask that one by way of its inbox.
            LogError: It could not be recorded.
        """
        return await self.decide(run_id, Decision(call, True, principal, reason, args, statement))

    async def refuse(
        self, run_id: str, call: int, *, principal: str, reason: str = "", statement: bytes = b""
    ) -> Event:
        """Refuse a call that waits for approval. Arguments, result and errors as `approve`."""
        return await self.decide(run_id, Decision(call, False, principal, reason, None, statement))

    async def decide(self, run_id: str, decision: Decision) -> Event:
        """Record a decision about a call that waits for one. Result and errors as `approve`."""
        async with self._runs.taken(run_id) as session:
            return await session.decide(decision)

    async def brake(self, run_id: str, *, principal: str, reason: str = "", engage: bool = True) -> Event:
        """Pull the brake of one run, or let it go: whatever is under way ends, and everything after it is refused.

        Returns:
            The brake.engaged or brake.released event.

        Raises:
            RunFinished: The run has ended.
            UnknownRun: There is no such run.
            RunOwned: Another owner has it; ask that one by way of its inbox.
            LogError: It could not be recorded.
        """
        async with self._runs.taken(run_id) as session:
            return await session.brake(principal=principal, reason=reason, engage=engage)

    async def brake_all(self, *, principal: str, reason: str = "", engage: bool = True) -> tuple[Braked, ...]:
        """Pull the brake of every run of the log that has not ended, or let it go; see `affidavit.actors.brake_all`."""
        return await brake_all(
            self.log,
            self.bus,
            self._clock,
            self._runs.taken,
            principal=principal,
            reason=reason,
            engage=engage,
        )

    def run(self, run_id: str) -> Run | None:
        """Return a run that this host drives, or one of the last that it has driven, or None."""
        return self._runs.get(run_id)
