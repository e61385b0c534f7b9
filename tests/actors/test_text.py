"""Text from outside is made fit to be recorded, and marked wherever it was altered."""

from __future__ import annotations

from dataclasses import fields, replace
from hashlib import sha256
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.codec import decode, encode
from affidavit.actors.events import Event, Kind, Usage
from affidavit.actors.text import REPLACED_MARK, clean, fit, recordable
from tests import strategies

ANY_TEXT = st.text(st.characters(), max_size=40) | strategies.BROKEN_TEXTS
ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(ANY_TEXT | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(text=ANY_TEXT)
def test_clean_text_is_utf8_and_valid_text_stays_as_it_is(text: str) -> None:
    """Each lone surrogate becomes one U+FFFD, everything else is kept, and cleaning twice changes nothing."""
    cleaned = clean(text)
    assert cleaned == "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    assert cleaned.encode().decode() == cleaned == clean(cleaned)


@given(text=ANY_TEXT, limit=st.integers(0, 60))
def test_text_is_cut_between_characters_and_the_whole_is_named(text: str, limit: int) -> None:
    """What is kept is the longest whole-character prefix that fits; length and digest are those of the whole."""
    whole = clean(text).encode()
    kept, cut = fit(text, limit)
    assert whole.startswith(kept.encode())
    if len(whole) <= limit:
        assert (kept, cut) == (clean(text), None)
        return
    assert cut is not None
    assert (cut.length, cut.sha256) == (len(whole), sha256(whole).digest())
    assert cut.as_detail() == {"bytes": len(whole), "sha256": sha256(whole).digest()}
    rest = clean(text)[len(kept) :]
    assert len(kept.encode()) <= limit < len((kept + rest[0]).encode())


@given(event=strategies.events(), text=ANY_TEXT, value=ANY_VALUE, number=st.integers())
def test_a_repaired_event_can_always_be_stored(event: Event, text: str, value: object, number: int) -> None:
    """Whatever strings, numbers and nesting an event holds, its repaired form encodes, and is marked."""
    strings: dict[str, Any] = {
        item.name: text for item in fields(Event) if item.type == "str" and item.name != "kind"
    }
    usage = Usage(number, 0, 0, number)
    detail = {"note": value, "key" + text: [value]}
    wild = replace(
        event, kind=Kind.ASSISTANT, call=number, turn=number, usage=usage, detail=detail, **strings
    )
    repaired = recordable(wild)
    assert repaired.detail[REPLACED_MARK] is True
    stored = decode(encode(repaired, stream="s", seq=1, time=0))
    assert stored.text == clean(text)


def test_what_nests_too_deeply_is_dropped_and_the_rest_is_kept() -> None:
    """A value nested without end neither breaks nor blocks the record."""
    deep: object = "bottom"
    for _ in range(500):
        deep = [deep]
    endless: list[object] = []
    endless.append(endless)
    repaired = recordable(
        Event(Kind.ASSISTANT, text="x", detail={"deep": deep, "endless": endless, "note": "kept"})
    )
    assert repaired.detail["note"] == "kept"
    assert decode(encode(repaired, stream="s", seq=1, time=0)).text == "x"
