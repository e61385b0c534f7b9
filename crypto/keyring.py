"""Which key a verifier takes for a key id, and how far that goes.

A key id is a handle, not an identity: trust comes only from the keyring that the verifier brought. An id
that spells out its own key (did:key) and is absent from the keyring certifies itself and no more. A keyring
file is read from bytes; paths belong to the tools.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, final

from affidavit.crypto.failures import AffidavitError, FailureCode, ProducerError, VerificationError
from affidavit.crypto.keys import DID_KEY_PREFIX, VerifyingKey, parse_did_key

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS: Final = frozenset({"key_id", "algorithm", "public_key_hex", "valid_from", "valid_until", "revoked"})


class Trust(StrEnum):
    """Where the trust in a signature comes from."""

    KEYRING = "keyring"
    SELF = "self"
    NONE = "none"


class KeyringError(AffidavitError):
    """A keyring file that cannot be read as one, or that contradicts itself."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One key of a keyring.

    Attributes:
        kid: The key id it is bound to.
        key: The public key.
        valid_from: Unix nanoseconds before which a record's claimed time is a finding; None for no bound.
        valid_until: Unix nanoseconds after which it is one.
        revoked: Why the key is revoked; None while it is not. A revoked key verifies nothing, at any time.
    """

    kid: bytes
    key: VerifyingKey
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
        valid_from: int | None = None,
        valid_until: int | None = None,
        revoked: str | None = None,
    ) -> None:
        """Bind a key to a key id.

        Args:
            kid: The key id; text stands for its UTF-8 bytes.
            key: The public key.
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
        self._entries[kid] = KeyEntry(kid, key, valid_from, valid_until, revoked)
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


def _self_named(kid: bytes) -> VerifyingKey | None:
    if not kid.startswith(DID_KEY_PREFIX.encode()):
        return None
    try:
        return parse_did_key(kid.decode())
    except (UnicodeDecodeError, ProducerError):
        return None


def parse_keyring(data: bytes) -> Keyring:
    """Return the keyring of a JSON file's bytes.

    The file is an object with a list named `keyring`, as in the published suites. An entry has `key_id` and
    `public_key_hex`, and may have `algorithm` (Ed25519), `valid_from` and `valid_until` (RFC 3339 times), and
    `revoked` (the reason).

    Raises:
        KeyringError: Where it is not of that form. An unknown field is refused, since it may be a misspelt
            revocation.
        ProducerError: `sign.bad_key` or `sign.empty_key_id`, as `Keyring.add`.
    """
    try:
        content = json.loads(data, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise KeyringError(f"the keyring is not JSON: {error}") from error
    entries = content.get("keyring") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise KeyringError('a keyring is a JSON object with a list named "keyring"')
    keyring = Keyring()
    for entry in entries:
        _add_entry(keyring, entry)
    return keyring


def _add_entry(keyring: Keyring, entry: object) -> None:
    if not isinstance(entry, dict) or not {"key_id", "public_key_hex"} <= entry.keys() <= _FIELDS:
        raise KeyringError(
            f"a keyring entry has key_id, public_key_hex and at most {', '.join(sorted(_FIELDS))}"
        )
    if not all(isinstance(value, str) for value in entry.values()):
        raise KeyringError("every field of a keyring entry is a text")
    if entry.get("algorithm", "Ed25519") != "Ed25519":
        raise KeyringError(f"the algorithm {entry['algorithm']} is not Ed25519")
    kid = entry["key_id"].encode()
    if keyring.entry(kid) is not None:
        raise KeyringError(f"the keyring names {show_kid(kid)} twice")
    keyring.add(
        kid,
        VerifyingKey.from_hex(entry["public_key_hex"]),
        valid_from=_nanoseconds(entry.get("valid_from")),
        valid_until=_nanoseconds(entry.get("valid_until")),
        revoked=entry.get("revoked"),
    )


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return result


def _nanoseconds(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise KeyringError(f"{text!r} is not a time such as 2027-01-31T00:00:00Z") from error
    if moment.tzinfo is None:
        raise KeyringError(f"{text!r} does not say its time zone")
    since = moment - _EPOCH
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000
