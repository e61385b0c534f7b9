"""`affidavit export`: write a run's sealed record to a file that can be handed over and checked anywhere."""

from __future__ import annotations

from affidavit.actors.directory import find_run
from affidavit.actors.evidence import export as write_record
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.tools.artifact import handing_over, say_handed_over
from affidavit.tools.errors import CONVERGED
from affidavit.tools.handover import record_name
from affidavit.tools.options import Force, Out, RunId, Store
from affidavit.tools.place import place_of
from affidavit.tools.progress import open_bar


async def export(run_id: RunId, /, *, out: Out = None, force: Force = False, store: Store = None) -> int:
    """Write a run's sealed record to a file, to hand over.

    It holds every event up to the last seal, and the signature. By default the
    file is ID.provetrail in this folder. To check it, one needs the signer's public
    key and nothing else.

    For example:

      affidavit export @last --out ledger.provetrail
    """
    place = place_of(store)
    async with open_sqlite_reader(place.runs) as log:
        whole_id = await find_run(log, run_id)
        target = record_name(whole_id) if out is None else out
        async with handing_over(target, force=force) as file:
            with open_bar("exporting") as bar:
                written = await write_record(log, whole_id, file, progress=bar)
            size = file.tell()
    what = f"events 1 to {written.size} of run {whole_id}"
    if not written.covers_all:
        what += " (what came later is not sealed)"
    await say_handed_over(place, target, what, written.kid, size)
    return CONVERGED
