"""`affidavit replay`: a run from its first recorded event to its last, and what they add up to."""

from __future__ import annotations

import sys

from affidavit.actors.directory import find_run
from affidavit.actors.history import history
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.projection import project
from affidavit.tools.errors import CONVERGED
from affidavit.tools.options import AsJson, RunId, Store
from affidavit.tools.output import Output
from affidavit.tools.place import place_of
from affidavit.tools.status import status_lines
from affidavit.tools.terminal import style_of
from affidavit.tools.transcript import Transcript
from affidavit.tools.waits import Waits


async def replay(run_id: RunId, /, *, as_json: AsJson = False, store: Store = None) -> int:
    """Show a run from its first recorded event to its last, and what they add up to.

    It reads and never writes; what is recorded after it began is not shown.

    For example:

      affidavit replay @last
    """
    async with open_sqlite_reader(place_of(store).runs) as log:
        whole_id = await find_run(log, run_id)
        events = await history(log, whole_id)
    output = Output()
    transcript = Transcript(style_of(sys.stdout), as_json=as_json)
    for event in events:
        await output.write(transcript.show(event))
    if not as_json:
        for line in (f"run {whole_id}", *status_lines(project(events), Waits(events).standing())):
            await output.line(line)
    return CONVERGED
