"""Hands evidence over: writes it to a file, or to standard output, and says how it is checked."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import trio

from affidavit.tools._verify_report import plain
from affidavit.tools.atomic import write_file
from affidavit.tools.errors import UsageError, notice
from affidavit.tools.handover import verify_line
from affidavit.tools.output import Output
from affidavit.tools.place import Place

STANDARD_OUTPUT = "-"


async def hand_over(place: Place, target: str, content: bytes, what: str, kid: bytes, *, force: bool) -> None:
    """Write evidence.

    Args:
        place: The store that it is from.
        target: The file's path, or `-` for standard output; what there is to say then goes to standard error.
        content: The bytes.
        what: What they are, in words.
        kid: The id of the key that signed them.
        force: Whether a file that is there may be replaced.

    Raises:
        UsageError: A file is there already, or an option stands where its name should.
        OSError: It could not be written.
    """
    output = Output()
    if target == STANDARD_OUTPUT:
        await output.write_bytes(content)
        notice(f"wrote {what}")
        return
    if not target:
        raise UsageError("--out names no file")
    if target.startswith("-"):
        raise UsageError(
            f"--out names a file, and {target} looks like an option; write ./{target} if it is none"
        )
    await trio.to_thread.run_sync(partial(write_file, Path(target), content, force=force))
    await output.line(f"{plain(target)}: {what}, {len(content):,} bytes")
    await output.line(verify_line(place, target, kid))
