"""Which addresses are not simply somewhere on the internet: the special-purpose registries, written out with their sources.

The list is ours, and not the standard library's notion of `is_global`, which differs between Python versions and holds multicast
and translated addresses for global. Blocks that a registry calls globally reachable but that no program has business with
(anycast sinks, protocol assignments) are special here too. Pure; never looks anything up.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final

from affidavit.actors.netguard.embedded import embedded

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Special:
    """One block of special-purpose addresses.

    Attributes:
        network: The block.
        name: What it is for, as said in a reason.
        source: Where that is laid down.
        local: Whether an operator's own service may sit there, so that a name the operator grants as an endpoint may lead there.
        never: Whether no rule at all can open it: such an address names no one host.
    """

    network: Network
    name: str
    source: str
    local: bool = False
    never: bool = False


def _block(network: str, name: str, source: str, *, local: bool = False, never: bool = False) -> Special:
    return Special(ip_network(network), name, source, local, never)


# https://www.iana.org/assignments/iana-ipv4-special-registry, the multicast space, which is a registry of its own, and where
# cloud platforms hand out credentials. More specific blocks come first.
_V4: Final = (
    _block("0.0.0.0/8", "this-network", "RFC 1122", never=True),
    _block("10.0.0.0/8", "private-use", "RFC 1918", local=True),
    _block("100.100.100.200/32", "cloud platform", "Alibaba Cloud instance metadata"),
    _block("100.64.0.0/10", "shared (carrier-grade NAT)", "RFC 6598", local=True),
    _block("127.0.0.0/8", "loopback", "RFC 1122", local=True),
    _block("168.63.129.16/32", "cloud platform", "Azure platform services"),
    _block("169.254.0.0/16", "link-local", "RFC 3927"),
    _block("172.16.0.0/12", "private-use", "RFC 1918", local=True),
    _block("192.0.0.0/24", "protocol assignment", "RFC 6890"),
    _block("192.0.2.0/24", "documentation", "RFC 5737"),
    _block("192.31.196.0/24", "AS112 sink", "RFC 7535"),
    _block("192.52.193.0/24", "multicast relay", "RFC 7450"),
    _block("192.88.99.0/24", "6to4 relay", "RFC 7526"),
    _block("192.168.0.0/16", "private-use", "RFC 1918", local=True),
    _block("192.175.48.0/24", "AS112 sink", "RFC 7534"),
    _block("198.18.0.0/15", "benchmarking", "RFC 2544"),
    _block("198.51.100.0/24", "documentation", "RFC 5737"),
    _block("203.0.113.0/24", "documentation", "RFC 5737"),
    _block("224.0.0.0/4", "multicast", "RFC 5771", never=True),
    _block("255.255.255.255/32", "broadcast", "RFC 919", never=True),
    _block("240.0.0.0/4", "reserved", "RFC 1112"),
)

# https://www.iana.org/assignments/iana-ipv6-special-registry, what RFC 4291 sets apart, and the cloud platforms again.
_V6: Final = (
    _block("::/128", "unspecified", "RFC 4291", never=True),
    _block("::1/128", "loopback", "RFC 4291", local=True),
    _block("::ffff:0:0/96", "IPv4-mapped", "RFC 4291"),
    _block("::/96", "IPv4-compatible", "RFC 4291"),
    _block("::ffff:0:0:0/96", "IPv4-translated", "RFC 7915"),
    _block("64:ff9b::/96", "NAT64", "RFC 6052"),
    _block("64:ff9b:1::/48", "local NAT64", "RFC 8215"),
    _block("100::/64", "discard-only", "RFC 6666"),
    _block("100:0:0:1::/64", "dummy", "RFC 9780"),
    _block("2001::/32", "Teredo", "RFC 4380"),
    _block("2001::/23", "protocol assignment", "RFC 2928"),
    _block("2001:db8::/32", "documentation", "RFC 3849"),
    _block("2002::/16", "6to4", "RFC 3056"),
    _block("2620:4f:8000::/48", "AS112 sink", "RFC 7534"),
    _block("3fff::/20", "documentation", "RFC 9637"),
    _block("5f00::/16", "segment routing", "RFC 9602"),
    _block("fd00:ec2::/32", "cloud platform", "AWS instance services"),
    _block("fd20:ce::/32", "cloud platform", "Google Cloud instance metadata"),
    _block("fc00::/7", "unique local", "RFC 4193", local=True),
    _block("fe80::/10", "link-local", "RFC 4291"),
    _block("fec0::/10", "site-local", "RFC 3879"),
    _block("ff00::/8", "multicast", "RFC 4291", never=True),
)
SPECIAL: Final = _V4 + _V6

_UNICAST: Final = IPv6Network("2000::/3")
# What is neither special nor global unicast has been given to nobody.
_UNASSIGNED: Final = Special(IPv6Network("::/0"), "unassigned", "RFC 4291", never=True)
_NAT64: Final = IPv6Network("64:ff9b::/96")


def special_block(address: Address) -> Special | None:
    """Return the most specific special-purpose block that holds an address, or None for an ordinary one.

    Args:
        address: An address without a zone; an IPv4-mapped one is not unwrapped here.
    """
    if isinstance(address, IPv4Address):
        return next((block for block in _V4 if address in block.network), None)
    found = next((block for block in _V6 if address in block.network), None)
    if found is None and address not in _UNICAST:
        return _UNASSIGNED
    return found


def is_public(address: Address) -> bool:
    """Tell whether an address is an ordinary one on the internet, with whatever IPv4 address it carries within.

    The well-known NAT64 prefix is as public as the IPv4 address behind it: in a network with IPv6 alone that is how the rest of
    the internet is reached.
    """
    block = special_block(address)
    if block is not None and block.network != _NAT64:
        return False
    return all(is_public(inner) for inner in embedded(address))
