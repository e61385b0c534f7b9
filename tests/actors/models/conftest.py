"""What the tests of the models share: a clock for limits that are tested over real sockets."""

from __future__ import annotations

import pytest
import trio.testing


@pytest.fixture
def patient_clock() -> trio.testing.MockClock:
    """A clock that jumps only once the sockets, which are real, have nothing more to say."""
    return trio.testing.MockClock(autojump_threshold=0.1)
