"""Pure decisions over one action before it may begin: is it granted, and is there budget for it. No await, no I/O.

A decider answers with a `Denial` or with None. The chain asks them in order and the first denial stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from affidavit.actors.events import FaultClass, Trust
from affidavit.crypto import cbor

MODEL_ACTION = "model.generate"


@dataclass(frozen=True, slots=True)
class Action:
    """Something that is about to be done on a run's behalf.

    Attributes:
        name: What: a tool's name, or `model.generate`.
        trust: How far its work is trusted.
        goal: The goal it is done for, empty for the root.
        turn: The model turn it belongs to.
        tool_use_id: The tool call it serves, if any.
        args_digest: Binds the exact arguments of that call.
        idempotent: Whether it may be run again after an interruption.
        reserve_tokens: How many tokens it may use at most.
        known: Whether there is such a tool at all.
    """

    name: str
    trust: str = Trust.TRUSTED
    goal: str = ""
    turn: int = 0
    tool_use_id: str = ""
    args_digest: bytes = b""
    idempotent: bool = False
    reserve_tokens: int = 0
    known: bool = True


@dataclass(frozen=True, slots=True)
class Denial:
    """A refusal, as it stands on the record.

    Attributes:
        error_class: The fault class.
        error_code: A finer code.
        reason: One sentence, also shown to the model.
    """

    error_class: str
    error_code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has used so far, reservations of running actions included.

    Attributes:
        tokens: Tokens used or reserved.
    """

    tokens: int


class Admitter(Protocol):
    """One decider of the chain."""

    def decide(self, action: Action, spent: Spent) -> Denial | None:
        """Return why the action may not begin, or None if this decider has no objection."""
        ...


@dataclass(frozen=True, slots=True)
class CapabilityGrant:
    """What a run may do, by name. A model call is always granted; the run exists for it.

    Attributes:
        tools: The granted tools; None grants every tool that the run was given.
    """

    tools: frozenset[str] | None

    @property
    def digest(self) -> bytes:
        """SHA-256 of the grant's canonical form; stands on each admission made under it."""
        return sha256(cbor.encode(None if self.tools is None else sorted(self.tools))).digest()

    def permits(self, name: str) -> bool:
        """Tell whether a tool of this name is granted."""
        return self.tools is None or name in self.tools

    def decide(self, action: Action, spent: Spent) -> Denial | None:
        """Refuse tools that do not exist and tools that are not granted."""
        if action.name == MODEL_ACTION and not action.tool_use_id:
            return None
        if not action.known:
            return Denial(FaultClass.FORBIDDEN, "unknown_tool", f"there is no tool named {action.name!r}")
        if not self.permits(action.name):
            return Denial(
                FaultClass.FORBIDDEN, "capability_denied", f"this run is not granted the tool {action.name!r}"
            )
        return None


@dataclass(frozen=True, slots=True)
class StepBudget:
    """At most so many model turns.

    Attributes:
        limit: The most turns.
    """

    limit: int

    def decide(self, action: Action, spent: Spent) -> Denial | None:
        """Refuse a model call for a turn beyond the limit; another attempt at the same turn costs no step."""
        if action.name == MODEL_ACTION and action.turn > self.limit:
            return Denial(
                FaultClass.BUDGET_EXCEEDED, "steps", f"the budget of {self.limit} model turns is used up"
            )
        return None


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """At most so many tokens, in and out together. A call's largest possible use is reserved before it begins.

    Attributes:
        limit: The most tokens; 0 for no limit.
    """

    limit: int

    def decide(self, action: Action, spent: Spent) -> Denial | None:
        """Refuse an action whose reservation would not fit."""
        if self.limit and action.reserve_tokens and spent.tokens + action.reserve_tokens > self.limit:
            return Denial(
                FaultClass.BUDGET_EXCEEDED,
                "tokens",
                f"{spent.tokens} of {self.limit} tokens are used and this call may need {action.reserve_tokens}",
            )
        return None


def first_denial(admitters: Sequence[Admitter], action: Action, spent: Spent) -> Denial | None:
    """Ask each decider in order and return the first denial, or None if all admit the action."""
    for admitter in admitters:
        denial = admitter.decide(action, spent)
        if denial is not None:
            return denial
    return None
