"""Where a run may connect to: nowhere, unless a rule says otherwise. Pure: given, not looked up; no clock, no input or output.

The decision is about an address, the one that would be dialed, together with what was asked for. So it is the same for a
socket, an HTTP client and a proxy, and nothing that stands between a name and an address can change it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address, ip_address

from affidavit.actors.netguard.embedded import embedded, unmapped
from affidavit.actors.netguard.hosts import BadHost, Host, read_host
from affidavit.actors.netguard.rules import PORTS, Reach, Rule, parse_endpoint, parse_rule
from affidavit.actors.netguard.special import Address, special_block


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy says.

    Attributes:
        allowed: Whether the address may be dialed.
        reason: Why, in short, for the record and for people.
    """

    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """The rules of a run; without any, everything is refused.

    Attributes:
        allow: Rules as in `rules`: `public`, `10.0.0.0/8:443`, `api.example.org:443`, `*.example.org`, `127.0.0.1:8080`.
        endpoints: Hosts with ports that the operator names for the runtime's own use, such as a model at `localhost:11434`:
            exactly those, on the operator's own machine and network too.

    Raises:
        ConfigurationError: A rule cannot be used; one sentence that says which and why.
    """

    allow: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    _rules: tuple[Rule, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rules = (*map(parse_endpoint, self.endpoints), *map(parse_rule, self.allow))
        object.__setattr__(self, "_rules", rules)

    @property
    def digest(self) -> bytes:
        """SHA-256 of what the policy means: the order and the spelling of its rules do not matter."""
        meaning = sorted({f"{rule.reach} {rule.text}" for rule in self._rules})
        return hashlib.sha256(json.dumps(["egress", 1, meaning]).encode("ascii")).digest()

    def granting(self, host: str, port: int) -> EgressPolicy:
        """Return the policy with one endpoint more.

        Args:
            host: As the operator wrote it, an IPv6 address with or without brackets.
            port: Its port.

        Raises:
            ConfigurationError: That is no host or no port.
        """
        spelled = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return replace(self, endpoints=(*self.endpoints, f"{spelled}:{port}"))

    def may_look_up(self, name: str, port: int | None = None) -> bool:
        """Tell whether a name may be looked up at all: no rule could allow it, then nobody need be asked about it.

        Args:
            name: The name, in lower case.
            port: The port that will be dialed; None asks about any.
        """
        return any(rule.may_name(name, port or rule.port or PORTS[0]) for rule in self._rules)

    def decide(self, name: str, address: str, port: int) -> Verdict:
        """Decide about dialing an address.

        Args:
            name: What was asked for: a name, or an address in any spelling.
            address: What is about to be dialed.
            port: The port.
        """
        try:
            host = read_host(name)
            target = ip_address(address)
        except BadHost as error:
            return Verdict(allowed=False, reason=str(error))
        except ValueError:
            return Verdict(allowed=False, reason="this is not an address")
        if port not in PORTS:
            return Verdict(allowed=False, reason="a port is a number from 1 to 65535")
        if isinstance(target, IPv6Address) and target.scope_id is not None:
            return Verdict(allowed=False, reason="an address with a zone is never dialed")
        return self._judge(host, unmapped(target), port)

    def _judge(self, host: Host, address: Address, port: int) -> Verdict:
        rule = self._rule(host, address, port)
        if rule is None:
            return Verdict(allowed=False, reason=_reason(address))
        if rule.reach is not Reach.ADDRESS:
            for inner in embedded(address):
                verdict = self._judge(host, inner, port)
                if not verdict.allowed:
                    return Verdict(allowed=False, reason=f"it carries {inner}: {verdict.reason}")
        return Verdict(allowed=True, reason=f"allowed by {rule.text}")

    def _rule(self, host: Host, address: Address, port: int) -> Rule | None:
        return next((rule for rule in self._rules if rule.allows(host, address, port)), None)


def _reason(address: Address) -> str:
    """Say why an address is refused that no rule opens: what it is, if it is anything special."""
    block = special_block(address)
    if block is not None:
        return f"{block.name} address ({block.source})"
    inner = next((one for one in embedded(address) if special_block(one) is not None), None)
    return "no rule allows it" if inner is None else f"it carries {inner}: {_reason(inner)}"
