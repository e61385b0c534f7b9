"""Checks a whole store from its bytes alone: every row, every tree and seal, every line of the index.

Nothing that was derived is believed: the trees and the index are built again from the rows and compared. It reads, and never
repairs: a store that is damaged is evidence too. Rows that no seal covers are checked for their form only, since nothing signed
says what they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from affidavit.actors.errors import LogError
from affidavit.actors.fsck_stream import Finding, StreamCheck
from affidavit.actors.logs.port import StreamInfo
from affidavit.actors.logs.sqlite_inspect import Inspector

_MOST: Final = 100  # findings that are kept of one stream

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Report:
    """What a check found.

    Attributes:
        streams: How many streams were checked.
        events: How many rows were.
        unsealed: How many of them no seal covers.
        seals: How many record.sealed events were compared with the rows they cover.
        signatures: How many of those had a signature that could be checked, because its key id names its key.
        findings: What is wrong; empty for a sound store.
        notes: What is worth knowing, and not wrong.
    """

    streams: int = 0
    events: int = 0
    unsealed: int = 0
    seals: int = 0
    signatures: int = 0
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


async def check_store(store: Inspector, progress: Progress | None = None) -> Report:
    """Check a store, which others may go on writing.

    Args:
        store: The store.
        progress: Called now and then with how many rows were checked, and how many there are.

    Raises:
        LogError: The store was closed, or is locked for too long.

    Cancellation: a checkpoint every 64 rows.
    """
    report = Report()
    await _check_files(store, report)
    index = await _index(store, report)
    total = sum(info.tip for info in index.values())
    for stream in sorted({*index, *await _streams(store, report)}):
        try:
            await _check_stream(store, stream, report, lambda: progress and progress(report.events, total))
        except LogError as error:
            report.findings.append(Finding(stream, 0, "unreadable", str(error)))
        report.streams += 1
    return report


async def _check_files(store: Inspector, report: Report) -> None:
    wal = await store.wal()
    if wal.lost:
        report.findings.append(
            Finding(
                "",
                0,
                "wal",
                f"the write-ahead log is damaged behind frame {wal.frames}: at least {wal.lost} committed"
                " transactions lie beyond and cannot be read (or it was written with synchronous=NORMAL and lost power)",
            )
        )
    elif wal.torn:
        report.notes.append(
            "the write-ahead log ends within a transaction, as a crash leaves it, or a cut: nobody was told of that one"
        )
    report.findings += [Finding("", 0, "database", text) for text in await store.database_faults()]


async def _index(store: Inspector, report: Report) -> dict[str, StreamInfo]:
    try:
        return {info.stream: info for info in await store.index()}
    except LogError as error:
        report.findings.append(Finding("", 0, "unreadable", f"the index: {error}"))
        return {}


async def _streams(store: Inspector, report: Report) -> tuple[str, ...]:
    try:
        return await store.streams_with_rows()
    except LogError as error:
        report.findings.append(Finding("", 0, "unreadable", f"the rows: {error}"))
        return ()


async def _check_stream(
    store: Inspector, stream: str, report: Report, progress: Callable[[], object]
) -> None:
    # First the index as it is, then the rows up to where it points: whatever is appended meanwhile lies beyond.
    info = await store.info(stream)
    check = StreamCheck(stream)
    end = info.tip if info is not None else await store.last_seq(stream)
    while check.last < end and (batch := await store.rows(stream, check.last)):
        before = check.rows
        for row in batch:
            if row.seq <= end:
                check.add(row)
        report.events += check.rows - before
        progress()
    last = await store.last_seq(stream)
    check.finish(info, last, await store.info(stream))
    report.seals += check.seals
    report.signatures += check.signatures
    report.unsealed += check.rows - min(check.sealed, check.rows)
    report.findings += check.findings[:_MOST]
    if len(check.findings) > _MOST:
        more = len(check.findings) - _MOST
        report.findings.append(
            Finding(stream, 0, "more", f"{more} more findings of this stream are not shown")
        )
