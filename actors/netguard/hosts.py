"""Reads what somebody calls a host: an address in whatever spelling the system's own resolver takes for one, or a name.

What the resolver would take for an address (decimal, octal, hexadecimal, shortened) is turned into that address here, before
anything is decided, so a spelling changes nothing. What only looks like one is refused, and so are zones and characters that no
host has. Never looks a name up.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from affidavit.actors.netguard.embedded import unmapped

MAX_NAME: Final = 253
_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\Z")
_ADDRESS_LIKE: Final = re.compile(r"[0-9A-Fa-fXx.:]+\Z")
# As browsers have it (WHATWG URL, "ends in a number"): such a host is an address or nothing.
_NUMBER: Final = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z")
_SHOWN: Final = 80


class BadHost(ValueError):
    """The text names no host; the message is fit for a reason."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host as asked for.

    Attributes:
        text: As written, without brackets; at most `MAX_NAME` characters.
        name: In lower case without a final dot, or an address in its one canonical spelling.
        address: The address, if it is one; an IPv4-mapped one is unwrapped.
    """

    text: str
    name: str
    address: IPv4Address | IPv6Address | None


def read_host(text: str) -> Host:
    """Read a host.

    Args:
        text: A name in ASCII (an international one in its `xn--` form), or an address, an IPv6 one perhaps in brackets.

    Raises:
        BadHost: It is neither.
    """
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if "%" in bare:
        raise BadHost("an address with a zone is never dialed")
    if bare and _ADDRESS_LIKE.match(bare):
        address = _numeric(bare)
        if address is not None:
            return Host(bare, str(address), address)
    name = bare.lower().removesuffix(".")
    if len(name) > MAX_NAME or not _NAME.match(name) or bare != text:
        raise BadHost("this is not the name of a host")
    if _NUMBER.match(name.rpartition(".")[2]):
        raise BadHost("this looks like an address and is none")
    return Host(bare, name, None)


def shown(text: str) -> str:
    """Return what somebody called a host, fit for the record: printable and short."""
    kept = "".join(letter if letter.isprintable() else "\ufffd" for letter in text[: _SHOWN + 1])
    return f"{kept[:_SHOWN]}…" if len(kept) > _SHOWN else kept


def _numeric(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address that the system's resolver takes the text for, without any look-up."""
    try:
        found = socket.getaddrinfo(text, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        return unmapped(ip_address(str(found[0][4][0])))
    except (OSError, ValueError):
        return None
