"""One line of an egress policy: its grammar, and what it allows. Pure.

- `public`: any ordinary address on the internet; `public:443` on that port alone.
- `10.0.0.0/8:443`: a range, whatever name led there. It opens special-purpose addresses (loopback, private, link-local)
  only where it lies inside their block: `0.0.0.0/0` is the internet, and not this machine.
- `[fd00::/8]:443`: with a port, IPv6 needs brackets.
- `127.0.0.1:8080`: an address, exactly that one, asked for as an address and not by a name.
- `api.example.org`: a name, on ordinary addresses alone, so that whoever controls the name cannot lead inside.
- `*.example.org`: every name below it, and not `example.org` itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.netguard.hosts import BadHost, Host, read_host, shown
from affidavit.actors.netguard.special import Address, Network, is_public, special_block

PORTS: Final = range(1, 65536)
_MAX_RULE: Final = 300


class Reach(StrEnum):
    """What kind of destination a rule names."""

    PUBLIC = "public"
    RANGE = "range"
    ADDRESS = "address"
    NAME = "name"
    BELOW = "below"
    ENDPOINT = "endpoint"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        text: Its one canonical spelling.
        reach: What kind of destination it names.
        port: The only port, or None for any.
        network: The range, or the address as a range of one.
        name: The name; of a rule for names below, the part that they end with, its dot included.
    """

    text: str
    reach: Reach
    port: int | None = None
    network: Network | None = None
    name: str = ""

    def may_name(self, name: str, port: int) -> bool:
        """Tell whether the rule could allow a name that has not been looked up."""
        if self.port not in {None, port} or self.reach is Reach.ADDRESS:
            return False
        if self.reach is Reach.BELOW:
            return name.endswith(self.name)
        return self.reach in {Reach.PUBLIC, Reach.RANGE} or name == self.name

    def allows(self, host: Host, address: Address, port: int) -> bool:
        """Tell whether the rule allows to dial an address.

        Args:
            host: What was asked for.
            address: What it was resolved to, no IPv4-mapped one.
            port: The port.
        """
        if self.port not in {None, port}:
            return False
        if self.network is not None:
            if self.reach is Reach.ADDRESS and host.address != address:
                return False
            return address in self.network and (is_public(address) or _inside(self.network, address))
        if self.reach is Reach.PUBLIC:
            return is_public(address)
        if host.address is not None or not self.may_name(host.name, port):
            return False
        return is_public(address) or (self.reach is Reach.ENDPOINT and _is_local(address))


def parse_rule(text: str) -> Rule:
    """Read one rule of a policy.

    Raises:
        ConfigurationError: It is none; one sentence that says why.
    """
    target, port = _split(text)
    ending = "" if port is None else f":{port}"
    if target == "public":
        return Rule(f"public{ending}", Reach.PUBLIC, port)
    if "/" in target:
        network = _network(text, target)
        spelled = str(network) if isinstance(network, IPv4Network) or port is None else f"[{network}]"
        return Rule(f"{spelled}{ending}", Reach.RANGE, port, network)
    if target.startswith("*."):
        host = _host(text, target[2:])
        if host.address is not None:
            raise _bad(text, "only a name has names below it")
        return Rule(f"*.{host.name}{ending}", Reach.BELOW, port, name=f".{host.name}")
    host = _host(text, target)
    if host.address is None:
        return Rule(f"{host.name}{ending}", Reach.NAME, port, name=host.name)
    return _address_rule(text, host.address, port)


def parse_endpoint(text: str) -> Rule:
    """Read an endpoint that the operator names: exactly that host and port, its own machine and network included.

    A name may lead to a loopback or private address here, but not to a link-local one, where clouds keep their credentials.

    Args:
        text: `localhost:11434`, `[::1]:8080`, `api.example.org:443`: host and port, both.

    Raises:
        ConfigurationError: It is no host and port; one sentence that says why.
    """
    target, port = _split(text)
    host = _host(text, target)
    if port is None:
        raise _bad(text, "an endpoint needs its port")
    if host.address is not None:
        return _address_rule(text, host.address, port)
    return Rule(f"{host.name}:{port}", Reach.ENDPOINT, port, name=host.name)


def _address_rule(text: str, address: Address, port: int | None) -> Rule:
    block = special_block(address)
    if block is not None and block.never:
        raise _bad(text, f"{address} is a {block.name} address and names no host")
    spelled = f"[{address}]" if isinstance(address, IPv6Address) and port is not None else str(address)
    ending = "" if port is None else f":{port}"
    return Rule(f"{spelled}{ending}", Reach.ADDRESS, port, ip_network(address))


def _split(text: str) -> tuple[str, int | None]:
    """Part a rule into its target and its port."""
    if len(text) > _MAX_RULE or text != text.strip():
        raise _bad(text, "it is too long, or has spaces around it")
    if "://" in text:
        raise _bad(text, "name a host, without a scheme")
    if text.startswith("["):
        target, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise _bad(text, "the brackets do not close")
        return target, _port(text, rest[1:]) if rest else None
    # More than one colon without brackets is an IPv6 address.
    target, colon, port = text.partition(":") if text.count(":") == 1 else (text, "", "")
    return target, _port(text, port) if colon else None


def _port(text: str, digits: str) -> int:
    if not (digits.isascii() and digits.isdigit()) or int(digits[:6]) not in PORTS:
        raise _bad(text, "a port is a number from 1 to 65535")
    return int(digits)


def _network(text: str, target: str) -> Network:
    try:
        network = ip_network(target)
    except ValueError as error:
        raise _bad(text, f"it is no range of addresses: {error}") from error
    if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped is not None:
        raise _bad(text, "write an IPv4 range as IPv4")
    return network


def _host(text: str, target: str) -> Host:
    try:
        return read_host(target)
    except BadHost as error:
        raise _bad(text, str(error)) from error


def _inside(network: Network, address: Address) -> bool:
    block = special_block(address)
    # A block is compared only with a range of its own kind of address, since the address lies in both.
    return block is not None and not block.never and _covers(block.network, network)


def _covers(outer: Network, inner: Network) -> bool:
    return outer.prefixlen <= inner.prefixlen and inner.network_address in outer


def _is_local(address: Address) -> bool:
    block = special_block(address)
    return block is not None and block.local


def _bad(text: str, why: str) -> ConfigurationError:
    # What stands before an @ may be somebody's password.
    kept = text.rpartition("@")[2]
    return ConfigurationError(f"the egress rule {shown(kept)!r} cannot be used: {why}")
