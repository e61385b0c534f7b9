"""The guard against the whole table of addresses and tricks, over every way out, with real listeners on this machine (G8)."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import trio

from affidavit.actors.netguard.policy import EgressPolicy
from tests.actors.netguard.netkit import (
    FAILED,
    REACHED,
    REFUSED,
    UNASKED,
    WAYS,
    Book,
    Way,
    by_client,
    by_dial,
    names,
    needs_six,
    open_site,
    resolver,
)
from tests.actors.netguard.tricks import LIBERAL, TRICKS, Trick

ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)


class Sockets(trio.abc.SocketFactory):
    """Makes plain sockets and counts them."""

    def __init__(self) -> None:
        self.made = 0

    def socket(self, family: Any = -1, type: Any = -1, proto: Any = -1) -> Any:
        self.made += 1
        return trio.socket.from_stdlib_socket(socket.socket(family, type, proto))


def test_the_table_is_long_and_each_row_has_a_name() -> None:
    """There are at least a hundred tricks, no two with the same name."""
    assert len({trick.name for trick in TRICKS}) == len(TRICKS) >= 100


@ways
@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.name)
async def test_a_trick_reaches_nobody_and_stands_on_the_record(trick: Trick, way: Way) -> None:
    """Under a policy that allows the whole internet each trick is refused on the record, and no listener sees anybody."""
    book = Book()
    name = trick.host.lower().removesuffix(".")
    async with open_site(book) as site:
        with resolver({name: [trick.answer]} if trick.answer else {}):
            outcome = await way(book.guard(*LIBERAL), trick.host, site.port)
    assert book.accepted == []
    assert book.allowed == []
    if outcome == UNASKED:
        # The client or the proxy knew already that this is no address; nobody asked the guard.
        assert way is not by_dial
        assert book.decisions == []
    else:
        assert outcome == REFUSED
        assert [decision.goal for decision in book.refused] == ["the-goal"]


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.name)
async def test_a_trick_makes_no_socket(trick: Trick) -> None:
    """No address that is refused is contacted, on this machine or any other: there is not even a socket for it."""
    sockets = Sockets()
    before = trio.socket.set_custom_socket_factory(sockets)
    try:
        with resolver({trick.host.lower().removesuffix("."): [trick.answer]} if trick.answer else {}):
            assert await by_dial(Book().guard(*LIBERAL), trick.host, 80) == REFUSED
    finally:
        trio.socket.set_custom_socket_factory(before)
    assert sockets.made == 0


@ways
@pytest.mark.parametrize(
    ("allow", "endpoint", "host", "answer", "dialed"),
    [
        pytest.param("127.0.0.1:{}", "", "127.0.0.1", (), "127.0.0.1", id="an address with its port"),
        pytest.param("127.0.0.1", "", "127.0.0.1", (), "127.0.0.1", id="an address on any port"),
        pytest.param("127.0.0.1:{}", "", "2130706433", (), "127.0.0.1", id="the same address in decimal"),
        pytest.param("127.0.0.1:{}", "", "::ffff:7f00:1", (), "127.0.0.1", id="the same address, mapped"),
        pytest.param("127.0.0.0/8:{}", "", "127.0.0.9", (), "127.0.0.9", id="a range"),
        pytest.param("127.0.0.0/8", "", "a.example", ("127.0.0.3",), "127.0.0.3", id="a name into a range"),
        pytest.param("[::1]:{}", "", "::1", (), "::1", id="an IPv6 address", marks=needs_six),
        pytest.param("", "localhost:{}", "localhost", ("127.0.0.1",), "127.0.0.1", id="an endpoint by name"),
        pytest.param(
            "",
            "LocalHost:{}",
            "localhost.",
            ("::1",),
            "::1",
            id="the same, spelled otherwise",
            marks=needs_six,
        ),
        pytest.param("", "127.0.0.1:{}", "127.0.0.1", (), "127.0.0.1", id="an endpoint by address"),
    ],
)
async def test_what_is_allowed_is_reached_once_with_its_allow_before_it(
    way: Way, allow: str, endpoint: str, host: str, answer: tuple[str, ...], dialed: str
) -> None:
    """Every accepted connection has exactly one earlier allow, for the literal address that was dialed."""
    book = Book()
    async with open_site(book) as site:
        guard = book.guard(
            *filter(None, [allow.format(site.port)]),
            endpoints=tuple(filter(None, [endpoint.format(site.port)])),
        )
        with resolver({host.removesuffix("."): [answer]} if answer else {}):
            assert await way(guard, host, site.port) == REACHED
        assert book.accepted == [(dialed, site.port)]
        assert book.unexplained == []
        assert [(one.allowed, one.host, one.port) for one in book.decisions] == [(True, dialed, site.port)]


@ways
@pytest.mark.parametrize(
    ("allow", "endpoint", "host", "answer"),
    [
        pytest.param("127.0.0.1:1", "", "127.0.0.1", (), id="another port"),
        pytest.param("127.0.0.2:{}", "", "127.0.0.1", (), id="another address"),
        pytest.param("127.0.0.1:{}", "", "a.example", ("127.0.0.1",), id="a name for a granted address"),
        pytest.param("a.example:{}", "", "a.example", ("127.0.0.1",), id="a rule's name that leads inside"),
        pytest.param("*.example:{}", "", "a.example", ("127.0.0.1",), id="a name below that leads inside"),
        pytest.param("", "localhost:1", "localhost", ("127.0.0.1",), id="an endpoint on another port"),
        pytest.param("", "localhost:{}", "127.0.0.1", (), id="an endpoint's address without its name"),
        pytest.param("", "localhost:{}", "b.example", ("127.0.0.1",), id="an endpoint by another name"),
        pytest.param("", "a.example:{}", "a.example", ("169.254.169.254",), id="an endpoint to metadata"),
        pytest.param("", "a.example:{}", "a.example", ("fd00:ec2::254",), id="an endpoint to IPv6 metadata"),
        pytest.param("", "a.example:{}", "a.example", ("0.0.0.0",), id="an endpoint to unspecified"),
        pytest.param("", "", "127.0.0.1", (), id="no rule at all"),
    ],
)
async def test_a_rule_opens_no_more_than_it_says(
    way: Way, allow: str, endpoint: str, host: str, answer: tuple[str, ...]
) -> None:
    """A granted host, port or name opens nothing beside it."""
    book = Book()
    async with open_site(book) as site:
        guard = book.guard(
            *filter(None, [allow.format(site.port)]),
            endpoints=tuple(filter(None, [endpoint.format(site.port)])),
        )
        with resolver({host: [answer]} if answer else {}):
            assert await way(guard, host, site.port) == REFUSED
    assert (book.accepted, len(book.refused), book.allowed) == ([], 1, [])


@ways
async def test_a_name_that_changes_its_answer_is_looked_up_once(way: Way) -> None:
    """What is dialed is the address that was decided on, whatever the name says a moment later."""
    book = Book()
    async with open_site(book) as site:
        with resolver({"a.example": [["127.0.0.5"], ["127.0.0.6"]]}) as known:
            assert await way(book.guard(f"127.0.0.5/32:{site.port}"), "a.example", site.port) == REACHED
            assert known.asked == ["a.example"]
            assert await way(book.guard(f"127.0.0.5/32:{site.port}"), "a.example", site.port) == REFUSED
        assert book.accepted == [("127.0.0.5", site.port)]
    assert [one.host for one in book.decisions] == ["127.0.0.5", "127.0.0.6"]


@ways
async def test_a_name_that_no_rule_could_allow_is_not_looked_up(way: Way) -> None:
    """Even the question would tell somebody something, so it is not asked; the refusal names what was asked for."""
    book = Book()
    with names(a_example=["127.0.0.1"]) as known:
        assert await way(book.guard("b.example", "10.0.0.1"), "a.example", 443) == REFUSED
    assert known.asked == []
    assert [(one.host, one.name, one.port, one.allowed) for one in book.decisions] == [
        ("a.example", "a.example", 443, False)
    ]


@ways
async def test_a_name_without_an_address_is_a_failure_and_no_decision(way: Way) -> None:
    """Nothing was about to be dialed, so nothing is recorded."""
    book = Book()
    with names():
        assert await way(book.guard("public"), "a.example", 443) == FAILED
    assert book.decisions == []


@ways
async def test_no_proxy_of_the_environment_is_honoured(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that name a proxy change neither where a connection goes nor what is decided."""
    book = Book()
    async with open_site(book) as site, open_site(other := Book()) as trap:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{trap.port}")
            monkeypatch.setenv(name.lower(), f"http://127.0.0.1:{trap.port}")
        assert await way(book.guard(f"127.0.0.1:{site.port}"), "127.0.0.1", site.port) == REACHED
        assert await way(book.guard(f"127.0.0.1:{site.port}"), "10.0.0.1", site.port) == REFUSED
        assert book.accepted == [("127.0.0.1", site.port)]
    assert other.accepted == []


async def test_a_policy_without_rules_refuses_what_is_public_too() -> None:
    """Nothing is reached by default."""
    assert not EgressPolicy().decide("8.8.8.8", "8.8.8.8", 443).allowed
    assert await by_client(Book().guard(), "8.8.8.8", 443) == REFUSED
