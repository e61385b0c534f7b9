"""The runs that a host drives: a session, a runtime and a task for each, until it has ended; the last of them stay readable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final, final

import trio

from affidavit.actors.buses.port import Bus
from affidavit.actors.clock import Clock
from affidavit.actors.errors import RunParked, Stalled, UnknownRun
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
class HostRuns:
    """What a host has to hand: how sessions are opened over its log, and those that drive a run."""

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
        """Use `open_host`, which owns the nursery."""
        self._log = log
        self._bus = bus
        self._sealer = sealer
        self._clock = clock
        self._timer = timer
        self._nursery = nursery
        self._on_failure = on_failure
        # In the order in which they began; of those that have ended only the last `KEPT_RUNS` are kept.
        self._runs: dict[str, Run] = {}

    def _remember(self, run: Run) -> None:
        self._runs.pop(run.id, None)
        self._runs[run.id] = run
        ended = [name for name, each in self._runs.items() if each.ended.is_set()]
        for name in ended[: max(0, len(ended) - KEPT_RUNS)]:
            del self._runs[name]

    def get(self, run_id: str) -> Run | None:
        """Return a run that is driven here, or one of the last that were, or None."""
        return self._runs.get(run_id)

    async def require(self, run_id: str) -> None:
        """Return if there is such a run.

        Raises:
            UnknownRun: There is none.
        """
        if await self._log.info(run_id) is None:
            raise UnknownRun(f"there is no run {run_id}")

    @asynccontextmanager
    async def taken(self, run_id: str) -> AsyncIterator[Session]:
        """Give the session of a run that is driven here, else one opened for the purpose."""
        run = self._runs.get(run_id)
        if run is not None and not run.ended.is_set():
            yield run.session
            return
        await self.require(run_id)
        async with self.session(run_id) as session:
            # Whoever asked before comes first, and is answered.
            await session.attend()
            yield session

    def session(self, run_id: str) -> AbstractAsyncContextManager[Session]:
        """Open a session of a run; see `open_session`."""
        return open_session(
            self._log, self._bus, id=run_id, clock=self._clock, sealer=self._sealer, timer=self._timer
        )

    def _runtime(
        self, session: Session, config: MissionConfig | OpenRuntime, *, accept_changes: bool
    ) -> AbstractAsyncContextManager[Runtime]:
        if not isinstance(config, MissionConfig):
            return config()
        executor = MissionExecutor(config, observer=session.reporter)
        return open_runtime(executor, self._log, accept_changes=accept_changes)

    async def start(
        self, run_id: str, config: MissionConfig | OpenRuntime, begin: Begin, *, accept_changes: bool
    ) -> Run:
        """Open a session and a runtime for a run, begin with it, and drive it in a task of the host until it has ended."""
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
                session = await stack.enter_async_context(self.session(run_id))
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
    """Wait for the run's end, and for that of whatever is said before its runtime is let go of."""
    while True:
        try:
            await session.wait()
        except Stalled:
            pass
        except RunParked:
            return
        if await session.let_go():
            return
