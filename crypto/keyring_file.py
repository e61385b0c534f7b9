"""The JSON file that a keyring is kept in: read from bytes and written to bytes, never half understood.

The file is an object with a list named `keyring`, as in the published suites. Each entry has `public_key_hex`
and a key id, `key_id` where it is text and `key_id_hex` where it is not, and may have `algorithm` (Ed25519),
`name`, `valid_from` and `valid_until` (RFC 3339 times), and `revoked` (the reason).
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from affidavit.crypto.failures import AffidavitError
from affidavit.crypto.keyring import KeyEntry, Keyring, show_kid
from affidavit.crypto.keys import VerifyingKey

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_KID_FIELDS: Final = frozenset({"key_id", "key_id_hex"})
_FIELDS: Final = _KID_FIELDS | {
    "algorithm",
    "name",
    "public_key_hex",
    "valid_from",
    "valid_until",
    "revoked",
}


class KeyringError(AffidavitError):
    """A keyring file that cannot be read as one, or that contradicts itself."""


def parse_keyring(data: bytes) -> Keyring:
    """Return the keyring of a file's bytes.

    Raises:
        KeyringError: Where it is not of that form. An unknown field is refused, since it may be a misspelt
            revocation.
        ProducerError: `sign.bad_key` or `sign.empty_key_id`, as `Keyring.add`.
    """
    entries = _content(data).get("keyring")
    if not isinstance(entries, list):
        raise KeyringError('a keyring is a JSON object with a list named "keyring"')
    keyring = Keyring()
    for entry in entries:
        _add_entry(keyring, entry)
    return keyring


def parse_own_keyring(data: bytes) -> Keyring:
    """Return the keyring of a file that holds nothing else, so that writing it anew loses nothing.

    Raises:
        KeyringError: As `parse_keyring`; also where the file holds more than a keyring.
        ProducerError: As `parse_keyring`.
    """
    more = _content(data).keys() - {"keyring"}
    if more:
        raise KeyringError(f"the file holds more than a keyring ({min(more)!r}), and is left as it is")
    return parse_keyring(data)


def encode_keyring(entries: Iterable[KeyEntry]) -> bytes:
    """Return the file's bytes for these entries, one key after another, for people to read as well.

    Raises:
        KeyringError: Where the entries contradict one another.
        ProducerError: As `parse_keyring`.
    """
    content = {"keyring": [_fields_of(entry) for entry in entries]}
    data = (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
    # What could not be read back must not replace a file that could.
    parse_keyring(data)
    return data


def parse_time(text: str) -> int:
    """Return an RFC 3339 time as Unix nanoseconds.

    Raises:
        KeyringError: Where it is none, or does not say its time zone.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise KeyringError(f"{text!r} does not say its time zone")
        since = moment.astimezone(UTC) - _EPOCH
    except (ValueError, OverflowError) as error:
        raise KeyringError(f"{text!r} is not a time such as 2027-01-31T00:00:00Z") from error
    return since // timedelta(microseconds=1) * 1_000


def show_time(nanoseconds: int) -> str:
    """Return Unix nanoseconds as an RFC 3339 time in UTC, to the microsecond."""
    moment = _EPOCH + timedelta(microseconds=nanoseconds // 1_000)
    return moment.isoformat().removesuffix("+00:00") + "Z"


def _content(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise KeyringError(f"the keyring is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise KeyringError('a keyring is a JSON object with a list named "keyring"')
    return content


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return result


def _add_entry(keyring: Keyring, entry: object) -> None:
    if not isinstance(entry, dict) or not entry.keys() <= _FIELDS or "public_key_hex" not in entry:
        raise KeyringError(
            f"a keyring entry has key_id, public_key_hex and at most {', '.join(sorted(_FIELDS))}"
        )
    if not all(isinstance(value, str) for value in entry.values()):
        raise KeyringError("every field of a keyring entry is a text")
    if entry.get("algorithm", "Ed25519") != "Ed25519":
        raise KeyringError(f"the algorithm {entry['algorithm']} is not Ed25519")
    kid = _kid_of(entry)
    if keyring.entry(kid) is not None:
        raise KeyringError(f"the keyring names {show_kid(kid)} twice")
    start, end = (
        parse_time(entry[name]) if name in entry else None for name in ("valid_from", "valid_until")
    )
    if start is not None and end is not None and start > end:
        raise KeyringError(f"the key {show_kid(kid)} is valid until a time before it is valid from")
    keyring.add(
        kid,
        VerifyingKey.from_hex(entry["public_key_hex"]),
        name=entry.get("name", ""),
        valid_from=start,
        valid_until=end,
        revoked=entry.get("revoked"),
    )


def _kid_of(entry: dict[str, str]) -> bytes:
    if len(_KID_FIELDS & entry.keys()) != 1:
        raise KeyringError("a keyring entry has one key id, key_id or key_id_hex")
    try:
        return entry["key_id"].encode() if "key_id" in entry else bytes.fromhex(entry["key_id_hex"])
    except ValueError as error:
        raise KeyringError("a key id is not valid text, or key_id_hex is not hexadecimal") from error


def _fields_of(entry: KeyEntry) -> dict[str, str]:
    fields: dict[str, str] = {}
    try:
        fields["key_id"] = entry.kid.decode()
    except UnicodeDecodeError:
        fields["key_id_hex"] = entry.kid.hex()
    fields |= {"name": entry.name} if entry.name else {}
    fields |= {"algorithm": "Ed25519", "public_key_hex": entry.key.hex}
    fields |= {"valid_from": show_time(entry.valid_from)} if entry.valid_from is not None else {}
    fields |= {"valid_until": show_time(entry.valid_until)} if entry.valid_until is not None else {}
    return fields | ({"revoked": entry.revoked} if entry.revoked is not None else {})
