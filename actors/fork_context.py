"""The conversation that a fork begins with, as session.started holds it and as a model is shown it. Pure.

The rule: what is read back from the record is, message by message, what the parent's model would have been shown at that point,
the provider's own blocks included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from affidavit.actors.models.port import Message, ToolCall

FORK: Final = "fork"
"""The payload key of session.started that a fork's origin stands under."""
_ROLES: Final = frozenset({"user", "assistant", "tool"})


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a run begins that goes on from a point of another.

    Attributes:
        run: The other run, its parent.
        at: The seq of the parent's event that it goes on after.
        checkpoint: The signed root over the parent's events 1 to `at`.
        context: The conversation at that point.
        is_said: Whether the fork's own objective comes behind it as a person's words. If not, the parent's is gone on with.
    """

    run: str
    at: int
    checkpoint: bytes
    context: tuple[Message, ...]
    is_said: bool

    def as_detail(self) -> dict[str, object]:
        """Return it as a payload value."""
        return {
            "run": self.run,
            "n": self.at,
            "checkpoint": self.checkpoint,
            "context": [_stated(message) for message in self.context],
            "said": self.is_said,
        }


def begins_with(detail: Mapping[str, object], objective: str) -> list[Message]:
    """Return the messages that a run begins with, as its session.started says. One that is no fork begins with its objective.

    What is not of our form is left aside: anybody may have written an event, and it is to be read all the same.
    """
    asked = Message("user", objective)
    fork = detail.get(FORK)
    context = fork.get("context") if isinstance(fork, Mapping) else None
    if not isinstance(fork, Mapping) or not isinstance(context, Sequence) or isinstance(context, str | bytes):
        return [asked]
    read = [_message(each) for each in context if isinstance(each, Mapping)]
    messages = [message for message in read if message.role in _ROLES]
    return messages if messages and fork.get("said") is False else [*messages, asked]


def _stated(message: Message) -> dict[str, object]:
    """Return a message as a payload value; what is empty is left out."""
    stated: dict[str, object] = {
        "role": message.role,
        "text": message.text,
        "blocks": message.blocks,
        "toolUseID": message.tool_use_id,
        "isError": message.is_error,
        "calls": [[call.id, call.name, call.input] for call in message.tool_calls],
    }
    return {key: value for key, value in stated.items() if value or key in {"role", "text"}}


def _message(stated: Mapping[str, object]) -> Message:
    listed = stated.get("calls")
    calls = map(_call, listed) if isinstance(listed, list | tuple) else ()
    return Message(
        _text(stated, "role"),
        _text(stated, "text"),
        tuple(call for call in calls if call is not None),
        _text(stated, "toolUseID"),
        stated.get("isError") is True,
        _text(stated, "blocks"),
    )


def _call(stated: object) -> ToolCall | None:
    match stated:
        case [str() as id_, str() as name, str() as asked]:
            return ToolCall(id_, name, asked)
        case _:
            return None


def _text(stated: Mapping[str, object], key: str) -> str:
    value = stated.get(key)
    return value if isinstance(value, str) else ""
