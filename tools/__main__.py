"""The command `affidavit`: hands each call over to the part that answers it, and imports nothing else.

`verify` and `keys` have parsers of their own. The auditor's verifier must start fast and load crypto alone, so the other
commands' libraries are imported only when one of them was asked for. This module has no rules of its own.
"""

from __future__ import annotations

import os
import sys

_MISUSE = 2
_INTERRUPTED = 130
_SLOW = frozenset({"run", "resume", "watch"})
_HELP = frozenset({"-h", "--help"})


def main() -> int:
    """Run the command that the process was started with.

    Returns:
        The exit code.
    """
    try:
        _occupy_standard_streams()
        code = _dispatch(sys.argv[1:])
        sys.stdout.flush()
    except OSError as error:
        # A command answers for its own files; what arrives here is that its words could not be written.
        return _unwritable(error)
    except KeyboardInterrupt:
        # Only while the libraries are being imported; each command has an answer of its own.
        return _INTERRUPTED
    _let_go_of_words()
    return code


def _let_go_of_words() -> None:
    """Forget what standard error does not take, such as on a terminal that was closed: the exit code must not be lost for it."""
    try:
        sys.stderr.flush()
    except OSError:
        # What is still in Python's buffer is written once more when it ends; there it must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _unwritable(error: OSError) -> int:
    # What is still in Python's buffer is written once more when it ends; there it must not fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if not isinstance(error, BrokenPipeError):
        print(f"affidavit: standard output cannot be written: {error.strerror or error}", file=sys.stderr)
    return _MISUSE


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
    _say_that_it_begins(command, arguments)
    from affidavit.tools import app

    return app.main(arguments)


def _say_that_it_begins(command: str, arguments: list[str]) -> None:
    """Give a person a sign at once where importing what a command needs takes longer than they should look at nothing."""
    if command in _SLOW and sys.stdout.isatty() and sys.stderr.isatty() and not _HELP.intersection(arguments):
        print(f"affidavit {command}: starting", file=sys.stderr, flush=True)


def _occupy_standard_streams() -> None:
    """Open what was closed as /dev/null, so that no store or record gets a number that somebody prints to."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is given out, and all below this one are taken.
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


if __name__ == "__main__":
    sys.exit(main())
