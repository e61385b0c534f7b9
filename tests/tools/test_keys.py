"""The commands `keys new` and `keys show`, and where the passphrase comes from."""

import getpass
import json
import subprocess
import sys
from pathlib import Path

import pytest

from affidavit.actors.signers.keyfile import load_key_file
from affidavit.crypto import encode_record
from affidavit.tools import keys, verify
from affidavit.tools.passphrase import PassphraseError, read_passphrase
from tests.crypto.samples import events, tree

SECRET = "a s3cret passphrase"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of its own, no terminal, and the passphrase in the environment."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE", SECRET)
    monkeypatch.delenv("AFFIDAVIT_PASSPHRASE_FILE", raising=False)
    return tmp_path


def test_a_new_key_is_made_once_and_shown(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`new` makes it and says where, `show` shows the same, a second `new` refuses and changes nothing."""
    path = home / "affidavit" / "keys" / "default"
    assert keys.main(["new"]) == 0
    made = capsys.readouterr().out
    assert f"encrypted under your passphrase: {path}" in made
    assert SECRET not in made
    before = path.read_bytes()
    assert keys.main(["show"]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[1:] == made.splitlines()[1:]
    assert keys.main(["new"]) == 2
    assert "never overwritten" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_show_needs_no_passphrase(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The public half is read from beside the key; the private one is not even opened."""
    assert keys.main(["new"]) == 0
    monkeypatch.delenv("AFFIDAVIT_PASSPHRASE")
    (home / "affidavit" / "keys" / "default").chmod(0)
    assert keys.main(["show"]) == 0
    assert "did:key:z6Mk" in capsys.readouterr().out


async def test_the_argument_shown_verifies_what_the_key_signs(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `show` prints for an auditor is what `verify` takes, and it earns exit 0."""
    from affidavit.crypto.checkpoint import Checkpoint, assemble_checkpoint, signing_input

    store = home / "elsewhere"
    assert keys.main(["new", "--store", str(store), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    signer = load_key_file(store / "keys" / "default", SECRET.encode())
    assert signer.kid.decode() == facts["kid"]
    head = Checkpoint("run/sample", 3, tree(events(3)).root())
    signature = await signer.sign(signing_input(head, kid=signer.kid))
    signed = assemble_checkpoint(head, kid=signer.kid, signature=signature)
    record = home / "run.provetrail"
    record.write_bytes(encode_record(events(3), signed))
    assert verify.main([str(record)]) == 3
    assert verify.main([*facts["verify_argument"].split(), str(record)]) == 0
    assert facts["fingerprint"].startswith("SHA256:")


def test_show_without_a_key_says_how_to_make_one(capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, exit 2, and nothing is made."""
    assert keys.main(["show"]) == 2
    said = capsys.readouterr().err
    assert "keys new" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("arguments", [[], ["new", "--nonsense"], ["old"]])
def test_misuse_is_exit_2(arguments: list[str]) -> None:
    """Never a traceback."""
    assert keys.main(arguments) == 2


@pytest.mark.parametrize("arguments", [["--help"], ["new", "--help"], ["show", "--help"]])
def test_each_help_has_an_example(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Help shows a command line, and no path of this machine."""
    assert keys.main(arguments) == 0
    said = capsys.readouterr().out
    assert "example:\n  affidavit keys" in said
    assert str(Path.home()) not in said


def test_a_relative_data_home_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the base directory specification says."""
    for value in ("relative", ""):
        monkeypatch.setenv("XDG_DATA_HOME", value)
        assert keys.default_store() == Path.home() / ".local" / "share" / "affidavit"


def test_an_unwritable_place_is_one_sentence(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file where the folder should be, for one."""
    (home / "file").write_bytes(b"")
    assert keys.main(["new", "--store", str(home / "file")]) == 2
    assert "cannot write the key file" in capsys.readouterr().err


def test_a_passphrase_comes_from_the_environment_then_a_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable wins; a file loses one line end and nothing more."""
    path = home / "secret"
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE_FILE", str(path))
    assert read_passphrase(prompt=False) == SECRET.encode()
    monkeypatch.delenv("AFFIDAVIT_PASSPHRASE")
    for content, passphrase in ((b"x\n", b"x"), (b"x\r\n", b"x"), (b" x \n\n", b" x \n"), (b"\xff", b"\xff")):
        path.write_bytes(content)
        assert read_passphrase(prompt=False) == passphrase


def test_a_passphrase_that_cannot_be_had_is_one_sentence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty, too long, a file that is absent or a folder, and no terminal: each said."""
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE", "")
    with pytest.raises(PassphraseError, match="empty"):
        read_passphrase(prompt=True)
    monkeypatch.setenv("AFFIDAVIT_PASSPHRASE", "x" * 5000)
    with pytest.raises(PassphraseError, match="longer"):
        read_passphrase(prompt=True)
    monkeypatch.delenv("AFFIDAVIT_PASSPHRASE")
    for name in ("gone", "."):
        monkeypatch.setenv("AFFIDAVIT_PASSPHRASE_FILE", str(home / name))
        with pytest.raises(PassphraseError, match="cannot read"):
            read_passphrase(prompt=True)
    monkeypatch.delenv("AFFIDAVIT_PASSPHRASE_FILE")
    for prompt in (True, False):
        with pytest.raises(PassphraseError, match="set AFFIDAVIT_PASSPHRASE"):
            read_passphrase(prompt=prompt)


def test_a_passphrase_is_asked_for_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice where it is new, and two that differ are refused; giving none is no traceback."""
    monkeypatch.delenv("AFFIDAVIT_PASSPHRASE")
    monkeypatch.setattr(sys, "stdin", type("Terminal", (), {"isatty": lambda _: True})())
    answers = iter(["one", "two", "two", "two", "three"])
    monkeypatch.setattr(getpass, "getpass", lambda _: next(answers))
    assert read_passphrase(prompt=True) == b"one"
    assert read_passphrase(prompt=True, confirm=True) == b"two"
    with pytest.raises(PassphraseError, match="differ"):
        read_passphrase(prompt=True, confirm=True)

    def closed(_: str) -> str:
        raise EOFError

    monkeypatch.setattr(getpass, "getpass", closed)
    with pytest.raises(PassphraseError, match="no passphrase"):
        read_passphrase(prompt=True)


def test_without_a_terminal_new_refuses_in_one_sentence(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """As a process of its own with no standard input, it exits 2 and leaves nothing."""
    monkeypatch.delenv("AFFIDAVIT_PASSPHRASE")
    done = subprocess.run(
        [sys.executable, "-m", "affidavit.tools.keys", "new"],
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert list(home.iterdir()) == []
