"""What deciders are given and what they answer. Frozen values; no await, no clock, no I/O.

The rule: a decider looks at one action and at where the run stands, and says no, not yet, later, with less, or nothing at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

from affidavit.actors.amounts import NOTHING, Amounts
from affidavit.actors.approvals import Approval
from affidavit.actors.containment.levels import Level
from affidavit.actors.events import Trust

MODEL_ACTION: Final = "model.generate"


@dataclass(frozen=True, slots=True)
class Action:
    """Something that is about to be done on a run's behalf.

    Attributes:
        name: What: a tool's name, `model.generate`, or `check.` and a check's name.
        trust: How far its work is trusted.
        goal: The goal it is done for, empty for the root.
        turn: The model turn it belongs to.
        tool_use_id: The tool call it serves, if any.
        args_digest: Binds the exact arguments of that call.
        idempotent: Whether it may be run again after an interruption.
        reserve: What it may use at most.
        limit_ms: How long its work may take, in milliseconds; 0 for as long as it likes.
        containment: What its work will really be held by.
        opens_turn: Whether it is the first attempt at a model turn.
        known: Whether there is such a thing at all.
        declared: Whether the host or the policy asks for it, and not the model; no grant is needed then.
        renewed: The turn after which its goal's steps count.
    """

    name: str
    trust: str = Trust.TRUSTED
    goal: str = ""
    turn: int = 0
    tool_use_id: str = ""
    args_digest: bytes = b""
    idempotent: bool = False
    reserve: Amounts = NOTHING
    limit_ms: int = 0
    containment: Level = Level.NONE
    opens_turn: bool = False
    known: bool = True
    declared: bool = False
    renewed: int = 0

    def holding(self, reserve: Amounts) -> Action:
        """Return the same action with another reservation. Spelled out, since `replace` takes three times as long."""
        return Action(
            self.name,
            self.trust,
            self.goal,
            self.turn,
            self.tool_use_id,
            self.args_digest,
            self.idempotent,
            reserve,
            self.limit_ms,
            self.containment,
            self.opens_turn,
            self.known,
            self.declared,
            self.renewed,
        )

    @property
    def is_model_call(self) -> bool:
        """Whether it asks the model. A tool call never is, whatever name the model wrote."""
        return self.name == MODEL_ACTION and not self.tool_use_id


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands, as far as one action is concerned.

    Attributes:
        spent: What the run has used, and what running actions hold back.
        held: The part of it that running actions hold back, some of which comes back when they end.
        turns: Model turns begun since a person last spoke, those of all its goals together.
        brake: Why nothing further may begin; None while it may.
        approval: What became of the request to approve this very call, if one was made and not used up.
        repeats: How often the goal has asked for the same tool with the same arguments lately, this time included.
        endings: The last ended tool calls, newest last: whether each failed.
        children: How many goals the action's goal has handed work to.
        now: Unix nanoseconds.
    """

    spent: Amounts = NOTHING
    held: Amounts = NOTHING
    turns: int = 0
    brake: str | None = None
    approval: Approval | None = None
    repeats: int = 0
    endings: tuple[bool, ...] = ()
    now: int = 0
    children: int = 0


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
class Ask:
    """Not before a person has approved it.

    Attributes:
        expires: Unix nanoseconds after which the approval is not given any more, and holds no more.
        approvers: Who may decide; empty for anyone.
        signed: Whether the decision must bear a signature.
        keys: The raw Ed25519 public keys of those who may sign, by name.
    """

    expires: int
    approvers: tuple[str, ...] = ()
    signed: bool = False
    keys: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Trim:
    """Yes, but with no more than this.

    Attributes:
        reserve: What the action may use at most.
    """

    reserve: Amounts


@dataclass(frozen=True, slots=True)
class Later:
    """Not while others hold back what they may not use; once they have ended it is asked again."""


Answer = Denial | Ask | Later | Trim | None


class Decider(Protocol):
    """One decider of the chain."""

    def decide(self, action: Action, standing: Standing) -> Answer:
        """Say what stands in the way of an action; None if nothing does as far as this decider goes."""
        ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the chain as a whole says.

    Attributes:
        action: The action as it may begin.
        ask: The approval that is needed first.
    """

    action: Action
    ask: Ask | None = field(default=None)
