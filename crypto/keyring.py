"""Which key a verifier takes for a key id, and how far that goes.

A key id is a handle, not an identity: trust comes only from the keyring that the verifier brought. An id
that spells out its own key (did:key) and is absent from the keyring certifies itself and no more. The file
that a keyring is kept in is the business of `keyring_file`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import final

from affidavit.crypto.failures import FailureCode, ProducerError, VerificationError
from affidavit.crypto.keys import DID_KEY_PREFIX, VerifyingKey, parse_did_key


class Trust(StrEnum):
    """Where the trust in a signature comes from."""

    KEYRING = "keyring"
    SELF = "self"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One key of a keyring.

    Attributes:
        kid: The key id it is bound to.
        key: The public key.
        name: Whose key it is, in the words of the keyring's owner; empty where nothing is said.
        valid_from: Unix nanoseconds before which a record's claimed time is a finding; None for no bound.
        valid_until: Unix nanoseconds after which it is one.
        revoked: Why the key is revoked; None while it is not. A revoked key verifies nothing, at any time.
    """

    kid: bytes
    key: VerifyingKey
    name: str = ""
    valid_from: int | None = None
    valid_until: int | None = None
    revoked: str | None = None


@final
class Keyring:
    """The keys that a verifier trusts, by key id."""

    __slots__ = ("_any_kid", "_entries", "_revoked")

    def __init__(self, keys: Mapping[bytes, VerifyingKey] | None = None) -> None:
        self._entries: dict[bytes, KeyEntry] = {}
        self._any_kid: VerifyingKey | None = None
        self._revoked: dict[bytes, str] = {}
        for kid, key in (keys or {}).items():
            self.add(kid, key)

    def add(
        self,
        kid: bytes | str,
        key: VerifyingKey,
        *,
        name: str = "",
        valid_from: int | None = None,
        valid_until: int | None = None,
        revoked: str | None = None,
    ) -> None:
        """Bind a key to a key id.

        Args:
            kid: The key id; text stands for its UTF-8 bytes.
            key: The public key.
            name: See `KeyEntry`.
            valid_from: See `KeyEntry`.
            valid_until: See `KeyEntry`.
            revoked: See `KeyEntry`.

        Raises:
            ProducerError: `sign.empty_key_id`; `sign.bad_key` where the id is bound to another key already,
                or is a did:key that names another key.
        """
        kid = kid.encode() if isinstance(kid, str) else bytes(kid)
        if not kid:
            raise ProducerError(FailureCode.SIGN_EMPTY_KEY_ID, "a key needs a key id")
        named = _self_named(kid)
        if named is not None and named != key:
            raise ProducerError(FailureCode.SIGN_BAD_KEY, "a did:key is bound to a key other than its own")
        known = self._entries.get(kid)
        if known is not None and known.key != key:
            raise ProducerError(FailureCode.SIGN_BAD_KEY, f"two keys for the key id {show_kid(kid)}")
        self._entries[kid] = KeyEntry(kid, key, name, valid_from, valid_until, revoked)
        if revoked is not None:
            self._revoked[key.raw] = revoked

    def add_any_kid(self, key: VerifyingKey) -> None:
        """Take a key for every key id that the keyring does not bind.

        Raises:
            ProducerError: `sign.bad_key` where there is such a key already.
        """
        if self._any_kid is not None and self._any_kid != key:
            raise ProducerError(FailureCode.SIGN_BAD_KEY, "two keys for any key id")
        self._any_kid = key

    def lookup(self, kid: bytes) -> tuple[VerifyingKey, Trust]:
        """Return the key for a key id, and where the trust in it comes from.

        Raises:
            VerificationError: `sign.unknown_key` where there is none, or it is revoked.
        """
        key, trust = self._find(kid)
        if key.raw in self._revoked:
            raise VerificationError(
                FailureCode.SIGN_UNKNOWN_KEY,
                f"the key {show_kid(kid)} is revoked: {self._revoked[key.raw] or 'no reason given'}",
            )
        return key, trust

    def entry(self, kid: bytes) -> KeyEntry | None:
        """Return what the keyring binds to a key id, revoked or not; None where it binds nothing."""
        return self._entries.get(kid)

    @property
    def entries(self) -> tuple[KeyEntry, ...]:
        """What the keyring binds, revoked or not, in the order in which it was added."""
        return tuple(self._entries.values())

    def _find(self, kid: bytes) -> tuple[VerifyingKey, Trust]:
        entry = self._entries.get(kid)
        if entry is not None:
            return entry.key, Trust.KEYRING
        if self._any_kid is not None:
            return self._any_kid, Trust.KEYRING
        named = _self_named(kid)
        if named is not None:
            return named, Trust.SELF
        raise VerificationError(FailureCode.SIGN_UNKNOWN_KEY, f"no key for the key id {show_kid(kid)}")


def show_kid(kid: bytes) -> str:
    """Return a key id for people: its text where it is printable, else `hex:` and its digits."""
    try:
        text = kid.decode()
    except UnicodeDecodeError:
        text = ""
    return text if text.isprintable() and text else "hex:" + kid.hex()


# A key's soundness costs as much to establish as a signature to check, and a record may name one key many times.
@lru_cache(maxsize=32)
def _self_named(kid: bytes) -> VerifyingKey | None:
    if not kid.startswith(DID_KEY_PREFIX.encode()):
        return None
    try:
        return parse_did_key(kid.decode())
    except (UnicodeDecodeError, ProducerError):
        return None
