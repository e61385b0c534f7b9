"""The demo: one screen, true in every line, and its files are what it says they are."""

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest
import trio

from affidavit.crypto.event import decode_event
from affidavit.crypto.failures import VerificationError
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.keys import parse_did_key
from affidavit.crypto.record import verify_record
from affidavit.tools import verify
from affidavit.tools.demo import run_demo
from tests.environment import absent

COLUMNS, LINES = 80, 60


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return the demo's screen and the folder it left its files in; played once for all tests here."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        lines: list[str] = []
        patch.setattr("affidavit.tools.painter.Painter.line", lambda self, text: lines.append(text))
        assert trio.run(run_demo, folder) == 0
    return "\n".join(lines), folder


def _commands(screen: str) -> list[str]:
    return [line.strip() for line in screen.splitlines() if re.match(r" {5}(affidavit|python) ", line)]


def test_fits_one_screen(shown: tuple[str, Path]) -> None:
    """The demo takes fewer than 60 lines of 80 columns; only the commands to copy may be wider."""
    lines = shown[0].splitlines()
    assert len(lines) < LINES
    assert [line for line in lines if len(line) > COLUMNS and line.strip() not in _commands(shown[0])] == []


def test_shows_no_colour_outside_a_terminal(shown: tuple[str, Path]) -> None:
    """Captured output holds no escape code."""
    assert "\033" not in shown[0]


def test_viewer_count_is_the_number_of_the_run_events(shown: tuple[str, Path]) -> None:
    """The count the returning viewer claims is the number of the last event before the seal, which the record holds."""
    screen, folder = shown
    claimed = re.search(r"(\d+) of (\d+) events, each exactly once", screen)
    assert claimed is not None
    record = next(folder.glob("*.provetrail")).read_bytes()
    key = parse_did_key(re.search(r"did:key:\w+", screen)[0])  # type: ignore[index]
    verified = verify_record(record, Keyring({key.did_key.encode(): key}))
    assert claimed.groups() == (str(len(verified.events)),) * 2
    assert verified.complete is True


def test_as_many_actions_are_shown_as_refused_as_are_counted(shown: tuple[str, Path]) -> None:
    """A refused connection is blocked, since its action was admitted: whoever counts the lines arrives at the number of L4."""
    screen, _ = shown
    counted = re.search(r"before they ran, (\d+) refused", screen)
    assert counted is not None
    assert len(re.findall(r"^ +\d+  refused  ", screen, re.MULTILINE)) == int(counted[1])
    assert len(re.findall(r"^ +\d+  blocked  ", screen, re.MULTILINE)) == 1


def test_the_payment_stands_on_the_record_as_the_screen_tells_it(shown: tuple[str, Path]) -> None:
    """Asked with the exact arguments, approved by name and then run; with another amount asked anew, refused, and never run."""
    screen, folder = shown
    record = next(folder.glob("*.provetrail")).read_bytes()
    key = parse_did_key(re.search(r"did:key:\w+", screen)[0])  # type: ignore[index]
    events = [decode_event(row) for row in verify_record(record, Keyring({key.did_key.encode(): key})).events]
    inputs = {
        event.payload["toolUseID"]: event.payload["input"] for event in events if event.type == "tool.call"
    }
    asked = [event for event in events if event.type == "approval.requested"]
    amounts = [json.loads(inputs[event.payload["toolUseID"]])["amount"] for event in asked]
    assert amounts == ["200.50", "2005.00"]
    assert all(f"for a person: pay {inputs[event.payload['toolUseID']]}" in screen for event in asked)
    decided = [event for event in events if event.type == "approval.decided"]
    assert [(event.principal, event.actor, event.payload["decision"]) for event in decided] == [
        ("ann", "human", "approved"),
        ("ann", "human", "refused"),
    ]
    first, second = (event.payload["call"] for event in asked)
    admitted = {event.payload["call"]: event for event in events if event.type == "dispatch.start"}
    assert admitted[first].payload["approval"] == decided[0].seq
    assert second not in admitted
    assert "200.50 paid to ACME" in screen


def test_the_blocked_connection_stands_on_the_record_as_the_screen_tells_it(shown: tuple[str, Path]) -> None:
    """The one connection that was asked for was refused, and the screen names the event that says so."""
    screen, folder = shown
    record = next(folder.glob("*.provetrail")).read_bytes()
    key = parse_did_key(re.search(r"did:key:\w+", screen)[0])  # type: ignore[index]
    events = [decode_event(row) for row in verify_record(record, Keyring({key.did_key.encode(): key})).events]
    (decision,) = (event for event in events if event.type == "net.egress")
    assert (decision.payload["host"], decision.payload["allowed"]) == ("169.254.169.254", False)
    assert f"before any connection was made, and recorded: event {decision.seq}." in screen


def test_printed_verify_command_ends_0(shown: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The verify line can be copied as it stands: it accepts the record with the printed key."""
    command = next(line for line in _commands(shown[0]) if line.startswith("affidavit verify"))
    assert verify.main(shlex.split(command)[2:]) == 0
    assert "VERIFIED at L4" in capsys.readouterr().out


def test_printed_proof_verifies(shown: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The one event's proof that the demo leaves is accepted as an event proof by a key that certifies itself."""
    proof = next(shown[1].glob("*.proof"))
    assert verify.main([str(proof)]) == 3
    assert "L3 ok" in capsys.readouterr().out


def test_another_projects_verifier_accepts_the_record(
    shown: tuple[str, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line names the provetrail package, and that accepts the same file."""
    if importlib.util.find_spec("provetrail") is None:
        absent("the package provetrail is not installed")
    from provetrail.__main__ import main  # a test dependency, absent in a bare installation

    command = next(line for line in _commands(shown[0]) if line.startswith("python -m provetrail"))
    monkeypatch.setattr("sys.argv", ["provetrail", *shlex.split(command)[3:]])
    assert main() == 0
    assert "VERIFIED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("changed-bit", "record.root_mismatch"),
        ("cut-tail", "record.size_mismatch"),
        ("dropped-event", "record.size_mismatch"),
        ("un-admitted", "gov.unadmitted_action"),
    ],
)
def test_each_tampered_copy_is_refused_with_the_printed_code(
    shown: tuple[str, Path], name: str, code: str
) -> None:
    """Each tampered copy is refused with the very code that the screen shows, and never bears the record's suffix."""
    screen, folder = shown
    key = parse_did_key(re.search(r"did:key:\w+", screen)[0])  # type: ignore[index]
    with pytest.raises(VerificationError) as refused:
        verify_record((folder / f"{name}.tampered").read_bytes(), Keyring({key.did_key.encode(): key}))
    assert str(refused.value.code) == code
    assert code in screen
