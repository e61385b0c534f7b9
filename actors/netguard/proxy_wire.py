"""One side of a proxied connection: bytes through a bounded buffer, and the framing of bodies.

Nothing here decides anything: a wire to a server is given the check that its bytes must pass, in both directions. What it reads
it hands on as it came, never more than it was told to. How long a wait may be is the business of `Patience`, which both sides of
a connection share: silence on one of them is no silence while the other is talking.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final, final

import trio

from affidavit.actors.netguard.proxy_head import BadHead

MAX_HEAD: Final = 32 * 1024
PIECE: Final = 64 * 1024
_MAX_CHUNK_LINE: Final = 1024
_MAX_TRAILERS: Final = 100
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,12})(?:[ \t]*;[\t -~]*)?\Z")

Send = Callable[[bytes], Awaitable[None]]
Check = Callable[[], Awaitable[None]]


class Gone(Exception):
    """The side that should take bytes is gone. Never seen outside the proxy."""


@final
class Patience:
    """A cancel scope that ends once neither side of a connection has moved a byte for too long."""

    def __init__(self, idle: float) -> None:
        """Begin to wait.

        Args:
            idle: The longest silence, in seconds.
        """
        self._idle = idle
        self.scope = trio.CancelScope()
        self.touch()

    def touch(self) -> None:
        """Note that something moved."""
        self.scope.deadline = trio.current_time() + self._idle


@final
class Wire:
    """A stream with what was read of it too far."""

    def __init__(self, stream: trio.SocketStream, patience: Patience, check: Check | None = None) -> None:
        """Take a stream, which stays its owner's to close.

        Args:
            stream: The stream.
            patience: That of the whole connection.
            check: What bytes must pass in either direction; raises what then comes out here.
        """
        self._stream = stream
        self._patience = patience
        self._check = check
        self._ahead = b""
        self.has_sent = False

    async def some(self) -> bytes:
        """Return the next bytes, or none at the end."""
        if self._ahead:
            data, self._ahead = self._ahead, b""
            return data
        try:
            data = bytes(await self._stream.receive_some(PIECE))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""
        if self._check is not None:
            await self._check()
        self._patience.touch()
        return data

    async def send(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            Gone: The other side takes no more.
        """
        if self._check is not None:
            await self._check()
        self.has_sent = True
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise Gone from error
        self._patience.touch()

    async def end(self) -> None:
        """Tell the other side that nothing more comes.

        Raises:
            Gone: It is not there to be told.
        """
        try:
            await self._stream.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise Gone from error

    async def head(self) -> bytes:
        """Return all up to an empty line, without it; nothing if the stream ends before the first byte.

        Raises:
            BadHead: It is longer than `MAX_HEAD`, or does not come whole.
        """
        self._ahead = await self.some()
        return await self._until(b"\r\n\r\n", MAX_HEAD) if self._ahead else b""

    async def copy(self, count: int, send: Send) -> None:
        """Hand on exactly so many bytes.

        Raises:
            BadHead: They do not come.
        """
        while count:
            data = await self.some()
            if not data:
                raise BadHead("the body ended too early")
            taken, self._ahead = data[:count], data[count:]
            count -= len(taken)
            await send(taken)

    async def copy_all(self, send: Send) -> None:
        """Hand on everything until the stream ends."""
        while data := await self.some():
            await send(data)

    async def copy_chunks(self, send: Send) -> None:
        """Hand on a chunked body (RFC 9112, 7.1) chunk by chunk, without extensions and without trailers.

        Raises:
            BadHead: The framing is malformed, or does not come whole.
        """
        while size := await self._chunk_size():
            await send(b"%x\r\n" % size)
            await self.copy(size, send)
            if await self._until(b"\r\n", 0):
                raise BadHead("a chunk of the body is longer than it says")
            await send(b"\r\n")
        for _ in range(_MAX_TRAILERS):
            if not await self._until(b"\r\n", _MAX_CHUNK_LINE):
                await send(b"0\r\n\r\n")
                return
        raise BadHead("the body has too many trailers")

    async def _chunk_size(self) -> int:
        found = _CHUNK.match(await self._until(b"\r\n", _MAX_CHUNK_LINE))
        if found is None:
            raise BadHead("a chunk of the body is malformed")
        return int(found[1], 16)

    async def _until(self, mark: bytes, limit: int) -> bytes:
        """Return what comes before the mark, and take the mark off."""
        data = b""
        while (at := data.find(mark)) < 0:
            if len(data) > limit + len(mark):
                raise BadHead("a line or head is too long")
            more = await self.some()
            if not more:
                raise BadHead("it ended in the middle")
            data += more
        if at > limit:
            raise BadHead("a line or head is too long")
        self._ahead = data[at + len(mark) :]
        return data[:at]
