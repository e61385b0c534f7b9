"""Writes a file whole or not at all: into a temporary file beside it, then under its name in one step.

A crash leaves either the old state or the new one, and at most a temporary file whose name begins with a dot. What is no
regular file is never replaced.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from affidavit.tools.errors import UsageError


def check_target(path: Path, *, force: bool) -> None:
    """Pass if a file may be written at this path.

    Raises:
        UsageError: Something is there that may not be replaced.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a file")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a regular file; `--out -` writes to standard output")
    if os.path.lexists(path) and not force:
        raise UsageError(f"{path} is there already; --force replaces it")


def write_file(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file; blocking.

    Args:
        path: Where.
        content: What.
        force: Whether a file that is there may be replaced.

    Raises:
        UsageError: Something is there that may not be replaced.
        OSError: It could not be written; nothing has changed then.
    """
    check_target(path, force=force)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            # Looked at again, since writing takes time and another program may have made the file meanwhile.
            check_target(path, force=force)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        # The name that the person gave, and not that of the temporary file.
        raise OSError(error.errno, error.strerror, str(path)) from error
