"""The session's events as a reader sees them: frozen, typed, one vocabulary for the live stream, the replay and the record.

`Event` is a view of one stored row; `affidavit.actors.codec` turns one into the other. The field names follow the session
contract; what it does not name is kept in `detail`, so that nothing on the record is hidden from a reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

Detail = Mapping[str, object]
SCHEMA_VERSION: Final = 1
NO_DETAIL: Final[Detail] = MappingProxyType({})


class ActorType(StrEnum):
    """Who an event speaks for."""

    AGENT = "agent"
    HUMAN = "human"
    SYSTEM = "system"


class Kind(StrEnum):
    """What an event says. A reader meets other values too, and leaves them be."""

    SESSION_STARTED = "session.started"
    USER_MESSAGE = "user.message"
    GOAL_PHASE = "goal.phase"
    TURN_STARTED = "turn.started"
    ASSISTANT = "assistant.message"
    TOOL_CALL = "tool.call"
    TOOL_RESULT = "tool.result"
    TURN_COMPLETED = "turn.completed"
    CHILD_SPAWNED = "child.spawned"
    CHILD_COMPLETED = "child.completed"
    CONVERGED = "session.converged"
    STALLED = "session.stalled"
    ACTION_ADMITTED = "action.admitted"
    ACTION_COMPLETED = "action.completed"
    ACTION_REJECTED = "action.rejected"
    RECORD_SEALED = "record.sealed"
    RECORD_VERIFIED = "record.verified"
    RECORD_REJECTED = "record.rejected"
    EGRESS_DECISION = "net.egress"
    CHECK = "check"
    OUTCOME = "outcome"
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_DECIDED = "approval.decided"
    BRAKE_ENGAGED = "brake.engaged"
    BRAKE_RELEASED = "brake.released"
    REQUEST_CANCEL = "request.cancel"
    REQUEST_CANCEL_GOAL = "request.cancel_goal"
    REQUEST_SEAL = "request.seal"
    REQUEST_SAY = "request.say"
    REQUEST_DECIDE = "request.decide"
    REQUEST_BRAKE = "request.brake"
    REQUEST_ANSWERED = "request.answered"


TERMINAL_KINDS: Final = frozenset({Kind.CONVERGED, Kind.STALLED})
RECORD_KINDS: Final = frozenset({Kind.RECORD_SEALED, Kind.RECORD_VERIFIED, Kind.RECORD_REJECTED})
ACTION_KINDS: Final = frozenset({Kind.ACTION_ADMITTED, Kind.ACTION_COMPLETED, Kind.ACTION_REJECTED})


class FaultClass(StrEnum):
    """Why an action was refused or failed, as a class a program can act on."""

    TRANSIENT = "transient"
    TERMINAL = "terminal"
    NEEDS_APPROVAL = "needs_approval"
    BUDGET_EXCEEDED = "budget_exceeded"
    FORBIDDEN = "forbidden"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class Trust(StrEnum):
    """How far an action's work is trusted; the less, the stronger the containment it needs."""

    TRUSTED = "trusted"
    SEMI_TRUSTED = "semi-trusted"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True, slots=True)
class Usage:
    """The token cost of one turn, or a sum of turns.

    Attributes:
        input_tokens: All input processed, cached input included.
        output_tokens: Tokens written by the model.
        cache_read_tokens: The part of the input served from the provider's cache.
        cache_write_tokens: The part of the input written to the provider's cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the sum, field by field."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


@dataclass(frozen=True, slots=True)
class Event:
    """One record on a session's event stream.

    A program that reports an event leaves `seq`, `time` and `actor` at their defaults; the stream assigns them.

    Attributes:
        kind: What it says; a plain string, so that unknown kinds are kept.
        seq: Position in the stream, dense from 1; 0 before it is recorded.
        time: When it was recorded, Unix nanoseconds; advisory.
        actor: Who it speaks for.
        goal: The goal it belongs to; empty for the run's root goal and for session-level events.
        child: The spawned child's goal id (child.* only).
        turn: 1-based model turn, 0 for session-level events.
        text: The objective, the model's words, a user's words or the final answer.
        tool: The tool's name.
        tool_use_id: Correlates a tool.call with its tool.result.
        input: A tool call's arguments as JSON text, or the model's own text where that was no JSON.
        result: A tool's output text, or a child's answer.
        is_error: Whether the tool or child failed.
        stop_reason: Why the turn ended.
        usage: A turn's token cost, None when not reported.
        err: The stall reason.
        action: The governed action's name.
        call: Correlates an admission with its outcome; 0 for none.
        trust: The action's trust level.
        error_class: Fault class of a refusal or failure.
        error_code: A finer code where there is one, such as `capability_denied`.
        host: An egress decision's resolved literal address.
        allowed: Whether the dial was permitted.
        reason: Why, in short.
        principal: Who asked, where a person or another program did.
        causation_id: The request this event is the effect of.
        detail: Whatever else the payload holds, by payload key.
        args_digest: For a recorded tool.call, the SHA-256 over its salt and its input that the admission of the call is bound
            to. Derived on reading, never a payload key of the call itself.
        schema_version: The version of the vocabulary it was written in.
    """

    kind: str
    seq: int = 0
    time: int = 0
    actor: str = ""
    goal: str = ""
    child: str = ""
    turn: int = 0
    text: str = ""
    tool: str = ""
    tool_use_id: str = ""
    input: str = ""
    result: str = ""
    is_error: bool = False
    stop_reason: str = ""
    usage: Usage | None = None
    err: str = ""
    action: str = ""
    call: int = 0
    trust: str = ""
    error_class: str = ""
    error_code: str = ""
    host: str = ""
    allowed: bool = False
    reason: str = ""
    principal: str = ""
    causation_id: str = ""
    detail: Detail = field(default_factory=lambda: NO_DETAIL)
    args_digest: bytes = field(default=b"", compare=False, repr=False)
    schema_version: int = field(default=SCHEMA_VERSION, compare=False, repr=False)

    @property
    def fault(self) -> str:
        """The finest name the record has for why an action was refused or failed; empty on a clean one."""
        return self.error_code or self.error_class
