"""The waist: the only way to act. Admit, make the admission durable, work, then record the end with what it produced.

Crash states. Before the admission is durable: nothing happened. After it: a start without an end, which whoever resumes the
run closes as interrupted. After the end's append: the action and all that it produced stand together, or not at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, Protocol, TypeVar, final

import trio

from affidavit.actors.admission import Action, Admitter, CapabilityGrant, Denial, Spent, first_denial
from affidavit.actors.errors import LogError
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.actors.faults import stopping_part

T = TypeVar("T")

COMMIT_GRACE: Final = 5.0


class Ledger(Protocol):
    """What the waist needs to know of the run so far, and where it records. The mission's is a fold of the log."""

    @property
    def next_call(self) -> int:
        """The correlation id of the next action."""
        ...

    @property
    def spent(self) -> Spent:
        """What is used and reserved."""
        ...

    async def record(self, *events: Event) -> tuple[Event, ...]:
        """Record events in one append and fold them."""
        ...


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """How an action ended.

    Attributes:
        value: What the caller gets.
        events: What the action produced, recorded in one append with its end.
        error_class: Fault class if it failed, else empty.
        error_code: A finer code.
        used_tokens: What it used of the token budget.
    """

    value: T
    events: tuple[Event, ...] = ()
    error_class: str = ""
    error_code: str = ""
    used_tokens: int = 0


@final
class Dispatcher:
    """Governs every action of one run."""

    def __init__(
        self,
        ledger: Ledger,
        grant: CapabilityGrant,
        admitters: Sequence[Admitter],
        *,
        containment: str = "none",
    ) -> None:
        """Set the rules of one run.

        Args:
            ledger: The run's fold and its way onto the record.
            grant: What the run may do; asked first.
            admitters: Further deciders, asked in order.
            containment: The containment that actions really run under.
        """
        self._ledger = ledger
        self._grant = grant
        self._admitters: tuple[Admitter, ...] = (grant, *admitters)
        self._containment = containment
        # Held from the decision to the durable admission, so that two actions cannot both take the last of a budget.
        self._gate = trio.Lock()
        self.stop_fault: str = FaultClass.INTERRUPTED

    async def govern(
        self,
        action: Action,
        work: Callable[[], Awaitable[Done[T]]],
        *,
        opening: tuple[Event, ...] = (),
        refused: Callable[[Denial], tuple[Event, ...]] = lambda denial: (),
        stopped: Callable[[str], tuple[Event, ...]] = lambda fault: (),
    ) -> Done[T] | Denial:
        """Run one action under the rules, with its admission on the record before it begins.

        Args:
            action: What is to be done.
            work: Does it. Its failures are part of its `Done`; an exception from it is a fault of the caller's code, which is
                recorded as a terminal failure and raised.
            opening: What to record ahead of the admission, in the same append; nothing of it if the action is refused.
            refused: What to record together with a refusal.
            stopped: What to record together with the end if the work is cancelled, or interrupted from the keyboard, given
                `cancelled` or `interrupted`.

        Returns:
            How it ended, or why it was refused.

        Raises:
            LogError: The admission or the end could not be recorded. In the first case the work did not begin.

        Cancellation: before the admission is durable, nothing happened. Later, the work is cancelled and its end recorded.
        """
        async with self._gate:
            call = self._ledger.next_call
            denial = first_denial(self._admitters, action, self._ledger.spent)
            if denial is not None:
                await self._ledger.record(self._rejected(action, call, denial), *refused(denial))
                return denial
            await self._ledger.record(*opening, self._admitted(action, call))
        try:
            done = await work()
        except Exception:
            end = self._ended(action, call, FaultClass.TERMINAL, "crashed", action.reserve_tokens)
            await self._commit(end)  # noqa: ASYNC120  # shielded and bounded within
            raise
        except (trio.Cancelled, KeyboardInterrupt, BaseExceptionGroup) as error:
            # Work that was stopped may crash on its way out as well; only what stopped it goes on.
            stop = stopping_part(error)
            fault = self.stop_fault
            end = self._ended(action, call, fault, "" if stop is error else "crashed", action.reserve_tokens)
            await self._commit(end, *stopped(fault))  # noqa: ASYNC102  # shielded and bounded within
            if stop is None or stop is error:
                raise
            raise stop from None  # noqa: ASYNC104  # the stop itself is raised again, apart from the crash
        end = self._ended(action, call, done.error_class, done.error_code, done.used_tokens)
        await self._commit(end, *done.events)
        return done

    async def _commit(self, *events: Event) -> None:
        """Record an end. Shielded, since what was done must not go unrecorded; bounded, since a log may hang."""
        with trio.CancelScope(shield=True, deadline=trio.current_time() + COMMIT_GRACE) as scope:
            await self._ledger.record(*events)
        if scope.cancelled_caught:
            raise LogError(f"the end of an action could not be recorded within {COMMIT_GRACE:g} s")

    def _admitted(self, action: Action, call: int) -> Event:
        detail: dict[str, object] = {"grant": self._grant.digest, "containment": self._containment}
        if action.args_digest:
            detail["args"] = action.args_digest
        if action.idempotent:
            detail["idempotent"] = True
        if action.reserve_tokens:
            detail["reserved"] = {"tokens": action.reserve_tokens}
        return _about(Kind.ACTION_ADMITTED, action, call, detail)

    def _ended(self, action: Action, call: int, fault: str, code: str, used_tokens: int) -> Event:
        detail: dict[str, object] = {"used": {"tokens": used_tokens}} if used_tokens else {}
        return _about(Kind.ACTION_COMPLETED, action, call, detail, fault, code)

    def _rejected(self, action: Action, call: int, denial: Denial) -> Event:
        detail: dict[str, object] = {"args": action.args_digest} if action.args_digest else {}
        rejected = _about(Kind.ACTION_REJECTED, action, call, detail, denial.error_class, denial.error_code)
        return replace(rejected, reason=denial.reason)


def _about(
    kind: str,
    action: Action,
    call: int,
    detail: dict[str, object],
    error_class: str = "",
    error_code: str = "",
) -> Event:
    return Event(
        kind=kind,
        action=action.name,
        call=call,
        trust=action.trust,
        goal=action.goal,
        turn=action.turn,
        tool_use_id=action.tool_use_id,
        error_class=error_class,
        error_code=error_code,
        detail=detail,
    )
