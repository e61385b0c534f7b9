"""Numbers in little room: the map and the set behave as a dict and a set do, and stay small whatever is put in."""

import random
import tracemalloc
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.crypto import packed_ids
from affidavit.crypto.packed_ids import IdSet, PackedMap

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
NUMBERS = st.integers(-4, 12) | st.sampled_from([LOWEST, LOWEST + 1, HIGHEST - 1, HIGHEST])
MANY = 8000
BYTES_PER_ID = 24


@pytest.fixture(autouse=True)
def short_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of four entries, so that small examples split, fill and empty them; the real size where memory counts."""
    if "sparse" not in request.node.name and "row" not in request.node.name:
        monkeypatch.setattr(packed_ids, "_BLOCK", 4)


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "put", "pop", "pop_last", "get", "floor"]), NUMBERS, NUMBERS),
        max_size=80,
    )
)
def test_a_packed_map_behaves_as_a_dict(steps: list[tuple[str, int, int]]) -> None:
    """After any sequence of changes every look-up, the order and the length are those of a dict."""
    packed, model = PackedMap(), dict[int, int]()
    for what, key, value in steps:
        if what == "put":
            packed.put(key, value)
            model[key] = value
        elif what == "pop":
            assert packed.pop(key) == model.pop(key, None)
        elif what == "pop_last":
            top = max(model.items(), default=None)
            assert packed.pop_last() == top
            model.pop(top[0] if top else 0, None)
        elif what == "get":
            assert packed.get(key) == model.get(key)
        else:
            below = [known for known in model if known <= key]
            assert packed.floor(key) == ((max(below), model[max(below)]) if below else None)
        assert len(packed) == len(model)
    assert list(packed.items()) == sorted(model.items())


@given(st.lists(st.tuples(st.booleans(), NUMBERS), max_size=80))
def test_an_id_set_behaves_as_a_set(steps: list[tuple[bool, int]]) -> None:
    """Added, taken away, split and merged again: membership is that of a set."""
    packed, model = IdSet(), set[int]()
    for adds, number in steps:
        if adds:
            packed.add(number)
            model.add(number)
        else:
            assert packed.discard(number) == (number in model)
            model.discard(number)
        assert bool(packed) == bool(model)
    assert [n for n in (*range(-6, 15), LOWEST, LOWEST + 1, HIGHEST - 1, HIGHEST) if n in packed] == sorted(
        model & {*range(-6, 15), LOWEST, LOWEST + 1, HIGHEST - 1, HIGHEST}, key=lambda n: (abs(n) > 100, n)
    )


def bytes_held(make: Callable[[], object]) -> int:
    """How many bytes of memory what is made goes on holding."""
    tracemalloc.start()
    try:
        held = make()
        return tracemalloc.get_traced_memory()[0] if held else 0
    finally:
        tracemalloc.stop()


def filled(numbers: list[int]) -> IdSet:
    """A set of these numbers, added in their order."""
    packed = IdSet()
    for number in numbers:
        packed.add(number)
    return packed


def test_sparse_numbers_in_any_order_take_little_room() -> None:
    """No number of a hostile record takes more than 24 bytes."""
    draw = random.Random(1)
    numbers = [draw.randint(LOWEST, HIGHEST) for _ in range(MANY)]
    for given_in in (numbers, sorted(numbers), sorted(numbers, reverse=True)):
        assert bytes_held(partial(filled, given_in)) < BYTES_PER_ID * MANY


def test_numbers_in_a_row_take_next_to_none() -> None:
    """Numbers that count up, down or in a jumble are one interval in the end."""
    jumble = list(range(MANY))
    random.Random(1).shuffle(jumble)
    for numbers in (list(range(MANY)), list(range(MANY, 0, -1)), jumble):
        packed = filled(numbers)
        assert len(packed) == 1
    assert bytes_held(lambda: filled(list(range(MANY)))) < MANY
