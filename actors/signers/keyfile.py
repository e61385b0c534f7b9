"""A signing key in an encrypted OpenSSH key file, with its public half in a file beside it.

The file is 0600 in a folder of 0700 and is made in one step: a crash leaves either no key or a whole one. A
crash between the key and its public half leaves the key alone; the next load writes the public half, and until then it is
read out of the key file. So reading commands need no passphrase. All of this blocks: call it before the loop runs, or
in a thread.
"""

import base64
import os
import secrets
import stat
import struct
from pathlib import Path
from typing import Final, final

from affidavit.actors.errors import ActorError
from affidavit.actors.signers.memory import MemorySigner
from affidavit.crypto.failures import ProducerError
from affidavit.crypto.keys import DEFAULT_KDF_ROUNDS, SigningKey, VerifyingKey

_MAX_FILE_BYTES: Final = 1 << 16
_OTHERS: Final = 0o077
_OPENSSH_MAGIC: Final = b"openssh-key-v1\0"


class KeyFileError(ActorError):
    """A key file that is absent, in the way, open to others, or does not open."""


@final
class KeyFileSigner(MemorySigner):
    """Signs with the key of a key file; make one with `load_key_file` or `create_key_file`."""


def public_path(path: Path) -> Path:
    """Return where the public half of a key file lies: beside it, with `.pub` added."""
    return path.with_name(path.name + ".pub")


def create_key_file(path: Path, passphrase: bytes, *, rounds: int = DEFAULT_KDF_ROUNDS) -> KeyFileSigner:
    """Draw a new key and store it.

    Args:
        path: Where; missing folders are made with mode 0700. Nothing is ever overwritten.
        passphrase: What the file is encrypted under.
        rounds: bcrypt rounds.

    Raises:
        KeyFileError: Where something is there already, or the file cannot be written.
        ProducerError: `sign.bad_key` for an empty passphrase.
    """
    require_free(path)
    key = SigningKey.from_seed(secrets.token_bytes(32))
    content = key.to_openssh(passphrase, rounds=rounds)
    try:
        _make_private_folder(path.parent)
        _write_new(path, content, 0o600)
    except OSError as error:
        # Another process may have made the key since the first look.
        require_free(path)
        raise KeyFileError(f"cannot write the key file {path}: {error.strerror}") from error
    signer = KeyFileSigner(key)
    _ensure_public_half(path, signer)
    return signer


def require_free(path: Path) -> Path:
    """Return a path at which nothing stands, a dangling link included.

    Raises:
        KeyFileError: Where something is there.
    """
    if os.path.lexists(path):
        raise KeyFileError(f"{path} is there already; a key is never overwritten")
    return path


def load_key_file(
    path: Path, passphrase: bytes | None, *, kid: bytes | None = None, allow_unencrypted: bool = False
) -> KeyFileSigner:
    """Open a key file.

    Args:
        path: The OpenSSH private key file; a PKCS#8 PEM is read too.
        passphrase: What it is encrypted under; None only opens an unencrypted file.
        kid: The key id to sign under; the did:key form of the public key by default.
        allow_unencrypted: Accept a file that anyone who reads it can sign with.

    Raises:
        KeyFileError: Where the file cannot be read, is open to others, is not encrypted, or does not open.
    """
    data = _read_file(path, private=True)
    try:
        key = SigningKey.from_openssh(data)
    except ProducerError:
        key = None
    if key is not None and not allow_unencrypted:
        raise KeyFileError(f"the key file {path} is not encrypted; give it a passphrase with ssh-keygen -p")
    if key is None:
        try:
            key = SigningKey.from_openssh(data, passphrase)
        except ProducerError as error:
            raise KeyFileError(f"{path}: {error.detail}") from error
    signer = KeyFileSigner(key, kid=kid)
    _ensure_public_half(path, signer)
    return signer


def read_public_key(path: Path) -> VerifyingKey:
    """Return the public key of a key file, from the file beside it; needs no passphrase.

    Where a crash came between the two files, the public half is read out of the private one, in which it stands unencrypted.

    Args:
        path: The private key file, whose `.pub` is read.

    Raises:
        KeyFileError: Where it is absent, cannot be read, or is no Ed25519 key.
    """
    beside = public_path(path)
    if not os.path.lexists(beside) and os.path.lexists(path):
        return _public_half_within(path)
    try:
        return VerifyingKey.from_openssh_public(_read_file(beside, private=False))
    except ProducerError as error:
        raise KeyFileError(f"{beside}: {error.detail}") from error


def _public_half_within(path: Path) -> VerifyingKey:
    """Read the public key that an OpenSSH private key file begins with.

    The order is that of OpenSSH's PROTOCOL.key: magic, cipher, key derivation, its options, how many keys, the public key.
    """
    lines = _read_file(path, private=True).split(b"\n")
    try:
        blob = base64.b64decode(
            b"".join(line for line in lines if not line.startswith(b"-----")), validate=True
        )
        rest = blob.removeprefix(_OPENSSH_MAGIC)
        for _ in range(3):
            rest = _string(rest)[1]
        public = _string(rest[4:])[0]
        return VerifyingKey.from_openssh_public(b"ssh-ed25519 " + base64.b64encode(public))
    except (ValueError, struct.error, ProducerError) as error:
        raise KeyFileError(f"{path} is not an OpenSSH private key file of an Ed25519 key") from error


def _string(data: bytes) -> tuple[bytes, bytes]:
    """Return the length-prefixed string that the data begins with, and what follows it."""
    (length,) = struct.unpack_from(">I", data)
    if length > len(data) - 4:
        raise ValueError("the string is cut off")
    return data[4 : 4 + length], data[4 + length :]


def _ensure_public_half(path: Path, signer: KeyFileSigner) -> None:
    beside = public_path(path)
    line = signer.public_key.to_openssh_public() + b"\n"
    try:
        _write_new(beside, line, 0o644)
    except FileExistsError:
        if read_public_key(path) != signer.public_key:
            raise KeyFileError(f"{beside} holds the public half of another key") from None
    except OSError as error:
        # A read-only key folder still signs; only the commands that show the key miss the file.
        if not os.access(path.parent, os.W_OK):
            return
        raise KeyFileError(f"cannot write {beside}: {error.strerror}") from error


def _make_private_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _write_new(path: Path, content: bytes, mode: int) -> None:
    # A hard link, unlike a rename, fails where the name is taken. A crash before it leaves a temporary file
    # that nothing reads.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read_file(path: Path, *, private: bool) -> bytes:
    try:
        # Without O_NONBLOCK, opening a FIFO that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise KeyFileError(f"there is no key file {path}") from error
    except OSError as error:
        raise KeyFileError(f"cannot read the key file {path}: {error.strerror}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise KeyFileError(f"{path} is not a regular file")
        if private and status.st_mode & _OTHERS:
            raise KeyFileError(f"the key file {path} is open to others; run chmod 600 on it")
        if status.st_size > _MAX_FILE_BYTES:
            raise KeyFileError(f"{path} is too large for a key file")
        return os.read(descriptor, _MAX_FILE_BYTES)
    except OSError as error:
        raise KeyFileError(f"cannot read the key file {path}: {error.strerror}") from error
    finally:
        os.close(descriptor)
