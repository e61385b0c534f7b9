"""The session: one run as a trio actor. It owns the run's event stream, its lifecycle watcher, its subscribers and its record.

`open_session` is the way in; what it yields is in `session_handle`. The session does not own the model loop: whatever drives the
goal reports through `Session.reporter`, and the session makes that a stream that can be followed live, replayed, resumed and
sealed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import trio

from affidavit.actors.buses.port import Bus, inbox_subject
from affidavit.actors.clock import Clock, SystemClock
from affidavit.actors.errors import SessionFailed
from affidavit.actors.history import history
from affidavit.actors.ids import check_run_id, new_run_id
from affidavit.actors.logs.port import Log
from affidavit.actors.nurseries import TasksFailed, beyond_cancellation, open_owned_nursery, open_services
from affidavit.actors.push_readers import PushReaders
from affidavit.actors.run_state import RunState
from affidavit.actors.sealer import Sealer
from affidavit.actors.session_core import SessionCore
from affidavit.actors.session_ends import PARK_GRACE
from affidavit.actors.session_handle import Session
from affidavit.actors.stream import Stream
from affidavit.actors.timer import DEFAULT_POLL, DEFAULT_STREAM_POLL, Timer

__all__ = ["Session", "open_session"]


@asynccontextmanager
async def open_session(
    log: Log,
    bus: Bus,
    *,
    id: str | None = None,  # the contract's own name for it
    clock: Clock | None = None,
    poll_interval: float = DEFAULT_POLL,
    stream_poll: float = DEFAULT_STREAM_POLL,
    sealer: Sealer | None = None,
    timer: Timer | None = None,
) -> AsyncIterator[Session]:
    """Open a session, new or of a run that exists, and hold the run's ownership while the block lasts.

    Args:
        log: Where the events are made durable.
        bus: Where readers are woken.
        id: The run's id, one token of `[A-Za-z0-9_-]{1,128}`; a fresh UUIDv7 by default.
        clock: Times polls and events; the machine's by default.
        poll_interval: Seconds between two looks at the goal's status.
        stream_poll: Seconds after which a reader re-reads the log even if no wake came; 0 or less turns that floor off, and the
            bus alone keeps readers going.
        sealer: Seals the run at its end, at park and on demand; None leaves it unsealed.
        timer: A timer shared by many sessions over this log, whose intervals then count; by default the session has its own.

    Yields:
        The session. Leaving the block normally waits for the run; leaving it by an exception or cancellation parks the run,
        within 5 s: it stays resumable.

    Raises:
        ValueError: The id is not one token.
        RunOwned: Another owner has the run.
        SessionFailed: A task of the session failed, or the record could not be extended; the cause says why.
        BaseException: The body's own exception, as itself.
    """
    clock = clock or SystemClock()
    run_id = check_run_id(id) if id is not None else new_run_id(clock.now_ns())
    async with log.own(run_id):
        state = RunState()
        events = await history(log, run_id)
        for event in events:
            state.apply(event)
        has_floor = stream_poll > 0 if timer is None else timer.has_floor
        stream = Stream(log, bus, run_id, clock, tip=len(events), has_floor=has_floor)
        core: SessionCore | None = None
        own: BaseException | None = None
        try:
            async with open_services() as services, open_owned_nursery() as nursery:
                start = services.start_soon
                ticking = timer or Timer(log, clock, poll_interval, stream_poll, start)
                core = SessionCore(log, stream, state, clock, sealer, ticking, start)
                # Cancels the caller's block, which lies within this nursery; what failed is said below.
                core.record.on_failure = partial(nursery.cancel_scope.cancel, reason="the session failed")
                readers = PushReaders(stream, nursery)
                async with bus.subscribe(inbox_subject(run_id), core):
                    try:
                        yield Session(core, readers)
                        await core.ends.settle()
                    except BaseException as error:
                        own = beyond_cancellation(error)
                        # Shielded, so that a cancelled host still closes the run's begun calls and leaves a sealed record.
                        with trio.CancelScope(shield=True, deadline=trio.current_time() + PARK_GRACE):
                            await core.ends.park()
                            await readers.drain()
                        raise
                    await readers.drain()
        except TasksFailed as group:
            if own is not None:
                raise
            raise SessionFailed(f"a task of run {run_id} failed") from group
        finally:
            if core is not None:
                core.close()
            stream.readers.end_all("the session was closed")
            if sealer is not None:
                sealer.forget(run_id)
        if core.record.failure is not None:
            raise SessionFailed(f"run {run_id} stopped: {core.record.failure}") from core.record.failure
