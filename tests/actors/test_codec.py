"""Events to stored bytes and back, through the real canonical encoding."""

from __future__ import annotations

from dataclasses import fields, replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.codec import (
    STORED_TYPES,
    actor_of,
    decode,
    encode,
    payload_of,
    stored_type,
    usage_payload,
    view,
)
from affidavit.actors.event_json import to_json_line
from affidavit.actors.events import Event, FaultClass, Kind, Trust, Usage
from affidavit.actors.projection import Projection, reduce
from affidavit.actors.recorded import record
from affidavit.crypto.event import Envelope, decode_event, encode_event
from affidavit.crypto.failures import AffidavitError
from tests import strategies

KINDS = list(Kind)


def _encode(event: Event, seq: int = 1, time: int = 0) -> bytes:
    return encode(event, stream="run-1", seq=seq, time=time)


@given(strategies.events(), st.integers(1, (1 << 63) - 1), strategies.INT64)
def test_what_is_recorded_is_what_is_read(event: Event, seq: int, time: int) -> None:
    """Every event comes back from its stored bytes the same, with the seq, time and actor it was given."""
    recorded = replace(event, seq=seq, time=time, actor=str(actor_of(event.kind, event.principal)))
    assert decode(_encode(event, seq, time)) == recorded


@given(strategies.events(), st.integers(1, 99), strategies.INT64)
def test_what_the_writer_is_told_is_exactly_what_readers_see(event: Event, seq: int, time: int) -> None:
    """Same values of the same types in the same order, apart from the caller's own containers, whether decoded or not."""
    for given_event in (event, replace(event, trust=Trust.TRUSTED, error_class=FaultClass.FORBIDDEN)):
        data, seen = record(given_event, stream="run-1", seq=seq, time=time)
        read = decode(data)
        assert seen == read
        assert repr(seen) == repr(read)
        assert seen.args_digest == read.args_digest
        for key, value in seen.detail.items():
            assert not isinstance(value, dict | list) or value is not given_event.detail[key]


def test_what_readers_see_is_what_was_recorded_whatever_becomes_of_the_callers_own() -> None:
    """It holds what the bytes hold, though the caller has gone on writing into its detail."""
    inner: dict[str, object] = {"ms": 1}
    detail: dict[str, object] = {"used": inner, "note": "first"}
    data, seen = record(Event("note", detail=detail), stream="run-1", seq=1, time=0)
    inner["ms"] = 2
    detail["note"] = "second"
    assert seen == decode(data)


@given(st.sampled_from(KINDS), st.sampled_from(list(Trust)))
def test_an_event_built_from_constants_is_recorded(kind: Kind, trust: Trust) -> None:
    """Members of our enumerations are stored as the plain text that they are."""
    back = decode(_encode(Event(kind, trust=trust, error_class="forbidden")))
    assert (back.kind, back.trust) == (kind, trust)


@given(strategies.events())
def test_each_row_has_a_salt_of_its_own_that_no_reader_sees(event: Event) -> None:
    """Two rows of one event differ in 16 random bytes, and neither is shown."""
    rows = [decode_event(_encode(event)).payload["salt"] for _ in range(2)]
    assert [len(salt) for salt in rows] == [16, 16]
    assert rows[0] != rows[1]
    assert "salt" not in decode(_encode(event)).detail


@given(
    st.sampled_from(KINDS) | strategies.unknown_kinds() | st.sampled_from(sorted(STORED_TYPES.values())),
    strategies.payloads(),
    st.sampled_from(["agent", "human", "system"]),
)
def test_decoding_is_total(kind: str, payload: dict[str, object], actor: str) -> None:
    """Any canonical event is an `Event` that folds and prints, whatever its payload holds."""
    data = encode_event(Envelope(stream="run-1", seq=3, time=4, type=str(kind), actor=actor, payload=payload))
    event = decode(data)
    assert isinstance(reduce(Projection(), event), Projection)
    assert to_json_line(event)
    assert (event.seq, event.time, event.actor) == (3, 4, actor)


@given(strategies.payloads())
def test_nothing_of_a_payload_is_lost(payload: dict[str, object]) -> None:
    """Beside the salt, each payload key is in a field of its type or in `detail`, untouched."""
    event = view(Envelope(stream="run-1", seq=1, time=0, type="x", actor="agent", payload=payload))
    held = dict(event.detail)
    for key, value in payload_of(replace(event, detail=MappingProxyType({}))).items():
        assert key not in held
        held[key] = value
    for key, value in payload.items():
        if key == "salt":
            assert key not in held
        elif key == "usage" and key not in event.detail:
            assert event.usage is not None
            assert held[key] == {name: count for name, count in value.items() if count}  # type: ignore[attr-defined]  # the view took it, so it is a map
        elif value or key in held:
            assert held[key] == value
            assert type(held[key]) is type(value)


def test_kinds_and_stored_types_are_one_to_one() -> None:
    """No two kinds share a stored type, and a kind named like another's stored type is refused."""
    assert len({stored_type(kind) for kind in KINDS}) == len(KINDS)
    for taken in (*STORED_TYPES.values(), ""):
        with pytest.raises(ValueError, match="cannot be reported"):
            stored_type(taken)


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (Kind.ACTION_ADMITTED, "dispatch.start"),
        (Kind.ACTION_COMPLETED, "dispatch.end"),
        (Kind.ACTION_REJECTED, "dispatch.rejected"),
        (Kind.RECORD_SEALED, "spine.record"),
        (Kind.CHECK, "check.recorded"),
        (Kind.OUTCOME, "outcome.recorded"),
        (Kind.RECORD_VERIFIED, "record.verified"),
        (Kind.TOOL_CALL, "tool.call"),
    ],
)
def test_stored_types(kind: Kind, stored: str) -> None:
    """The types that verifiers of the format read are its own; all others are the kind's name."""
    assert decode_event(_encode(Event(kind))).type == stored


@pytest.mark.parametrize(
    ("kind", "actor"),
    [
        ("session.started", "system"),
        ("session.stalled", "system"),
        ("goal.phase", "system"),
        ("record.sealed", "system"),
        ("record.verified", "system"),
        ("action.rejected", "system"),
        ("net.egress", "system"),
        ("user.message", "human"),
        ("request.decide", "human"),
        ("request.brake", "human"),
        ("request.answered", "system"),
        ("session.converged", "agent"),
        ("action.admitted", "agent"),
        ("tool.result", "agent"),
        ("never.heard.of", "agent"),
    ],
)
def test_who_an_event_speaks_for(kind: str, actor: str) -> None:
    """The actor follows from the kind, whatever the reporter wrote."""
    assert decode(_encode(Event(kind, actor="human" if actor == "agent" else "agent"))).actor == actor


@pytest.mark.parametrize("kind", ["approval.decided", "brake.engaged", "brake.released"])
def test_a_ruling_speaks_for_the_person_that_it_names_or_for_the_system(kind: str) -> None:
    """A request that merely expired was decided by nobody."""
    assert decode(_encode(Event(kind, principal="ada"))).actor == "human"
    assert decode(_encode(Event(kind))).actor == "system"


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        (Event("tool.call"), {}),
        (Event("assistant.message"), {"text": ""}),
        (Event("session.converged"), {"text": ""}),
        (Event("net.egress"), {"allowed": False}),
        (Event("turn.completed", usage=Usage()), {"usage": {}}),
        (Event("turn.completed", usage=Usage(output_tokens=3)), {"usage": {"outputTokens": 3}}),
        (Event("tool.result", is_error=True, tool_use_id="t"), {"isError": True, "toolUseID": "t"}),
        (
            Event("action.rejected", error_class="forbidden", error_code="capability_denied", err="no"),
            {"error_class": "forbidden", "error_code": "capability_denied", "error": "no"},
        ),
        (Event("record.sealed", detail=MappingProxyType({"size": 4})), {"size": 4}),
    ],
)
def test_payload_keys(event: Event, payload: dict[str, object]) -> None:
    """Payload keys are those of the design, empty ones left out unless their absence would mislead."""
    assert payload_of(event) == payload


@given(strategies.usages())
def test_a_usage_keeps_its_counts(usage: Usage) -> None:
    """A usage map holds every count that is not zero, by the contract's names."""
    shown = usage_payload(usage)
    assert sum(shown.values()) == sum(getattr(usage, item.name) for item in fields(Usage))
    assert 0 not in shown.values()


@pytest.mark.parametrize(
    "event",
    [
        Event("x", text="a", detail=MappingProxyType({"text": "b"})),
        Event("x", detail=MappingProxyType({"salt": b"0123456789abcdef"})),
        pytest.param(Event("x", detail=MappingProxyType({"turn": 3}))),
        pytest.param(Event("x", detail=MappingProxyType({"usage": {"inputTokens": 1}}))),
        Event("dispatch.start"),
        Event(""),
    ],
)
def test_an_event_that_would_be_read_as_another_is_refused(event: Event) -> None:
    """A detail key that a field of the event owns would come back as that field, so the caller is told."""
    with pytest.raises(ValueError, match=r"detail|cannot be reported"):
        _encode(event)


@pytest.mark.parametrize(
    "event",
    [
        Event("x", text="\ud800"),
        Event("x", call=1 << 63),
        Event("x", detail=MappingProxyType({"a": 1.5})),
        Event("x", detail=MappingProxyType({"a": object()})),
    ],
)
def test_what_has_no_canonical_form_is_refused(event: Event) -> None:
    """Lone surrogates, integers beyond 64 bits, floats and objects never reach the log."""
    with pytest.raises(AffidavitError, match=r"enc\.encode"):
        _encode(event)


@pytest.mark.parametrize("data", [b"", b"\xa0", b"\xff", b"not cbor"])
def test_bytes_that_are_no_event_are_refused(data: bytes) -> None:
    """Only canonical bytes of one event are read."""
    with pytest.raises(AffidavitError, match=r"enc\."):
        decode(data)
