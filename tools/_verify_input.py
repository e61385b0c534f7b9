"""What `verify` reads: artifact files, keyrings and key arguments, each refused in one sentence.

Regular files are read, and no more of one than an artifact of its kind can need; of pipes only standard input, and only where
it is named, so that nothing waits for a writer by mistake. Nothing is written.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final

from affidavit.crypto import cbor_heads as heads
from affidavit.crypto.byte_source import Read
from affidavit.crypto.event_form import MAX_EVENT_BYTES
from affidavit.crypto.failures import AffidavitError, ProducerError, VerificationError
from affidavit.crypto.key_forms import read_public_key
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.keyring_file import parse_keyring
from affidavit.crypto.keys import DID_KEY_PREFIX, VerifyingKey, parse_did_key
from affidavit.tools._verify_worker import reader_at

KEYRING_VARIABLE: Final = "AFFIDAVIT_KEYRING"
STANDARD_INPUT: Final = "-"
_PEEK_BYTES: Final = 1 << 16
# An event, two checkpoints at most, and the nodes of a path.
_MAX_PROOF_BYTES: Final = MAX_EVENT_BYTES + (1 << 18)
_MAX_KEY_FILE_BYTES: Final = 1 << 20
_MAX_DEPTH: Final = 64
# What a record of unknown length is taken to have: its end is where the input ends.
_ENDLESS: Final = 1 << 62


class InputError(AffidavitError):
    """Something that was named cannot be read, or an argument does not make sense."""


class Kind(StrEnum):
    """What a file is."""

    EVENTS = "events"
    RUN = "run"
    CHECKPOINT = "checkpoint"
    EVENT_PROOF = "event-proof"
    CONSISTENCY = "consistency"


# A field that only one kind has. The first one found decides, whatever else is wrong with the file.
_TELLING: Final = {
    b"events": Kind.RUN,
    b"canonical": Kind.EVENT_PROOF,
    b"inclusion": Kind.EVENT_PROOF,
    b"index": Kind.EVENT_PROOF,
    b"before": Kind.CONSISTENCY,
    b"after": Kind.CONSISTENCY,
    b"seq": Kind.EVENTS,
    b"stream": Kind.EVENTS,
    b"schema_version": Kind.EVENTS,
}


@dataclass(frozen=True, slots=True)
class Artifact:
    """An open file, and what it is.

    Attributes:
        name: As it was given.
        kind: What it is.
        data: All of it that an artifact of its kind can need; empty for a run, which is read as it is checked.
        read: Reads it once, from its first byte on.
        size: How many bytes it had when it was opened; None where that is not known before its end.
        descriptor: The open file, where others can read it too; None for a pipe.
    """

    name: str
    kind: Kind
    data: bytes
    read: Read
    size: int | None
    descriptor: int | None

    @property
    def bound(self) -> int:
        """How many bytes it has at most."""
        return _ENDLESS if self.size is None else self.size


@contextmanager
def open_artifact(name: str, kind: Kind | None) -> Iterator[Artifact]:
    """Open a file, or standard input by the name `-`, and tell what it is where the caller did not say it.

    A file that cannot be an artifact is not read whole: a first part is enough to refuse it.

    Raises:
        InputError: Where it is absent, neither a regular file nor `-`, or cannot be read.
    """
    descriptor = _standard_input() if name == STANDARD_INPUT else _open_regular(name)
    try:
        found = os.fstat(descriptor)
        is_file = stat.S_ISREG(found.st_mode)
        read = reader_at(descriptor, 0) if is_file else partial(os.read, descriptor)
        first = _read_up_to(read, _PEEK_BYTES)
        kind = kind or tell_kind(first)
        read = _continued(first, read)
        data = b"" if kind is Kind.RUN else _read_up_to(read, _limit(kind, first))
        yield Artifact(
            name, kind, data, read, found.st_size if is_file else None, descriptor if is_file else None
        )
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _read_up_to(read: Read, limit: int) -> bytes:
    blocks, total = list[bytes](), 0
    while total < limit and (block := read(min(limit - total, 1 << 20))):
        blocks.append(block)
        total += len(block)
    return b"".join(blocks)


def _continued(first: bytes, read: Read) -> Read:
    """Return a reader that gives what was read already once more, and goes on from there."""
    left = first

    def read_on(count: int) -> bytes:
        nonlocal left
        if not left:
            return read(count)
        block, left = left[:count], left[count:]
        return block

    return read_on


def _limit(kind: Kind, first: bytes) -> int:
    if not first or first[0] >> 5 not in (heads.MAP, heads.TAG):
        return len(first)
    return MAX_EVENT_BYTES + 1 if kind is Kind.EVENTS else _MAX_PROOF_BYTES + 1


def tell_kind(data: bytes) -> Kind:
    """Return what the first bytes of a file look like; a run where nothing tells."""
    try:
        head = heads.read_head(data, 0)
        pos, entries = head.end, head.arg
    except VerificationError:
        # An indefinite map is refused by every kind, and each names it in its own way.
        head, pos, entries = None, 1, 1
    if head is not None and head.major == heads.TAG:
        return Kind.CHECKPOINT
    try:
        for _ in range(entries):
            key = heads.read_head(data, pos)
            name = heads.take(data, key)
            if name in _TELLING:
                return _TELLING[name]
            pos = heads.skip_item(data, key.end + key.arg, _MAX_DEPTH)
    except VerificationError:
        return Kind.RUN
    return Kind.RUN


def load_keyring(keys: Sequence[str], keyring_file: str | None, *, any_kid: bool) -> Keyring:
    """Return the keys that the command line and the environment give.

    Args:
        keys: `KID=KEY` arguments, or with `any_kid` a KEY alone, where KEY is 64 hexadecimal digits or a
            file with a PEM or an OpenSSH public key. A did:key alone is bound to itself.
        keyring_file: A keyring file; AFFIDAVIT_KEYRING names one where this is None.
        any_kid: Take a KEY that stands alone for every key id.

    Raises:
        InputError: Where an argument or a file is not usable.
    """
    name = keyring_file or os.environ.get(KEYRING_VARIABLE)
    try:
        keyring = parse_keyring(_read_small(name)) if name else Keyring()
    except AffidavitError as error:
        raise InputError(f"the keyring {name}: {_say(error)}") from error
    for argument in keys:
        _add_key(keyring, argument, any_kid=any_kid)
    return keyring


def _add_key(keyring: Keyring, argument: str, *, any_kid: bool) -> None:
    kid, _, value = argument.rpartition("=")
    try:
        if kid:
            keyring.add(kid, _read_key(value))
        elif argument.startswith(DID_KEY_PREFIX):
            keyring.add(argument, parse_did_key(argument))
        elif any_kid:
            keyring.add_any_kid(_read_key(argument))
        else:
            raise InputError("a key alone is trusted for no key id: write --key KID=KEY, or add --any-kid")
    except ProducerError as error:
        raise InputError(f"--key {argument}: {error.detail}") from error


def _read_key(value: str) -> VerifyingKey:
    if len(value) == 64 and all(letter in "0123456789abcdefABCDEF" for letter in value):  # noqa: PLR2004 - as above
        return VerifyingKey.from_hex(value)
    if not _is_there(value):
        raise InputError(f"--key: {value!r} is neither 64 hexadecimal digits nor a key file")
    return read_public_key(_read_small(value))[0]


def _is_there(name: str) -> bool:
    try:
        return bool(name) and Path(name).exists()
    except OSError:
        return False


def _read_small(name: str) -> bytes:
    descriptor = _open_regular(name)
    try:
        with os.fdopen(descriptor, "rb") as file:
            return file.read(_MAX_KEY_FILE_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error


def _standard_input() -> int:
    try:
        return os.dup(0)
    except OSError as error:
        raise InputError(f"cannot read standard input: {error.strerror}") from error


def _open_regular(name: str) -> int:
    try:
        # Without O_NONBLOCK, opening a FIFO that nobody writes to would wait for ever.
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise InputError(f"there is no file {name}; see whether its name is spelt right") from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    what = "a directory" if stat.S_ISDIR(mode) else "a pipe, socket or device"
    hint = (
        "; name the files in it"
        if what == "a directory"
        else "; to check what a program writes, name - and let it write to standard input"
    )
    raise InputError(f"{name} is {what}, not a file{hint}")


def _say(error: AffidavitError) -> str:
    return error.detail if isinstance(error, ProducerError) else str(error)
