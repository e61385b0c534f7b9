"""Reads one small file that the operator named, or says in one sentence why it cannot.

It never waits on a pipe, never opens a device, and never reads more than its bound.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from affidavit.actors.errors import ConfigurationError


def read_operator_file(path: str | Path, what: str, limit: int) -> bytes:
    """Return the content of a regular file.

    Args:
        path: The file.
        what: What the operator meant it to be, for the sentence, such as `script`.
        limit: The most bytes it may hold.

    Raises:
        ConfigurationError: It is absent, no regular file, unreadable or too large.
    """
    try:
        # Non-blocking, so that a pipe with no writer is refused below and not waited for.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the {what} {path} cannot be read: {_why(error)}") from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ConfigurationError(f"the {what} {path} is not a file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise ConfigurationError(f"the {what} {path} cannot be read: {_why(error)}") from error
    finally:
        os.close(handle)
    if len(data) > limit:
        raise ConfigurationError(f"the {what} {path} is larger than {limit} bytes")
    return data


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
