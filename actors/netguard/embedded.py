"""The IPv4 addresses that an IPv6 address carries within: a packet to the one may be delivered to the other. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final

# The last 32 bits of these are an IPv4 address: RFC 4291 (compatible), RFC 7915 (translated), RFC 6052 and RFC 8215 (NAT64).
_IN_THE_LAST_BITS: Final = (
    IPv6Network("::/96"),
    IPv6Network("::ffff:0:0:0/96"),
    IPv6Network("64:ff9b::/96"),
    IPv6Network("64:ff9b:1::/48"),
)
_6TO4: Final = IPv6Network("2002::/16")
_TEREDO: Final = IPv6Network("2001::/32")
# RFC 5214: an interface identifier of this form, with or without the bit for "globally unique", under any prefix.
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
_WORD: Final = 0xFFFFFFFF


def unmapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv4-mapped one is another spelling of, and any other address as it is."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def embedded(address: IPv4Address | IPv6Address) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses within an address: none of most, two of a Teredo one (server and client).

    The unspecified address and the loopback address, which look like IPv4-compatible ones, carry none.
    """
    if isinstance(address, IPv4Address) or int(address) <= 1:
        return ()
    bits = int(address)
    if address.ipv4_mapped is not None or any(address in network for network in _IN_THE_LAST_BITS):
        return (IPv4Address(bits & _WORD),)
    if address in _6TO4:
        return (IPv4Address(bits >> 80 & _WORD),)
    if address in _TEREDO:
        # RFC 4380, section 4: the client's address is stored with every bit turned round.
        return (IPv4Address(bits >> 64 & _WORD), IPv4Address(~bits & _WORD))
    if bits >> 32 & _WORD in _ISATAP:
        return (IPv4Address(bits & _WORD),)
    return ()
