"""Copies whole streams from one store into another, byte for byte, all of them or none.

What is copied was checked against its seals first, and is compared with its origin afterwards. The origin is only read. A run's
inbox goes with it, so that a request that was answered there is not answered again here.

Crash states. Before the one append: nothing of any stream is in the target. After it: all of every stream.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass

from affidavit.actors.errors import ActorError, RunOwned, WriterFenced
from affidavit.actors.fsck_stream import StreamCheck
from affidavit.actors.history import rows
from affidavit.actors.inbox import INBOX_SUFFIX
from affidavit.actors.logs.port import Entry, Log, LogReader, StreamInfo


class CopyRefused(ActorError):
    """The streams cannot be copied as asked; nothing was written."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied.

    Attributes:
        stream: The stream.
        events: How many events it has.
        sealed: How many of them its last seal covers.
    """

    stream: str
    events: int
    sealed: int


async def copy_streams(source: LogReader, target: Log, runs: tuple[str, ...]) -> tuple[Copied, ...]:
    """Copy runs, each with its inbox, in one append.

    Args:
        source: Where they are; nobody may be driving them.
        target: Where they go; it must hold none of them.
        runs: Their whole ids.

    Returns:
        What was copied, the runs' own streams alone.

    Raises:
        CopyRefused: A run is damaged, or the target has one of that id.
        LogError: A log could not be read or written. Nothing was copied.

    Cancellation: Cancelled means that nothing was copied.
    """
    entries = [entry for run in dict.fromkeys(runs) for entry in await _entries(source, run)]
    async with AsyncExitStack() as owned:
        for entry in entries:
            await _claim(owned, target, entry.stream)
        outcomes = await target.append(entries)
        for outcome in outcomes:
            if isinstance(outcome, WriterFenced):
                raise CopyRefused(f"another program wrote to the stream {outcome.stream} meanwhile")
        for entry in entries:
            if tuple(row.data for row in await rows(target, entry.stream)) != entry.rows:
                raise CopyRefused(
                    f"the copy of {entry.stream} is not what was written; check the target's disk"
                )
    return tuple(
        Copied(entry.stream, len(entry.rows), entry.sealed_size or 0)
        for entry in entries
        if not entry.stream.endswith(INBOX_SUFFIX)
    )


async def _entries(source: LogReader, run: str) -> list[Entry]:
    entries = []
    for stream in (run, run + INBOX_SUFFIX):
        info = await source.info(stream)
        if info is not None:
            entries.append(await _checked(source, info))
    return entries


async def _checked(source: LogReader, info: StreamInfo) -> Entry:
    stored = await rows(source, info.stream, upto=info.tip)
    check = StreamCheck(info.stream)
    for row in stored:
        check.add(row)
    check.finish(info, check.last, info)
    if check.findings:
        first = check.findings[0]
        raise CopyRefused(f"the stream {info.stream} is damaged, and is not copied: {first.detail}")
    return Entry(info.stream, 0, tuple(row.data for row in stored), info.terminal_seq, info.sealed_size)


async def _claim(owned: AsyncExitStack, target: Log, stream: str) -> None:
    # Owned, so that nobody begins a run of that id between the look and the append.
    try:
        await owned.enter_async_context(target.own(stream))
    except RunOwned:
        raise CopyRefused(f"the other store has a run {stream} going on") from None
    if await target.info(stream) is not None:
        raise CopyRefused(f"the other store has a run {stream} already, and a copy replaces nothing")
