"""`affidavit inspect`: one event with its bytes and its path to the signed root, or what a whole record is made of."""

from __future__ import annotations

import json
import sys
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from affidavit.actors.directory import find_run
from affidavit.actors.evidence import event_path
from affidavit.actors.history import envelope_of
from affidavit.actors.logs.port import LogReader
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.record_overview import Signature, overview, seals_over, signature_of
from affidavit.tools.errors import CONVERGED, STALLED, UsageError
from affidavit.tools.inspecting import Inspected, event_json, event_lines, overview_json, overview_text
from affidavit.tools.options import AsJson, RunId, Store
from affidavit.tools.output import Output
from affidavit.tools.place import Place, place_of
from affidavit.tools.progress import Tell, open_bar
from affidavit.tools.terminal import style_of


async def inspect(
    run_id: RunId,
    seq: Annotated[
        int | None,
        Parameter(
            name="SEQ",
            validator=Number(gte=1),
            help="Which event, by its number; without it, the whole record.",
        ),
    ] = None,
    /,
    *,
    full: Annotated[bool, Parameter(name="--full", help="Shorten nothing, however long it is.")] = False,
    as_json: AsJson = False,
    store: Store = None,
) -> int:
    """Show one event: its fields, its bytes, and its path to the signed root.

    Without SEQ, what the whole record is made of: its kinds of events, their sizes,
    and its seals, each root built again from the stored events. It reads and never
    writes.

    Exit codes: 0 all of it holds, 1 a seal does not, 2 misuse or environment.

    For example:

      affidavit inspect @last
      affidavit inspect @last 7
    """
    place = place_of(store)
    async with open_sqlite_reader(place.runs) as log:
        whole_id = await find_run(log, run_id)
        if seq is None:
            return await _whole(log, place, whole_id, as_json=as_json)
        return await _one(log, place, whole_id, seq, full=full, as_json=as_json)


async def _whole(log: LogReader, place: Place, run_id: str, *, as_json: bool) -> int:
    with open_bar("reading") as bar:
        found = await overview(log, run_id, bar)
    output = Output()
    if as_json:
        await output.line(json.dumps(overview_json(run_id, found)))
    else:
        await output.write(overview_text(run_id, found, style_of(sys.stdout), place.line("seal", run_id)))
    return CONVERGED if all(seal.holds for seal in found.seals) else STALLED


async def _one(log: LogReader, place: Place, run_id: str, seq: int, *, full: bool, as_json: bool) -> int:
    with open_bar("reading") as bar:
        found = await _inspected(log, run_id, seq, bar)
    output = Output()
    if as_json:
        await output.line(json.dumps(event_json(found)))
    else:
        for line in event_lines(found, style_of(sys.stdout), place.line("seal", run_id), full=full):
            await output.line(line)
    return STALLED if found.signature is Signature.BROKEN else CONVERGED


async def _inspected(log: LogReader, run_id: str, seq: int, tell: Tell | None) -> Inspected:
    seals = await seals_over(log, run_id, seq)
    found = await log.read(run_id, seq - 1, 1)
    if not found:
        info = await log.info(run_id)
        tip = info.tip if info is not None else 0
        raise UsageError(f"run {run_id} has {tip} events: name one from 1 to {tip}")
    under = await event_path(log, run_id, seq, progress=tell) if seals else None
    return Inspected(
        run_id,
        envelope_of(found[0], run_id),
        found[0].data,
        under,
        signature_of(seals[-1], run_id) if seals else None,
        tuple(seal.seq for seal in seals),
    )
