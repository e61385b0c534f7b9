"""`affidavit store`: keep a store safe (`backup`), and carry runs from one store to another (`copy`)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from affidavit.actors.directory import find_run
from affidavit.actors.errors import RunOwned
from affidavit.actors.fsck import check_store
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_backup import open_backup
from affidavit.actors.logs.sqlite_inspect import open_inspector
from affidavit.actors.logs.sqlite_locks import is_owned
from affidavit.actors.logs.sqlite_place import resolve
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.store_copy import copy_streams
from affidavit.tools.errors import CONVERGED, UsageError
from affidavit.tools.options import Store
from affidavit.tools.output import Output
from affidavit.tools.place import place_of
from affidavit.tools.progress import open_bar

store = App(
    name="store",
    help="""Back a store up, or copy runs from it into another one.

    For example:

      affidavit store backup /media/usb/runs-monday.sqlite
      affidavit store copy @last --to ./audit
    """,
)

Target = Annotated[
    Path, Parameter(name="FILE", help="The file to make; one that is there is never replaced.")
]
Ids = Annotated[
    str,
    Parameter(name="ID", help="A run's id, the unique beginning of one, or @last; several may be given."),
]
To = Annotated[Path, Parameter(name="--to", help="The folder of the other store, made if it is not there.")]


@store.command
async def backup(file: Target, /, *, store: Store = None) -> int:
    """Copy all runs of a store into one file, as they are at this moment.

    Runs may go on meanwhile. The copy is checked as `affidavit fsck` does before it
    gets its name. The signing key is not in it. To use it, name it runs.sqlite, put
    it into a folder of its own, and give that folder as --store.

    For example:

      affidavit store backup /media/usb/runs-monday.sqlite
    """
    source = place_of(store).runs
    with open_bar("copying, then checking") as bar:
        async with open_backup(source, file, bar) as copy, open_inspector(copy) as inspector:
            report = await check_store(inspector, bar)
            if report.findings:
                raise UsageError(
                    f"the store {source} is damaged, so no backup was made of it; `affidavit fsck` tells what is wrong"
                )
    size = file.stat().st_size
    await Output().line(
        f"{file}: {report.streams} streams, {report.events:,} events, {size:,} bytes; checked"
    )
    return CONVERGED


@store.command
async def copy(*ids: Ids, to: To, store: Store = None) -> int:
    """Copy whole runs into another store, byte for byte, all of them or none.

    Each is checked against its seals before, and read back afterwards. A run that
    is going on is not copied, and one that the other store has is never replaced.

    For example:

      affidavit store copy @last --to ./audit
    """
    if not ids:
        raise UsageError("name at least one run to copy; `affidavit sessions` lists them")
    source, target = place_of(store).runs, place_of(to).runs
    if resolve(source) == resolve(target):
        raise UsageError(f"{to} is the store that the runs are in; --to names another one")
    async with open_sqlite_reader(source) as reader:
        runs = tuple([await find_run(reader, text) for text in ids])
        for run in runs:
            if is_owned(resolve(source), run):
                raise RunOwned(run)
        with open_bar("copying"):
            async with open_sqlite_log(target) as log:
                copied = await copy_streams(reader, log, runs)
    output = Output()
    for each in copied:
        await output.line(f"{each.stream}: {each.events:,} events, {each.sealed:,} of them sealed")
    await output.line(f"copied into {to}")
    return CONVERGED
