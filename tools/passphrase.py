"""Where a passphrase comes from: the environment, a file that the environment names, or a prompt.

The passphrase is returned and never stored, printed or logged.
"""

import getpass
import os
import sys
from pathlib import Path
from typing import Final

from affidavit.crypto.failures import AffidavitError

VARIABLE: Final = "AFFIDAVIT_PASSPHRASE"
FILE_VARIABLE: Final = "AFFIDAVIT_PASSPHRASE_FILE"
_MAX_BYTES: Final = 4096


class PassphraseError(AffidavitError):
    """No passphrase can be had, or it is not usable."""


def read_passphrase(*, prompt: bool, confirm: bool = False) -> bytes:
    """Return the passphrase of the signing key.

    Args:
        prompt: Ask on the terminal where neither variable is set; without a terminal there is no asking.
        confirm: When asking, ask twice, as for a new key.

    Raises:
        PassphraseError: Where there is none, it is empty, its file cannot be read, or the two differ.
    """
    text = os.environ.get(VARIABLE)
    if text is not None:
        return _usable(os.fsencode(text), VARIABLE)
    name = os.environ.get(FILE_VARIABLE)
    if name is not None:
        if not name:
            raise PassphraseError(f"{FILE_VARIABLE} is set and names no file; set it to one")
        return _from_file(Path(name))
    if not prompt or not sys.stdin.isatty():
        raise PassphraseError(
            f"the signing key needs a passphrase: set {VARIABLE} or {FILE_VARIABLE}, or use a terminal"
        )
    return _ask(confirm=confirm)


def _from_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise PassphraseError(
            f"cannot read {FILE_VARIABLE} {path}: {error.strerror}; name a file that you may read"
        ) from error
    # Editors and `echo` end the file with one line break, which nobody means as part of the passphrase.
    return _usable(content.removesuffix(b"\n").removesuffix(b"\r"), str(path))


def _ask(*, confirm: bool) -> bytes:
    try:
        text = getpass.getpass("Passphrase of the signing key: ")
        if confirm and getpass.getpass("The same again: ") != text:
            raise PassphraseError("the two passphrases differ; try again")
    except EOFError as error:
        raise PassphraseError("no passphrase was given; try again") from error
    return _usable(text.encode(), "the passphrase")


def _usable(passphrase: bytes, source: str) -> bytes:
    if not passphrase.strip():
        raise PassphraseError(f"{source} is empty; give the signing key a passphrase")
    if len(passphrase) > _MAX_BYTES:
        raise PassphraseError(f"{source} is longer than {_MAX_BYTES} bytes; choose another")
    return passphrase
