"""The signing key of a store on first use: made once, whoever comes first."""

from pathlib import Path

import pytest

from affidavit.actors.signers.keyfile import create_key_file, public_path
from affidavit.crypto.failures import AffidavitError
from affidavit.tools import signing
from affidavit.tools.keys import default_store
from affidavit.tools.passphrase import read_passphrase
from affidavit.tools.signing import KeyAccess

PASSPHRASE = b"correct horse"


def test_of_several_first_runs_one_makes_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that another process makes between the look and the making is taken, not a reason to fail."""
    path = tmp_path / "keys" / "default"
    first = create_key_file(path, PASSPHRASE, rounds=1)
    assert KeyAccess(path, PASSPHRASE, is_new=True).open().public_key == first.public_key
    path.unlink()
    public_path(path).unlink()

    def somebody_is_faster(where: Path, passphrase: bytes) -> None:
        nonlocal first
        first = create_key_file(where, passphrase, rounds=1)
        create_key_file(where, passphrase, rounds=1)

    monkeypatch.setattr(signing, "create_key_file", somebody_is_faster)
    assert KeyAccess(path, PASSPHRASE, is_new=True).open().public_key == first.public_key


def test_the_environment_names_the_store_for_keys_as_for_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`keys show` looks where `run` signs."""
    monkeypatch.setenv("AFFIDAVIT_STORE", str(tmp_path / "mine"))
    assert default_store() == tmp_path / "mine"


@pytest.mark.parametrize("content", ["\n", "  \n", "\r\n"])
def test_a_blank_passphrase_is_none(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A passphrase file that holds blanks alone is refused instead of encrypting under a blank."""
    file = tmp_path / "passphrase"
    file.write_text(content)
    monkeypatch.delenv("AFFIDAVIT_PASSPHRASE", raising=False)
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE_FILE", str(file))
    with pytest.raises(AffidavitError, match="is empty"):
        read_passphrase(prompt=False)


def test_a_variable_that_names_no_file_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty AFFIDAVIT_PASSPHRASE_FILE is a mistake to be told, not the current folder."""
    monkeypatch.delenv("AFFIDAVIT_PASSPHRASE", raising=False)
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE_FILE", "")
    with pytest.raises(AffidavitError, match="names no file"):
        read_passphrase(prompt=False)
