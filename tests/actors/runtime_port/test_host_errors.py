"""A host whose program brings a runtime: what goes wrong with it reaches the caller, or `on_failure`, as itself."""

# what leaves a block is only seen around the whole block

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from affidavit.actors.errors import ResumeRefused, SessionFailed
from affidavit.actors.events import Kind
from affidavit.actors.host import open_host
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.runtime_port import Runtime
from tests.actors.runtimes import RUN, SPEC, FakeRuntime, kinds


class Wrapping:
    """Opens a runtime as another program might: within plain nurseries, which wrap what their block raises."""

    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.is_refused = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Runtime]:
        """Open it, or refuse to."""
        if self.is_refused:
            raise OSError("no such runtime")
        async with trio.open_nursery(), trio.open_nursery():
            yield self.runtime


async def test_what_keeps_a_goal_from_beginning_is_raised_as_itself(autojump_clock: MockClock) -> None:
    """From `submit` and from `resume`; one that cannot even be opened leaves no run behind."""
    log, mine = MemoryLog(), Wrapping()
    async with open_host(log) as host:
        mine.is_refused = True
        with pytest.raises(OSError, match="no such runtime"):
            await host.submit(SPEC, mine.open, id=RUN)
        assert await log.list() == ()
        mine.is_refused = False
        run = await host.submit(SPEC, mine.open, id=RUN)
    assert not run.session.finished
    mine.runtime.refusal = ResumeRefused("not with this model")
    async with open_host(log) as host:
        with pytest.raises(ResumeRefused) as caught:
            await host.resume(RUN, mine.open)
        assert caught.value is mine.runtime.refusal
        with pytest.raises(ResumeRefused):
            await host.submit(SPEC, mine.open, id="run-2")
    assert (await kinds(log, "run-2"))[-1] == Kind.STALLED


async def test_a_runtime_that_breaks_later_is_told_to_the_program(autojump_clock: MockClock) -> None:
    """As the session's failure, whose cause is the runtime's own error; other runs go on."""
    log, mine, other, failures = MemoryLog(), Wrapping(), Wrapping(), []
    async with open_host(log, on_failure=lambda run, error: failures.append((run, error))) as host:
        run = await host.submit(SPEC, mine.open, id=RUN)
        going = await host.submit(SPEC, other.open, id="run-2")
        mine.runtime.status_failure = OSError("broken")
        await run.closed()
        other.runtime.converge()
        assert await going.session.wait() == "all settled"
    ((failed, error),) = failures
    assert failed == RUN
    assert isinstance(error, SessionFailed)
    assert error.__cause__ is mine.runtime.status_failure
