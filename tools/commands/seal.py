"""`affidavit seal`: sign everything that a run which nobody drives has recorded so far."""

from __future__ import annotations

from affidavit.actors.directory import find_run
from affidavit.actors.history import history
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.projection import project
from affidavit.tools.errors import CONVERGED
from affidavit.tools.handover import handover_lines
from affidavit.tools.options import RunId, Store
from affidavit.tools.output import Output
from affidavit.tools.place import place_of
from affidavit.tools.sealing import seal_run
from affidavit.tools.status import status_lines


async def seal(run_id: RunId, /, *, store: Store = None) -> int:
    """Sign everything that a run has recorded so far, and have the record checked.

    A run that is going on in another process is refused: it seals itself when it
    ends or is parked. A run that stopped half-way is sealed as it is, and its
    record says that it is incomplete. Needs the passphrase of the signing key.

    For example:

      affidavit seal @last
    """
    place = place_of(store)
    async with open_sqlite_reader(place.runs) as log:
        whole_id = await find_run(log, run_id)
    await seal_run(place, whole_id)
    async with open_sqlite_reader(place.runs) as log:
        events = await history(log, whole_id)
    output = Output()
    await output.line(f"run {whole_id}")
    for line in (*status_lines(project(events)), *handover_lines(place, whole_id, events)):
        await output.line(line)
    return CONVERGED
