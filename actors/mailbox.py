"""Mailboxes: bounded memory channels of frozen commands, each carrying the channel its answer goes back on.

An actor owns its mailbox and takes one command at a time. Whoever asks either gets an answer, gets the error that the command
ended in, or learns that the actor has gone; nobody is left waiting.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, final

import trio

C = TypeVar("C")
R = TypeVar("R")

MAILBOX_SIZE: Final = 16


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """The outcome of a command: a value, or the error it ended in.

    Attributes:
        value: What was asked for, if there was no error.
        error: The error.
    """

    value: R | None = None
    error: Exception | None = None


Reply = trio.MemorySendChannel[Answer[R]]


class ActorGone(RuntimeError):
    """The actor ended before it answered."""


@final
class Mailbox(Generic[C]):
    """The inbox of one actor."""

    def __init__(self, name: str) -> None:
        """Make an empty mailbox.

        Args:
            name: Whose it is, for error messages.
        """
        self._name = name
        self._send, self._receive = trio.open_memory_channel[C](MAILBOX_SIZE)

    async def ask(self, command: Callable[[Reply[R]], C], expected: type[R]) -> R:
        """Post a command and wait for its answer.

        Args:
            command: Makes the command around the channel its answer goes back on.
            expected: The type of the answer.

        Raises:
            ActorGone: The actor has ended.
            Exception: Whatever the command ended in.

        Cancellation: before the command is posted, it never happens; later it is carried out and the answer dropped.
        """
        send, receive = trio.open_memory_channel[Answer[R]](1)
        with receive:
            try:
                await self._send.send(command(send))
                answer = await receive.receive()
            except trio.BrokenResourceError:
                raise ActorGone(f"{self._name} has ended") from None
            except trio.EndOfChannel:
                raise ActorGone(f"{self._name} ended before it answered") from None
        if answer.error is not None:
            raise answer.error
        if not isinstance(answer.value, expected):
            raise TypeError(
                f"{self._name} answered with {type(answer.value).__name__}, not {expected.__name__}"
            )
        return answer.value

    def post_nowait(self, command: C) -> bool:
        """Post a command that has no answer, if there is room.

        Returns:
            Whether it was posted.
        """
        try:
            self._send.send_nowait(command)
        except (trio.WouldBlock, trio.BrokenResourceError):
            return False
        return True

    async def take(self) -> C:
        """Return the next command. Only the owner calls it."""
        return await self._receive.receive()

    def close(self, discard: Callable[[C], None]) -> None:
        """Stop taking commands, and hand those that were never taken to `discard`, which closes their reply channels."""
        left: list[C] = []
        try:
            while True:
                left.append(self._receive.receive_nowait())
        except (trio.WouldBlock, trio.EndOfChannel, trio.ClosedResourceError):
            self._receive.close()
        for command in left:
            discard(command)


async def answer(reply: Reply[R], work: Callable[[], Awaitable[R]]) -> None:
    """Do the work of a command and send back what came of it, error or value.

    Cancellation: the asker learns that the actor is gone.
    """
    with reply:
        try:
            result: Answer[R] = Answer(await work())
        except Exception as error:
            result = Answer(error=error)
        try:
            reply.send_nowait(result)
        except trio.BrokenResourceError:
            # Whoever asked was cancelled and no longer listens; what was done stands all the same.
            return
