"""`affidavit seal`: sign everything that a run has recorded so far, or have the process that drives it do so."""

from __future__ import annotations

from affidavit.actors.directory import find_run
from affidavit.actors.events import Kind
from affidavit.actors.history import history
from affidavit.actors.inbox import Outcome, request_event
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.projection import project
from affidavit.tools.asking import Principal, principal_of, take_or_ask
from affidavit.tools.errors import CONVERGED, UsageError
from affidavit.tools.handover import handover_lines
from affidavit.tools.options import RunId, Store
from affidavit.tools.output import Output
from affidavit.tools.place import place_of
from affidavit.tools.sealing import seal_run
from affidavit.tools.status import status_lines
from affidavit.tools.waits import Waits


async def seal(run_id: RunId, /, *, principal: Principal = None, store: Store = None) -> int:
    """Sign everything that a run has recorded so far, and have the record checked.

    A run that is going on in another process is sealed by that process, which is
    asked and answers. A run that stopped half-way is sealed as it is, and its
    record says that it is incomplete; that needs the signing key's passphrase.

    For example:

      affidavit seal @last
    """
    place = place_of(store)
    async with open_sqlite_reader(place.runs) as log:
        whole_id = await find_run(log, run_id)
    asked = request_event(Kind.REQUEST_SEAL, principal=principal_of(principal), reason="")
    answer = await take_or_ask(place, whole_id, asked, lambda: seal_run(place, whole_id), needs_signer=True)
    if answer.outcome != Outcome.DONE:
        raise UsageError(
            f"run {whole_id} was not sealed: {answer.reason or answer.code}; `affidavit replay` shows how it stands"
        )
    async with open_sqlite_reader(place.runs) as log:
        events = await history(log, whole_id)
    output = Output()
    await output.line(f"run {whole_id}")
    for line in (
        *status_lines(project(events), Waits(events).standing()),
        *handover_lines(place, whole_id, events),
    ):
        await output.line(line)
    return CONVERGED
