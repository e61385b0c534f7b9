"""`affidavit demo`: explain the whole by doing it, offline, with a throw-away key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

DEFAULT_FOLDER = Path("affidavit-demo")


async def demo(
    *,
    folder: Annotated[
        Path, Parameter(name="--dir", help="Where its files go; the folder is made if need be.")
    ] = DEFAULT_FOLDER,
) -> int:
    """Tell the whole story in 15 seconds: offline, with a throw-away key.

    Each line is printed after it was done. It leaves the record, a proof and some
    tampered copies to look at.

    For example:

      affidavit demo --dir ./affidavit-demo
    """
    from affidavit.tools.demo import run_demo

    return await run_demo(folder)
