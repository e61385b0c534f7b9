"""What a policy means: its rules, its bad rules, its verdicts and their reasons, its digest."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.netguard.embedded import embedded
from affidavit.actors.netguard.policy import EgressPolicy
from affidavit.actors.netguard.rules import parse_endpoint, parse_rule
from affidavit.actors.netguard.special import SPECIAL, is_public, special_block

PUBLIC = "93.184.216.34"
fours = st.integers(0, 2**32 - 1).map(IPv4Address)
sixes = st.one_of(
    st.integers(0, 2**128 - 1),
    st.integers(0, 2**125 - 1).map(lambda bits: bits | 1 << 125),
    st.sampled_from([block.network for block in SPECIAL if isinstance(block.network, IPv6Network)]).flatmap(
        lambda network: st.integers(int(network[0]), int(network[-1]))
    ),
).map(IPv6Address)


@pytest.mark.parametrize(
    ("rule", "spelled"),
    [
        ("public", "public"),
        ("public:443", "public:443"),
        ("10.0.0.0/8:443", "10.0.0.0/8:443"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("[fd00::/8]:443", "[fd00::/8]:443"),
        ("FD00:0::/8", "fd00::/8"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("0x7f.1:8080", "127.0.0.1:8080"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("[0::1]:8080", "[::1]:8080"),
        ("API.example.org.:443", "api.example.org:443"),
        ("*.Example.org", "*.example.org"),
        ("*.example.org:443", "*.example.org:443"),
    ],
)
def test_a_rule_has_one_spelling(rule: str, spelled: str) -> None:
    """However a rule is written, it is shown in one way, which reads as the same rule again."""
    assert parse_rule(rule).text == spelled
    assert parse_rule(spelled) == parse_rule(rule)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("", "not the name of a host"),
        (" public", "spaces around it"),
        ("a b", "not the name of a host"),
        ("https://example.org", "without a scheme"),
        ("example.org/path", "no range of addresses"),
        ("user@example.org", "not the name of a host"),
        ("example.org:", "a number from 1 to 65535"),
        ("example.org:0", "a number from 1 to 65535"),
        ("example.org:65536", "a number from 1 to 65535"),
        ("example.org:443x", "a number from 1 to 65535"),
        ("example.org:\u0664\u0664\u0663", "a number from 1 to 65535"),
        ("*", "not the name of a host"),
        ("*:443", "not the name of a host"),
        ("*.", "not the name of a host"),
        ("a.*.example.org", "not the name of a host"),
        ("*.10.0.0.1", "only a name has names below it"),
        ("10.0.0.1/8", "no range of addresses"),
        ("10.0.0.0/33", "no range of addresses"),
        ("::ffff:10.0.0.0/104", "write an IPv4 range as IPv4"),
        ("[::1", "the brackets do not close"),
        ("[::1]8080", "the brackets do not close"),
        ("fe80::1%eth0", "an address with a zone is never dialed"),
        ("0.0.0.0:80", "names no host"),
        ("224.0.0.1", "names no host"),
        ("255.255.255.255", "names no host"),
        ("::", "names no host"),
        ("ff02::1", "names no host"),
        ("1.2.3.4.5", "looks like an address and is none"),
        ("b\u00fccher.example", "not the name of a host"),
        ("x" * 301, "too long"),
    ],
)
def test_a_bad_rule_is_refused_in_one_sentence(rule: str, why: str) -> None:
    """A rule that cannot be used names itself and says why, on one line."""
    with pytest.raises(ConfigurationError) as caught:
        EgressPolicy(allow=("public", rule))
    assert why in str(caught.value)
    assert str(caught.value).startswith("the egress rule '")
    assert len(str(caught.value).splitlines()) == 1


def test_a_bad_rule_is_shown_without_a_password() -> None:
    """An address with a user and a password, given as a rule, is not repeated whole."""
    with pytest.raises(ConfigurationError) as caught:
        parse_rule("https://user:hunter2@example.org")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("text", ["localhost", "public", "10.0.0.0/8:443", "*.example.org:443", "0.0.0.0:80"])
def test_an_endpoint_is_one_host_with_its_port(text: str) -> None:
    """A range, a pattern, a host without a port and an address that names no host are no endpoints."""
    with pytest.raises(ConfigurationError):
        parse_endpoint(text)


@pytest.mark.parametrize(
    ("allow", "name", "address", "port", "allowed"),
    [
        ("public", PUBLIC, PUBLIC, 25, True),
        ("public:443", PUBLIC, PUBLIC, 443, True),
        ("public:443", PUBLIC, PUBLIC, 80, False),
        ("public", "a.example", "2606:4700::1", 443, True),
        ("public", "a.example", "64:ff9b::8.8.8.8", 443, True),
        ("public", "a.example", "::ffff:8.8.8.8", 443, True),
        ("a.example", "a.example", PUBLIC, 443, True),
        ("a.example", "A.EXAMPLE.", PUBLIC, 443, True),
        ("a.example", "b.a.example", PUBLIC, 443, False),
        ("a.example", "xa.example", PUBLIC, 443, False),
        ("*.example", "a.example", PUBLIC, 443, True),
        ("*.example", "b.a.example", PUBLIC, 443, True),
        ("*.example", "example", PUBLIC, 443, False),
        ("*.example", "badexample", PUBLIC, 443, False),
        ("*.example", PUBLIC, PUBLIC, 443, False),
        ("10.0.0.0/8", "a.example", "10.9.8.7", 443, True),
        ("10.0.0.0/8", "a.example", "11.9.8.7", 443, False),
        ("0.0.0.0/0", PUBLIC, PUBLIC, 443, True),
        ("0.0.0.0/0", "10.9.8.7", "10.9.8.7", 443, False),
        ("8.0.0.0/7", "10.0.0.1", "10.0.0.1", 443, False),
        ("0.0.0.0/8", "0.0.0.0", "0.0.0.0", 443, False),
        ("224.0.0.0/4", "224.0.0.1", "224.0.0.1", 443, False),
        ("100.64.0.0/10", "100.64.0.1", "100.64.0.1", 443, True),
        ("100.64.0.0/10", "100.100.100.200", "100.100.100.200", 443, False),
        ("fc00::/7", "fd00::1", "fd00::1", 443, True),
        ("fc00::/7", "fd00:ec2::254", "fd00:ec2::254", 443, False),
        ("169.254.0.0/16", "169.254.169.254", "169.254.169.254", 80, True),
        ("169.254.169.254:80", "169.254.169.254", "169.254.169.254", 80, True),
        ("64:ff9b:1::/48", "a.example", "64:ff9b:1::8.8.8.8", 443, False),
        ("2002::/16", "a.example", "2002:a00:1::1", 443, False),
        ("[64:ff9b:1::808:808]:443", "64:ff9b:1::808:808", "64:ff9b:1::808:808", 443, True),
        ("public", PUBLIC, PUBLIC, 0, False),
        ("public", PUBLIC, PUBLIC, 65536, False),
        ("public", PUBLIC, "fe80::1%1", 443, False),
        ("public", PUBLIC, "no address", 443, False),
        ("public", "no host", PUBLIC, 443, False),
    ],
)
def test_a_verdict(allow: str, name: str, address: str, port: int, allowed: bool) -> None:
    """Each kind of rule allows what it says and nothing beside it."""
    assert EgressPolicy(allow=(allow,)).decide(name, address, port).allowed is allowed


def test_a_granted_address_is_not_granted_to_names() -> None:
    """A name that may be looked up by another rule does not come through the rule for an address."""
    policy = EgressPolicy(allow=("public", "127.0.0.1:8080"))
    assert policy.decide("127.0.0.1", "127.0.0.1", 8080).allowed
    assert not policy.decide("a.example", "127.0.0.1", 8080).allowed
    assert not policy.decide("127.0.0.2", "127.0.0.1", 8080).allowed


@pytest.mark.parametrize("address", ["fe80::1%1", "fe80::1%eth0", "2606:4700::1%1"])
def test_a_zone_is_refused_whatever_the_rules(address: str) -> None:
    """The same address with a zone may be another machine, so no rule for the address opens it."""
    verdict = EgressPolicy(allow=("public", "fe80::/10")).decide("a.example", address, 443)
    assert (verdict.allowed, verdict.reason) == (False, "an address with a zone is never dialed")


def test_an_embedded_address_needs_a_rule_of_its_own() -> None:
    """A range of addresses that carry IPv4 ones opens only those whose IPv4 address is allowed too."""
    both = EgressPolicy(allow=("64:ff9b:1::/48", "public"))
    assert both.decide("a.example", "64:ff9b:1::8.8.8.8", 443).allowed
    refused = both.decide("a.example", "64:ff9b:1::10.0.0.1", 443)
    assert refused.reason == "it carries 10.0.0.1: private-use address (RFC 1918)"


@pytest.mark.parametrize(
    ("name", "address", "reason"),
    [
        (PUBLIC, PUBLIC, "allowed by public"),
        ("169.254.169.254", "169.254.169.254", "link-local address (RFC 3927)"),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1", "loopback address (RFC 1122)"),
        (
            "2606:4700::5efe:7f00:1",
            "2606:4700::5efe:7f00:1",
            "it carries 127.0.0.1: loopback address (RFC 1122)",
        ),
        ("::1%lo", "::1%lo", "an address with a zone is never dialed"),
    ],
)
def test_a_reason_says_what_an_address_is(name: str, address: str, reason: str) -> None:
    """The record says which rule allowed a connection, or what kind of address was refused, with its source."""
    assert EgressPolicy(allow=("public",)).decide(name, address, 443).reason == reason


def test_a_reason_for_an_ordinary_address_says_that_no_rule_allows_it() -> None:
    """Nothing is wrong with the address itself."""
    assert EgressPolicy(allow=("a.example",)).decide("b.example", PUBLIC, 443).reason == "no rule allows it"


@pytest.mark.parametrize(
    ("allow", "name", "port", "may"),
    [
        ((), "a.example", 443, False),
        (("public",), "a.example", 443, True),
        (("public:80",), "a.example", 443, False),
        (("10.0.0.0/8",), "a.example", 443, True),
        (("10.0.0.1",), "a.example", 443, False),
        (("a.example",), "a.example", 443, True),
        (("a.example:80",), "a.example", 443, False),
        (("a.example:80",), "a.example", None, True),
        (("*.example",), "a.example", 443, True),
        (("*.example",), "a.other", 443, False),
        (("a.example",), "b.example", None, False),
    ],
)
def test_a_name_is_looked_up_only_if_some_rule_could_allow_it(
    allow: tuple[str, ...], name: str, port: int | None, may: bool
) -> None:
    """No look-up is made that could not matter."""
    assert EgressPolicy(allow=allow).may_look_up(name, port) is may


def test_granting_adds_one_endpoint_and_nothing_else() -> None:
    """The policy with a model's endpoint is another policy; the first one is as it was."""
    first = EgressPolicy(allow=("public",))
    granted = first.granting("localhost", 11434).granting("::1", 8080).granting("[::1]", 8081)
    assert granted.endpoints == ("localhost:11434", "[::1]:8080", "[::1]:8081")
    assert granted.decide("localhost", "127.0.0.1", 11434).allowed
    assert granted.decide("::1", "::1", 8080).allowed
    assert not granted.decide("localhost", "127.0.0.1", 8080).allowed
    assert first.endpoints == ()
    with pytest.raises(ConfigurationError):
        first.granting("no host", 80)


def test_a_policy_cannot_be_changed() -> None:
    """A policy is a value."""
    with pytest.raises(FrozenInstanceError):
        EgressPolicy().allow = ("public",)  # type: ignore[misc]


def test_the_digest_is_of_the_meaning() -> None:
    """Order, spelling and repetition of rules leave the digest as it is; another rule, or another kind of rule, does not."""
    one = EgressPolicy(allow=("public:443", "0x7f.1:80"), endpoints=("A.example:1",))
    same = EgressPolicy(allow=("127.0.0.1:80", "public:443", "public:443"), endpoints=("a.example.:1",))
    assert one.digest == same.digest
    others = [
        EgressPolicy(),
        EgressPolicy(allow=("public",)),
        EgressPolicy(allow=("public:443",)),
        EgressPolicy(allow=("a.example:1",)),
        EgressPolicy(endpoints=("a.example:1",)),
        one,
    ]
    assert len({policy.digest for policy in others}) == len(others)
    assert EgressPolicy().digest.hex() == "616b6beeed1bc46a8f1c81bcf748a9ab15bb6b91c6c2cd6f549beeb726097f39"


@given(fours)
def test_no_ipv4_address_is_public_that_the_standard_library_holds_private(address: IPv4Address) -> None:
    """Our list is at least as strict as the standard library's, in every version of it."""
    if is_public(address):
        assert not address.is_private
        assert not address.is_multicast
        assert not address.is_reserved
        assert special_block(address) is None


@given(sixes)
def test_no_ipv6_address_is_public_that_the_standard_library_holds_private(address: IPv6Address) -> None:
    """So it is for IPv6, and whatever IPv4 address a public one carries is public itself."""
    if is_public(address):
        assert not address.is_multicast
        assert not address.is_link_local
        assert address in ip_network("2000::/3") or address in ip_network("64:ff9b::/96")
        assert all(is_public(inner) for inner in embedded(address))


@given(st.one_of(fours, sixes), st.integers(1, 65535))
def test_the_most_liberal_ranges_open_what_is_public_and_nothing_else(
    address: IPv4Address | IPv6Address, port: int
) -> None:
    """All of IPv4 and all of IPv6, given as ranges, are the internet: no machine of the operator's is in it."""
    verdict = EgressPolicy(allow=("0.0.0.0/0", "::/0")).decide(str(address), str(address), port)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    assert verdict.allowed is is_public(mapped or address)


@given(st.one_of(fours, sixes))
def test_a_decision_is_the_same_for_every_spelling_of_an_address(address: IPv4Address | IPv6Address) -> None:
    """What is decided of an address is decided of its mapped form too, and the other way round."""
    policy = EgressPolicy(allow=("public", "10.0.0.0/8", "fd00::/8"))
    spelled = f"::ffff:{address}" if isinstance(address, IPv4Address) else address.exploded
    assert policy.decide(spelled, spelled, 443) == policy.decide(str(address), str(address), 443)


@pytest.mark.parametrize("block", SPECIAL, ids=lambda block: f"{block.network} {block.name}")
def test_both_ends_of_each_special_block_are_refused(block: object) -> None:
    """From the first address of a block to its last, no policy for the public internet reaches it."""
    network = next(one.network for one in SPECIAL if one is block)
    for address in (network[0], network[-1]):
        if not (isinstance(address, IPv6Address) and address in ip_network("64:ff9b::/96")):
            assert not EgressPolicy(allow=("public",)).decide(str(address), str(address), 443).allowed


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("::1.2.3.4", ("1.2.3.4",)),
        ("::ffff:1.2.3.4", ("1.2.3.4",)),
        ("::ffff:0:1.2.3.4", ("1.2.3.4",)),
        ("64:ff9b::1.2.3.4", ("1.2.3.4",)),
        ("64:ff9b:1::1.2.3.4", ("1.2.3.4",)),
        ("2002:102:304::5", ("1.2.3.4",)),
        ("2001:0:102:304:0:0:fafb:f7f6", ("1.2.3.4", "5.4.8.9")),
        ("2606:4700::5efe:102:304", ("1.2.3.4",)),
        ("2606:4700::200:5efe:102:304", ("1.2.3.4",)),
        ("2606:4700::1", ()),
        ("::1", ()),
        ("::", ()),
    ],
)
def test_embedded_addresses_are_found(address: str, inside: tuple[str, ...]) -> None:
    """Every form of an IPv6 address that carries an IPv4 one is taken apart."""
    assert tuple(map(str, embedded(ip_address(address)))) == inside
