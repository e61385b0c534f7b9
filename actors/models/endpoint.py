"""Where a model's endpoint is and the key it wants, from the caller or the environment; and the client that asks it.

The key is kept out of every text for people: `repr` leaves it out, and no error here repeats it. This is the one place where a
client is made: it takes nothing else from the environment and follows no redirect.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar
from urllib.parse import urlsplit

import httpx2
import trio

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.files import read_operator_file
from affidavit.actors.models.keyrings import KEYRING_SUFFIX, read_keyring
from affidavit.actors.netguard.run_client import run_client

MAX_KEY_BYTES: Final = 16 * 1024
_Client = TypeVar("_Client")
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Vendor:
    """Who laid down a wire format, and how its endpoints are named.

    Attributes:
        provider: What stands before the colon in a model's name.
        format: The wire format, as a person would say it.
        url_variable: The environment variable that holds an endpoint's address.
        key_variable: The one that holds its key; with `_FILE` behind it, the one that names a file that holds it; with
            `_KEYRING`, the one that says where in the operating system's keyring it is.
        base_url: The vendor's own address.
        key_header: The header that carries the key.
        key_prefix: What stands before the key in it.
    """

    provider: str
    format: str
    url_variable: str
    key_variable: str
    base_url: str
    key_header: str
    key_prefix: str = ""

    @property
    def file_variable(self) -> str:
        """The environment variable that names the file with the key."""
        return f"{self.key_variable}_FILE"

    @property
    def keyring_variable(self) -> str:
        """The environment variable that says where in a keyring the key is."""
        return f"{self.key_variable}{KEYRING_SUFFIX}"


OPENAI: Final = Vendor(
    "openai",
    "an OpenAI-compatible",
    "OPENAI_BASE_URL",
    "OPENAI_API_KEY",
    "https://api.openai.com/v1",
    "Authorization",
    "Bearer ",
)
ANTHROPIC: Final = Vendor(
    "anthropic",
    "an Anthropic",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_API_KEY",
    "https://api.anthropic.com",
    "x-api-key",
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint.

    Attributes:
        vendor: Whose wire format it speaks.
        base_url: The address under which its paths lie, with no slash at its end.
        host: Its host, as written.
        port: Its port.
        key: The key to send; empty for none.
    """

    vendor: Vendor
    base_url: str
    host: str
    port: int
    key: str = field(default="", repr=False)

    @property
    def where(self) -> str:
        """Host and port, as they are named in a sentence."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def key_headers(self) -> dict[str, str]:
        """The header with the key, or none where there is no key."""
        return {self.vendor.key_header: f"{self.vendor.key_prefix}{self.key}"} if self.key else {}

    @property
    def is_vendor(self) -> bool:
        """Whether this is the vendor's own service and not one that is only compatible."""
        return self.host == urlsplit(self.vendor.base_url).hostname


def read_endpoint(vendor: Vendor, base_url: str | None = None, api_key: str | None = None) -> Endpoint:
    """Return the endpoint to use. It blocks where the key is in a file or a keyring; see `find_endpoint`.

    Args:
        vendor: Whose wire format and variables.
        base_url: Its address; None reads the vendor's variable, and takes the vendor's own where that is unset or empty.
        api_key: Its key; None reads the vendor's variable, or what its `_FILE` or `_KEYRING` variable names. A loopback endpoint
            needs none.

    Raises:
        ConfigurationError: The address is no http(s) address, or the key is missing, is given twice, cannot be read, or cannot be
            sent.
    """
    given = os.environ.get(vendor.url_variable, "") if base_url is None else base_url
    url = given.strip() or vendor.base_url
    key = (_key_of_environment(vendor) if api_key is None else api_key).strip()
    host, port = _address(vendor, url)
    if not key and not _is_loopback(host):
        raise ConfigurationError(f"no key for {host}: set the environment variable {vendor.key_variable}")
    if not all("!" <= letter <= "~" for letter in key):
        raise ConfigurationError(
            f"{vendor.key_variable} holds characters that no key has, such as spaces or line breaks"
        )
    return Endpoint(vendor, url.rstrip("/"), host, port, key)


async def find_endpoint(vendor: Vendor, base_url: str | None, api_key: str | None) -> Endpoint:
    """Return the endpoint to use, as `read_endpoint`.

    Raises:
        ConfigurationError: As `read_endpoint`.

    Cancellation: at once. A keyring that asks its owner something goes on in a thread of its own, and nobody hears the answer.
    """
    return await trio.to_thread.run_sync(read_endpoint, vendor, base_url, api_key, abandon_on_cancel=True)


def new_client() -> httpx2.AsyncClient:
    """Return a client that goes past every guard, for the model in this process; each call brings its limits."""
    return httpx2.AsyncClient(timeout=None, trust_env=False, follow_redirects=False)


@asynccontextmanager
async def client_for(
    endpoint: Endpoint, given: _Client | None
) -> AsyncIterator[_Client | httpx2.AsyncClient]:
    """Lend the client that was given, or one that goes out through the guard of each run; that is closed with the block."""
    if given is not None:
        yield given
        return
    async with run_client(endpoint.host, endpoint.port) as made:
        yield made


def _key_of_environment(vendor: Vendor) -> str:
    names = (vendor.key_variable, vendor.file_variable, vendor.keyring_variable)
    given = [name for name in names if os.environ.get(name, "").strip()]
    if len(given) > 1:
        raise ConfigurationError(f"{given[0]} and {given[1]} are both set: which one counts?")
    if not given:
        return ""
    (name,) = given
    value = os.environ[name]
    if name == vendor.keyring_variable:
        return read_keyring(value, name)
    if name == vendor.file_variable:
        return read_operator_file(value, f"key file of {name}", MAX_KEY_BYTES).decode("latin-1")
    return value


def _address(vendor: Vendor, url: str) -> tuple[str, int]:
    name = vendor.url_variable
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        # What is wrong with it is not repeated: it may be a password that stands where a port should.
        raise ConfigurationError(f"{name} is not an address") from error
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ConfigurationError(f"{name} must look like {vendor.base_url}")
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigurationError(f"{name} must be an address alone, without user, query or fragment")
    return parts.hostname, port or _PORTS[parts.scheme]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
