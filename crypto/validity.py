"""A key's validity, as the keyring gives it, beside the times that a record claims.

A time is the writer's word, so it is never a reason to refuse: what lies outside is a finding, and where nothing tells
when a key signed, that is said to be open. Revocation is not judged here; it is absolute, and the keyring's business.
"""

from collections.abc import Iterable

from affidavit.crypto.findings import Finding, FindingKind
from affidavit.crypto.keyring import Keyring


def of_record(keyring: Keyring, kid: bytes, last_time: int) -> tuple[Finding, ...]:
    """Return what is odd about a record whose key is bound to a time.

    Args:
        keyring: The keys trusted.
        kid: The id of the key that signed.
        last_time: The last time that the record claims, in Unix nanoseconds: the signature is taken to be of that time.
    """
    entry = keyring.entry(kid)
    if entry is None or entry.valid_from is None or last_time >= entry.valid_from:
        return of_event(keyring, kid, last_time)
    detail = "the last time that it claims is before its key's validity"
    return (Finding(FindingKind.KEY_NOT_YET_VALID, detail),)


def of_event(keyring: Keyring, kid: bytes, time: int) -> tuple[Finding, ...]:
    """Return what is odd about one event of a record whose key is bound to a time.

    The signature came after the event, so an event later than the key's validity is odd; one that is earlier is not.

    Args:
        keyring: The keys trusted.
        kid: The id of the key that signed.
        time: The time that the event claims, in Unix nanoseconds.
    """
    entry = keyring.entry(kid)
    if entry is None or entry.valid_until is None or time <= entry.valid_until:
        return ()
    return (
        Finding(FindingKind.KEY_NO_LONGER_VALID, "the last time that it claims is after its key's validity"),
    )


def is_bounded(keyring: Keyring, kids: Iterable[bytes]) -> bool:
    """Say whether the keyring binds any of these keys to a time."""
    entries = map(keyring.entry, kids)
    return any(
        entry is not None and (entry.valid_from is not None or entry.valid_until is not None)
        for entry in entries
    )
