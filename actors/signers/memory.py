"""Signers whose key is in this process's memory: one loaded from elsewhere, and one that is thrown away."""

import secrets
from typing import Final, final

import trio

from affidavit.crypto.failures import FailureCode, ProducerError
from affidavit.crypto.keys import SigningKey, VerifyingKey


class MemorySigner:
    """Signs with a key held in memory.

    Args:
        key: The private key.
        kid: The key id; the did:key form of the public key by default, so that a record names its key.

    Raises:
        ProducerError: `sign.empty_key_id`.
    """

    def __init__(self, key: SigningKey, *, kid: bytes | None = None) -> None:
        if kid is not None and not kid:
            raise ProducerError(FailureCode.SIGN_EMPTY_KEY_ID, "a signer needs a key id")
        self._key: Final = key
        self._kid: Final = kid or key.public.did_key.encode()

    @property
    def kid(self) -> bytes:
        """The key id."""
        return self._kid

    @property
    def public_key(self) -> VerifyingKey:
        """The public key."""
        return self._key.public

    async def sign(self, message: bytes) -> bytes:
        """Return the signature. Cancellation: a checkpoint before signing, none after."""
        await trio.lowlevel.checkpoint()
        return self._key.sign(message)


@final
class EphemeralSigner(MemorySigner):
    """Signs with a key drawn for this process alone: nobody signs with it again or vouches for it."""

    def __init__(self) -> None:
        super().__init__(SigningKey.from_seed(secrets.token_bytes(32)))
