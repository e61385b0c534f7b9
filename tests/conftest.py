"""Settings that every test shares: Hypothesis profiles, and the fixture for the published vectors.

No profile has a deadline, since no test asserts a time. CI draws the same examples each time; a soak run
draws many more.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import environment

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile(
    "soak", deadline=None, max_examples=2000, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("soak" if environment.SOAK else "ci" if environment.CI else "default")


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of published contract files and vectors; without it a skip, under CI=true a failure."""
    return environment.shared_dir()
