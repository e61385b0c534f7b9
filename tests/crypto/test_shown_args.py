"""Arguments at L4: what was asked about and admitted is what the record shows, or a finding says for which call it is not."""

from hashlib import sha256
from typing import Any

import pytest

from affidavit.crypto import VerifiedRecord, verify_record
from affidavit.crypto.findings import Finding, FindingKind
from affidavit.crypto.record_part import Checks, PartFold
from affidavit.crypto.record_wire import decode_part, encode_part
from affidavit.crypto.shown_args import ArgsFold, ArgsPart, Owed
from tests.crypto.samples import STREAM, event, keyring, sealed

SALT, SHOWN = b"s" * 16, '{"to": "ACME", "amount": "10.00"}'
DIGEST = sha256(SALT + SHOWN.encode()).digest()
USE: dict[str, Any] = {"toolUseID": "u/1"}
CALL = ("tool.call", USE | {"tool": "pay", "input": SHOWN, "salt": SALT})
ASKED = ("approval.requested", USE | {"call": 4, "action": "pay", "args": DIGEST})
ADMITTED = ("dispatch.start", USE | {"call": 4, "action": "pay", "args": DIGEST})
NOTE: tuple[str, dict[str, Any]] = ("note", {})


def made(*events: tuple[str, dict[str, Any]], **changes: Any) -> list[bytes]:
    """The bytes of these events."""
    return [event(seq, kind, payload, **changes) for seq, (kind, payload) in enumerate(events, 1)]


def about_arguments(found: VerifiedRecord) -> list[tuple[FindingKind, tuple[int, ...], tuple[int, ...]]]:
    """The findings about arguments: kind, calls and places."""
    kinds = {FindingKind.ARGS_DIFFER, FindingKind.ARGS_NOT_SHOWN}
    return [(each.kind, each.ids, each.seqs) for each in found.findings if each.kind in kinds]


def judged(*events: tuple[str, dict[str, Any]]) -> list[tuple[FindingKind, tuple[int, ...], tuple[int, ...]]]:
    """What a sealed record of these events says of arguments."""
    return about_arguments(verify_record(sealed(made(*events)), keyring()))


def changed(made: tuple[str, dict[str, Any]], **more: Any) -> tuple[str, dict[str, Any]]:
    """An event with other values in its payload."""
    return made[0], made[1] | more


def test_arguments_that_are_those_shown_are_no_finding() -> None:
    """Also where the goal is named by the run's id in one event and not at all in the other."""
    assert judged(CALL, ASKED, ADMITTED) == []
    assert judged(changed(CALL, goal=STREAM), ASKED, ADMITTED) == []


@pytest.mark.parametrize(
    "shown",
    [
        changed(CALL, input=SHOWN.replace("ACME", "EVE")),
        changed(CALL, salt=b"t" * 16),
        changed(CALL, input=7),
    ],
    ids=["other words", "another salt", "no words"],
)
def test_words_that_were_changed_after_the_approval_are_told(shown: tuple[str, dict[str, Any]]) -> None:
    """What a reader sees is not what was approved and admitted: each place is named with its call."""
    assert judged(shown, ASKED, ADMITTED) == [(FindingKind.ARGS_DIFFER, (4, 4), (2, 3))]


def test_another_digest_in_the_admission_is_told() -> None:
    """The request was for what is shown, and the admission was not."""
    assert judged(CALL, ASKED, changed(ADMITTED, args=b"d" * 32)) == [(FindingKind.ARGS_DIFFER, (4,), (3,))]


@pytest.mark.parametrize(
    "shown", [NOTE, changed(CALL, toolUseID="u/2"), changed(CALL, goal="child")], ids=["none", "id", "goal"]
)
def test_arguments_that_are_not_shown_are_told(shown: tuple[str, dict[str, Any]]) -> None:
    """No call stands before it that is this one of this goal, so nobody can tell what was done."""
    assert judged(shown, ADMITTED) == [(FindingKind.ARGS_NOT_SHOWN, (4,), (2,))]


def test_an_admission_without_arguments_owes_nothing() -> None:
    """A model's call and a check have none."""
    assert judged(("dispatch.start", {"call": 1, "action": "model.generate"})) == []


def test_of_two_calls_under_one_id_the_later_counts() -> None:
    """Providers number the calls of each turn anew."""
    other = changed(CALL, input="{}")
    assert judged(other, CALL, ADMITTED) == []
    assert judged(CALL, other, ADMITTED) == [(FindingKind.ARGS_DIFFER, (4,), (3,))]


def test_events_of_a_version_that_is_not_known_are_not_judged() -> None:
    """They are a finding of their own."""
    events = [*made(CALL, NOTE)[:1], event(2, *ADMITTED, schema_version=9)]
    assert about_arguments(verify_record(sealed(events), keyring())) == []


def parts_of(events: list[bytes], size: int) -> list[Finding]:
    """What is found where the events are read in parts of this size, each sent as bytes to whoever joins them."""
    fold = ArgsFold()
    for at in range(0, len(events), size):
        part = PartFold(Checks(hashed=False), at)
        part.add(events[at : at + size])
        fold.join(decode_part(encode_part(part.finish())).args)
    return list(fold.finish())


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_parts_give_the_same_answer_as_the_whole(size: int) -> None:
    """Wherever a record is cut between a call and what is bound to it."""
    for record in (
        made(CALL, NOTE, ASKED, ADMITTED),
        made(changed(CALL, input="{}"), NOTE, ASKED, ADMITTED),
        made(NOTE, ADMITTED, CALL, ASKED),
    ):
        assert parts_of(record, size) == parts_of(record, 100)


def test_memory_is_bounded_and_what_fell_out_of_it_is_told() -> None:
    """Of very many calls the newest are kept; one that is needed later is a finding that says why."""
    fold = ArgsFold()
    for number in range(10):
        fold.join(ArgsPart(shown=tuple((b"%d/%d" % (number, each), DIGEST) for each in range(1000))))
    fold.join(ArgsPart(owed=(Owed(9, 4, b"9/9", DIGEST), Owed(10, 5, b"0/0", DIGEST))))
    (found,) = fold.finish()
    assert (found.kind, found.ids, found.seqs) == (FindingKind.ARGS_NOT_SHOWN, (5,), (10,))
    assert "too far" in found.detail
