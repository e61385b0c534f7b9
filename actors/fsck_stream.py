"""`StreamCheck`: one stream's rows, seals and index line against one another, row by row, each fact computed anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from affidavit.actors.codec import view
from affidavit.actors.events import TERMINAL_KINDS, Event, Kind
from affidavit.actors.logs.port import Row, StreamInfo
from affidavit.actors.run_state import size_of
from affidavit.crypto.checkpoint import Checkpoint, open_checkpoint
from affidavit.crypto.event import decode_event
from affidavit.crypto.failures import FailureCode, VerificationError
from affidavit.crypto.hashing import leaf_hash
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.merkle import Tree


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a store.

    Attributes:
        stream: Where; empty for the file itself.
        seq: At which row; 0 for the stream as a whole.
        kind: One word for programs: `database`, `wal`, `unreadable`, `missing`, `undecodable`, `misplaced`, `index`, `seal`,
            `signature`, `more`.
        detail: What, in one sentence.
    """

    stream: str
    seq: int
    kind: str
    detail: str


@final
class StreamCheck:
    """Takes the rows of one stream in order, then its index line.

    Attributes:
        last: The seq of the last row taken.
        rows: How many were taken.
        seals: How many record.sealed events were among them.
        signatures: How many of their signatures could be checked.
        sealed: How many events the last seal covers.
        findings: What is wrong.
    """

    def __init__(self, stream: str) -> None:
        """Begin before the first row."""
        self.last = self.rows = self.seals = self.signatures = self.sealed = 0
        self.findings: list[Finding] = []
        self._stream = stream
        self._terminal = 0
        self._tree: Tree | None = Tree()

    def add(self, row: Row) -> None:
        """Check the next row."""
        if row.seq != self.last + 1:
            self._find(self.last + 1, "missing", f"rows {self.last + 1} to {row.seq - 1} are missing")
            # Without them no later root can be computed.
            self._tree = None
        self.last = row.seq
        self.rows += 1
        event = self._event(row)
        if event is not None:
            self._follow(event)
        if self._tree is not None:
            self._tree.append(leaf_hash(row.data))

    def _event(self, row: Row) -> Event | None:
        try:
            envelope = decode_event(row.data)
        except VerificationError as error:
            self._find(row.seq, "undecodable", f"the row is not one canonical event: {error}")
            return None
        if (envelope.stream, envelope.seq) != (self._stream, row.seq):
            self._find(
                row.seq,
                "misplaced",
                f"the event in this row says it is event {envelope.seq} of stream {envelope.stream}",
            )
            return None
        return view(envelope)

    def _follow(self, event: Event) -> None:
        if event.kind in TERMINAL_KINDS:
            self._terminal = event.seq
        elif event.kind == Kind.USER_MESSAGE:
            self._terminal = 0
        elif event.kind == Kind.RECORD_SEALED:
            self.seals += 1
            self._check_seal(event)

    def _check_seal(self, event: Event) -> None:
        size, previous = size_of(event), self.sealed
        if not 1 <= size < event.seq:
            self._find(
                event.seq,
                "seal",
                f"the seal says that it covers {size} events, and {event.seq - 1} stand before it",
            )
            return
        self.sealed = size
        if event.detail.get("previous", previous) != previous or size < previous:
            self._find(
                event.seq, "seal", f"the seal does not follow the one before, which covers {previous} events"
            )
        root = event.detail.get("root")
        if self._tree is not None and self._tree.root(size) != root:
            self._find(
                event.seq,
                "seal",
                f"the rows 1 to {size} do not rebuild the sealed root: one of them is not what was sealed",
            )
        self._check_signature(event, Checkpoint(self._stream, size, root if isinstance(root, bytes) else b""))

    def _check_signature(self, event: Event, claimed: Checkpoint) -> None:
        checkpoint = event.detail.get("checkpoint")
        if not isinstance(checkpoint, bytes):
            self._find(event.seq, "signature", "the seal holds no signed checkpoint")
            return
        try:
            opened = open_checkpoint(checkpoint, Keyring())
        except VerificationError as error:
            # A key that its id does not name is in nobody's keyring here, which is no fault of the store.
            if error.code != FailureCode.SIGN_UNKNOWN_KEY:
                self._find(event.seq, "signature", f"the seal's signature does not hold: {error}")
            return
        self.signatures += 1
        if opened.checkpoint != claimed or opened.kid != event.detail.get("kid"):
            self._find(event.seq, "signature", "what was signed is not what the seal says")

    def finish(self, info: StreamInfo | None, last: int, now: StreamInfo | None) -> None:
        """Compare with the index.

        Args:
            info: The index line as it was before the rows were read.
            last: The greatest seq of the stream's rows, read after them.
            now: The index line, read after that.
        """
        if info is None:
            if now is None:
                self._find(0, "index", f"the stream has {self.rows} rows and no line in the index")
            return
        if self.last < info.tip:
            self._find(self.last + 1, "missing", f"rows {self.last + 1} to {info.tip} are missing at the end")
        if now is None or last > now.tip:
            self._find(
                0, "index", f"the index ends at seq {now.tip if now else 0}, and there are rows up to {last}"
            )
        # What a row that cannot be read has said of these is not known.
        if not any(found.kind in {"undecodable", "misplaced", "missing"} for found in self.findings):
            self._compare("terminal event", info.terminal_seq, self._terminal)
            self._compare("sealed size", info.sealed_size, self.sealed)

    def _compare(self, what: str, stands: int, found: int) -> None:
        if stands != found:
            self._find(0, "index", f"the {what} is {stands} in the index, and {found} by the rows")

    def _find(self, seq: int, kind: str, detail: str) -> None:
        self.findings.append(Finding(self._stream, seq, kind, detail))
