"""Settings that every test shares: Hypothesis profiles, and the fixture for the published vectors.

No profile has a deadline, since no test asserts a time. CI draws the same examples each time; a soak run
draws many more.
"""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import environment

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile(
    "soak",
    deadline=None,
    max_examples=environment.SOAK_EXAMPLES,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("soak" if environment.SOAK else "ci" if environment.CI else "default")


def pytest_configure() -> None:
    """Have the processes that tests start hear what a terminal sends, also where the tests run in the background or under nohup.

    A signal that is ignored here would be ignored by them; one with a handler here has its default meaning there.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda number, frame: None)


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of published contract files and vectors; without it a skip, under CI=true a failure."""
    return environment.shared_dir()
