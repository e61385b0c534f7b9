"""The waist: the only way to act. Admit, make the admission durable, work, then record the end with what it produced.

Crash states. Before the admission is durable: nothing happened, or an approval was asked for, which the next owner goes on
waiting for. After it: a start without an end, which whoever resumes the run closes as interrupted. After the end's append: the
action and all that it produced stand together, or not at all.

The caller is not kept waiting for that append. It stands ahead of all that the run records later, so whatever is admitted next is
durable together with it or after it: until then a crash leaves what one in the middle of the work leaves, and nothing was done
that rests on the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

import trio

from affidavit.actors.approvals import Approval
from affidavit.actors.clock import NANOSECONDS, Clock, SystemClock
from affidavit.actors.deciders.chain import judge
from affidavit.actors.deciders.grant import CapabilityGrant
from affidavit.actors.deciders.port import Action, Ask, Decider, Denial, Judgement, Later
from affidavit.actors.deciders.refusal import RefusalStands
from affidavit.actors.dispatch_events import admitted, ended, expiry, rejected, requested
from affidavit.actors.errors import GuardLost, LogError
from affidavit.actors.events import Event, FaultClass
from affidavit.actors.faults import stopping_part
from affidavit.actors.gate import Gate
from affidavit.actors.ledger_port import Ledger
from affidavit.actors.nurseries import open_owned_nursery
from affidavit.actors.work import Done, Permit, T, Work, allowed_seconds, with_time

COMMIT_GRACE: Final = 5.0


@dataclass(frozen=True, slots=True)
class _Halt:
    """What keeps an action from beginning, in the light of all that others have asked.

    Attributes:
        why: A refusal, the approval that it needs, or that it must wait for others to end.
        approval: What became of the request to approve it, if there is one.
        call: Its correlation id.
        now: When it was judged, Unix nanoseconds.
    """

    why: Denial | Ask | Later
    approval: Approval | None
    call: int
    now: int


@final
class _Run:
    """What all dispatchers of one run share.

    Attributes:
        ledger: The run's fold and its way onto the record.
        clock: Times the expiry of approvals.
        gate: Held from the decision to the durable admission, so that two actions cannot both take the last of a budget.
    """

    __slots__ = ("clock", "gate", "ledger")

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self.ledger = ledger
        self.clock = clock
        self.gate = Gate()


@final
class Dispatcher:
    """Governs the actions of one goal. Those of one run share a book and a gate, see `narrowed`."""

    __slots__ = ("_above", "_deciders", "_grant", "_grant_digest", "_ledger", "_run", "_stop_fault")

    def __init__(
        self,
        ledger: Ledger,
        grant: CapabilityGrant,
        deciders: Sequence[Decider] = (),
        *,
        clock: Clock | None = None,
    ) -> None:
        """Set the rules of a goal.

        Args:
            ledger: The run's fold and its way onto the record.
            grant: What the goal may do; asked first.
            deciders: Further deciders, asked in order.
            clock: Times the expiry of approvals.
        """
        self._run = _Run(ledger, clock or SystemClock())
        self._ledger = ledger
        self._above: Dispatcher | None = None
        self._stop_fault: str | None = None
        self._grant = grant
        self._grant_digest = grant.digest
        self._deciders: tuple[Decider, ...] = (grant, *deciders, RefusalStands())

    @property
    def grant(self) -> CapabilityGrant:
        """What the goal may do."""
        return self._grant

    @property
    def stop_fault(self) -> str:
        """What a begun action of the goal is closed with if it is now cancelled: as was said of it, or of one above it."""
        if self._stop_fault is not None:
            return self._stop_fault
        return FaultClass.INTERRUPTED if self._above is None else self._above.stop_fault

    @stop_fault.setter
    def stop_fault(self, fault: str) -> None:
        self._stop_fault = fault

    def narrowed(
        self, wanted: frozenset[str] | None, deciders: Sequence[Decider] = (), *, ledger: Ledger | None = None
    ) -> Dispatcher:
        """Return a dispatcher for a goal that this one's goal hands work to.

        It shares the run's fold, gate and clock, and so its budgets, approvals and brake. All that refuses here refuses there
        as well: a goal cannot be handed more than the one that hands it down has.

        Args:
            wanted: The tools that the goal asks for; None for all that there are.
            deciders: Who is asked besides those of this dispatcher, after them.
            ledger: Where the goal records, over the same fold; this one's ledger by default.
        """
        asked = (*self._deciders[1:-1], *deciders)
        child = Dispatcher(ledger or self._ledger, self._grant.narrowed(wanted), asked)
        child._run = self._run
        child._above = self
        return child

    async def govern(
        self,
        action: Action,
        work: Work[T],
        *,
        opening: tuple[Event, ...] = (),
        refused: Callable[[Denial], tuple[Event, ...]] = lambda denial: (),
        stopped: Callable[[str], tuple[Event, ...]] = lambda fault: (),
    ) -> Done[T] | Denial:
        """Run one action under the rules, with its admission on the record before it begins.

        An action that needs a person's approval waits here until it is decided or expires; a request that stands on the record
        from before is not made again.

        Args:
            action: What is to be done.
            work: Does it. Its failures are part of its `Done`; an exception from it is a fault of the caller's code, which is
                recorded as a terminal failure and raised.
            opening: What to record ahead of the admission, in the same append; nothing of it if the action is refused.
            refused: What to record together with a refusal.
            stopped: What to record together with the end if the work is cancelled, or interrupted from the keyboard, given
                `cancelled` or `interrupted`.

        Returns:
            How it ended, or why it was refused. Its end has its place on the record, and is durable before anything that is
            recorded after it; `settled` waits until it is.

        Raises:
            LogError: The admission or the end could not be recorded, or an earlier end could not. If it was not its own end, the
                work did not begin. An end that is found later not to have been recorded stops the session.

        Cancellation: before the admission is durable, nothing happened; a request for approval stands. Later, the work is
        cancelled and its end recorded.
        """
        admission = await self._admit(action, opening, refused)
        if isinstance(admission, Denial):
            return admission
        action, permit = admission
        begun = trio.current_time()
        try:
            done = await work(permit)
        except (Exception, SystemExit):
            spent = with_time(action, action.reserve, begun)
            end = ended(action, permit.call, FaultClass.TERMINAL, "crashed", spent)
            await self._commit(end)  # noqa: ASYNC120  # shielded and bounded within
            raise
        except (trio.Cancelled, KeyboardInterrupt, BaseExceptionGroup) as error:
            # Work that was stopped may crash on its way out as well; only what stopped it goes on.
            stop = stopping_part(error)
            fault = self.stop_fault
            # What it may have used is spent, since nobody knows; how long it took is known.
            spent = with_time(action, action.reserve, begun)
            end = ended(action, permit.call, fault, "" if stop is error else "crashed", spent)
            await self._commit(end, *stopped(fault))  # noqa: ASYNC102  # shielded and bounded within
            if stop is None or stop is error:
                raise
            raise stop from None  # noqa: ASYNC104  # the stop itself is raised again, apart from the crash
        used = with_time(action, done.used, begun)
        outcome = (ended(action, permit.call, done.error_class, done.error_code, used), *done.events)
        if not self._ledger.record_behind(*outcome):
            await self._commit(*outcome)
        return done

    async def settled(self) -> None:
        """Wait until the ends of all actions of the run so far are durable, for whoever tells somebody outside of them.

        Raises:
            LogError: Some could not be recorded; the session has stopped.

        Cancellation: changes nothing.
        """
        await self._ledger.settled()

    async def _admit(
        self, action: Action, opening: tuple[Event, ...], refused: Callable[[Denial], tuple[Event, ...]]
    ) -> tuple[Action, Permit] | Denial:
        """Judge an action until there is a last word, recording each; wait for a person, or for others to end, in between."""
        run = self._run
        while True:
            async with run.gate:
                # Taken before the run is looked at: what is decided from now on wakes this action, whenever it begins to wait.
                changed = run.ledger.book.changed
                halt = await self._begin(action, opening)
                if not isinstance(halt, _Halt):
                    return halt
                # Taken before anything more is awaited, so that no end that comes now is missed.
                freed = run.ledger.book.freed
                why, approval = halt.why, halt.approval
                if isinstance(why, Denial):
                    late = () if approval is None else expiry(approval, halt.now)
                    said = (*late, rejected(action, halt.call, why), *refused(why))
                    if not late:
                        await self._ledger.record(*said)
                    elif not await self._is_recorded(*said):
                        continue  # somebody decided in the very moment in which the time was up
                    return why
                if isinstance(why, Ask) and approval is None:
                    await self._ledger.record(requested(action, halt.call, why))
            if isinstance(why, Ask):
                await self._decided(changed, why)
            else:
                # Whoever holds something back has begun, and waits for nobody here: it ends.
                await freed.wait()

    async def _begin(self, action: Action, opening: tuple[Event, ...]) -> tuple[Action, Permit] | _Halt:
        """Judge an action in the light of all that others have asked by now, and admit it if nothing stands in its way.

        An admission says itself that nobody has asked for anything since; only for any other word the inbox is looked at first.
        """
        run, book = self._run, self._run.ledger.book
        is_heard = False
        while True:
            standing = book.standing(action, run.clock.now_ns())
            judgement = judge(self._deciders, action, standing)
            approval = standing.approval
            call = book.last_call + 1 if approval is None else approval.call
            why = judgement.ask if isinstance(judgement, Judgement) else judgement
            if isinstance(judgement, Judgement) and why is None:
                admission = admitted(judgement.action, call, self._grant_digest, approval)
                # No await lies between the judgement and this: what is decided in between is not judged.
                if await self._is_recorded(*opening, admission):
                    return judgement.action, Permit(call, allowed_seconds(judgement.action))
            elif is_heard and why is not None:
                return _Halt(why, approval, call, standing.now)
            # Within the gate, so that of many that wait at it, none goes by a look from before the one ahead of it.
            await run.ledger.attend()
            is_heard = True

    async def _is_recorded(self, *events: Event) -> bool:
        """Record what nobody may have come before; False if somebody asked or ruled meanwhile, and it was kept off the record."""
        try:
            await self._ledger.record_unless_asked(*events)
        except GuardLost:
            return False
        return True

    async def _decided(self, changed: trio.Event, ask: Ask) -> None:
        """Wait until something was decided on this run, or this request has expired. Nothing is held meanwhile."""
        clock = self._run.clock
        left = max(ask.expires - clock.now_ns(), 0) / NANOSECONDS
        # A nursery, gone with this call: the clock is a port, so its sleep cannot be a deadline of trio's.
        async with open_owned_nursery() as nursery:

            async def expire() -> None:
                await clock.sleep(left)
                nursery.cancel_scope.cancel(reason="the request has expired")

            nursery.start_soon(expire)
            await changed.wait()

    async def _commit(self, *events: Event) -> None:
        """Record an end. Shielded, since what was done must not go unrecorded; bounded, since a log may hang."""
        with trio.CancelScope(shield=True, deadline=trio.current_time() + COMMIT_GRACE) as scope:
            await self._ledger.record(*events)
        if scope.cancelled_caught:
            raise LogError(f"the end of an action could not be recorded within {COMMIT_GRACE:g} s")
