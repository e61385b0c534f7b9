"""Nurseries for context managers that own background tasks: ordered shutdown, and exceptions that stay themselves.

A plain nursery wraps whatever the body raises in a group, which would force every caller of ours to unwrap it. Here the body's
exception comes out untouched, and a failure of a background task comes out as the group it is, for the owner to name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeVar, final

import trio

T = TypeVar("T")


class TasksFailed(ExceptionGroup[Exception]):
    """Background tasks of an owner failed; the members are what they failed with."""

    def derive(self, excs: Sequence[Exception], /) -> TasksFailed:  # type: ignore[override]  # narrower, as the group is
        """Return a part of the group, as `split` wants it."""
        return TasksFailed(self.message, excs)


def beyond_cancellation(error: BaseException) -> BaseException | None:
    """Return what there is in an error besides trio's cancellation, or None."""
    return _split(error)[1]


@asynccontextmanager
async def open_owned_nursery() -> AsyncIterator[trio.Nursery]:
    """Open a nursery whose background tasks end with the block.

    When the body ends, in whatever way, the tasks are cancelled and waited for.

    Raises:
        BaseException: The body's own exception, as itself. If a background task failed as well, that failure is its cause.
        TasksFailed: Background tasks failed, which also cancelled the body.
        KeyboardInterrupt: Or SystemExit: trio delivered it to a background task.

    Cancellation: cancels body and tasks alike.
    """
    own: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            except BaseException as error:  # noqa: ASYNC103  # the rest is raised below, once the tasks have ended
                cancelled, own = _split(error)
                if cancelled is not None:
                    # It belongs to a cancel scope, this nursery's or an outer one; only that scope may absorb it.
                    raise cancelled  # noqa: ASYNC104, B904  # a part of what was caught, not a consequence of it
            nursery.cancel_scope.cancel(reason="the owner's block has ended")
    except BaseExceptionGroup as group:
        failed = beyond_cancellation(group)
        if own is not None:
            raise own from failed
        if failed is None:
            raise
        raise _failure(failed) from None
    if own is not None:
        raise own


@asynccontextmanager
async def unwrapped(opening: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Enter what somebody else opens, whose plain nurseries would wrap whatever the block raises.

    Raises:
        BaseException: The block's own exception, as itself. If something of the other's failed as well, that is its cause, unless
            it has one. Without an exception of the block's, what the other raises.
    """
    own: Exception | None = None
    try:
        async with opening as opened:
            try:
                yield opened
            except Exception as error:
                own = error
                raise
    except BaseExceptionGroup as group:
        if own is None:
            raise
        # By what is in it: of a group in a group, a nursery may have made another on the way.
        known = tuple(map(id, _leaves(own)))
        theirs = [leaf for leaf in _leaves(group) if id(leaf) not in known]
        if any(isinstance(leaf, trio.Cancelled) for leaf in theirs):
            raise
        if theirs and own.__cause__ is None:
            own.__cause__ = BaseExceptionGroup("what failed beside it", theirs)
    if own is not None:
        # Here, so that it keeps the cause that it has, and is not said to come of the group that only held it.
        raise own


def _split(error: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """Part an error into the cancellation in it and the rest."""
    if isinstance(error, trio.Cancelled):
        return error, None
    if isinstance(error, BaseExceptionGroup):
        cancelled, rest = error.split(trio.Cancelled)
        return cancelled, error if cancelled is None else rest
    return None, error


def _failure(error: BaseException) -> BaseException:
    """Name the failure of tasks; a demand to end the program, which may reach any task, stays itself."""
    leaves = tuple(_leaves(error))
    failures = [leaf for leaf in leaves if isinstance(leaf, Exception)]
    if len(failures) == len(leaves):
        return TasksFailed("background tasks failed", failures)
    return next(leaf for leaf in leaves if not isinstance(leaf, Exception))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


class StartService(Protocol):
    """Starts a task that lives as long as its owner's block; `Services.start_soon` is one."""

    def __call__(self, service: Callable[[], Awaitable[None]], *, name: str) -> None:
        """Start it."""
        ...


@final
class Services:
    """Starts tasks that outlive the cancellation of their surroundings until their owner's block has ended."""

    def __init__(self, nursery: trio.Nursery) -> None:
        """Use `open_services`."""
        self._nursery = nursery
        self._scopes: list[trio.CancelScope] = []
        self._stopped = False

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
        if self._stopped:
            # Started by somebody who does not know yet that the block has ended; it must not outlive it.
            scope.cancel(reason="the owner's block has ended")
        self._nursery.start_soon(_run, scope, service, name=name)

    def stop(self) -> None:
        """Cancel every service, present and future."""
        self._stopped = True
        for scope in self._scopes:
            scope.cancel(reason="the owner's block has ended")


@asynccontextmanager
async def open_services() -> AsyncIterator[Services]:
    """Open a set of service tasks that end with the block, after everything else in it.

    Raises:
        BaseException: The body's own exception, as itself.
        TasksFailed: A service failed, which also cancelled the body.
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
