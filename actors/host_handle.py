"""What a program holds of a host: `Host` and the `Run`s that it drives, made by `affidavit.actors.host.open_host`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final, final

import trio

from affidavit.actors.approvals import Decision
from affidavit.actors.brake_all import Braked, brake_all
from affidavit.actors.buses.port import Bus
from affidavit.actors.clock import Clock
from affidavit.actors.errors import RunParked, Stalled, UnknownRun
from affidavit.actors.events import Event
from affidavit.actors.goal import GoalKey, GoalSpec
from affidavit.actors.ids import check_run_id, new_run_id
from affidavit.actors.logs.port import Log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.nurseries import unwrapped
from affidavit.actors.runtime import MissionExecutor, open_runtime
from affidavit.actors.runtime_port import Runtime
from affidavit.actors.sealer import Sealer
from affidavit.actors.session import Session, open_session
from affidavit.actors.timer import Timer

# How many ended runs a host can still be asked for by id. Whoever holds a `Run` keeps it anyway.
KEPT_RUNS: Final = 256

OnFailure = Callable[[str, Exception], None]


@final
class Run:
    """A run that this host drives. It stays readable after its session has closed, until the host closes."""

    def __init__(self, session: Session) -> None:
        """Use `Host.submit` or `Host.resume`."""
        self.session: Final = session
        self.ended: Final = trio.Event()

    @property
    def id(self) -> str:
        """The run's id."""
        return self.session.id

    async def closed(self) -> None:
        """Wait until the session has ended and its record is sealed, as far as that was possible."""
        await self.ended.wait()


Begin = Callable[[Session, Runtime], Awaitable[object]]
# Opens a runtime of the program's own, for one run and for as long as that is driven here.
OpenRuntime = Callable[[], AbstractAsyncContextManager[Runtime]]


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
        self._nursery = nursery
        self._on_failure = on_failure
        self._timer = timer
        # In the order in which they began; of those that have ended only the last `KEPT_RUNS` are kept.
        self._runs: dict[str, Run] = {}

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

        async def begin(session: Session, runtime: Runtime) -> None:
            await session.submit(runtime, spec)

        return await self._start(run_id, config, begin, accept_changes=False)

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
        await self._require(run_id)

        async def begin(session: Session, runtime: Runtime) -> None:
            await session.resume(runtime, GoalKey(run_id))

        return await self._start(run_id, config, begin, accept_changes=accept_changes)

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
        await self._require(run_id)
        async with self._session(run_id) as session:
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
        async with self._taken(run_id) as session:
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
        async with self._taken(run_id) as session:
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
        async with self._taken(run_id) as session:
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
        async with self._taken(run_id) as session:
            return await session.brake(principal=principal, reason=reason, engage=engage)

    async def brake_all(self, *, principal: str, reason: str = "", engage: bool = True) -> tuple[Braked, ...]:
        """Pull the brake of every run of the log that has not ended, or let it go; see `affidavit.actors.brake_all`."""
        return await brake_all(
            self.log, self.bus, self._clock, self._taken, principal=principal, reason=reason, engage=engage
        )

    def run(self, run_id: str) -> Run | None:
        """Return a run that this host drives, or one of the last that it has driven, or None."""
        return self._runs.get(run_id)

    def _remember(self, run: Run) -> None:
        self._runs.pop(run.id, None)
        self._runs[run.id] = run
        ended = [name for name, each in self._runs.items() if each.ended.is_set()]
        for name in ended[: max(0, len(ended) - KEPT_RUNS)]:
            del self._runs[name]

    async def _require(self, run_id: str) -> None:
        if await self.log.info(run_id) is None:
            raise UnknownRun(f"there is no run {run_id}")

    @asynccontextmanager
    async def _taken(self, run_id: str) -> AsyncIterator[Session]:
        """Give the session of a run that is driven here, else one opened for the purpose."""
        run = self._runs.get(run_id)
        if run is not None and not run.ended.is_set():
            yield run.session
            return
        await self._require(run_id)
        async with self._session(run_id) as session:
            # Whoever asked before comes first, and is answered.
            await session.attend()
            yield session

    def _session(self, run_id: str) -> AbstractAsyncContextManager[Session]:
        return open_session(
            self.log, self.bus, id=run_id, clock=self._clock, sealer=self._sealer, timer=self._timer
        )

    def _runtime(
        self, session: Session, config: MissionConfig | OpenRuntime, *, accept_changes: bool
    ) -> AbstractAsyncContextManager[Runtime]:
        if not isinstance(config, MissionConfig):
            return config()
        executor = MissionExecutor(config, observer=session.reporter)
        return open_runtime(executor, self.log, accept_changes=accept_changes)

    async def _start(
        self, run_id: str, config: MissionConfig | OpenRuntime, begin: Begin, *, accept_changes: bool
    ) -> Run:
        drive = partial(self._drive, run_id, config, begin, accept_changes=accept_changes)
        run: Run = await self._nursery.start(drive, name=f"run {run_id}")
        return run

    async def _drive(  # noqa: ASYNC114  # started in this nursery alone, below
        self,
        run_id: str,
        config: MissionConfig | OpenRuntime,
        begin: Begin,
        *,
        accept_changes: bool,
        task_status: trio.TaskStatus[Run],
    ) -> None:
        run: Run | None = None
        try:
            async with AsyncExitStack() as stack:
                session = await stack.enter_async_context(self._session(run_id))
                opening = self._runtime(session, config, accept_changes=accept_changes)
                await begin(session, await stack.enter_async_context(unwrapped(opening)))
                run = Run(session)
                self._remember(run)
                task_status.started(run)
                await _until_ended(session)
        except Exception as error:
            if run is None:
                # Nobody has the run yet: the failure belongs to the caller of submit or resume.
                raise
            self._on_failure(run_id, error)
        finally:
            if run is not None:
                run.ended.set()


async def _until_ended(session: Session) -> None:
    try:
        await session.wait()
    except (Stalled, RunParked):
        return
