"""The host: the composition root of a program that runs sessions. Log, bus, sealer, timer and sessions, closed inside-out.

Each run is driven by a task of the host's own, with its own session and its own runtime. A run that fails takes no other down;
the program hears of it through `on_failure`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.buses.port import Bus
from affidavit.actors.clock import Clock, SystemClock
from affidavit.actors.errors import HostFailed
from affidavit.actors.host_handle import Host
from affidavit.actors.host_runs import OnFailure, Run
from affidavit.actors.logs.port import Log
from affidavit.actors.nurseries import TasksFailed, beyond_cancellation, open_owned_nursery
from affidavit.actors.sealer import open_sealer
from affidavit.actors.signers.port import Signer
from affidavit.actors.timer import DEFAULT_POLL, DEFAULT_STREAM_POLL, open_timer

__all__ = ["Host", "OnFailure", "Run", "open_host"]

logger = logging.getLogger(__name__)


def _log_failure(run_id: str, error: Exception) -> None:
    logger.error("run %s failed: %s", run_id, error, exc_info=error)


@asynccontextmanager
async def open_host(  # noqa: PLR0913  # each is a choice of its own
    log: Log,
    bus: Bus | None = None,
    *,
    signer: Signer | None = None,
    clock: Clock | None = None,
    on_failure: OnFailure = _log_failure,
    poll_interval: float = DEFAULT_POLL,
    stream_poll: float = DEFAULT_STREAM_POLL,
    seal_every: int = 0,
    seal_interval: float = 0,
) -> AsyncIterator[Host]:
    """Open a host over a log, and close it inside-out: runs are parked, then timer and sealer end; the log is the caller's.

    Args:
        log: Where everything is recorded.
        bus: Where readers are woken; one within this process by default.
        signer: Signs records; None leaves runs unsealed.
        clock: Times polls and events.
        on_failure: Called with a run's id and the error when its session failed. It must not raise.
        poll_interval: Seconds between two looks at a goal's status.
        stream_poll: Seconds after which a reader re-reads the log without a wake.
        seal_every: After how many events a run that is going on is sealed, signed only; 0 for only at its end, at park and on
            demand.
        seal_interval: Seconds within which an event of a run that is going on is sealed, likewise; 0 for no such bound.

    Yields:
        The host.

    Raises:
        HostFailed: A task of the host failed; the cause says why.
        BaseException: The body's own exception, as itself.
    """
    own: BaseException | None = None
    try:
        async with AsyncExitStack() as stack:
            clock = clock or SystemClock()
            sealer = None
            if signer is not None:
                sealer = await stack.enter_async_context(
                    open_sealer(log, signer, every=seal_every, interval=seal_interval)
                )
            timer = await stack.enter_async_context(open_timer(log, clock, poll_interval, stream_poll))
            nursery = await stack.enter_async_context(open_owned_nursery())
            host = Host(log, bus or MemoryBus(), sealer, clock, timer, nursery, on_failure)
            try:
                yield host
            except BaseException as error:
                own = beyond_cancellation(error)
                raise
    except TasksFailed as group:
        if own is not None:
            raise
        raise HostFailed("a task of the host failed") from group
