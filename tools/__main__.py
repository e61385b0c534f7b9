"""The command `affidavit`: hands each call over to the part that answers it, and imports nothing else.

`verify` and `keys` have parsers of their own. The auditor's verifier must start fast and load crypto alone, so the other
commands' libraries are imported only when one of them was asked for. This module has no rules of its own.
"""

from __future__ import annotations

import os
import sys

_INTERRUPTED = 130


def main() -> int:
    """Run the command that the process was started with.

    Returns:
        The exit code.
    """
    try:
        _occupy_standard_streams()
        return _dispatch(sys.argv[1:])
    except KeyboardInterrupt:
        # Only while the libraries are being imported; each command has an answer of its own.
        return _INTERRUPTED


def _dispatch(arguments: list[str]) -> int:
    command = arguments[0] if arguments else ""
    if command == "verify":
        from affidavit.tools import verify

        return verify.main(arguments[1:])
    if command == "keys":
        from affidavit.tools import keys

        return keys.main(arguments[1:])
    if command in {"", "-h", "--help", "help"}:
        from affidavit.tools import overview

        return overview.show()
    from affidavit.tools import app

    return app.main(arguments)


def _occupy_standard_streams() -> None:
    """Open what was closed as /dev/null, so that no store or record gets a number that somebody prints to."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is given out, and all below this one are taken.
            os.open(os.devnull, os.O_RDWR)


if __name__ == "__main__":
    sys.exit(main())
