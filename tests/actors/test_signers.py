"""Signers: the key file on disk and the keys in memory, behind one port."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
import trio

from affidavit.actors.signers import keyfile
from affidavit.actors.signers.keyfile import (
    KeyFileError,
    create_key_file,
    load_key_file,
    public_path,
    read_public_key,
)
from affidavit.actors.signers.memory import EphemeralSigner, MemorySigner
from affidavit.actors.signers.port import Signer
from affidavit.crypto import ProducerError, SigningKey
from tests.environment import require_tool

PASSPHRASE = b"correct horse"
ROUNDS = 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the key file goes."""
    return tmp_path / "store" / "keys" / "default"


def mode_of(path: Path) -> int:
    """The permission bits of a file."""
    return stat.S_IMODE(path.stat().st_mode)


async def check_signer(signer: Signer) -> None:
    """What every signer promises: a key id, and signatures that hold under its public key."""
    assert signer.kid
    signature = await signer.sign(b"message")
    assert signer.public_key.verify(signature, b"message") == b"message"


async def test_every_signer_keeps_the_port(path: Path) -> None:
    """Signatures of each signer verify under its public key, which its key id names."""
    for signer in (
        EphemeralSigner(),
        MemorySigner(SigningKey.from_seed(bytes(32))),
        create_key_file(path, PASSPHRASE, rounds=ROUNDS),
        load_key_file(path, PASSPHRASE),
    ):
        await check_signer(signer)
        assert signer.kid == signer.public_key.did_key.encode()


async def test_a_cancelled_signature_was_not_given_out() -> None:
    """Signing has its checkpoint before the signature is made."""
    with trio.CancelScope() as scope:
        scope.cancel(reason="the test asks")
        await EphemeralSigner().sign(b"message")
    assert scope.cancelled_caught


def test_throw_away_keys_differ() -> None:
    """Each ephemeral signer draws its own key."""
    assert EphemeralSigner().kid != EphemeralSigner().kid


def test_a_key_id_can_be_chosen_but_not_empty(path: Path) -> None:
    """A signer signs under the id that it is given."""
    create_key_file(path, PASSPHRASE, rounds=ROUNDS)
    assert load_key_file(path, PASSPHRASE, kid=b"root-2").kid == b"root-2"
    with pytest.raises(ProducerError):
        MemorySigner(SigningKey.from_seed(bytes(32)), kid=b"")


def test_a_new_key_is_private_from_the_first_moment(path: Path) -> None:
    """The file is 0600 in folders of 0700, under any umask, and nothing else is left beside it."""
    old = os.umask(0)
    try:
        signer = create_key_file(path, PASSPHRASE, rounds=ROUNDS)
    finally:
        os.umask(old)
    assert mode_of(path) == 0o600
    assert mode_of(path.parent) == mode_of(path.parent.parent) == 0o700
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["default", "default.pub"]
    assert read_public_key(path) == signer.public_key
    assert b"ENCRYPTED" not in path.read_bytes()
    assert path.read_bytes().startswith(b"-----BEGIN OPENSSH PRIVATE KEY-----")


def test_ssh_keygen_agrees(path: Path) -> None:
    """OpenSSH's own tool opens the file under the passphrase, to the same public key and fingerprint."""
    tool = require_tool("ssh-keygen")
    signer = create_key_file(path, PASSPHRASE, rounds=ROUNDS)
    shown = subprocess.run(
        [tool, "-y", "-P", PASSPHRASE.decode(), "-f", str(path)], capture_output=True, check=True, text=True
    ).stdout
    assert shown.split()[:2] == signer.public_key.to_openssh_public().decode().split()[:2]
    printed = subprocess.run(
        [tool, "-l", "-f", str(public_path(path))], capture_output=True, check=True, text=True
    ).stdout
    assert signer.public_key.fingerprint in printed


def test_a_key_is_never_overwritten(path: Path, tmp_path: Path) -> None:
    """Whatever stands at the path stays, a dangling link included."""
    create_key_file(path, PASSPHRASE, rounds=ROUNDS)
    before = path.read_bytes()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    for taken in (path, link):
        with pytest.raises(KeyFileError, match="never overwritten"):
            create_key_file(taken, PASSPHRASE, rounds=ROUNDS)
    assert path.read_bytes() == before


def test_a_key_made_at_the_same_moment_wins(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another process makes the key between look and write, that key stays."""
    write = keyfile._write_new

    def raced(target: Path, content: bytes, mode: int) -> None:
        target.write_bytes(b"the other's")
        write(target, content, mode)

    monkeypatch.setattr(keyfile, "_write_new", raced)
    with pytest.raises(KeyFileError, match="never overwritten"):
        create_key_file(path, PASSPHRASE, rounds=ROUNDS)
    assert path.read_bytes() == b"the other's"
    assert list(path.parent.iterdir()) == [path]


def test_a_crash_before_the_link_leaves_no_key(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure of any step of the write leaves neither a key nor a temporary file, and says what failed."""
    for step in ("fsync", "link"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            with pytest.raises(KeyFileError, match="No space left"):
                create_key_file(path, PASSPHRASE, rounds=ROUNDS)
        assert list(path.parent.iterdir()) == []


def test_a_missing_public_half_is_made_again_by_the_next_load(path: Path) -> None:
    """A crash between the key and its public half is repaired, and another key's half is noticed."""
    signer = create_key_file(path, PASSPHRASE, rounds=ROUNDS)
    public_path(path).unlink()
    load_key_file(path, PASSPHRASE)
    assert read_public_key(path) == signer.public_key
    public_path(path).write_bytes(EphemeralSigner().public_key.to_openssh_public())
    with pytest.raises(KeyFileError, match="another key"):
        load_key_file(path, PASSPHRASE)


def test_a_wrong_passphrase_is_one_sentence_without_it(path: Path) -> None:
    """The error names the file and never the passphrase."""
    create_key_file(path, PASSPHRASE, rounds=ROUNDS)
    for wrong in (b"s3cret-guess", None):
        with pytest.raises(KeyFileError) as refusal:
            load_key_file(path, wrong)
        assert str(path) in str(refusal.value)
        assert "s3cret-guess" not in str(refusal.value)
        assert "\n" not in str(refusal.value)


def test_an_unencrypted_key_has_to_be_allowed(path: Path) -> None:
    """A file that anyone who reads it can sign with is refused, unless the caller says otherwise."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path.parent.mkdir(parents=True)
    path.write_bytes(
        Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
    )
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="not encrypted"):
        load_key_file(path, PASSPHRASE)
    trio.run(check_signer, load_key_file(path, None, allow_unencrypted=True))


def test_bad_key_files_are_one_sentence(path: Path, tmp_path: Path) -> None:
    """Absent, a folder, a pipe, open to others, too large, and no key: each said, none waited for."""
    path.parent.mkdir(parents=True)
    pipe, large, open_, garbage = (tmp_path / name for name in ("pipe", "large", "open", "garbage"))
    os.mkfifo(pipe)
    large.write_bytes(bytes(1 << 17))
    open_.write_bytes(b"x")
    garbage.write_bytes(b"x")
    for private in (large, garbage):
        private.chmod(0o600)
    open_.chmod(0o640)
    for bad, said in (
        (path, "no key file"),
        (tmp_path, "not a regular file"),
        (pipe, "not a regular file"),
        (open_, "open to others"),
        (large, "too large"),
        (garbage, "does not open"),
    ):
        with pytest.raises(KeyFileError, match=said):
            load_key_file(bad, PASSPHRASE)


def test_an_empty_passphrase_is_refused_before_anything_is_written(path: Path) -> None:
    """No key is ever stored unencrypted."""
    with pytest.raises(ProducerError):
        create_key_file(path, b"", rounds=ROUNDS)
    assert not path.parent.exists()


def test_a_missing_public_half_is_read_out_of_the_key_file(path: Path) -> None:
    """After a crash between the two files the key can be shown without its passphrase, and nothing is written for it."""
    made = create_key_file(path, PASSPHRASE, rounds=ROUNDS)
    public_path(path).unlink()
    assert read_public_key(path) == made.public_key
    assert not public_path(path).exists()


@pytest.mark.parametrize(
    "content", [b"", b"-----BEGIN X-----\n!\n-----END X-----\n", b"b3BlbnNzaC1rZXktdjEAAAAA\n"]
)
def test_a_key_file_without_a_public_half_in_it_is_one_sentence(path: Path, content: bytes) -> None:
    """A file that is cut off or something else has no public half to be read."""
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="is not an OpenSSH private key file"):
        read_public_key(path)
