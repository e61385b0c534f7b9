"""What `verify` says of keys and of findings: names and validity from the keyring, each call with its place, both values."""

import json
from collections.abc import Callable

import pytest

from affidavit.crypto import encode_consistency_proof, encode_event_proof, encode_record
from affidavit.tools._verify_report import plain
from tests.crypto.samples import KEY, KID, checkpoint, event, sealed, steps, tree
from tests.tools.test_verify import (
    ARTIFACTS,
    CARRIED,
    KEY_ARGUMENT,
    SIGNED,
    TREE,
    Command,
    command,
    no_keyring_from_outside,
)

__all__ = ["command", "no_keyring_from_outside"]


def test_findings_name_each_call_and_where_it_is(command: Command) -> None:
    """Five of them in the text and how many more there are; a hundred in JSON."""
    name = command.file(steps(*[("dispatch.start", {"call": call}) for call in range(7, 1207)]))
    assert command.run(KEY_ARGUMENT, name) == 0
    said = "finding 1200 calls were admitted and have no end on the record (call 7 at seq 1, call 8 at seq 2,"
    for words in (said, "call 11 at seq 5, and 1,195 more)"):
        assert words.replace(" ", "") in "".join(command.out.split())
    assert command.run(KEY_ARGUMENT, "--json", name) == 0
    ((finding,),) = [found["findings"] for found in command.objects()]
    assert (finding["count"], finding["ids"], finding["seqs"]) == (1200, [*range(7, 107)], [*range(1, 101)])


def test_a_rejection_shows_the_two_values_that_disagree(command: Command) -> None:
    """In the text as in JSON, and with what comes from the file behind the margin."""
    assert command.run(KEY_ARGUMENT, command.file(encode_record(CARRIED[:4], SIGNED))) == 1
    said = [line.strip() for line in command.out.splitlines()]
    assert {"expected     5", "found        4"} <= set(said)
    assert command.run(command.file(b"no record at all")) == 1
    said = [line.strip() for line in command.out.splitlines()]
    assert "read as      a sealed run" in said
    assert not any(line.startswith("what ") for line in said)
    name = command.file(sealed([event(1), event(2, stream="x\nVERIFIED at L4")]))
    assert command.run(KEY_ARGUMENT, name) == 1
    assert "  found        x\\nVERIFIED at L4" in command.out.splitlines()


@pytest.fixture
def named(command: Command) -> Callable[..., str]:
    """Write a keyring with the sample key under a name, and return its name."""

    def write(**more: str) -> str:
        entry = {
            "key_id": KID.decode(),
            "public_key_hex": KEY.public.hex,
            "name": "Ops, \u001bBerlin",
            **more,
        }
        return command.file(json.dumps({"keyring": [entry]}).encode(), "keyring.json")

    return write


@pytest.mark.parametrize("kind", ["run", "checkpoint", "event-proof", "consistency"])
def test_the_name_that_the_keyring_gives_a_key_is_shown(
    command: Command, named: Callable[..., str], kind: str
) -> None:
    """And whose word it is; nothing of it where the key is given by hand."""
    name, ring = command.file(ARTIFACTS[kind]), named()
    assert command.run("--keyring", ring, name) == 0
    assert "  key name     Ops, \\x1bBerlin (in your keyring)" in command.out.splitlines()
    assert command.run("--keyring", ring, "--json", name) == 0
    assert command.objects()[0]["key_name"] == "Ops, \x1bBerlin"
    assert command.run(KEY_ARGUMENT, name) == 0
    assert "key name" not in command.out


UNTIMED = "whether the key was valid when it signed: nothing in it tells when that was"


@pytest.mark.parametrize(
    ("kind", "is_open"), [("run", False), ("checkpoint", True), ("event-proof", True), ("consistency", True)]
)
def test_what_names_no_time_leaves_a_key_s_validity_open(
    command: Command, named: Callable[..., str], kind: str, is_open: bool
) -> None:
    """Where the keyring binds a key to a time, what cannot be compared with it is said to be not checked."""
    name = command.file(ARTIFACTS[kind])
    for bound in ({"valid_from": "2001-01-01T00:00:00Z"}, {"valid_until": "2091-01-01T00:00:00Z"}):
        assert command.run("--keyring", named(**bound), "--json", name) == 0
        assert (UNTIMED in command.objects()[0]["not_checked"]) is is_open
    assert command.run("--keyring", named(), "--json", name) == 0
    assert UNTIMED not in command.objects()[0]["not_checked"]


def test_a_proof_of_an_event_later_than_its_key_s_validity_has_a_finding(
    command: Command, named: Callable[..., str]
) -> None:
    """As a record has."""
    for kind in ("run", "event-proof"):
        ring = named(valid_until="2001-01-01T00:00:00Z")
        assert command.run("--keyring", ring, "--json", command.file(ARTIFACTS[kind])) == 0
        kinds = [finding["kind"] for finding in command.objects()[0]["findings"]]
        assert kinds == ["key_no_longer_valid"]


def test_a_consistency_proof_says_what_was_extended_and_by_which_keys(command: Command) -> None:
    """Size, root and key of the earlier checkpoint; its key in the text where it is another."""
    old = checkpoint(TREE, 3, kid=b"old-key")
    name = command.file(encode_consistency_proof(SIGNED, TREE.consistency(3), old))
    keys = (KEY_ARGUMENT, f"--key=old-key={KEY.public.hex}")
    assert command.run(*keys, "--json", name) == 0
    root = TREE.root(3).hex()
    assert command.objects()[0]["before"] == {"size": 3, "root": root, "kid": "old-key", "key_name": None}
    assert command.run(*keys, name) == 0
    assert {f"  root before  {root}", "  key before   old-key"} <= set(command.out.splitlines())


@pytest.mark.parametrize("kind", ["run", "event-proof", "events"])
def test_the_depth_of_an_event_can_be_raised(command: Command, kind: str) -> None:
    """By an option, up to ten thousand levels; by default, and beyond what was asked for, it is refused."""
    for depth in (65, 200, 5000):
        deep = event(1, payload={"x": None}).replace(b"\x61x\xf6", b"\x61x" + b"\x81" * (depth - 2) + b"\x00")
        signed = checkpoint(tree([deep]))
        data = {
            "run": encode_record([deep], signed),
            "event-proof": encode_event_proof(1, 0, deep, [], signed),
            "events": deep,
        }
        name = command.file(data[kind])
        for jobs in ("1", "2"):
            common = (KEY_ARGUMENT, "--as", kind, "--jobs", jobs)
            assert command.run(*common, name) == 1
            assert "enc.decode" in command.out
            assert command.run(*common, "--max-depth", str(depth), name) == 0
            if depth > 65:
                assert command.run(*common, "--max-depth", str(depth - 1), name) == 1
    for number in ("63", "10001", "-1", "many"):
        assert command.run("--max-depth", number, "x") == 2
        assert "a number from 64 to 10000" in command.err


def test_marks_that_are_piled_up_are_spelled_out() -> None:
    """A few marks on a letter belong to a script; a thousand would cover the lines above, and are no longer drawn."""
    assert plain("e\u0301\u0302") == "e\u0301\u0302"
    piled = plain("e" + "\u0301" * 1_000)
    assert piled.startswith("e" + "\u0301" * 8 + "\\u0301")
    assert piled.count("\u0301") == 8
