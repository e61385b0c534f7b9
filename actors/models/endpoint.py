"""Where an OpenAI-compatible endpoint is and the key it wants, from the caller or the environment.

The key is kept out of every text for people: `repr` leaves it out, and no error here repeats it.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from affidavit.actors.errors import ConfigurationError

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"
URL_VARIABLE: Final = "OPENAI_BASE_URL"
KEY_VARIABLE: Final = "OPENAI_API_KEY"
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint.

    Attributes:
        base_url: The address under which `/chat/completions` lies, with no slash at its end.
        host: Its host, as written.
        port: Its port.
        key: The key to send; empty for none.
    """

    base_url: str
    host: str
    port: int
    key: str = field(default="", repr=False)

    @property
    def where(self) -> str:
        """Host and port, as they are named in a sentence."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_vendor(self) -> bool:
        """Whether this is the vendor's own service and not one that is only compatible."""
        return self.host == "api.openai.com"


def read_endpoint(base_url: str | None = None, api_key: str | None = None) -> Endpoint:
    """Return the endpoint to use.

    Args:
        base_url: Its address; None reads OPENAI_BASE_URL, and takes the vendor's where that is unset or
            empty.
        api_key: Its key; None reads OPENAI_API_KEY. A loopback endpoint needs none.

    Raises:
        ConfigurationError: The address is no http(s) address, or the key is missing or cannot be sent.
    """
    url = (os.environ.get(URL_VARIABLE, "") if base_url is None else base_url).strip() or DEFAULT_BASE_URL
    key = (os.environ.get(KEY_VARIABLE, "") if api_key is None else api_key).strip()
    host, port = _address(url)
    if not key and not _is_loopback(host):
        raise ConfigurationError(f"no key for {host}: set the environment variable {KEY_VARIABLE}")
    if not all("!" <= letter <= "~" for letter in key):
        raise ConfigurationError(
            f"{KEY_VARIABLE} holds characters that no key has, such as spaces or line breaks"
        )
    return Endpoint(url.rstrip("/"), host, port, key)


def _address(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigurationError(f"{URL_VARIABLE} is not an address: {error}") from error
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ConfigurationError(f"{URL_VARIABLE} must look like https://host/v1")
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigurationError(f"{URL_VARIABLE} must be an address alone, without user, query or fragment")
    return parts.hostname, port or _PORTS[parts.scheme]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
