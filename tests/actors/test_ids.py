"""Run ids and salts."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.buses.memory import check_pattern
from affidavit.actors.buses.port import events_subject
from affidavit.actors.ids import SALT_BYTES, check_run_id, new_run_id, new_salt


@given(millis=st.integers(0, 2**48 - 1), rest=st.integers(0, 999_999))
def test_a_fresh_id_is_a_uuid_of_version_7_that_begins_with_its_time(millis: int, rest: int) -> None:
    """RFC 9562 section 5.7: version and variant bits, and the time in its first 48 bits."""
    value = uuid.UUID(new_run_id(millis * 1_000_000 + rest))
    assert (value.version, value.variant) == (7, uuid.RFC_4122)
    assert value.int >> 80 == millis


@given(time=st.integers(-(2**63), 2**63 - 1))
def test_any_clock_gives_an_id_that_names_a_stream_and_a_subject(time: int) -> None:
    """A clock that is wildly off does not stop a run from being started, and two ids of one instant differ."""
    one, two = new_run_id(time), new_run_id(time)
    assert one != two
    check_pattern(events_subject(check_run_id(one)))


@given(text=st.from_regex(r"[A-Za-z0-9_-]{1,128}", fullmatch=True))
def test_a_token_is_an_id(text: str) -> None:
    """Returned as it is."""
    assert check_run_id(text) == text


@pytest.mark.parametrize(
    "text", ["", "a b", "a.b", "a*", "a>", "a\n", "é", "a/b", "x" * 129, "@last", "\ud800", "٣"]
)
def test_anything_else_is_a_value_error(text: str) -> None:
    """It could not name a stream and a bus subject."""
    with pytest.raises(ValueError, match="a run id is"):
        check_run_id(text)


def test_salts_are_sixteen_bytes_and_differ() -> None:
    """So that a leaf hash cannot be guessed from its likely content."""
    salts = {new_salt() for _ in range(100)}
    assert len(salts) == 100
    assert {len(salt) for salt in salts} == {SALT_BYTES}
