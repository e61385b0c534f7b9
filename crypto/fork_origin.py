"""What a record says of the run that it goes on from: a claim of its first event, with a signed checkpoint of that run.

No tier rests on it, so nothing is refused for it. This record alone shows whether the checkpoint is signed, and of what it is
said to be; whether the other run really has these events is for a consistency proof against its own record.
"""

from typing import Any, Final, NamedTuple

from affidavit.crypto.checkpoint import verify_checkpoint
from affidavit.crypto.failures import VerificationError
from affidavit.crypto.keyring import Keyring, Trust

OPENING: Final = "session.started"
_FORK: Final = "fork"


class ForkNote(NamedTuple):
    """What the first event of a record says of its parent.

    Attributes:
        run: The parent's stream.
        at: After which of its events the record goes on, from 1.
        checkpoint: The signed checkpoint over the parent's first `at` events.
    """

    run: str
    at: int
    checkpoint: bytes


class ForkOrigin(NamedTuple):
    """Where a record goes on from, as far as it shows.

    Attributes:
        run: The parent's stream.
        at: After which of its events, from 1.
        root: The signed root over the parent's first `at` events; None where the checkpoint does not hold.
        kid: The key id that signed it; None likewise.
        trust: Where trust in that key comes from.
        trouble: Why the checkpoint does not hold; empty where it does.
    """

    run: str
    at: int
    root: bytes | None
    kid: bytes | None
    trust: Trust
    trouble: str


def read_fork(fields: dict[str, Any]) -> ForkNote | None:
    """Return what an event says of its run's parent; None of a run that is no fork, or says it in another form.

    Args:
        fields: The fields of the record's first event, which passed L1.
    """
    payload = fields.get("payload")
    fork = payload.get(_FORK) if fields["type"] == OPENING and isinstance(payload, dict) else None
    if not isinstance(fork, dict):
        return None
    match (fork.get("run"), fork.get("n"), fork.get("checkpoint")):
        case (str() as run, int() as at, bytes() as checkpoint) if at is not True and at > 0 and run:
            return ForkNote(run, at, checkpoint)
        case _:
            return None


def judge_fork(note: ForkNote, keyring: Keyring) -> ForkOrigin:
    """Return what a record shows of its parent. Never raises for what it holds."""
    try:
        found = verify_checkpoint(note.checkpoint, keyring)
    except VerificationError as error:
        return ForkOrigin(note.run, note.at, None, None, Trust.NONE, f"{error.code}: {error.detail}")
    signed = found.checkpoint
    if (signed.origin, signed.size) != (note.run, note.at):
        trouble = f"it is of {signed.size} events of {signed.origin!r}"
        return ForkOrigin(note.run, note.at, None, None, Trust.NONE, trouble)
    return ForkOrigin(note.run, note.at, signed.root, found.kid, found.trust, "")
