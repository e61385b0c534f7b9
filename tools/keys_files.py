"""Where a keyring lies, and how key files and keyrings are read and changed on disk.

A keyring is changed under a lock of its folder, and replaced in one step: a crash leaves the old one or the new
one. Only regular files are read, and no more of one than a key or a keyring can need.
"""

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from affidavit.crypto.failures import AffidavitError, ProducerError
from affidavit.crypto.key_forms import FORMS, read_public_key
from affidavit.crypto.keyring import KeyEntry
from affidavit.crypto.keyring_file import encode_keyring, parse_own_keyring
from affidavit.crypto.keys import DID_KEY_PREFIX, VerifyingKey
from affidavit.tools.atomic import write_file
from affidavit.tools.errors import UsageError

# The same variable that `verify` reads; a keyring has no default place, so that nothing is trusted unasked.
KEYRING_VARIABLE: Final = "AFFIDAVIT_KEYRING"
_MAX_BYTES: Final = 1 << 20
_HEX_DIGITS: Final = 64


def keyring_path(named: Path | None) -> Path:
    """Return the keyring that is meant: the one named, else the one that AFFIDAVIT_KEYRING names.

    Raises:
        UsageError: Neither names one.
    """
    name = named or os.environ.get(KEYRING_VARIABLE)
    if not name:
        raise UsageError(f"say which keyring: --keyring FILE, or set {KEYRING_VARIABLE}")
    return Path(name)


def read_keyring(path: Path) -> tuple[KeyEntry, ...]:
    """Return the entries of a keyring.

    Raises:
        UsageError: There is none, or it is not usable; it is named.
    """
    content = _read(path)
    if content is None:
        raise UsageError(f"there is no keyring {path}; `affidavit keys trust` makes one")
    return _entries(path, content)


def change_keyring(path: Path, edit: Callable[[tuple[KeyEntry, ...]], list[KeyEntry]]) -> None:
    """Replace a keyring by what `edit` makes of its entries; one that is absent has none.

    Raises:
        UsageError: It is not usable, or another command is changing a keyring in the same folder.
        OSError: It could not be written; nothing has changed then.
    """
    # Through a link, so that the link stays one.
    real = Path(os.path.realpath(path))
    with _locked(real.parent):
        content = _read(real)
        entries = edit(() if content is None else _entries(path, content))
        try:
            data = encode_keyring(entries)
        except AffidavitError as error:
            raise UsageError(_say(error)) from error
        write_file(real, data, force=True)
        _sync(real.parent)


def read_key(argument: str) -> tuple[VerifyingKey, bytes | None]:
    """Return the key that an argument spells out or names a file of, and the key id that its form states.

    Raises:
        UsageError: It is no public key, and no file of one.
    """
    spelt = argument.startswith((DID_KEY_PREFIX, "ssh-ed25519 ")) or (
        len(argument) == _HEX_DIGITS and all(letter in "0123456789abcdefABCDEF" for letter in argument)
    )
    content = argument.encode(errors="replace") if spelt else _read(Path(argument))
    if content is None:
        raise UsageError(f"{argument!r} is no public key, and there is no such file: a key is {FORMS}")
    try:
        return read_public_key(content)
    except ProducerError as error:
        raise UsageError(f"{argument}: {error.detail}") from error


def _entries(path: Path, content: bytes) -> tuple[KeyEntry, ...]:
    try:
        return parse_own_keyring(content).entries
    except AffidavitError as error:
        raise UsageError(f"the keyring {path}: {_say(error)}") from error


def _read(path: Path) -> bytes | None:
    try:
        # Without O_NONBLOCK, opening a FIFO that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise UsageError(f"{str(path)!r} cannot be the name of a file") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageError(f"{path} is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise UsageError(f"{path} is too large to be a key or a keyring")
    return content


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(f"there is no folder {folder} to keep a keyring in") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"another command is changing a keyring in {folder}; try again") from error
        yield
    finally:
        os.close(descriptor)


def _sync(folder: Path) -> None:
    # A revocation that was acknowledged must survive a power cut, and with it the name of the new file.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _say(error: AffidavitError) -> str:
    return error.detail if isinstance(error, ProducerError) else str(error)
