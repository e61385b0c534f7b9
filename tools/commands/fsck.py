"""`affidavit fsck`: check a whole store against itself, from its bytes alone, without changing any."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

from affidavit.actors.fsck import Report, check_store
from affidavit.actors.fsck_stream import Finding
from affidavit.actors.logs.sqlite_inspect import open_inspector
from affidavit.tools._verify_report import plain
from affidavit.tools.errors import CONVERGED, STALLED
from affidavit.tools.options import AsJson, Store
from affidavit.tools.output import Output
from affidavit.tools.place import place_of
from affidavit.tools.progress import open_bar

DAMAGED: Final = STALLED


async def fsck(*, as_json: AsJson = False, store: Store = None) -> int:
    """Check a store: rebuild every tree and the index from the stored bytes.

    They are compared with every seal that the runs hold, and with the signatures
    whose key is named by its id. Nothing is changed, and a run that is going on is
    not disturbed. The exit code is 0 for a sound store, 1 for a damaged one, and 2
    for one that cannot be read.

    For example:

      affidavit fsck
    """
    path = place_of(store).runs
    async with open_inspector(path) as inspector:
        with open_bar("checking") as bar:
            report = await check_store(inspector, bar)
    output = Output()
    if as_json:
        await output.line(json.dumps(_as_json(path, report)))
    else:
        for line in _as_text(path, report):
            await output.line(line)
    return DAMAGED if report.findings else CONVERGED


def _as_json(path: Path, report: Report) -> dict[str, object]:
    return {
        "store": str(path),
        "verdict": "damaged" if report.findings else "sound",
        "streams": report.streams,
        "events": report.events,
        "unsealed": report.unsealed,
        "seals": report.seals,
        "signatures": report.signatures,
        "findings": [asdict(finding) for finding in report.findings],
        "notes": report.notes,
    }


def _as_text(path: Path, report: Report) -> Iterator[str]:
    verdict = f"DAMAGED, {_count(len(report.findings), 'finding')}" if report.findings else "sound"
    yield f"{plain(str(path))}: {verdict}"
    if report.findings:
        yield from _table(report.findings)
    yield f"checked      {_count(report.streams, 'stream')}, {_count(report.events, 'event')}"
    yield f"seals        {report.seals} rebuilt from the rows, {report.signatures} of their signatures checked"
    yield f"not checked  what stands in {_count(report.unsealed, 'event')} that no seal covers: only their form"
    for note in report.notes:
        yield f"note         {note}"


def _table(findings: list[Finding]) -> Iterator[str]:
    rows = [("STREAM", "SEQ", "KIND", "WHAT")]
    rows += [
        (plain(found.stream) or "-", str(found.seq or "-"), found.kind, plain(found.detail))
        for found in findings
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join(["", *cells, row[-1]])


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
