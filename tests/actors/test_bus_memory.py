"""The bus within one process: who is woken by what, and what its end does."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.buses.memory import MemoryBus, check_pattern, matches
from affidavit.actors.buses.port import events_subject

TOKENS = st.sampled_from(["a", "b", "session", "events", "run-1"])
SUBJECTS = st.lists(TOKENS, min_size=1, max_size=4).map(".".join)
PATTERNS = st.builds(
    lambda tokens, tail: ".".join([*tokens, *tail]),
    st.lists(TOKENS | st.just("*"), min_size=1, max_size=3),
    st.sampled_from([[], [">"]]),
) | st.just(">")


class Waker:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.wakes = 0
        self.ends = 0

    def wake(self) -> None:
        self.wakes += 1

    def bus_ended(self) -> None:
        self.ends += 1


def as_expression(pattern: str) -> str:
    """Return the pattern as a regular expression, written down anew."""
    parts = [
        {"*": r"[^.]+", ">": r"[^.]+(\.[^.]+)*"}.get(token, re.escape(token)) for token in pattern.split(".")
    ]
    return r"\.".join(parts)


@given(pattern=PATTERNS, subject=SUBJECTS)
def test_matching_is_that_of_the_grammar(pattern: str, subject: str) -> None:
    """`*` is one token, a final `>` one or more, and everything else itself."""
    assert matches(pattern, subject) == bool(re.fullmatch(as_expression(pattern), subject))


@given(pattern=PATTERNS)
def test_patterns_of_the_grammar_pass(pattern: str) -> None:
    """No pattern of the grammar is refused."""
    check_pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["", ".", "a.", ".a", "a..b", "a b", "a.>.b", "a*", ">a", "a.\n", "é", "**"]
)
async def test_a_malformed_pattern_is_a_value_error(pattern: str) -> None:
    """And it leaves no subscription behind."""
    with pytest.raises(ValueError, match="not a subject pattern"):
        async with MemoryBus().subscribe(pattern, Waker()):
            pass


@given(patterns=st.lists(PATTERNS, max_size=5), subject=SUBJECTS)
async def test_each_subscription_that_matches_is_woken_once(patterns: list[str], subject: str) -> None:
    """One publish is one wake for each matching subscription, and none for the others or after they left."""
    bus = MemoryBus()
    wakers = [Waker() for _ in patterns]

    async def within(left: list[tuple[str, Waker]]) -> None:
        if not left:
            bus.publish(subject)
            return
        (pattern, waker), *rest = left
        async with bus.subscribe(pattern, waker):
            await within(rest)

    await within(list(zip(patterns, wakers, strict=True)))
    expected = [int(matches(pattern, subject)) for pattern in patterns]
    assert [waker.wakes for waker in wakers] == expected
    bus.publish(subject)
    assert [waker.wakes for waker in wakers] == expected


async def test_one_waker_may_subscribe_twice() -> None:
    """Leaving one of its subscriptions leaves the other."""
    bus, waker = MemoryBus(), Waker()
    async with bus.subscribe("a", waker):
        async with bus.subscribe("a", waker):
            bus.publish("a")
            assert waker.wakes == 2
        bus.publish("a")
        assert waker.wakes == 3


async def test_closing_ends_present_and_future_subscriptions_and_publishing() -> None:
    """Each is told once that no wake comes any more, and none comes."""
    bus, early, late = MemoryBus(), Waker(), Waker()
    async with bus.subscribe("a", early), bus.subscribe("b.>", early):
        bus.close()
        assert early.ends == 2
        async with bus.subscribe("a", late):
            assert late.ends == 1
            bus.publish("a")
        assert (early.wakes, late.wakes) == (0, 0)


def test_a_runs_subject_is_of_the_grammar() -> None:
    """The subject a run's events are announced on names the run, and a host can follow all runs at once."""
    check_pattern(events_subject("0190-a_B"))
    assert matches("session.events.*", events_subject("x"))
