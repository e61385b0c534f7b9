"""What a record says of the run that it goes on from is shown, checked as far as the record goes, and never refused for."""

import pytest

from affidavit.crypto import Keyring, SigningKey, cbor, verify_record
from affidavit.crypto.checkpoint import Checkpoint, sign_checkpoint
from affidavit.crypto.event import Envelope, encode_event
from affidavit.crypto.fork_origin import ForkNote, ForkOrigin, judge_fork, read_fork
from affidavit.crypto.hashing import leaf_hashes, subtree_root
from affidavit.crypto.keyring import Trust
from affidavit.crypto.record import RecordWriter
from affidavit.crypto.record_part import Checks, PartFold
from affidavit.crypto.record_verdict import BEFORE
from affidavit.crypto.record_wire import decode_part, encode_part

KEY = SigningKey.from_seed(bytes(32))
KID = KEY.public.did_key.encode()
KEYRING = Keyring()
KEYRING.add(KID, KEY.public)
ROOT = bytes(range(32))


def signed(origin: str = "parent", size: int = 7) -> bytes:
    """A signed checkpoint."""
    return sign_checkpoint(Checkpoint(origin, size, ROOT), kid=KID, sign=KEY.sign)


def opening(fork: object, kind: str = "session.started") -> bytes:
    """The first event of a run, saying this of its parent."""
    envelope = Envelope(stream="child", seq=1, time=0, type=kind, actor="system", payload={"fork": fork})
    return encode_event(envelope)


def fields(fork: object, kind: str = "session.started") -> dict[str, object]:
    """The fields of such an event."""
    found: dict[str, object] = cbor.decode(opening(fork, kind))
    return found


def test_a_fork_is_read_from_the_first_event_and_carried_between_processes() -> None:
    """Part and verdict hold the parent, the place and the checkpoint."""
    note = ForkNote("parent", 7, signed())
    fold = PartFold(Checks(), 0)
    fold.add([opening({"run": "parent", "n": 7, "checkpoint": signed(), "context": []})])
    part = fold.finish()
    assert part.fork == note
    assert decode_part(encode_part(part)).fork == note
    later = PartFold(Checks(), 1024)
    later.add([opening({"run": "parent", "n": 7, "checkpoint": signed()})])
    assert later.finish().fork is None


@pytest.mark.parametrize(
    "fork",
    [
        None,
        "parent",
        {},
        {"run": "", "n": 7, "checkpoint": b""},
        {"run": "parent", "n": 0, "checkpoint": b""},
        {"run": "parent", "n": True, "checkpoint": b""},
        {"run": "parent", "n": 7, "checkpoint": "text"},
        {"run": 1, "n": 7, "checkpoint": b""},
    ],
)
def test_what_is_no_fork_of_ours_is_left_aside(fork: object) -> None:
    """Any program may write a payload of its own form."""
    assert read_fork(fields(fork)) is None


def test_only_what_opens_a_run_tells_of_a_fork() -> None:
    """Another kind of event may hold such words for reasons of its own."""
    assert read_fork(fields({"run": "parent", "n": 7, "checkpoint": b""}, "note")) is None


def test_a_checkpoint_that_holds_tells_root_and_signer() -> None:
    """By a key of the keyring, and by one that only spells itself out."""
    note = ForkNote("parent", 7, signed())
    assert judge_fork(note, KEYRING) == ForkOrigin("parent", 7, ROOT, KID, Trust.KEYRING, "")
    assert judge_fork(note, Keyring()).trust is Trust.SELF


@pytest.mark.parametrize(
    ("checkpoint", "why"),
    [
        (b"", "sign."),
        (signed()[:-1] + bytes([signed()[-1] ^ 1]), "sign.signature_invalid"),
        (signed(origin="another"), "it is of 7 events of 'another'"),
        (signed(size=8), "it is of 8 events of 'parent'"),
    ],
)
def test_a_checkpoint_that_does_not_hold_is_told_and_not_refused(checkpoint: bytes, why: str) -> None:
    """No tier rests on it; the reason is shown."""
    found = judge_fork(ForkNote("parent", 7, checkpoint), KEYRING)
    assert (found.root, found.kid, found.trust) == (None, None, Trust.NONE)
    assert why in found.trouble


def test_the_verdict_on_a_fork_says_where_it_goes_on_from_and_what_that_leaves_open() -> None:
    """The record verifies as any other, and that its beginning is its parent's stays open."""
    event = opening({"run": "parent", "n": 7, "checkpoint": signed()})
    root = subtree_root(leaf_hashes([event]))
    checkpoint = sign_checkpoint(Checkpoint("child", 1, root), kid=KID, sign=KEY.sign)
    pieces: list[bytes] = []
    writer = RecordWriter(1, pieces.append)
    writer.add([event])
    writer.finish(checkpoint)
    found = verify_record(b"".join(pieces), KEYRING)
    assert found.fork == judge_fork(ForkNote("parent", 7, signed()), KEYRING)
    assert BEFORE in found.not_checked
