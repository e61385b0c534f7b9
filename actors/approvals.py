"""The approvals of one run: a fold of what was asked for and decided on its stream. Who may decide what is judged elsewhere.

An approval is named by the call it is for. It is used up by the admission of that call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, final

from affidavit.actors.asker import checked_asker
from affidavit.actors.events import Event, Kind
from affidavit.crypto.approval import APPROVED, REFUSED

EXPIRED: Final = "expired"


@dataclass(frozen=True, slots=True)
class Approval:
    """One request to approve a call, and what became of it.

    Attributes:
        call: The call's correlation id; it is admitted or refused under the same.
        action: The tool.
        goal: The goal that asked for it, empty for the root.
        turn: The turn that asked for it.
        tool_use_id: The tool call it is for.
        args: Binds the exact arguments.
        expires: Unix nanoseconds after which it can neither be given nor used.
        approvers: Who may decide; empty for anyone.
        signed: Whether the decision must bear a signature.
        keys: The raw Ed25519 public keys of those who may sign, by name.
        requested: The seq of approval.requested.
        decision: `approved`, `refused`, `expired`; empty while it is undecided.
        principal: Who decided.
        reason: Why, in the decider's words.
        decided: The seq of approval.decided; 0 while it is undecided.
    """

    call: int
    action: str
    goal: str
    turn: int
    tool_use_id: str
    args: bytes
    expires: int
    approvers: tuple[str, ...]
    signed: bool
    requested: int
    keys: Mapping[str, bytes] = field(default_factory=dict)
    decision: str = ""
    principal: str = ""
    reason: str = ""
    decided: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decides about a call.

    Attributes:
        call: The call's correlation id.
        approved: Whether it may run.
        principal: Who decides.
        reason: Why, in their words.
        args: The digest of the arguments that they were shown; None to take those that were asked with.
        statement: The same, signed by them; see `affidavit.crypto.approval`. Empty where nothing is signed.

    Raises:
        ValueError: It names no call, or nobody; or the name or the reason is none that can be recorded, see `checked_asker`.
    """

    call: int
    approved: bool
    principal: str
    reason: str = ""
    args: bytes | None = None
    statement: bytes = b""

    def __post_init__(self) -> None:
        """Check that somebody decides about something."""
        if self.call < 1 or not self.principal:
            raise ValueError("a decision names its call and who decides")
        checked_asker(self.principal, self.reason)

    @property
    def word(self) -> str:
        """The decision as the record says it."""
        return APPROVED if self.approved else REFUSED


def decided(
    approval: Approval,
    word: str,
    *,
    principal: str = "",
    reason: str = "",
    causation_id: str = "",
    statement: bytes = b"",
) -> Event:
    """Return the event that says what became of a request.

    Args:
        approval: The request.
        word: `approved`, `refused` or `expired`.
        principal: Who decided; empty where nobody did.
        reason: Why, in their words.
        causation_id: The request of another process that this is the effect of.
        statement: The decision signed by them; empty where nothing is signed.
    """
    detail: dict[str, object] = {"args": approval.args, "decision": word, "request": approval.requested}
    if statement:
        detail["statement"] = statement
    return Event(
        Kind.APPROVAL_DECIDED,
        action=approval.action,
        call=approval.call,
        goal=approval.goal,
        turn=approval.turn,
        tool_use_id=approval.tool_use_id,
        reason=reason,
        principal=principal,
        causation_id=causation_id,
        detail=detail,
    )


@final
class Approvals:
    """Every approval of one run that is not used up, by call."""

    def __init__(self) -> None:
        """Begin with none."""
        self._by_call: dict[int, Approval] = {}

    def __getitem__(self, call: int) -> Approval:
        """Return the approval for a call; KeyError if none was asked for, or it is used up."""
        return self._by_call[call]

    def __eq__(self, other: object) -> bool:
        """Whether the other was folded to the same state."""
        return isinstance(other, Approvals) and self._by_call == other._by_call

    __hash__ = None  # type: ignore[assignment]  # it changes

    @property
    def undecided(self) -> tuple[Approval, ...]:
        """What still waits for a decision, in the order of the calls."""
        return tuple(each for each in self._by_call.values() if not each.decision)

    def of(self, goal: str, tool_use_id: str) -> Approval | None:
        """Return the approval for a tool call, if one was asked for and is not used up."""
        for approval in self._by_call.values():
            if (approval.goal, approval.tool_use_id) == (goal, tool_use_id):
                return approval
        return None

    def apply(self, event: Event) -> None:
        """Fold one event of the run."""
        if event.kind == Kind.APPROVAL_REQUESTED:
            self._by_call[event.call] = _requested(event)
        elif not self._by_call:
            return
        elif event.kind == Kind.APPROVAL_DECIDED:
            self._decide(event)
        elif event.kind in _USED_UP:
            self._by_call.pop(event.call, None)
        elif event.kind == Kind.TOOL_RESULT:
            # An answered call waits for nobody any more, however it was answered.
            answered = self.of(event.goal, event.tool_use_id)
            if answered is not None:
                del self._by_call[answered.call]

    def _decide(self, event: Event) -> None:
        asked = self._by_call.get(event.call)
        decision = event.detail.get("decision")
        if asked is None or asked.decision or not isinstance(decision, str):
            return
        # A decision over other arguments than those that were asked for decides nothing.
        if event.detail.get("args") != asked.args:
            return
        self._by_call[event.call] = replace(
            asked, decision=decision, principal=event.principal, reason=event.reason, decided=event.seq
        )


def waiting(events: Iterable[Event]) -> tuple[Approval, ...]:
    """Return what waits for a person at the end of a run's events, in the order of the calls."""
    approvals = Approvals()
    for event in events:
        approvals.apply(event)
    return approvals.undecided


_USED_UP: Final = frozenset({Kind.ACTION_ADMITTED, Kind.ACTION_REJECTED})


def _requested(event: Event) -> Approval:
    args, expires = event.detail.get("args"), event.detail.get("expires")
    approvers, keys = event.detail.get("approvers"), event.detail.get("keys")
    return Approval(
        call=event.call,
        action=event.action,
        goal=event.goal,
        turn=event.turn,
        tool_use_id=event.tool_use_id,
        args=args if isinstance(args, bytes) else b"",
        expires=expires if isinstance(expires, int) else 0,
        approvers=tuple(str(each) for each in approvers) if isinstance(approvers, list) else (),
        signed=event.detail.get("signed") is True,
        requested=event.seq,
        keys=_keys(keys) if isinstance(keys, Mapping) else {},
    )


def _keys(given: Mapping[object, object]) -> dict[str, bytes]:
    return {name: key for name, key in given.items() if isinstance(name, str) and isinstance(key, bytes)}
