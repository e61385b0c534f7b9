"""What `verify` is given: every bad file, key and keyring gets one sentence or one code, and no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from affidavit.crypto.event_form import MAX_EVENT_BYTES
from affidavit.tools import verify
from affidavit.tools._verify_input import Kind, tell_kind
from tests.crypto.samples import KEY, KID, event, events, sealed
from tests.environment import ROOT
from tests.tools.test_verify import ARTIFACTS, KEY_ARGUMENT, Command, command, no_keyring_from_outside

__all__ = ["command", "no_keyring_from_outside"]

RUN = ARTIFACTS["run"]


def says_one_line(command: Command, said: str) -> None:
    """Check that all that was said is one sentence on standard error."""
    assert command.out == ""
    assert len(command.err.splitlines()) == 1
    assert said in command.err


@pytest.mark.parametrize("extra", [[], ["--json"], ["--as", "run"], ["--as", "events"]], ids=" ".join)
def test_what_is_no_file_is_exit_2(command: Command, extra: list[str]) -> None:
    """Absent, a folder, a pipe that nobody writes to, a device, a name that cannot be one."""
    pipe = command.folder / "pipe"
    os.mkfifo(pipe)
    for name, said in (
        (str(command.folder / "gone"), "there is no file"),
        (str(command.folder), "is a directory"),
        (str(pipe), "a pipe, socket or device"),
        ("/dev/null", "a pipe, socket or device"),
        ("a\x00b", "cannot read"),
        (f"{command.folder}/pipe/x", "cannot read"),
        ("x" * 300, "cannot read"),
    ):
        assert command.run(*extra, name) == 2
        says_one_line(command, said)


def test_an_unreadable_file_is_exit_2(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may not be opened, or fails while it is read, is one sentence."""
    name = command.file(RUN)

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied", name)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        assert command.run(name) == 2
    says_one_line(command, "Permission denied")


NO_RECORDS = {
    "an empty file": b"",
    "text": b"this is no record\n",
    "zeros": bytes(100_000),
    "JSON": b'{"events": []}',
    "a number": b"\x05",
    "an empty map": b"\xa0",
    "half a record": RUN[: len(RUN) // 2],
    "a record and a byte": RUN + b"\x00",
    "an indefinite map": b"\xbf" + RUN[1:] + b"\xff",
    "a map of 2^62": b"\xbb\x40" + bytes(7),
    "events of 2^60": b"\xa2\x66events\x9b\x10" + bytes(7),
    "one event of 2^60": b"\xa2\x66events\x81\x5b\x10" + bytes(7),
    "fewer events than declared": b"\xa2\x66events\x82\x41a",
    "a head cut off": b"\xa2\x66events\x81\x59",
    "a field name that is no text": b"\xa2\x62\xff\xff\x00\x61a\x00",
    "a depth bomb": b"\xa1\x61a" * 100_000,
    "arrays": b"\x81" * 100_000,
}


@pytest.mark.parametrize("data", NO_RECORDS.values(), ids=NO_RECORDS.keys())
def test_bytes_that_are_no_record_are_exit_1_with_a_code(command: Command, data: bytes) -> None:
    """What can be read is judged: rejected, with the code for a container that does not decode."""
    name = command.file(data)
    assert command.run(KEY_ARGUMENT, name) == 1
    assert "REJECTED  record.decode" in command.out
    assert command.err == ""
    for kind in Kind:
        assert command.run(KEY_ARGUMENT, "--as", kind, "--json", name) == 1
        assert command.objects()[0]["failure_code"]


def test_a_huge_file_that_is_no_record_is_not_read(command: Command) -> None:
    """A file of a terabyte of zeros is refused from its first bytes, whatever it is said to be."""
    path = command.folder / "huge"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    for extra in ([], *(["--as", kind] for kind in Kind)):
        assert command.run(*extra, str(path)) == 1
    with path.open("r+b") as file:
        file.write(b"\xa1\x63seq\x1b")
    assert command.run("--as", "events", str(path)) == 1
    assert "enc.decode" in command.out


def test_an_event_longer_than_the_limit_is_refused(command: Command) -> None:
    """Not more than one byte over the limit is read of it."""
    name = command.file(b"\xa1\x63seq\x5a\x00\xff\xff\xff" + bytes(2 * MAX_EVENT_BYTES))
    assert command.run("--as", "events", name) == 1
    assert f"exceeds {MAX_EVENT_BYTES}" in command.out


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", Kind.RUN),
        (b"\xd2\x84", Kind.CHECKPOINT),
        (b"\xd8\x62\x84", Kind.CHECKPOINT),
        (b"\xa2\x66events", Kind.RUN),
        (b"\xa3\x61a\x82\x01\x02\x65after", Kind.CONSISTENCY),
        (b"\xb8\x02\x69inclusion", Kind.EVENT_PROOF),
        (b"\xbf\x69canonical", Kind.EVENT_PROOF),
        (b"\xa1\x64size\x01", Kind.RUN),
        (b"\xa7\x63seq\x01", Kind.EVENTS),
        (b"\xa7\x61a\x5f", Kind.RUN),
    ],
)
def test_the_kind_is_told_by_the_first_telling_field(data: bytes, kind: Kind) -> None:
    """Odd heads and unknown fields before it do not hide it; nothing telling means a run."""
    assert tell_kind(data) is kind


def pem_of_key() -> bytes:
    """The sample key as a PEM file."""
    return Ed25519PublicKey.from_public_bytes(KEY.public.raw).public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def test_keys_are_given_in_every_documented_form(command: Command) -> None:
    """KID= with digits, a PEM, an OpenSSH line, a COSE_Key or a did:key; the same alone with `--any-kid`."""
    name = command.file(RUN)
    pem = command.file(pem_of_key(), "key.pem")
    line = command.file(KEY.public.to_openssh_public(), "key.pub")
    cose = command.file(b"\xa4\x01\x01\x03\x32\x20\x06\x21\x58\x20" + KEY.public.raw, "key.cose")
    did = command.file(KEY.public.did_key.encode() + b"\n", "key.did")
    for value in (KEY.public.hex, KEY.public.hex.upper(), pem, line, cose, did):
        assert command.run("--key", f"{KID.decode()}={value}", name) == 0
        assert command.run("--any-kid", "--key", value, name) == 0
        assert command.run("--key", f"another={value}", name) == 1
    broken = command.file(b"\xa1\x01\x01", "broken.cose")
    assert command.run("--key", f"{KID.decode()}={broken}", name) == 2
    other = "00" * 31 + "03"
    assert command.run("--key", f"a=b={KEY.public.hex}", KEY_ARGUMENT, name) == 0
    assert command.run("--key", f"x={other}", name) in {1, 2}


def piped(data: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the module with bytes that come through a pipe."""
    command = [sys.executable, "-m", "affidavit.tools.verify", KEY_ARGUMENT, "--json", *arguments]
    return subprocess.run(command, cwd=ROOT / "tests", input=data, capture_output=True, check=False)


@pytest.mark.parametrize("kind", ARTIFACTS)
def test_standard_input_is_read_where_it_is_named(command: Command, kind: str) -> None:
    """Through a pipe or from a file, whatever it holds: the verdict is that on the file."""
    data = ARTIFACTS[kind]
    for broken in (data, data[:-1], data + b"x", b""):
        done = piped(broken, "-")
        told = command.run(KEY_ARGUMENT, "--json", command.file(broken))
        (expected,) = command.objects()
        (found,) = [json.loads(line) for line in done.stdout.splitlines()]
        assert (done.returncode, done.stderr, found["file"]) == (told, b"", "-")
        for value in ("kind", "verdict", "failure_code", "root", "size", "events"):
            assert found[value] == expected[value]
    with Path(command.file(data)).open("rb") as file:
        same = subprocess.run(
            [sys.executable, "-m", "affidavit.tools.verify", KEY_ARGUMENT, "-"],
            cwd=ROOT / "tests",
            stdin=file,
            capture_output=True,
            check=False,
        )
    assert (same.returncode, same.stderr) == (0, b"")


def test_standard_input_beside_files(command: Command) -> None:
    """It is one of several; named twice, it is misuse."""
    name = command.file(RUN)
    done = piped(ARTIFACTS["checkpoint"], name, "-")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["file"], one["kind"]) for one in found] == [(name, "run"), ("-", "checkpoint")]
    assert done.returncode == 0
    twice = piped(RUN, "-", "-")
    assert (twice.returncode, twice.stdout) == (2, b"")
    assert b"standard input can be read once" in twice.stderr


def test_standard_input_that_is_closed_is_one_sentence() -> None:
    """Exit 2 and no traceback."""
    line = 'exec "$0" -m affidavit.tools.verify - <&-'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable], cwd=ROOT / "tests", capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == (
        b"affidavit verify: cannot read standard input: Bad file descriptor; see affidavit verify --help\n"
    )


def test_a_long_record_comes_through_a_pipe_in_little_memory(command: Command) -> None:
    """It is not held, nor written anywhere, and more processes that are asked for are simply not used."""
    program = (
        "import re, sys; from affidavit.tools import verify; verify.main(sys.argv[1:]); "
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )

    def peak(data: bytes) -> int:
        done = subprocess.run(
            [sys.executable, "-c", program, KEY_ARGUMENT, "--json", "--jobs", "2", "-"],
            cwd=ROOT / "tests",
            input=data,
            capture_output=True,
            check=True,
        )
        verdict, kib = done.stdout.splitlines()
        assert json.loads(verdict)["verdict"] == "accept"
        return int(kib)

    padded = [event(seq, payload={"text": "x" * 900}) for seq in range(1, 12_001)]
    assert peak(sealed(padded)) - peak(sealed(padded[:10])) < 6 * 1024


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        (KEY.public.hex, "add --any-kid"),
        ("kid=zz", "neither 64 hexadecimal digits nor a key file"),
        ("kid=" + "z" * 300, "neither 64 hexadecimal digits nor a key file"),
        ("kid=", "neither 64 hexadecimal digits nor a key file"),
        ("=" + KEY.public.hex, "add --any-kid"),
        ("kid=" + "00" * 32, "small order"),
        ("did:key:z6Mk", "did:key"),
        ("did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp=" + KEY.public.hex, "other than its own"),
        (f"kid={ROOT / 'pyproject.toml'}", "OpenSSH"),
        (f"kid={ROOT}", "is a directory"),
    ],
)
def test_a_bad_key_argument_is_exit_2(command: Command, argument: str, said: str) -> None:
    """One sentence that says what is wrong with it; nothing is verified."""
    assert command.run("--key", argument, command.file(RUN)) == 2
    says_one_line(command, said)


def test_two_keys_for_one_id_are_exit_2(command: Command) -> None:
    """Which one to trust is not for the command to choose."""
    other = "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"
    assert command.run(KEY_ARGUMENT, "--key", f"{KID.decode()}={other}", command.file(RUN)) == 2
    says_one_line(command, "two keys")


def keyring_file(command: Command, **changes: str) -> str:
    """A keyring file with the sample key."""
    entry = {"key_id": KID.decode(), "public_key_hex": KEY.public.hex} | changes
    return command.file(json.dumps({"keyring": [entry]}).encode(), "keyring.json")


def test_a_keyring_comes_from_the_option_or_the_environment(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either works; the option wins; a revoked key is refused by name."""
    name, ring = command.file(RUN), keyring_file(command)
    assert command.run("--keyring", ring, name) == 0
    monkeypatch.setenv("AFFIDAVIT_KEYRING", ring)
    assert command.run(name) == 0
    monkeypatch.setenv("AFFIDAVIT_KEYRING", str(command.folder / "gone"))
    assert command.run("--keyring", ring, name) == 0
    assert command.run(name) == 2
    says_one_line(command, "there is no file")
    keyring_file(command, revoked="lost")
    assert command.run("--keyring", ring, name) == 1
    assert "revoked: lost" in command.out


@pytest.mark.parametrize("content", [b"", b"{}", b"not json", b'{"keyring": [{"key_id": "a"}]}', b"\xff"])
def test_a_bad_keyring_is_exit_2(command: Command, content: bytes) -> None:
    """One sentence, and nothing is verified."""
    assert command.run("--keyring", command.file(content, "ring"), command.file(RUN)) == 2
    says_one_line(command, "keyring")


def run_module(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run the module as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "affidavit.tools.verify", *arguments],
        cwd=ROOT / "tests",
        capture_output=True,
        check=False,
        env=env,
    )


def test_the_module_runs_by_itself_in_any_locale(command: Command) -> None:
    """`python -m affidavit.tools.verify` ends with the same code, also where output is ASCII only."""
    name = command.file(sealed(events(2), origin="run/\u00fcber"), "\u00fcber.provetrail")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = run_module(KEY_ARGUMENT, name, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"VERIFIED at L4" in done.stdout
    assert run_module(str(command.folder)).returncode == 2


def test_a_reader_that_goes_away_is_no_traceback(command: Command) -> None:
    """A closed pipe ends the command quietly, with another code than 0."""
    name = command.file(RUN)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "affidavit.tools.verify", KEY_ARGUMENT, name],
        cwd=ROOT / "tests",
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (2, b"")


def test_an_interrupt_is_exit_130(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends the command without a traceback."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(verify, "open_artifact", interrupted)
    assert command.run(command.file(RUN)) == 130


def test_verifying_writes_nothing(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, store or cache is made by a verification."""
    home = tmp_path / "home"
    home.mkdir()
    for variable in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(home))
    name = command.file(RUN)
    before = sorted(command.folder.rglob("*"))
    assert command.run(KEY_ARGUMENT, name) == 0
    assert sorted(command.folder.rglob("*")) == before
