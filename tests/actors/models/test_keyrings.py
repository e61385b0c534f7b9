"""Keys from the keyring of the operating system: read by the library's own interface to keyrings, or one sentence why not."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
import trio
import trio.testing

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.endpoint import ANTHROPIC, OPENAI, Vendor, find_endpoint, read_endpoint
from affidavit.actors.models.keyrings import read_keyring
from affidavit.actors.secrets import secret_of_environment
from tests import environment

SECRET = "sk-of-a-keyring-0123456789"
PLACE = "https://models.example/v1/someone"


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[tuple[str, str], str | Exception]]:
    """What the keyring of this machine holds while a test runs; an exception is raised where it stands."""
    if find_spec("keyring") is None:
        environment.absent("the package keyring is not installed")
    import keyring
    from keyring.backend import KeyringBackend

    held: dict[tuple[str, str], str | Exception] = {}

    class Fake(KeyringBackend):
        priority = 1

        def get_password(self, service: str, username: str) -> Any:
            found = held.get((service, username))
            if isinstance(found, Exception):
                raise found
            return found

        def set_password(self, service: str, username: str, password: str) -> None:
            raise AssertionError("nothing here writes to a keyring")

    before = keyring.get_keyring()
    keyring.set_keyring(Fake())  # type: ignore[no-untyped-call]
    yield held
    keyring.set_keyring(before)


@pytest.fixture(params=[OPENAI, ANTHROPIC], ids=lambda vendor: vendor.provider)
def vendor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Vendor:
    """Each vendor, its key said to be in the keyring."""
    chosen: Vendor = request.param
    for name in (chosen.url_variable, chosen.key_variable, chosen.file_variable):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(chosen.keyring_variable, PLACE)
    return chosen


async def test_a_key_comes_out_of_the_keyring(vendor: Vendor, ring: dict[tuple[str, str], Any]) -> None:
    """Service and user are parted at the last slash; the key stands in no text for people, and two sources are a mistake."""
    ring["https://models.example/v1", "someone"] = SECRET
    endpoint = await find_endpoint(vendor, None, None)
    assert endpoint.key == SECRET
    assert SECRET not in repr(endpoint)


def test_two_sources_of_a_key_are_a_mistake(
    vendor: Vendor, ring: dict[tuple[str, str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence names both variables."""
    ring["https://models.example/v1", "someone"] = SECRET
    monkeypatch.setenv(vendor.file_variable, "key.txt")
    with pytest.raises(
        ConfigurationError, match=f"{vendor.file_variable} and {vendor.keyring_variable} are both set"
    ):
        read_endpoint(vendor)


def failures() -> list[tuple[Any, str]]:
    """What a keyring may do instead, and what is said of it."""
    if find_spec("keyring") is None:
        return []
    from keyring.errors import InitError, KeyringLocked, NoKeyringError

    return [
        (None, "has no secret of the user 'someone' for the service 'https://models.example/v1'"),
        ("", "has no secret of the user"),
        (KeyringLocked("Failed to unlock the collection!"), "is locked: unlock it first"),
        (NoKeyringError("No recommended backend was available."), "this machine has no keyring to ask"),
        (
            InitError("Failed to open\nkeyring: no bus"),
            "cannot be read from the keyring: Failed to open keyring: no bus",
        ),
        (ValueError(), "cannot be read from the keyring: ValueError"),
    ]


@pytest.mark.parametrize(("what", "said"), failures())
def test_a_keyring_that_gives_nothing_is_one_sentence(
    vendor: Vendor, ring: dict[tuple[str, str], Any], what: Any, said: str
) -> None:
    """Empty, locked, absent, broken: the variable is named, and what is to be done."""
    ring["https://models.example/v1", "someone"] = what
    with pytest.raises(ConfigurationError) as caught:
        read_endpoint(vendor)
    assert said in str(caught.value)
    assert vendor.keyring_variable in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", ["someone", "/someone", "service/", "/"])
def test_a_place_that_is_none_is_refused(place: str) -> None:
    """Before any keyring is asked."""
    with pytest.raises(ConfigurationError, match="X_KEYRING must look like SERVICE/USER"):
        read_keyring(place, "X_KEYRING")


def test_a_missing_package_is_said_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, with what to install."""
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigurationError, match=r"not installed: pip install 'affidavit\[keyring\]'$"):
        read_keyring(PLACE, "X_KEYRING")


def test_a_tools_own_secret_comes_out_of_the_keyring_too(
    ring: dict[tuple[str, str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For programs; the variable itself and its file count first."""
    ring["search", "me"] = f"{SECRET}\n"
    monkeypatch.setenv("A_KEY_KEYRING", "search/me")
    assert secret_of_environment("A_KEY") == SECRET
    monkeypatch.setenv("A_KEY", "other")
    assert secret_of_environment("A_KEY") == "other"


async def test_a_keyring_that_waits_for_its_owner_holds_nothing_up(
    vendor: Vendor, ring: dict[tuple[str, str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it asks, the loop goes on, and a caller that is cancelled is gone at once."""
    answered = threading.Event()
    monkeypatch.setattr("keyring.get_password", lambda *_: answered.wait(60) and SECRET)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(find_endpoint, vendor, None, None)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    assert scope.cancelled_caught
    answered.set()
