"""The order of the levels, and what each level of trust asks for."""

from __future__ import annotations

import pytest

from affidavit.actors.containment.levels import Level, meets, required, strongest
from affidavit.actors.events import Trust


def test_each_trust_has_its_least_level() -> None:
    """The design's table: trusted needs none, semi-trusted the kernel's, untrusted a micro-VM."""
    assert {trust: required(trust) for trust in Trust} == {
        Trust.TRUSTED: Level.NONE,
        Trust.SEMI_TRUSTED: Level.KERNEL,
        Trust.UNTRUSTED: Level.MICRO_VM,
    }


@pytest.mark.parametrize("word", ["", "Trusted", "semi_trusted", "trusted ", "admin"])
def test_a_word_that_is_no_trust_asks_for_the_most(word: str) -> None:
    """A misspelt trust is never taken for a higher one."""
    assert required(word) is Level.MICRO_VM


def test_the_order_is_by_strength() -> None:
    """Every level meets itself and those below it, and no level above it, whatever their letters."""
    order = [Level.NONE, Level.KERNEL, Level.MICRO_VM]
    for have in order:
        assert [meets(have, need) for need in order] == [
            need in order[: order.index(have) + 1] for need in order
        ]


def test_the_strongest_of_some() -> None:
    """The strongest is found by strength; of nothing it is none."""
    assert strongest(Level.KERNEL, Level.NONE) is Level.KERNEL
    assert strongest(Level.NONE, Level.MICRO_VM, Level.KERNEL) is Level.MICRO_VM
    assert strongest() is Level.NONE
