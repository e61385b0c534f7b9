"""`affidavit prove`: write the proof of one event, which can be handed over without the rest of the run."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from affidavit.actors.directory import find_run
from affidavit.actors.evidence import last_seal
from affidavit.actors.evidence import prove as make_proof
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.tools.artifact import handing_over, say_handed_over
from affidavit.tools.errors import CONVERGED
from affidavit.tools.handover import proof_name
from affidavit.tools.options import Force, Out, RunId, Store
from affidavit.tools.place import place_of
from affidavit.tools.store_progress import open_bar


async def prove(
    run_id: RunId,
    seq: Annotated[int, Parameter(name="SEQ", help="Which event, by its number.")],
    /,
    *,
    out: Out = None,
    force: Force = False,
    store: Store = None,
) -> int:
    """Write the proof of one single event, to hand over alone.

    It holds the event, the path from it to the signed root, and the signature; of
    the other events only hashes. By default the file is ID-SEQ.proof, in this
    folder.

    For example:

      affidavit prove @last 7
    """
    place = place_of(store)
    async with open_sqlite_reader(place.runs) as log:
        whole_id = await find_run(log, run_id)
        with open_bar("proving") as bar:
            proof = await make_proof(log, whole_id, seq, progress=bar)
        kid = (await last_seal(log, whole_id)).kid
    what = f"the proof of event {seq} of run {whole_id}"
    target = proof_name(whole_id, seq) if out is None else out
    async with handing_over(target, force=force) as file:
        file.write(proof)
    await say_handed_over(place, target, what, kid, len(proof))
    return CONVERGED
