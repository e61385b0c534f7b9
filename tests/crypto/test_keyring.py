"""Keyrings: which key a key id gets, how far the trust goes, and files that must not be half understood."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto import (
    FailureCode,
    Keyring,
    ProducerError,
    SigningKey,
    Trust,
    VerificationError,
    parse_keyring,
)
from affidavit.crypto.keyring import KeyEntry, show_kid
from affidavit.crypto.keyring_file import (
    KeyringError,
    encode_keyring,
    parse_own_keyring,
    parse_time,
    show_time,
)
from tests.crypto.strategies import TEXTS

ONE = SigningKey.from_seed(bytes(32)).public
TWO = SigningKey.from_seed(bytes(31) + b"\x01").public
DID = ONE.did_key.encode()


def unknown(ring: Keyring, kid: bytes) -> str:
    """What a look-up says that finds no key to trust."""
    with pytest.raises(VerificationError) as refusal:
        ring.lookup(kid)
    assert refusal.value.code is FailureCode.SIGN_UNKNOWN_KEY
    return refusal.value.detail


def test_a_key_is_found_by_its_own_id_only() -> None:
    """A key bound to one key id answers for no other; text stands for its UTF-8 bytes."""
    ring = Keyring({b"one": ONE})
    ring.add("zwei-\u00fc", TWO)
    assert ring.lookup(b"one") == (ONE, Trust.KEYRING)
    assert ring.lookup("zwei-\u00fc".encode()) == (TWO, Trust.KEYRING)
    for kid in (b"", b"two", b"ONE", b"\xff"):
        assert "no key" in unknown(ring, kid)


def test_an_id_that_names_its_key_certifies_only_itself() -> None:
    """A did:key absent from the keyring gives trust `self`; present, it gives trust `keyring`."""
    assert Keyring().lookup(DID) == (ONE, Trust.SELF)
    assert Keyring({DID: ONE}).lookup(DID) == (ONE, Trust.KEYRING)
    for malformed in (b"did:key:z6Mk", DID + b"1", b"did:key:z\xff"):
        unknown(Keyring(), malformed)


def test_a_key_for_any_id_has_to_be_asked_for_and_yields_to_one_that_is_bound() -> None:
    """The explicit option covers every id that the keyring does not bind."""
    ring = Keyring({b"one": ONE})
    ring.add_any_kid(TWO)
    assert ring.lookup(b"one") == (ONE, Trust.KEYRING)
    assert ring.lookup(b"whatever") == ring.lookup(DID) == (TWO, Trust.KEYRING)
    ring.add_any_kid(TWO)
    with pytest.raises(ProducerError):
        ring.add_any_kid(ONE)


def test_contradictions_are_refused() -> None:
    """An empty id, two keys for one id, and a did:key bound to another key."""
    ring = Keyring({b"one": ONE})
    ring.add(b"one", ONE)
    for kid, key, code in (
        (b"", ONE, FailureCode.SIGN_EMPTY_KEY_ID),
        (b"one", TWO, FailureCode.SIGN_BAD_KEY),
        (DID, TWO, FailureCode.SIGN_BAD_KEY),
    ):
        with pytest.raises(ProducerError) as refusal:
            ring.add(kid, key)
        assert refusal.value.code is code


def test_revocation_is_absolute() -> None:
    """A revoked key is refused by name and reason, under its id, as any key, and under its own did:key."""
    ring = Keyring()
    ring.add(b"old", ONE, revoked="left on a train")
    assert "old is revoked: left on a train" in unknown(ring, b"old")
    assert "revoked" in unknown(ring, DID)
    ring.add_any_kid(ONE)
    assert "revoked" in unknown(ring, b"other")


def entry(**changes: Any) -> dict[str, Any]:
    """An entry of a keyring file."""
    return {"key_id": "one", "algorithm": "Ed25519", "public_key_hex": ONE.hex} | changes


def file_of(*entries: Any) -> bytes:
    """A keyring file."""
    return json.dumps({"keyring": entries}).encode()


def test_a_keyring_file_is_read() -> None:
    """Several keys, validity and revocation, in the shape of the published manifests."""
    two = {"key_id": "two", "public_key_hex": TWO.hex, "revoked": ""}
    ring = parse_keyring(
        file_of(entry(valid_from="1969-12-31T23:59:59+00:00", valid_until="2027-01-01T00:00:00Z"), two)
    )
    found = ring.entry(b"one")
    assert found is not None
    assert (found.key, found.valid_from, found.valid_until) == (ONE, -(10**9), 1_798_761_600 * 10**9)
    assert "no reason given" in unknown(ring, b"two")
    assert ring.entry(b"three") is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keyring": {}}',
        b"\xff\xfe",
        b'{"keyring": [], "keyring": []}',
        b"[" * 100_000,
        file_of("one"),
        file_of({"key_id": "one"}),
        file_of(entry(revokd="typing error")),
        file_of(entry(key_id=1)),
        file_of(entry(algorithm="ES256")),
        file_of(entry(), entry()),
        file_of(entry(valid_from="soon")),
        file_of(entry(valid_from="2027-01-01T00:00:00")),
        file_of(entry(valid_from="0001-01-01T00:00:00+23:00")),
        file_of(entry(valid_from="2027-01-02T00:00:00Z", valid_until="2027-01-01T00:00:00Z")),
        file_of(entry(key_id_hex="6f6e65")),
        file_of({"public_key_hex": ONE.hex}),
        file_of({"key_id_hex": "0", "public_key_hex": ONE.hex}),
        file_of({"key_id": "\ud800", "public_key_hex": ONE.hex}),
        file_of(entry(), {"key_id_hex": "6f6e65", "public_key_hex": ONE.hex}),
    ],
)
def test_a_file_that_is_not_wholly_understood_is_refused(data: bytes) -> None:
    """A misspelt revocation must not pass as no revocation, so nothing unknown is skipped."""
    with pytest.raises(KeyringError):
        parse_keyring(data)


def test_a_bad_key_in_a_file_is_refused_when_it_is_loaded() -> None:
    """A key of small order never enters a keyring."""
    with pytest.raises(ProducerError) as refusal:
        parse_keyring(file_of(entry(public_key_hex="01" + "00" * 31)))
    assert refusal.value.code is FailureCode.SIGN_BAD_KEY


def test_a_key_id_is_shown_without_surprises() -> None:
    """Printable text as it is, everything else in hexadecimal."""
    assert show_kid(b"root-1") == "root-1"
    assert show_kid(b"") == "hex:"
    assert show_kid(b"\x1b[31m") == "hex:1b5b33316d"
    assert show_kid(b"\xff") == "hex:ff"


MICROSECONDS = st.integers(-(10**15), 10**15).map(lambda count: count * 1_000)


@st.composite
def key_entries(draw: st.DrawFn) -> list[KeyEntry]:
    """Entries of a keyring that contradict nothing."""
    kids = draw(st.lists(st.binary(min_size=1, max_size=6), unique=True, max_size=4))
    optional_times = st.none() | MICROSECONDS
    found = []
    for kid in kids:
        start, end = draw(optional_times), draw(optional_times)
        if start is not None and end is not None:
            start, end = sorted((start, end))
        revoked = draw(st.none() | TEXTS)
        found.append(KeyEntry(kid, draw(st.sampled_from([ONE, TWO])), draw(TEXTS), start, end, revoked))
    return found


@given(key_entries())
def test_what_is_written_is_read_back(entries: list[KeyEntry]) -> None:
    """Every field of every entry, in order, whatever the bytes of the key id and the texts."""
    assert list(parse_own_keyring(encode_keyring(entries)).entries) == entries


def test_what_could_not_be_read_back_is_not_written() -> None:
    """Entries that contradict one another never become a file."""
    for entries in (
        [KeyEntry(b"one", ONE), KeyEntry(b"one", TWO)],
        [KeyEntry(b"one", ONE, valid_from=2_000, valid_until=1_000)],
    ):
        with pytest.raises(KeyringError):
            encode_keyring(entries)
    with pytest.raises(ProducerError):
        encode_keyring([KeyEntry(DID, TWO)])


def test_a_file_that_holds_more_is_read_but_never_written_anew() -> None:
    """A manifest of vectors is a keyring to a verifier, and none to a command that would write it."""
    manifest = json.dumps({"suite_version": "1", "keyring": [entry()]}).encode()
    assert parse_keyring(manifest).entry(b"one") is not None
    with pytest.raises(KeyringError, match="suite_version"):
        parse_own_keyring(manifest)


def test_times_are_shown_as_they_are_read() -> None:
    """In UTC, whatever the zone they were given in."""
    assert show_time(parse_time("2027-01-31T02:00:00+02:00")) == "2027-01-31T00:00:00Z"
    assert show_time(parse_time("2027-01-31T00:00:00.000001Z")) == "2027-01-31T00:00:00.000001Z"
