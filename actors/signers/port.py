"""The port of everything that signs: a key id, a public key, and signatures, which may take time."""

from typing import Protocol

from affidavit.crypto.keys import VerifyingKey


class Signer(Protocol):
    """Signs with one Ed25519 key, wherever that key lives."""

    @property
    def kid(self) -> bytes:
        """The key id that goes into the signed header; never empty."""
        ...

    @property
    def public_key(self) -> VerifyingKey:
        """The public key under which the signatures verify."""
        ...

    async def sign(self, message: bytes) -> bytes:
        """Return the 64-byte Ed25519 signature over a message.

        Cancellation: a cancelled call gave out no signature.

        Raises:
            ProducerError: `sign.sign_failed`.
        """
        ...
