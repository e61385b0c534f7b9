"""The guard: the one way to a connection for a run. Resolve once, decide on the address, record, and only then dial that address.

The rules it keeps. An allow is durable before the connect, and covers one attempt at most. A name that no rule could allow is not
looked up. What is dialed is the literal address that was decided on, so no second look-up can change it. Only what is about to
be dialed is recorded, and the first address that is refused ends the attempt: an answer that mixes good and bad addresses is no
way round the policy. It never reads the environment, and never dials a unix socket.
"""

from __future__ import annotations

import math
import socket
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Final, NoReturn, final

import trio

from affidavit.actors.errors import LogError
from affidavit.actors.netguard.decision import Decision, EgressDenied, Recorder
from affidavit.actors.netguard.embedded import unmapped
from affidavit.actors.netguard.hosts import BadHost, Host, read_host, shown
from affidavit.actors.netguard.policy import EgressPolicy, Verdict
from affidavit.actors.netguard.rules import PORTS

DIAL_SECONDS: Final = 15.0
RECORD_GRACE: Final = 5.0
MAX_ADDRESSES: Final = 8
LOOK_UPS: Final = 8


@dataclass(frozen=True, slots=True)
class Target:
    """One decided destination.

    Attributes:
        name: What was asked for, as written.
        address: The literal address.
        port: The port.
    """

    name: str
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Dialed:
    """A connection and the destination that was decided on."""

    stream: trio.SocketStream
    target: Target


@dataclass(slots=True)
class _Current:
    """What the guards of one run share.

    Attributes:
        policy: The policy in force.
        look_ups: Bounds the names that are looked up at once. Each takes a thread out of few, also for a while after nobody waits
            for it any more, so that a program that asks for many slow names would keep other runs from looking up theirs.
    """

    policy: EgressPolicy
    look_ups: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(LOOK_UPS))


@final
class Guard:
    """Dials for one goal of a run, under the run's policy."""

    def __init__(self, policy: EgressPolicy, recorder: Recorder, *, goal: str = "") -> None:
        """Set the rules.

        Args:
            policy: What may be reached.
            recorder: Where each decision goes before anything follows from it.
            goal: The goal that the connections belong to; empty for the run's root goal.
        """
        self._current = _Current(policy)
        self._recorder = recorder
        self._goal = goal
        self._grants: tuple[tuple[str, int], ...] = ()
        self._granted = (policy, policy)

    @property
    def policy(self) -> EgressPolicy:
        """The policy in force, with the endpoints that were granted beside it."""
        base = self._current.policy
        if self._granted[0] is not base:
            granted = base
            for host, port in self._grants:
                granted = granted.granting(host, port)
            self._granted = (base, granted)
        return self._granted[1]

    def replace_policy(self, policy: EgressPolicy) -> None:
        """Put another policy in force, for every goal of the run and for the connections that are open too."""
        self._current.policy = policy

    def for_goal(self, goal: str) -> Guard:
        """Return a guard for another goal of the same run, always under the same policy."""
        return self._sibling(goal, self._grants)

    def granting(self, host: str, port: int) -> Guard:
        """Return a guard of the same run and goal that may reach one endpoint beside the policy, whichever policy is in force.

        Args:
            host: The endpoint that the operator named, such as a model's: its host, as written.
            port: Its port.

        Raises:
            ConfigurationError: That is no host or no port.
        """
        EgressPolicy().granting(host, port)
        return self._sibling(self._goal, (*self._grants, (host, port)))

    def _sibling(self, goal: str, grants: tuple[tuple[str, int], ...]) -> Guard:
        guard = Guard(EgressPolicy(), self._recorder, goal=goal)
        # Shared, so that a policy that is replaced holds for all guards of the run.
        guard._current = self._current
        guard._grants = grants
        return guard

    async def dial(self, host: str, port: int, *, seconds: float = DIAL_SECONDS) -> trio.SocketStream:
        """Connect, if the policy allows it.

        Args:
            host: A name, or an address in any spelling.
            port: The port.
            seconds: For all of it: the look-up, the record, and every attempt.

        Returns:
            The connection, which is the caller's to close.

        Raises:
            EgressDenied: The policy refuses it; that is on the record.
            TimeoutError: There was no connection within the time.
            OSError: The name has no address, or none of its addresses took the connection.
            LogError: The decision could not be recorded.

        Cancellation: what was allowed on the record may never be dialed; nothing is dialed that is not on it. A refusal is
            recorded all the same, within `RECORD_GRACE` seconds.
        """
        return (await self.reach(host, port, seconds=seconds)).stream

    async def reach(self, host: str, port: int, *, seconds: float = DIAL_SECONDS) -> Dialed:
        """Do as `dial` does, and tell the destination with it, so that it can be checked again."""
        found: Dialed | Decision | None = None
        with trio.move_on_after(seconds):
            found = await self._reach(host, port)
        if found is None:
            raise TimeoutError(f"no connection to {shown(host)}:{port} within {seconds:g} seconds")
        if isinstance(found, Decision):
            await self._refuse(found)
        return found

    def check(self, target: Target) -> Verdict:
        """Say what the policy in force has to say of a destination, and record nothing."""
        return self.policy.decide(target.name, target.address, target.port)

    async def recheck(self, target: Target) -> None:
        """Check the destination of an open connection against the policy in force; to be called before it is used again.

        Raises:
            EgressDenied: The policy no longer allows it; that is on the record, and the caller must close the connection.
        """
        verdict = self.check(target)
        if not verdict.allowed:
            await self._refuse(self._decision(target.address, target.name, target.port, verdict))

    async def refuse(self, name: str, port: int, reason: str) -> NoReturn:
        """Refuse what was asked for without a look at the policy, on the record.

        Raises:
            EgressDenied: Always.
        """
        await self._refuse(self._decision(shown(name), shown(name), port, Verdict(False, reason)))

    async def _refuse(self, decision: Decision) -> NoReturn:
        # Shielded, since what was asked for and refused must not go unrecorded because whoever asked has left: a program could
        # see to that. Bounded, since a log may hang.
        with trio.CancelScope(shield=True, deadline=trio.current_time() + RECORD_GRACE) as scope:
            await self._recorder.record(decision)
        if scope.cancelled_caught:
            raise LogError(f"a refused connection could not be recorded within {RECORD_GRACE:g} s")
        raise EgressDenied(decision)

    async def _reach(self, host: str, port: int) -> Dialed | Decision:
        asked = self._asked(host, port)
        if isinstance(asked, Decision):
            return asked
        failure: OSError | None = None
        try:
            addresses = await self._addresses(asked, port)
        except OSError as error:
            raise OSError(f"no connection to {asked.text}:{port}: {_words(error)}") from error
        for waiting, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            target = Target(asked.text, address, port)
            refusal = await self._permit(target)
            if refusal is not None:
                return refusal
            try:
                return Dialed(await _connect(target, waiting), target)
            except OSError as error:
                failure = error
        raise OSError(f"no connection to {asked.text}:{port}: {_words(failure)}") from failure

    async def _addresses(self, asked: Host, port: int) -> tuple[str, ...]:
        """Return the literal addresses to try, in the resolver's order, each once."""
        if asked.address is not None:
            return (str(asked.address),)
        async with self._current.look_ups:
            answer = await trio.socket.getaddrinfo(asked.name, port, type=socket.SOCK_STREAM)
        found = dict.fromkeys(_canonical(str(entry[4][0])) for entry in answer)
        return tuple(found)[:MAX_ADDRESSES]

    def _asked(self, host: str, port: int) -> Host | Decision:
        """Return what to resolve, or the refusal of what no rule could allow."""
        try:
            asked = read_host(host)
        except BadHost as error:
            return self._decision(shown(host), shown(host), port, Verdict(allowed=False, reason=str(error)))
        reason = ""
        if port not in PORTS:
            reason = "a port is a number from 1 to 65535"
        elif asked.address is None and not self.policy.may_look_up(asked.name, port):
            reason = "no rule allows it, so it was not looked up"
        if not reason:
            return asked
        return self._decision(asked.name, asked.text, port, Verdict(allowed=False, reason=reason))

    async def _permit(self, target: Target) -> Decision | None:
        """Decide on one address and record an allow; return what is not on the record yet, a refusal."""
        verdict = self.check(target)
        if verdict.allowed:
            await self._recorder.record(self._decision(target.address, target.name, target.port, verdict))
            # While that became durable another policy may have come into force.
            verdict = self.check(target)
        if verdict.allowed:
            return None
        return self._decision(target.address, target.name, target.port, verdict)

    def _decision(self, host: str, name: str, port: int, verdict: Verdict) -> Decision:
        return Decision(host, name, port, verdict.allowed, verdict.reason, self._goal)


def _canonical(text: str) -> str:
    try:
        return str(unmapped(ip_address(text)))
    except ValueError:
        # Left as it is: the policy refuses what is no address.
        return text


async def _connect(target: Target, waiting: int) -> trio.SocketStream:
    """Connect within a share of the time that is left: as many addresses wait for it, this one included."""
    address = ip_address(target.address)
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    left = trio.current_effective_deadline() - trio.current_time()
    made = trio.socket.socket(family, socket.SOCK_STREAM)
    try:
        # The last one has all that is left, and its end is the end of the whole.
        with trio.move_on_after(left / waiting if waiting > 1 else math.inf):
            await made.connect((target.address, target.port))
            return trio.SocketStream(made)
        raise TimeoutError("no answer")
    except BaseException:
        made.close()
        raise


def _words(error: OSError | None) -> str:
    if error is None:
        return "the name has no address"
    return error.strerror or str(error)
