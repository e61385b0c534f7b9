"""Hands evidence over: writes it to a file, or to standard output, and says how it is checked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

import trio

from affidavit.tools._verify_report import plain
from affidavit.tools.atomic import open_draft
from affidavit.tools.errors import UsageError, notice
from affidavit.tools.handover import verify_line
from affidavit.tools.output import Output
from affidavit.tools.place import Place

STANDARD_OUTPUT = "-"
_BLOCK: Final = 1 << 18


@asynccontextmanager
async def handing_over(target: str, *, force: bool) -> AsyncIterator[BinaryIO]:
    """Give a file to write evidence into; at the end of the block it is handed over whole, after an error not at all.

    Args:
        target: The file's path, or `-` for standard output.
        force: Whether a file that is there may be replaced.

    Raises:
        UsageError: A file is there already, or an option stands where its name should.
        OSError: It could not be written.

    Cancellation: nothing is handed over, unless all of it was written and only its safe place on the disk is awaited.
    """
    if target == STANDARD_OUTPUT:
        # Set down first: whoever reads the output must never be given the beginning of what turns out to be no evidence.
        with TemporaryFile() as file:
            yield file
            file.seek(0)
            output = Output()
            while block := file.read(_BLOCK):
                await output.write_bytes(block)
        return
    if not target:
        raise UsageError("--out names no file")
    if target.startswith("-"):
        raise UsageError(
            f"--out names a file, and {target} looks like an option; write ./{target} if it is none"
        )
    with open_draft(Path(target), force=force) as draft:
        yield draft.file
        await trio.to_thread.run_sync(draft.publish)


async def say_handed_over(place: Place, target: str, what: str, kid: bytes, size: int) -> None:
    """Say what was handed over; on standard error where standard output took it.

    Args:
        place: The store that it is from.
        target: As for `handing_over`.
        what: What it is, in words.
        kid: The id of the key that signed it.
        size: How many bytes it has.
    """
    if target == STANDARD_OUTPUT:
        notice(f"wrote {what}")
        return
    output = Output()
    await output.line(f"{plain(target)}: {what}, {size:,} bytes")
    await output.line(verify_line(place, target, kid))
