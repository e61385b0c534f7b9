"""A made run for the benches: events of about 350 bytes with nine envelope fields and eight in the payload.

Every fourth event admits an action and another ends it, so that the rules of tier L4 have their work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from affidavit.crypto.checkpoint import Checkpoint, sign_checkpoint
from affidavit.crypto.event import Envelope, encode_event
from affidavit.crypto.keys import SigningKey
from affidavit.crypto.record import RecordWriter

KEY: Final = SigningKey.from_seed(hashlib.sha256(b"a key that signs nothing but benches").digest())
KID: Final = b"bench"
STREAM: Final = "0198f0aa-7c11-7b1e-9d53-2f9c6bd0a001"
_TIME: Final = 1_700_000_000_000_000_000
_KINDS: Final = ("dispatch.start", "tool.call", "tool.result", "dispatch.end")
_SLICE: Final = 1000


def made_event(seq: int) -> bytes:
    """Return the bytes of one event."""
    mark = hashlib.sha256(str(seq).encode()).hexdigest()
    payload = {
        "salt": bytes.fromhex(mark[:32]),
        "call": (seq + 3) // 4,
        "action": "tool.read_file",
        "trust": "semi-trusted",
        "goal": "",
        "turn": seq // 20,
        "toolUseID": f"call_{mark[:16]}",
        "args": f'{{"path":"ledger/{mark[20:40]}.csv"}}',
    }
    return encode_event(
        Envelope(
            stream=STREAM,
            seq=seq,
            time=_TIME + seq * 1_000_003,
            type=_KINDS[(seq - 1) % 4],
            actor="agent",
            payload=payload,
            principal="settlement-agent@example",
            trace_id=mark[:32],
        )
    )


def made_events(count: int) -> Iterator[list[bytes]]:
    """Yield the events of a run, a thousand at a time."""
    for start in range(1, count + 1, _SLICE):
        yield [made_event(seq) for seq in range(start, min(start + _SLICE, count + 1))]


def write_made_record(path: Path, count: int) -> None:
    """Write a sealed run of so many events."""
    with path.open("wb") as file:
        writer = RecordWriter(count, file.write)
        for events in made_events(count):
            writer.add(events)
        writer.finish(signed(count, writer.root()))


def signed(size: int, root: bytes) -> bytes:
    """Return the signed checkpoint of the run's first `size` events."""
    return sign_checkpoint(Checkpoint(STREAM, size, root), kid=KID, sign=KEY.sign)
