"""The commands `keys trust`, `keys revoke` and `keys list`: a keyring made, changed, shown, and used by `verify`."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from affidavit.crypto import SigningKey
from affidavit.crypto.keyring_file import parse_keyring
from affidavit.tools import keys, verify
from tests.crypto.samples import KEY, KID, events, sealed
from tests.environment import require_tool

OTHER = SigningKey.from_seed(bytes(32)).public


@pytest.fixture(autouse=True)
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a keyring that the environment names and that is not there yet."""
    path = tmp_path / "trusted.json"
    monkeypatch.setenv("AFFIDAVIT_KEYRING", str(path))
    return path


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What `keys list --json` shows."""
    capsys.readouterr()
    assert keys.main(["list", "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["keyring"]
    return found


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one sentence with which a command is refused."""
    capsys.readouterr()
    assert keys.main(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    return err


def test_a_trusted_key_makes_a_record_verify_and_a_revoked_one_refuses_it(
    ring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole life of a key: unknown, trusted, revoked by name and with its reason."""
    record = ring.with_name("run.provetrail")
    record.write_bytes(sealed(events(2)))
    assert keys.main(["trust", OTHER.hex]) == 0
    assert verify.main([str(record)]) == 1
    assert keys.main(["trust", KEY.public.hex, "--kid", KID.decode(), "--name", "Ops, Berlin"]) == 0
    said = capsys.readouterr().out
    assert KEY.public.fingerprint in said
    assert "Compare the fingerprint with the key's owner" in said
    assert verify.main([str(record)]) == 0
    assert keys.main(["revoke", KID.decode(), "--reason", "left on a train"]) == 0
    capsys.readouterr()
    assert verify.main([str(record)]) == 1
    said = capsys.readouterr().out
    assert "sign.unknown_key" in said
    assert "revoked: left on a train" in said


def test_a_key_that_certifies_itself_is_trusted_by_its_own_id_when_none_is_given(
    ring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 3 becomes 0 once the signer's public key line is in the keyring."""
    record, line = ring.with_name("run.provetrail"), ring.with_name("ops.pub")
    record.write_bytes(sealed(events(2), kid=KEY.public.did_key.encode()))
    line.write_bytes(KEY.public.to_openssh_public("ops@example"))
    assert keys.main(["trust", OTHER.did_key]) == 0
    assert verify.main([str(record)]) == 3
    assert keys.main(["trust", str(line)]) == 0
    assert verify.main([str(record)]) == 0


def test_list_shows_every_field_and_the_order_stays(ring: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names, validity and revocation of several keys, in the order in which they were trusted."""
    assert keys.main(["trust", KEY.public.hex, "--kid", "hex:ff00", "--name", "one"]) == 0
    assert (
        keys.main(["trust", OTHER.hex, "--from", "2026-01-01", "--until", "2027-01-01T00:00:00+01:00"]) == 0
    )
    assert keys.main(["revoke", "hex:ff00", "--reason", "lost"]) == 0
    first, second = listed(capsys)
    assert (first["kid"], first["name"], first["revoked"]) == ("hex:ff00", "one", "lost")
    assert second == {
        "kid": OTHER.did_key,
        "name": None,
        "public_key_hex": OTHER.hex,
        "fingerprint": OTHER.fingerprint,
        "valid_from": "2026-01-01T00:00:00Z",
        "valid_until": "2026-12-31T23:00:00Z",
        "revoked": None,
    }
    assert keys.main(["list"]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0] == "one"
    assert "REVOKED      lost" in said
    assert "(no name)" in said


def test_a_date_means_its_first_or_its_last_moment(ring: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A key valid until a day is valid on that day."""
    assert keys.main(["trust", OTHER.hex, "--from", "2026-01-02", "--until", "2026-01-02"]) == 0
    (found,) = listed(capsys)
    assert found["valid_from"] == "2026-01-02T00:00:00Z"
    assert found["valid_until"] == "2026-01-02T23:59:59.999999Z"


def test_trusting_again_changes_what_is_given_and_keeps_the_rest(
    ring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name or an end of validity is added later without repeating the others."""
    assert keys.main(["trust", OTHER.hex, "--name", "one"]) == 0
    assert keys.main(["trust", OTHER.hex, "--until", "2027-01-01T00:00:00Z"]) == 0
    (found,) = listed(capsys)
    assert (found["name"], found["valid_until"]) == ("one", "2027-01-01T00:00:00Z")


def test_a_revoked_key_is_not_trusted_again(ring: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither under its id nor under another, and its first reason stands."""
    assert keys.main(["trust", OTHER.hex]) == 0
    assert keys.main(["revoke", OTHER.did_key, "--reason", "first"]) == 0
    before = ring.read_bytes()
    assert "revoked (first)" in complaint(capsys, "trust", OTHER.hex)
    assert "revoked (first)" in complaint(capsys, "trust", OTHER.hex, "--kid", "another")
    assert "revoked already: first" in complaint(capsys, "revoke", OTHER.did_key, "--reason", "second")
    assert ring.read_bytes() == before


def test_a_key_that_names_itself_is_revoked_without_having_been_trusted(
    ring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What would have been exit 3 is then refused."""
    record = ring.with_name("run.provetrail")
    record.write_bytes(sealed(events(1), kid=KEY.public.did_key.encode()))
    assert keys.main(["revoke", KEY.public.did_key, "--reason", "leaked"]) == 0
    assert verify.main([str(record)]) == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["trust", "nowhere.pub"], "no such file"),
        (["trust", "a\0b"], "cannot be the name"),
        (["trust", "ssh-ed25519 AAAA"], "not an OpenSSH public key"),
        (["trust", "01" + "00" * 31], "small order"),
        (["trust", OTHER.hex, "--kid", ""], "not empty"),
        (["trust", OTHER.hex, "--kid", "hex:f"], "even number of digits"),
        (["trust", OTHER.hex, "--kid", KEY.public.did_key], "other than its own"),
        (["trust", OTHER.hex, "--from", "soon"], "is not a time"),
        (["trust", OTHER.hex, "--until", "2027-01-01T00:00:00"], "time zone"),
        (["trust", OTHER.hex, "--from", "2027-01-02", "--until", "2027-01-01"], "before it is valid"),
        (["trust", OTHER.hex, "--name", "a\x1b[31m"], "printable"),
        (["revoke", "nobody", "--reason", "lost"], "no key with the id"),
        (["revoke", "did:key:zz", "--reason", "lost"], "no key with the id"),
        (["revoke", OTHER.did_key, "--reason", " "], "say why"),
        (["list"], "keys trust` makes one"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_changes_nothing(
    ring: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    """Exit 2, and no keyring is made."""
    assert why in complaint(capsys, *arguments)
    assert not ring.exists()


def test_one_id_is_bound_to_one_key(ring: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence names the fingerprint that stands there."""
    assert keys.main(["trust", KEY.public.hex, "--kid", "ops"]) == 0
    assert KEY.public.fingerprint in complaint(capsys, "trust", OTHER.hex, "--kid", "ops")


def test_a_keyring_has_no_default_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is trusted that was not asked for by name."""
    monkeypatch.delenv("AFFIDAVIT_KEYRING")
    assert "--keyring FILE" in complaint(capsys, "list")


@pytest.mark.parametrize("content", [b"", b"{}", b'{"keyring": [], "vectors": []}', b"\0" * (1 << 20 | 1)])
def test_a_file_that_is_no_keyring_is_left_as_it_is(
    ring: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    """A manifest of vectors and a foreign file survive a mistyped name."""
    ring.write_bytes(content)
    assert str(ring) in complaint(capsys, "trust", OTHER.hex)
    assert ring.read_bytes() == content


def test_a_pipe_and_a_folder_are_no_key_files(ring: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing waits for a writer that never comes."""
    pipe = ring.with_name("pipe")
    os.mkfifo(pipe)
    for name in (pipe, ring.parent):
        assert "not a regular file" in complaint(capsys, "trust", str(name))
    assert "no folder" in complaint(
        capsys, "trust", OTHER.hex, "--keyring", str(ring.parent / "gone" / "k.json")
    )


def test_a_keyring_is_changed_by_one_command_at_a_time(
    ring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second is told to try again; neither change is lost, and no file is left beside the keyring."""
    held = os.open(ring.parent, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    assert "another command" in complaint(capsys, "trust", OTHER.hex)
    os.close(held)
    assert keys.main(["trust", OTHER.hex]) == 0
    assert list(ring.parent.iterdir()) == [ring]


def test_a_link_to_a_keyring_stays_a_link(ring: Path) -> None:
    """The file that it leads to is replaced, and the link is not."""
    target = ring.with_name("real.json")
    ring.symlink_to(target)
    assert keys.main(["trust", OTHER.hex]) == 0
    assert ring.is_symlink()
    assert parse_keyring(target.read_bytes()).entry(OTHER.did_key.encode()) is not None


def test_hostile_text_in_a_keyring_does_not_reach_the_terminal(
    ring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody else's names and reasons are shown escaped."""
    entry = {"key_id": "a\x1b[2J", "public_key_hex": OTHER.hex, "name": "b\x1b[2J", "revoked": "c\x1b[2J"}
    ring.write_text(json.dumps({"keyring": [entry]}))
    assert keys.main(["list"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert "\x1b" not in complaint(capsys, "trust", OTHER.hex)


def test_the_fingerprint_is_the_one_that_openssh_shows(
    ring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both ends of a telephone can read the same letters, each from their own program."""
    tool = require_tool("ssh-keygen")
    private = ring.with_name("ops")
    subprocess.run([tool, "-q", "-t", "ed25519", "-N", "", "-C", "ops", "-f", private], check=True)
    shown = subprocess.run([tool, "-lf", f"{private}.pub"], check=True, capture_output=True, text=True).stdout
    assert keys.main(["trust", f"{private}.pub"]) == 0
    (found,) = listed(capsys)
    assert found["fingerprint"] == shown.split()[1]
    assert "private key" in complaint(capsys, "trust", str(private))


@pytest.mark.parametrize("command", ["trust", "revoke", "list"])
def test_each_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Help shows a command line to type."""
    assert keys.main([command, "--help"]) == 0
    assert f"example:\n  affidavit keys {command}" in capsys.readouterr().out


def test_the_keyring_commands_load_no_runtime(ring: Path) -> None:
    """An auditor's machine needs cryptography and cbor2 alone for them."""
    probe = (
        "import sys; from affidavit.tools import keys; keys.main(['trust', sys.argv[1]]); keys.main(['list']);"
        "assert not {'trio', 'affidavit.actors', 'cyclopts', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", probe, OTHER.hex], check=True, capture_output=True, cwd=ring.parent)
