"""`affidavit prove`: write the proof of one event, or that a seal extends an earlier one, to hand over without the run."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from affidavit.actors.directory import find_run
from affidavit.actors.evidence import last_seal, prove_extension
from affidavit.actors.evidence import prove as prove_event
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.tools.artifact import handing_over, say_handed_over
from affidavit.tools.errors import CONVERGED, UsageError
from affidavit.tools.handover import extension_name, proof_name
from affidavit.tools.options import Force, Out, RunId, Store
from affidavit.tools.place import place_of
from affidavit.tools.progress import open_bar


async def prove(
    run_id: RunId,
    seq: Annotated[int | None, Parameter(name="SEQ", help="Which event, by its number.")] = None,
    /,
    *,
    extends: Annotated[
        int | None,
        Parameter(name="--extends", help="Prove that the last seal extends the one over so many events."),
    ] = None,
    out: Out = None,
    force: Force = False,
    store: Store = None,
) -> int:
    """Write the proof of one single event, to hand over alone.

    It holds the event, the path from it to the signed root, and the signature; of
    the other events only hashes. By default the file is ID-SEQ.proof, in this
    folder.

    With --extends N in the place of SEQ it is the proof that the last seal extends
    the earlier one over N events: nothing that was sealed then was changed since.

    For example:

      affidavit prove @last 7
      affidavit prove @last --extends 120
    """
    if (seq is None) is (extends is None):
        raise UsageError("name one event by SEQ, or an earlier seal by --extends N")
    place = place_of(store)
    async with open_sqlite_reader(place.runs) as log:
        whole_id = await find_run(log, run_id)
        with open_bar("proving") as bar:
            if seq is not None:
                proof = await prove_event(log, whole_id, seq, progress=bar)
                what = f"the proof of event {seq} of run {whole_id}"
            else:
                proof = await prove_extension(log, whole_id, extends or 0, progress=bar)
                what = f"the proof that the last seal of run {whole_id} extends that of {extends} events"
        kid = (await last_seal(log, whole_id)).kid
    target = _name(whole_id, seq, extends or 0) if out is None else out
    async with handing_over(target, force=force) as file:
        file.write(proof)
    await say_handed_over(place, target, what, kid, len(proof))
    return CONVERGED


def _name(run_id: str, seq: int | None, size: int) -> str:
    return extension_name(run_id, size) if seq is None else proof_name(run_id, seq)
