"""The sealer actor: keeps an RFC 9162 Merkle tree over each run's event bytes, signs its root, checks what it signed.

It is fed the bytes of each commit over a bounded channel. The feed may lose messages; before it seals, the sealer reads what it
lacks from the log, so a tree is always over exactly the stored bytes. It never writes to a stream: the session that owns the
run records what the sealer answers.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, final

from affidavit.actors.errors import SealRefused
from affidavit.actors.logs.port import LogReader
from affidavit.actors.mailbox import Mailbox, Reply, answer
from affidavit.actors.nurseries import open_services
from affidavit.actors.signers.port import Signer
from affidavit.actors.stream import Committed
from affidavit.crypto.checkpoint import Checkpoint, assemble_checkpoint, signing_input
from affidavit.crypto.failures import FailureCode, VerificationError
from affidavit.crypto.hashing import leaf_hash
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.merkle import Tree
from affidavit.crypto.record_fold import EventsCheck

# Events hashed or checked between two checkpoints of the loop: what another task may have to wait for.
_SLICE: Final = 32
# A sealed run has nothing that L3 (standalone proofs) could check.
APPLICABLE_TIERS: Final = ("L1", "L2", "L4")


@dataclass(frozen=True, slots=True)
class Sealed:
    """A signed root.

    Attributes:
        size: How many events it covers, from seq 1.
        root: The Merkle root over them.
        kid: The signing key's id.
        checkpoint: The tagged COSE_Sign1 bytes.
    """

    size: int
    root: bytes
    kid: bytes
    checkpoint: bytes


@dataclass(frozen=True, slots=True)
class Checked:
    """A sealed record that passed verification over bytes read back from the log.

    Attributes:
        tiers: The tiers that applied and passed, such as `("L1", "L2", "L4")`.
    """

    tiers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Fed:
    committed: Committed


@dataclass(frozen=True, slots=True)
class _Seal:
    stream: str
    size: int
    previous: Sealed | None
    reply: Reply[Sealed]


@dataclass(frozen=True, slots=True)
class _Check:
    stream: str
    sealed: Sealed
    reply: Reply[Checked]


@dataclass(frozen=True, slots=True)
class _Forget:
    stream: str


_Command = _Fed | _Seal | _Check | _Forget


@final
class Sealer:
    """The handle of a sealer actor; made by `open_sealer`."""

    def __init__(self, log: LogReader, signer: Signer, every: int, interval: float) -> None:
        """Use `open_sealer`."""
        # After how many events, and how many seconds, of a going run its session has them signed; 0 for only at the end.
        self.every: Final = every
        self.interval: Final = interval
        self._log = log
        self._signer = signer
        self._keyring = Keyring()
        self._keyring.add(signer.kid, signer.public_key)
        self._mailbox = Mailbox[_Command]("the sealer")
        self._trees: dict[str, Tree] = {}

    @property
    def kid(self) -> bytes:
        """The id of the key it signs with."""
        return self._signer.kid

    def feed(self, committed: Committed) -> None:
        """Hand over the bytes of a commit. Never blocks; what is lost here is read from the log when it is needed."""
        self._mailbox.post_nowait(_Fed(committed))

    def forget(self, stream: str) -> None:
        """Drop a stream's tree. It is rebuilt from the log if it is needed again."""
        if not self._mailbox.post_nowait(_Forget(stream)):
            self._trees.pop(stream, None)

    async def seal(self, stream: str, size: int, previous: Sealed | None = None) -> Sealed:
        """Sign the root over the stream's first `size` events.

        Args:
            stream: The stream.
            size: How many events.
            previous: Another seal of the stream; what is signed now must extend it, or be extended by it.

        Raises:
            SealRefused: The stream has fewer events, or none.
            VerificationError: The events under the previous seal are no longer those that were sealed. Nothing was signed.
            ProducerError: The signer failed (`sign.sign_failed`).
            LogError: The log could not be read.
            ActorGone: The sealer has ended.

        Cancellation: the signature may still be made; it is nowhere recorded.
        """
        return await self._mailbox.ask(lambda reply: _Seal(stream, size, previous, reply), Sealed)

    async def check(self, stream: str, sealed: Sealed) -> Checked:
        """Verify the sealed record over bytes read back from the log, every tier that applies.

        Raises:
            VerificationError: It does not verify; the code says why.
            LogError: The log could not be read.
            ActorGone: The sealer has ended.
        """
        return await self._mailbox.ask(lambda reply: _Check(stream, sealed, reply), Checked)

    async def run(self) -> None:
        """The actor's loop. `open_sealer` runs it."""
        try:
            while True:
                await self._handle(await self._mailbox.take())
        finally:
            self._mailbox.close(_discard)

    async def _handle(self, command: _Command) -> None:
        match command:
            case _Fed(committed):
                self._fold(committed)
            case _Seal(stream, size, previous, reply):
                await answer(reply, lambda: self._seal(stream, size, previous))
            case _Check(stream, sealed, reply):
                await answer(reply, lambda: self._check(stream, sealed))
            case _Forget(stream):
                self._trees.pop(stream, None)

    def _fold(self, committed: Committed) -> None:
        tree = self._trees.get(committed.stream)
        if tree is None:
            tree = self._trees[committed.stream] = Tree()
        for event, row in zip(committed.events, committed.rows, strict=True):
            # A gap means that a message was lost; the log has the rows. A row already folded came by way of the log.
            if event.seq == tree.size + 1:
                tree.append(leaf_hash(row))

    async def _tree(self, stream: str, size: int) -> Tree:
        tree = self._trees.setdefault(stream, Tree())
        while tree.size < size:
            batch = await self._log.read(stream, tree.size, _SLICE)
            if not batch:
                raise SealRefused(f"stream {stream} holds {tree.size} events, not {size}")
            for row in batch:
                tree.append(leaf_hash(row.data))
        return tree

    async def _seal(self, stream: str, size: int, previous: Sealed | None) -> Sealed:
        if size < 1:
            raise SealRefused(f"stream {stream} has no events to seal")
        tree = await self._tree(stream, max(size, previous.size if previous is not None else 0))
        if previous is not None:
            _require_extension(tree, previous)
        root = tree.root(size)
        checkpoint = Checkpoint(origin=stream, size=size, root=root)
        kid = self._signer.kid
        signature = await self._signer.sign(signing_input(checkpoint, kid=kid))
        return Sealed(size, root, kid, assemble_checkpoint(checkpoint, kid=kid, signature=signature))

    async def _check(self, stream: str, sealed: Sealed) -> Checked:
        """Verify what an export would hold, a few events at a time, so that a long run does not stop the loop."""
        check = EventsCheck()
        while check.count < sealed.size:
            batch = await self._log.read(stream, check.count, min(_SLICE, sealed.size - check.count))
            if not batch:
                raise SealRefused(f"stream {stream} holds {check.count} events, not {sealed.size}")
            check.add([row.data for row in batch])
        check.conclude(sealed.checkpoint, self._keyring)
        return Checked(APPLICABLE_TIERS)


def _require_extension(tree: Tree, previous: Sealed) -> None:
    found = tree.root(previous.size) if previous.size <= tree.size else b""
    if found != previous.root:
        raise VerificationError(
            FailureCode.MERKLE_CONSISTENCY_INVALID,
            f"events 1 to {previous.size} are not those that were sealed before",
            expected=previous.root,
            actual=found,
        )


def _discard(command: _Command) -> None:
    if isinstance(command, _Seal | _Check):
        command.reply.close()


@asynccontextmanager
async def open_sealer(
    log: LogReader, signer: Signer, *, every: int = 0, interval: float = 0
) -> AsyncIterator[Sealer]:
    """Open a sealer actor for the length of the block.

    Args:
        log: Where the event bytes are read from.
        signer: Signs the roots.
        every: After how many events a run that is going on is sealed, signed only; 0 for only when it ends, is parked or
            somebody asks.
        interval: Seconds within which an event of a going run is sealed, likewise; 0 for no such bound.

    Raises:
        ValueError: One of the two is negative, or the interval no number.
    """
    if every < 0:
        raise ValueError(f"a run is sealed every so many events, not {every}")
    if not 0 <= interval < math.inf:
        raise ValueError(f"a run is sealed every so many seconds, not {interval}")
    sealer = Sealer(log, signer, every, interval)
    async with open_services() as services:
        services.start_soon(sealer.run, name="sealer")
        yield sealer
