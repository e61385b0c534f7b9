"""Nurseries for context managers that own background tasks: ordered shutdown, and exceptions that stay themselves.

A plain nursery wraps whatever the body raises in a group, which would force every caller of ours to unwrap it. Here the body's
exception comes out untouched, and a failure of a background task comes out as the group it is, for the owner to name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import final

import trio


@asynccontextmanager
async def open_owned_nursery() -> AsyncIterator[trio.Nursery]:
    """Open a nursery whose background tasks end with the block.

    When the body ends, in whatever way, the tasks are cancelled and waited for.

    Raises:
        BaseException: The body's own exception, as itself. If a background task failed as well, that failure is its cause.
        BaseExceptionGroup: A background task failed, which also cancelled the body.

    Cancellation: cancels body and tasks alike.
    """
    body_error: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            except trio.Cancelled as cancelled:
                # It belongs to a cancel scope, this nursery's or an outer one; only that scope may absorb it.
                body_error = cancelled
                raise
            except BaseException as error:  # noqa: ASYNC103  # raised as itself below, once the tasks have ended
                body_error = error
            nursery.cancel_scope.cancel(reason="the owner's block has ended")
    except BaseExceptionGroup as group:
        faults = group.split(trio.Cancelled)[1]
        if body_error is None or (faults is not None and isinstance(body_error, trio.Cancelled)):
            raise
        raise body_error from faults
    if body_error is not None and not isinstance(body_error, trio.Cancelled):
        raise body_error


@final
class Services:
    """Starts tasks that outlive the cancellation of their surroundings until their owner's block has ended."""

    def __init__(self, nursery: trio.Nursery) -> None:
        """Use `open_services`."""
        self._nursery = nursery
        self._scopes: list[trio.CancelScope] = []

    def start_soon(self, service: Callable[[], Awaitable[None]], *, name: str) -> None:
        """Start a service.

        Args:
            service: Runs until it is cancelled.
            name: The task's name, for debugging.
        """
        # Shielded, so that a cancelled host closes inside-out: what an owner still needs to park its run (the actor that
        # seals, say) must not vanish under it. Bounded by `open_services`, which cancels the scope when the block has ended;
        # the block itself is not shielded, and what it does on its way out has deadlines of its own.
        scope = trio.CancelScope(shield=True)
        self._scopes.append(scope)
        self._nursery.start_soon(_run, scope, service, name=name)

    def stop(self) -> None:
        """Cancel every service."""
        for scope in self._scopes:
            scope.cancel(reason="the owner's block has ended")


@asynccontextmanager
async def open_services() -> AsyncIterator[Services]:
    """Open a set of service tasks that end with the block, after everything else in it.

    Raises:
        BaseException: The body's own exception, as itself.
        BaseExceptionGroup: A service failed, which also cancelled the body.
    """
    async with open_owned_nursery() as nursery:
        services = Services(nursery)
        try:
            yield services
        finally:
            services.stop()


async def _run(scope: trio.CancelScope, service: Callable[[], Awaitable[None]]) -> None:
    with scope:
        await service()
