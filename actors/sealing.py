"""The session's side of sealing: ask the sealer, record what it answers, have the result checked.

Crash states. Before record.sealed is durable: nothing; the next owner seals. After it: a seal that nothing has checked yet; the
next owner checks it. Every step is safe to repeat, and repeating a finished one does nothing.
"""

from __future__ import annotations

from typing import final

import trio

from affidavit.actors.errors import SealRefused
from affidavit.actors.events import Event, Kind
from affidavit.actors.run_state import RunState, size_of
from affidavit.actors.sealer import Sealed, Sealer
from affidavit.actors.stream import Stream
from affidavit.crypto.failures import VerificationError


@final
class Sealing:
    """Seals one run. A call that comes while another is at work finds the work done."""

    def __init__(self, stream: Stream, state: RunState, sealer: Sealer) -> None:
        """Bind a stream to the sealer."""
        self._stream = stream
        self._state = state
        self._sealer = sealer
        self._turnstile = trio.Lock()

    async def seal(self, *, principal: str = "", causation_id: str = "", anew: bool = False) -> Event:
        """Seal and check everything that no seal covers yet.

        Args:
            anew: Whether to read a seal that was checked before back from the log and check it once more. Whoever asks for
                a sealed record by hand is told how it stands now, not how it once stood.
            principal: Who asked for it, where somebody did.
            causation_id: The request it is the effect of.

        Returns:
            The record.sealed event that now stands last; an earlier one if there was nothing new.

        Raises:
            SealRefused: The stream has no events.
            VerificationError: The record does not verify; record.rejected stands with the code.
            LogError: The log could not be read or written.
            ProducerError: The signer failed.
        """
        async with self._turnstile:
            if self._state.unsealed:
                await self._sign(principal, causation_id)
            last = self._state.last_seal
            if last is None:
                raise SealRefused(f"run {self._stream.id} has no events to seal")
            verified = self._is_verified(last)
            if anew or not verified:
                await self._check(sealed_in(last), told=verified)
            return last

    async def sign(self) -> None:
        """Seal what no seal covers yet, and leave the check to the next seal at an end, at park or on demand.

        Raises:
            VerificationError: The events under the last seal are no longer those; record.rejected stands with the code.
            LogError: The log could not be read or written.
            ProducerError: The signer failed.
        """
        async with self._turnstile:
            if self._state.unsealed:
                await self._sign("", "")

    def _is_verified(self, seal: Event) -> bool:
        check = self._state.last_check
        return check is not None and check.kind == Kind.RECORD_VERIFIED and size_of(check) >= size_of(seal)

    async def _sign(self, principal: str, causation_id: str) -> None:
        previous = self._state.last_seal
        size = self._stream.tip
        try:
            sealed = await self._sealer.seal(self._stream.id, size, sealed_in(previous) if previous else None)
        except VerificationError as error:
            await self._reject(error, {"size": size})  # noqa: ASYNC120  # cancelled, the next owner finds the same
            raise
        detail: dict[str, object] = {
            "size": sealed.size,
            "root": sealed.root,
            "kid": sealed.kid,
            "checkpoint": sealed.checkpoint,
            "previous": size_of(previous) if previous else 0,
        }
        await self._stream.append(
            Event(Kind.RECORD_SEALED, principal=principal, causation_id=causation_id, detail=detail)
        )

    async def _check(self, sealed: Sealed, *, told: bool) -> None:
        """Have a seal checked and record what came of it; that it holds is not told twice."""
        about: dict[str, object] = {"size": sealed.size, "root": sealed.root}
        try:
            checked = await self._sealer.check(self._stream.id, sealed)
        except VerificationError as error:
            await self._reject(error, about)  # noqa: ASYNC120  # as above
            raise
        if not told:
            await self._stream.append(
                Event(Kind.RECORD_VERIFIED, detail={**about, "tiers": list(checked.tiers)})
            )

    async def _reject(self, error: VerificationError, about: dict[str, object]) -> None:
        """Record a rejection, unless the same one stands last: whoever asks again is told again, and nothing is added."""
        code = str(error.code)
        last = self._state.last_check
        if last and last.seq > self._state.projection.events and last.detail.get("code") == code:
            return
        await self._stream.append(
            Event(Kind.RECORD_REJECTED, reason=error.detail, detail={**about, "code": code})
        )


def sealed_in(event: Event) -> Sealed:
    """Read a seal back from its record.sealed event.

    Raises:
        SealRefused: The event does not hold a seal.
    """
    root, kid, checkpoint = (event.detail.get(key) for key in ("root", "kid", "checkpoint"))
    if isinstance(root, bytes) and isinstance(kid, bytes) and isinstance(checkpoint, bytes):
        return Sealed(size_of(event), root, kid, checkpoint)
    raise SealRefused(f"the record.sealed event at seq {event.seq} holds no seal")
