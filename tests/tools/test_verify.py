"""The command `verify`: each exit code, each kind of artifact, and text and JSON that claim no more than was checked."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from affidavit.crypto import encode_consistency_proof, encode_event_proof, encode_record
from affidavit.crypto.checkpoint import Checkpoint, sign_checkpoint
from affidavit.tools import verify
from tests.crypto.samples import KEY, KID, checkpoint, event, events, sealed, steps, tree

KEY_ARGUMENT = f"--key={KID.decode()}={KEY.public.hex}"
CARRIED = events(5)
TREE = tree(CARRIED)
SIGNED = checkpoint(TREE)
JSON_NAMES = [
    *("file", "kind", "verdict", "trust", "tier", "failure_code", "detail", "index", "expected", "actual"),
    *(
        "events",
        "size",
        "root",
        "kid",
        "key_name",
        "origin",
        "complete",
        "end",
        "gapless",
        "before",
        "governance",
        "approvals",
        "fork",
        "findings",
        "not_checked",
    ),
]
ARTIFACTS = {
    "run": encode_record(CARRIED, SIGNED),
    "checkpoint": SIGNED,
    "event-proof": encode_event_proof(5, 2, CARRIED[2], TREE.inclusion(2), SIGNED),
    "consistency": encode_consistency_proof(SIGNED, TREE.consistency(3), checkpoint(TREE, 3)),
    "events": CARRIED[0],
}


@pytest.fixture(autouse=True)
def no_keyring_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No keyring of the machine leaks into a test."""
    monkeypatch.delenv("AFFIDAVIT_KEYRING", raising=False)


class Command:
    """Runs the command on bytes and keeps what it said."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self.out = self.err = ""

    def file(self, data: bytes, name: str = "run.provetrail") -> str:
        """Store bytes as a file and return its name."""
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def run(self, *arguments: str) -> int:
        """Run it and return the exit code."""
        code = verify.main(list(arguments))
        self.out, self.err = self._capsys.readouterr()
        return code

    def objects(self) -> list[dict[str, Any]]:
        """The JSON objects that it printed."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command, in an empty folder."""
    return Command(tmp_path, capsys)


@pytest.mark.parametrize(
    ("kind", "tier"),
    [("run", "L4"), ("checkpoint", "L2"), ("event-proof", "L3"), ("consistency", "L3"), ("events", "L1")],
)
def test_each_kind_is_told_from_its_content(command: Command, kind: str, tier: str) -> None:
    """Without `--as`, and with it, each artifact verifies as what it is, at its highest tier."""
    name = command.file(ARTIFACTS[kind])
    for extra in ((), ("--as", kind)):
        assert command.run(KEY_ARGUMENT, "--json", *extra, name) == 0
        found = command.objects()[0]
        assert (found["kind"], found["verdict"], found["tier"]) == (kind, "accept", tier)


def test_json_has_the_same_names_each_time(command: Command) -> None:
    """One object per file, in order, with every name present, accepted or not."""
    names = [command.file(data, kind) for kind, data in ARTIFACTS.items()]
    names += [command.file(b"garbage", "garbage"), command.file(steps(("dispatch.end", {})), "unruly")]
    assert command.run(KEY_ARGUMENT, "--json", *names) == 1
    assert [found["file"] for found in command.objects()] == names
    assert all(list(found) == JSON_NAMES for found in command.objects())


def test_json_of_a_sealed_run(command: Command) -> None:
    """Every value of an accepted record."""
    name = command.file(
        steps(("session.started", {}), ("dispatch.start", {"call": 1}), ("session.stalled", {}))
    )
    assert command.run(KEY_ARGUMENT, "--json", name) == 0
    (found,) = command.objects()
    assert re.fullmatch("[0-9a-f]{64}", found.pop("root"))
    not_checked = found.pop("not_checked")
    assert not_checked[0] == "whether the run went on after this seal"
    assert found == {
        "file": name,
        "kind": "run",
        "verdict": "accept",
        "trust": "keyring",
        "tier": "L4",
        "failure_code": None,
        "detail": None,
        "index": None,
        "expected": None,
        "actual": None,
        "events": 3,
        "size": 3,
        "kid": KID.decode(),
        "key_name": None,
        "origin": "run/sample",
        "complete": True,
        "end": "session.stalled",
        "gapless": True,
        "before": None,
        "governance": {
            "admitted": 1,
            "completed": 0,
            "refused": 0,
            "interrupted": 0,
            "outcomes_claimed": 0,
            "not_judged": 0,
        },
        "approvals": {
            "approved": 0,
            "refused": 0,
            "expired": 0,
            "signed": 0,
            "unsigned": 0,
            "unsigned_approved": 0,
            "unchecked": 0,
            "signers": [],
        },
        "fork": None,
        "findings": [
            {
                "kind": "open_call",
                "detail": "a call was admitted and has no end on the record",
                "count": 1,
                "seqs": [2],
                "ids": [1],
            }
        ],
    }


def test_json_of_a_rejection_tells_the_two_values_that_disagree(command: Command) -> None:
    """A cut tail: the signed size and the size that is there; an unruly end: the index of the event."""
    cut = command.file(encode_record(CARRIED[:3], SIGNED), "cut")
    unruly = command.file(steps(("session.started", {}), ("dispatch.end", {"call": 1})), "unruly")
    assert command.run(KEY_ARGUMENT, "--json", cut, unruly) == 1
    size, end = command.objects()
    assert (size["failure_code"], size["expected"], size["actual"]) == ("record.size_mismatch", "5", "3")
    assert (end["failure_code"], end["index"]) == ("gov.unadmitted_action", 1)


def test_a_rejection_names_its_code_and_repeats_nothing_unsigned(command: Command) -> None:
    """Exit 1, the code in text and JSON, and no size, root, key id or origin as if they were facts."""
    name = command.file(encode_record(CARRIED[:4], SIGNED))
    assert command.run(KEY_ARGUMENT, name) == 1
    assert "REJECTED  record.size_mismatch" in command.out
    assert command.run(KEY_ARGUMENT, "--json", name) == 1
    (found,) = command.objects()
    assert (found["verdict"], found["failure_code"], found["trust"]) == (
        "reject",
        "record.size_mismatch",
        "none",
    )
    assert [found[name] for name in ("events", "size", "root", "kid", "origin", "complete")] == [None] * 6


def test_a_key_that_only_certifies_itself_is_exit_3(command: Command) -> None:
    """Intact, and said to be no more than that; the key given makes it 0."""
    did = KEY.public.did_key
    name = command.file(sealed(CARRIED, kid=did.encode()))
    assert command.run(name) == 3
    assert "INTACT at L4, but signed by a key that only certifies itself" in command.out
    assert "NOT trusted" in command.out
    assert "whose key it is" in command.out
    assert "VERIFIED" not in command.out
    assert command.run(f"--key={did}={KEY.public.hex}", name) == 0
    assert command.run(f"--key={did}", name) == 0, "a did:key alone is bound to itself"


def test_an_unknown_key_is_a_rejection(command: Command) -> None:
    """Without its key, a record whose key id names no key is refused."""
    assert command.run(command.file(ARTIFACTS["run"])) == 1
    assert "sign.unknown_key" in command.out


def test_the_worst_of_several_files_counts(command: Command) -> None:
    """1 before 2 before 3 before 0, in whatever order the files stand."""
    good, bad = command.file(ARTIFACTS["run"], "good"), command.file(b"\xa0", "bad")
    own = command.file(sealed(CARRIED, kid=KEY.public.did_key.encode()), "own")
    gone = str(command.folder / "gone")
    for names, code in (
        ((good, good), 0),
        ((good, own), 3),
        ((own, gone, good), 2),
        ((gone, bad, own), 1),
        ((bad, gone), 1),
    ):
        assert command.run(KEY_ARGUMENT, *names) == code


def test_text_says_what_was_checked_tier_by_tier(command: Command) -> None:
    """Size, root, key, trust, each tier, completeness and gaps; never a bare `verified` or a bare L4."""
    name = command.file(
        steps(
            ("session.started", {}),
            ("dispatch.start", {"call": 1}),
            ("dispatch.rejected", {"call": 2}),
            ("dispatch.end", {"call": 1, "error_class": "interrupted"}),
        )
    )
    assert command.run(KEY_ARGUMENT, name) == 0
    lines = [line.strip() for line in command.out.splitlines()]
    assert lines[0] == "VERIFIED at L4, and no further than the lines below say"
    assert lines[1].startswith("file ")
    assert "L1 ok: every event is canonical, of one stream, in order" in lines
    assert "L2 ok: the signature holds, and the 4 events rebuild the signed root" in lines
    assert "L4: 1 admitted, 1 completed, 1 refused, 0 successes claimed, 1 interrupted" in lines
    assert "complete     NO: this record stops before the run ended" in lines
    assert f"key id       {KID.decode()}" in lines
    assert any(re.fullmatch("root +[0-9a-f]{64}", line) for line in lines)
    assert "not checked  whether the run went on after this seal" in lines


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("checkpoint", ["L2 ok: the signature holds"]),
        (
            "event-proof",
            [
                "event        number 3 of 5: 'note' by agent, seq 3 of stream 'run/sample'",
                "L1 ok: the event is canonical",
                "L2 ok: the signature holds",
                "L3 ok: the path leads from the event to the signed root",
                "not checked  the other events of the run, and whether they keep the rules (L4)",
            ],
        ),
        (
            "consistency",
            ["L2 ok: both signatures hold", "L3 ok: the 5 events signed later extend the 3 signed earlier"],
        ),
        ("events", ["events       1", "trust        none: no signature was checked"]),
    ],
)
def test_text_of_the_other_kinds(command: Command, kind: str, lines: list[str]) -> None:
    """Each kind says which tiers held and what stays open, and nothing of completeness."""
    assert command.run(KEY_ARGUMENT, command.file(ARTIFACTS[kind])) == 0
    said = [line.strip() for line in command.out.splitlines()]
    assert [line for line in lines if line not in said] == []
    assert "not checked  whether the run went on after this seal" in said
    assert not any(line.startswith(("complete", "L4:")) for line in said)


@pytest.mark.parametrize(("tier", "code"), [("L1", 0), ("L2", 0), ("L3", 0), ("L4", 1)])
def test_a_tier_that_is_asked_for_is_where_it_stops(command: Command, tier: str, code: int) -> None:
    """Below L4 broken rules do not reject, and the text says that they were not checked."""
    name = command.file(steps(("dispatch.end", {"call": 1})))
    assert command.run(KEY_ARGUMENT, "--tier", tier, name) == code
    if code == 0:
        assert "L4:" not in command.out
        assert "whether actions were admitted and successes rest on checks (L4)" in command.out
    else:
        assert "gov.unadmitted_action" in command.out
        assert "L2 ok" in command.out
        assert "L4 FAILED" in command.out


def test_at_l1_nothing_signed_is_claimed(command: Command) -> None:
    """Structure alone names no key, root or size, and says that no signature was checked."""
    assert command.run("--tier", "L1", command.file(ARTIFACTS["run"])) == 0
    assert "L2 ok" not in command.out
    assert "no signature was checked" in command.out
    assert KID.decode() not in command.out


@pytest.mark.parametrize(
    ("kind", "tier"), [("checkpoint", "L1"), ("event-proof", "L2"), ("consistency", "L1")]
)
def test_a_tier_that_says_nothing_about_a_kind_is_misuse(command: Command, kind: str, tier: str) -> None:
    """Rather than accepting with nothing checked."""
    assert command.run(KEY_ARGUMENT, "--tier", tier, command.file(ARTIFACTS[kind])) == 2
    assert "says nothing about this kind" in command.err
    assert command.out == ""


def test_events_are_checked_together_as_one_stream(command: Command) -> None:
    """Several files are one stream with one verdict; no file is the empty stream."""
    names = [command.file(data, f"{index}.cbor") for index, data in enumerate(CARRIED)]
    assert command.run("--as", "events", "--json", *names) == 0
    (found,) = command.objects()
    assert (found["file"], found["events"], found["trust"]) == (names, 5, "none")
    assert command.run("--as", "events", names[1], names[0]) == 1
    assert "chain.non_monotonic_seq" in command.out
    assert command.run("--as", "events", names[0]) == 0
    assert "no signature was checked" in command.out
    assert command.run("--as", "events", "--json") == 1
    (found,) = command.objects()
    assert (found["file"], found["failure_code"]) == (None, "chain.empty")
    assert command.run("--as", "events") == 1


def test_findings_are_printed(command: Command) -> None:
    """What is odd but allowed stands in the text, with where it is."""
    assert command.run(KEY_ARGUMENT, command.file(sealed(CARRIED[2:]))) == 0
    assert "  gapless      NO: numbers are missing" in command.out
    assert "finding      seq leaves a gap: the record is a window of its stream (seq 3)" in command.out


def test_text_from_a_record_cannot_drive_a_terminal(command: Command) -> None:
    """Escape codes, line breaks and bidirectional marks in names and origins are shown, not obeyed."""
    evil = "run\x1b[2J\n\u202eVERIFIED\x00"
    carried = [event(1, stream=evil)]
    name = command.file(sealed(carried, origin=evil), "a\x1b]0;b.provetrail")
    assert command.run(KEY_ARGUMENT, name) == 0
    assert not set("\x1b\x00\u202e") & set(command.out)
    assert "run\\x1b[2J\\n\\u202eVERIFIED\\x00" in command.out


def test_help_has_an_example(command: Command) -> None:
    """`--help` explains the exit codes and shows a command line."""
    assert command.run("--help") == 0
    assert "affidavit verify --key" in command.out
    assert "exit codes" in command.out


@pytest.mark.parametrize(
    "arguments", [[], ["--tier", "L9", "x"], ["--nonsense"], ["--as", "novel", "x"], ["--key"]]
)
def test_misuse_is_one_sentence_and_exit_2(command: Command, arguments: list[str]) -> None:
    """Nothing but one line on standard error."""
    assert command.run(*arguments) == 2
    assert command.out == ""
    assert len(command.err.splitlines()) == 1
    assert command.err.startswith("affidavit verify: ")


def test_nothing_in_a_record_can_pass_for_a_line_of_the_verifier(command: Command) -> None:
    """A signed origin made to wrap onto lines like ours stays behind the margin, within 80 columns, and is cut."""
    forged = "x" + " " * 64 + "trust        trusted: the key was given by you" + "世" * 300 + "y" * 5000
    signed = sign_checkpoint(Checkpoint(forged, TREE.size, TREE.root()), kid=KID, sign=KEY.sign)
    assert command.run(KEY_ARGUMENT, command.file(signed)) == 0
    lines = command.out.splitlines()
    (first,) = [number for number, line in enumerate(lines) if line.startswith("  origin       x")]
    assert all(line.startswith(" " * 15) for line in lines[first + 1 : first + 4])
    assert max(sum(1 + (letter == "世") for letter in line) for line in lines[first : first + 4]) < 80
    assert lines[first + 3].strip() == f"... ({len(forged):,} characters; --json has them all)"
    assert [line for line in lines if line.startswith("  trust ")] == [
        "  trust        trusted: the key was given by you"
    ]
