"""What of a conversation a model is shown once it no longer fits its context: a view, and the log keeps all. Pure.

Old turns are left out whole, a call never without its result; what a person said is always shown, and so is the last turn.
The view is a function of the conversation alone, so a resumed run shows the same. It moves on in strides and not with each turn,
so that most requests begin like the one before and a provider's cache of what it has read stays of use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from affidavit.actors.models.port import BoundedContext, Message, Model, ModelRequest

# Of many scripts a character alone is a token or more, and a character is up to four bytes.
BYTES_PER_TOKEN: Final = 3
# Once something must go, so much goes that what is left takes up this share of the room.
_STRIDE: Final = 0.6


@dataclass(frozen=True, slots=True)
class View:
    """What is shown.

    Attributes:
        messages: The messages, in their order.
        left_out: How many of the model's earlier turns are not among them.
    """

    messages: tuple[Message, ...]
    left_out: int = 0


def room_for(model: Model, request: ModelRequest) -> int | None:
    """Return how many bytes of messages fit beside a request's other parts, or None where the context is not known.

    Args:
        model: The model.
        request: What else it is shown, and how much it may write; its messages do not count.
    """
    tokens = model.context_tokens if isinstance(model, BoundedContext) else 0
    if not tokens:
        return None
    left = (tokens - request.max_output_tokens) * BYTES_PER_TOKEN
    return max(0, left - _frame_size(request))


def view_of(messages: Sequence[Message], room: int | None) -> View:
    """Return the view of a conversation.

    Args:
        messages: The whole conversation, oldest first.
        room: How many bytes may be shown; None for all of them.
    """
    sizes = [size_of(message) for message in messages]
    if room is None or sum(sizes) <= room:
        return View(tuple(messages))
    starts = [at for at, message in enumerate(messages) if message.role == "assistant"]
    gone = _turns_gone(messages, sizes, starts, room)
    if not gone:
        return View(tuple(messages))
    first_kept = starts[gone]
    shown = [message for message in messages[:first_kept] if message.role == "user"]
    return View((*shown, _note(gone), *messages[first_kept:]), gone)


def size_of(message: Message) -> int:
    """Return how many bytes of a message a model must read: the provider's own form of it, where that is larger."""
    words = len(message.text.encode()) + sum(
        len((call.name + call.input).encode()) for call in message.tool_calls
    )
    return max(words, len(message.blocks.encode()))


def request_size(request: ModelRequest) -> int:
    """Return how many bytes a model must read of a request."""
    return _frame_size(request) + sum(map(size_of, request.messages))


def _frame_size(request: ModelRequest) -> int:
    tools = (tool.name + tool.description + tool.input_schema for tool in request.tools)
    return sum(len(text.encode()) for text in (request.system, *tools))


def _turns_gone(messages: Sequence[Message], sizes: list[int], starts: list[int], room: int) -> int:
    """Go through the conversation as it grew, turn by turn, and return how many turns had to go by its end."""
    gone = 0
    shown = sum(sizes[: starts[0]]) if starts else 0
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(sizes)
        shown += sum(sizes[start:end])
        if shown <= room:
            continue
        while gone < number and shown > room * _STRIDE:
            until = starts[gone + 1]
            shown -= sum(
                size
                for size, message in zip(
                    sizes[starts[gone] : until], messages[starts[gone] : until], strict=True
                )
                if message.role != "user"
            )
            gone += 1
    return gone


def _note(turns: int) -> Message:
    what = "1 earlier turn is" if turns == 1 else f"{turns} earlier turns are"
    return Message("user", f"[{what} left out here, so that the conversation fits]")
