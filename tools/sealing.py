"""Seals a run that nobody drives: takes its ownership, closes what was left open, signs, and has the result checked."""

from __future__ import annotations

from affidavit.actors.events import Event
from affidavit.actors.host import open_host
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.tools.place import Place
from affidavit.tools.progress import open_bar
from affidavit.tools.signing import ask_for_key


async def seal_run(place: Place, run_id: str) -> Event:
    """Seal a run.

    Args:
        place: The store.
        run_id: The run's whole id.

    Returns:
        The record.sealed event that stands last.

    Raises:
        AffidavitError: Another process drives the run, the key cannot be had, or the record does not verify.
    """
    key = ask_for_key(place)
    signer = key.open()
    with open_bar("sealing"):
        async with open_sqlite_log(place.runs, create=False) as log, open_host(log, signer=signer) as host:
            return await host.seal(run_id)
