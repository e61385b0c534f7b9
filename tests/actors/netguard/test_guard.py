"""The guard itself: what is recorded when, what is dialed, and what ends an attempt."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from affidavit.actors.errors import LogError
from affidavit.actors.events import Event, Kind
from affidavit.actors.netguard.decision import Decision, EgressDenied, ReportingRecorder
from affidavit.actors.netguard.guard import LOOK_UPS, Guard, Target
from affidavit.actors.netguard.policy import EgressPolicy
from tests.actors.netguard.netkit import Book, Names, by_dial, names, open_site, resolver


class Gate:
    """A recorder whose every decision waits for a test to say that it is durable."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.durable = trio.Event()

    async def record(self, decision: Decision) -> None:
        self.decisions.append(decision)
        await self.durable.wait()


async def test_nothing_is_dialed_before_the_allow_is_durable() -> None:
    """While an allow is being written no listener sees anybody; once it stands, the connection is made."""
    gate = Gate()
    async with open_site(book := Book()) as site, trio.open_nursery() as nursery:
        guard = Guard(EgressPolicy(allow=("127.0.0.0/8",)), gate)
        nursery.start_soon(by_dial, guard, "127.0.0.1", site.port)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert [one.allowed for one in gate.decisions] == [True]
        assert book.accepted == []
        gate.durable.set()
        while not book.accepted:
            await trio.testing.wait_all_tasks_blocked(0.001)
    assert book.accepted == [("127.0.0.1", site.port)]


async def test_a_refusal_is_durable_before_it_is_raised() -> None:
    """Whoever hears of a refusal may rely on its being on the record."""
    gate = Gate()
    ended: list[str] = []

    async def ask() -> None:
        with pytest.raises(EgressDenied):
            await Guard(EgressPolicy(), gate).dial("127.0.0.1", 80)
        ended.append("refused")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert (len(gate.decisions), ended) == (1, [])
        gate.durable.set()
    assert ended == ["refused"]


async def test_what_cannot_be_recorded_is_not_dialed() -> None:
    """The recorder's error comes through as itself, even one that looks like a connection's, and nobody was contacted."""

    def full(decision: Decision) -> None:
        raise OSError("the disk is full")

    async with open_site(Book()) as site:
        book = Book(before=full)
        site.book = book
        for port in (site.port, 1):
            with pytest.raises(OSError, match="the disk is full"):
                await book.guard(f"127.0.0.1:{site.port}").dial("127.0.0.1", port)
        assert book.accepted == []


async def test_a_policy_that_changes_while_the_allow_is_written_is_obeyed() -> None:
    """Between the decision and the dial the policy is looked at again; the refusal stands beside the allow that was not used."""
    book = Book()
    async with open_site(book) as site:
        guard = book.guard(f"127.0.0.1:{site.port}")
        book.before = lambda decision: guard.replace_policy(EgressPolicy())
        with pytest.raises(EgressDenied):
            await guard.dial("127.0.0.1", site.port)
    assert book.accepted == []
    assert [one.allowed for one in book.decisions] == [True, False]


async def test_addresses_are_tried_in_order_each_with_its_own_allow() -> None:
    """An address that takes no connection costs its allow; the next one is dialed with another."""
    book = Book()
    async with open_site(book) as site, open_site(Book()) as other:
        closed = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = closed[0].socket.getsockname()[1]
        await closed[0].aclose()
        with (
            names(a_example=["127.0.0.1", "127.0.0.2"]),
            pytest.raises(OSError, match=r"no connection to a\.example"),
        ):
            await book.guard("127.0.0.0/8").dial("a.example", port)
        assert other.book.accepted == book.accepted == []
    assert [(one.host, one.allowed) for one in book.decisions] == [("127.0.0.1", True), ("127.0.0.2", True)]
    assert site.port != port


async def test_only_addresses_about_to_be_dialed_are_recorded() -> None:
    """An answer's further addresses are not mentioned once a connection stands, and an address that repeats is tried once."""
    book = Book()
    async with open_site(book) as site:
        with names(a_example=["127.0.0.1", "::ffff:127.0.0.1", "127.0.0.2", "10.0.0.1"]):
            stream = await book.guard("127.0.0.0/8").dial("a.example", site.port)
            await stream.aclose()
    assert [one.host for one in book.decisions] == ["127.0.0.1"]


async def test_a_refused_address_ends_the_attempt() -> None:
    """An answer that mixes good and bad addresses is no way to try one's luck: the first bad one is the end."""
    book = Book()
    async with open_site(book) as site:
        with names(a_example=["10.0.0.1", "127.0.0.1"]), pytest.raises(EgressDenied) as caught:
            await book.guard("127.0.0.0/8").dial("a.example", site.port)
    assert [(one.host, one.allowed) for one in book.decisions] == [("10.0.0.1", False)]
    assert caught.value.decision == book.decisions[0]
    assert (caught.value.fault, caught.value.code) == ("forbidden", "egress_denied")
    assert str(caught.value) == (
        f"no connection to 10.0.0.1:{site.port} (a.example): private-use address (RFC 1918)"
    )


async def test_a_flood_of_addresses_is_cut() -> None:
    """A name with very many addresses does not make very many attempts."""
    book = Book()
    async with open_site(Book()) as site:
        port = site.port
    with names(a_example=[f"127.0.1.{last}" for last in range(200)]), pytest.raises(OSError, match="no conn"):
        await book.guard("127.0.0.0/8").dial("a.example", port)
    assert len(book.decisions) == 8


class Silent(Names):
    """A resolver that never answers."""

    async def getaddrinfo(self, host: Any, port: Any, family: Any = 0, *more: Any, **named: Any) -> Any:
        self.asked.append(str(host))
        await trio.sleep_forever()


async def test_one_run_cannot_keep_every_look_up_waiting() -> None:
    """Of many slow names a few are looked up at once, all goals of the run taken together; another run has its own few.

    An address needs no look-up, and is not held up by them.
    """
    silent = Silent()
    before = trio.socket.set_custom_hostname_resolver(silent)
    book = Book()
    run, other = book.guard("public"), book.guard("public")
    try:
        async with trio.open_nursery() as nursery:
            for guard in (run, run.for_goal("child"), run.granting("m.example", 443)):
                for number in range(LOOK_UPS):
                    nursery.start_soon(guard.dial, f"n{number}.example", 443)
            await trio.testing.wait_all_tasks_blocked()
            assert len(silent.asked) == LOOK_UPS
            with pytest.raises(EgressDenied):
                await run.dial("169.254.169.254", 80)
            nursery.start_soon(other.dial, "a.example", 443)
            await trio.testing.wait_all_tasks_blocked()
            assert len(silent.asked) == LOOK_UPS + 1
            nursery.cancel_scope.cancel()
    finally:
        trio.socket.set_custom_hostname_resolver(before)


async def test_one_deadline_covers_the_look_up(autojump_clock: trio.testing.MockClock) -> None:
    """A resolver that never answers is given up after the time for the whole."""
    before = trio.socket.set_custom_hostname_resolver(Silent())
    try:
        began = trio.current_time()
        with pytest.raises(TimeoutError, match=r"no connection to a\.example:443 within 7 seconds"):
            await Book().guard("public").dial("a.example", 443, seconds=7)
        assert trio.current_time() - began == pytest.approx(7)
    finally:
        trio.socket.set_custom_hostname_resolver(before)


async def test_one_deadline_covers_the_record(autojump_clock: trio.testing.MockClock) -> None:
    """A recorder that hangs holds up a dial no longer than that either, and nothing was dialed."""
    gate = Gate()
    with pytest.raises(TimeoutError):
        await Guard(EgressPolicy(allow=("127.0.0.1",)), gate).dial("127.0.0.1", 1, seconds=7)


async def test_cancelled_before_the_allow_is_durable_nothing_is_dialed() -> None:
    """A dial that is cancelled while its allow is written contacts nobody."""
    gate = Gate()
    async with open_site(book := Book()) as site:
        with trio.move_on_after(0) as scope:
            await Guard(EgressPolicy(allow=("127.0.0.1",)), gate).dial("127.0.0.1", site.port)
        assert scope.cancelled_caught
        await trio.testing.wait_all_tasks_blocked(0.01)
    assert book.accepted == []


async def test_a_refusal_is_recorded_though_whoever_asked_has_left() -> None:
    """Cancelling a dial in time does not keep what was tried off the record."""
    book = Book()

    class Leaving:
        async def record(self, decision: Decision) -> None:
            scope.cancel(reason="whoever asked has left")
            await book.record(decision)

    with trio.CancelScope() as scope, pytest.raises(EgressDenied):
        await Guard(EgressPolicy(), Leaving()).dial("127.0.0.1", 80)
    assert [one.allowed for one in book.decisions] == [False]


async def test_a_refusal_that_is_not_recorded_in_time_is_an_error(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A log that hangs does not hold up a shielded record for ever, and nobody is told of a refusal that does not stand."""
    with pytest.raises(LogError, match="could not be recorded within 5 s"):
        await Guard(EgressPolicy(), Gate()).dial("127.0.0.1", 80)


async def test_a_recheck_writes_only_when_it_refuses() -> None:
    """Checking an open connection again leaves no trace while the policy still allows it."""
    book = Book()
    guard = book.guard("127.0.0.1:80")
    target = Target("127.0.0.1", "127.0.0.1", 80)
    await guard.recheck(target)
    assert book.decisions == []
    guard.replace_policy(EgressPolicy())
    with pytest.raises(EgressDenied):
        await guard.recheck(target)
    assert [(one.host, one.allowed) for one in book.decisions] == [("127.0.0.1", False)]


async def test_guards_of_one_run_share_the_policy_and_name_their_goals() -> None:
    """A policy that is replaced holds for every goal of the run; each decision names the goal it belongs to."""
    book = Book()
    guard = book.guard("public")
    child = guard.for_goal("the-goal.1")
    guard.replace_policy(EgressPolicy())
    assert child.policy == EgressPolicy()
    for one in (guard, child):
        with pytest.raises(EgressDenied):
            await one.dial("8.8.8.8", 53)
    assert [one.goal for one in book.decisions] == ["the-goal", "the-goal.1"]


@pytest.mark.parametrize("port", [0, -1, 65536, 10**9])
async def test_a_port_that_is_none_is_refused(port: int) -> None:
    """Not even a rule for any port allows it."""
    book = Book()
    assert await by_dial(book.guard("127.0.0.0/8"), "127.0.0.1", port) == "refused"
    assert len(book.refused) == 1


async def test_what_was_asked_for_is_recorded_fit_to_be_read() -> None:
    """A host made to hurt whoever reads the record is cut and made printable."""
    book = Book()
    await by_dial(book.guard(), "evil\x1b[2J\n" + "x" * 500, 80)
    assert book.decisions[0].host == "evil\ufffd[2J\ufffd" + "x" * 71 + "\u2026"


async def test_each_decision_is_one_event_of_the_run() -> None:
    """Through a run's reporter a decision becomes `net.egress` with the literal address, the name, the port and the goal."""
    reported: list[Event] = []

    class Reporter:
        async def report(self, *events: Event) -> None:
            reported.extend(events)

    guard = Guard(EgressPolicy(), ReportingRecorder(Reporter()), goal="g.1")
    with pytest.raises(EgressDenied):
        await guard.dial("0x7f.1", 80)
    event = reported[0]
    assert (event.kind, event.host, event.allowed, event.goal) == (
        Kind.EGRESS_DECISION,
        "127.0.0.1",
        False,
        "g.1",
    )
    assert event.reason == "loopback address (RFC 1122)"
    assert event.detail == {"name": "0x7f.1", "port": 80}


async def test_a_resolver_that_changes_its_answer_between_two_dials_is_judged_each_time() -> None:
    """A name is looked up for each dial anew, and each answer is decided on."""
    book = Book()
    async with open_site(book) as site:
        with resolver({"a.example": [["127.0.0.1"], ["10.0.0.1"]]}) as known:
            guard = book.guard("127.0.0.0/8")
            assert await by_dial(guard, "a.example", site.port) == "reached"
            assert await by_dial(guard, "a.example", site.port) == "refused"
        assert known.asked == ["a.example", "a.example"]
