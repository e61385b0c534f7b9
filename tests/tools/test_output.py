"""Standard output is written in order and whole, also around a cancellation."""

import os
import threading

import pytest
import trio
import trio.testing

from affidavit.tools import output
from affidavit.tools.output import Output


async def test_what_follows_a_cancelled_write_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that its caller was cancelled out of is finished by its thread, and the next one comes after it."""
    written: list[bytes] = []
    begun, go_on = trio.Event(), threading.Event()
    loop = trio.lowlevel.current_trio_token()

    def slow(data: bytes) -> None:
        if data == b"first":
            loop.run_sync_soon(begun.set)
            go_on.wait(30)
        written.append(data)

    monkeypatch.setattr(output, "_write_all", slow)
    out, scope = Output(), trio.CancelScope()
    async with trio.open_nursery() as nursery:
        with scope:
            nursery.start_soon(cancel_when, begun, scope)
            await out.write_bytes(b"first")
        nursery.start_soon(out.write_bytes, b"second")
        await trio.testing.wait_all_tasks_blocked()
        assert written == []
        go_on.set()
    assert written == [b"first", b"second"]


async def test_a_write_that_was_cancelled_before_it_began_is_written_with_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call that finds itself cancelled loses nothing: its bytes come before those of the next call."""
    written: list[bytes] = []
    monkeypatch.setattr(output, "_write_all", written.append)
    out = Output()
    with trio.CancelScope() as scope:
        scope.cancel()
        await out.write_bytes(b"first")
    assert written == []
    await out.write_bytes(b"second")
    assert written == [b"first", b"second"]


async def test_drain_writes_what_a_cancelled_call_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end nothing that was asked for is missing, although no other call follows the cancelled one."""
    written: list[bytes] = []
    monkeypatch.setattr(output, "_write_all", written.append)
    out = Output()
    with trio.CancelScope() as scope:
        scope.cancel()
        await out.write_bytes(b"last")
    await out.drain()
    assert written == [b"last"]


async def cancel_when(event: trio.Event, scope: trio.CancelScope) -> None:
    """Cancel a scope once something has happened."""
    await event.wait()
    scope.cancel()


async def test_nothing_follows_what_could_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error the rest is dropped in silence, so that no half of a line is continued."""
    tried: list[bytes] = []

    def full(data: bytes) -> None:
        tried.append(data)
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(output, "_write_all", full)
    out = Output()
    with pytest.raises(OSError, match="No space left"):
        await out.write_bytes(b"first")
    await out.write_bytes(b"second")
    assert tried == [b"first"]
