"""The model port: one turn of a language model, with no vendor's types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable

from affidavit.actors.events import Usage

NO_PARAMETERS: Final[Mapping[str, object]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it.

    Attributes:
        name: The tool's name.
        description: What it does, in one or two sentences.
        input_schema: The JSON Schema of its arguments, as canonical JSON text (so that the value is frozen and has one digest).
    """

    name: str
    description: str
    input_schema: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request for a tool.

    Attributes:
        id: Correlates the call with its result; may be empty or repeated as the vendor sent it.
        name: The tool asked for; it may not exist.
        input: The arguments as the text the model wrote, which may not be JSON.
    """

    id: str
    name: str
    input: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation shown to a model.

    Attributes:
        role: `user`, `assistant` or `tool`.
        text: The words (for `tool`: the result's text).
        tool_calls: The calls an assistant message makes.
        tool_use_id: For `tool`: which call this answers.
        is_error: For `tool`: whether the call failed.
        blocks: For `assistant`: the provider's own content as JSON text, for an exact continuation; empty when there is none.
    """

    role: str
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_use_id: str = ""
    is_error: bool = False
    blocks: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer in the making. It is for eyes only: what counts is the finished reply, whole and once.

    Attributes:
        text: The piece.
        thinking: Whether it is of the model's thinking, and not of its words.
    """

    text: str
    thinking: bool = False


OnDelta = Callable[[Delta], None]
"""Is told of each piece, in order, from within the call; it must not raise, block or await."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything a model is shown for one turn.

    Attributes:
        system: The system prompt; empty for none.
        messages: The conversation so far, oldest first.
        tools: The tools the model may ask for.
        max_output_tokens: The most tokens it may write in this turn.
        on_delta: Who wants to see the answer in the making; an adapter that does not stream leaves it alone. It is no part of
            what is asked.
        scrub: Takes the secrets of the run out of what the endpoint said, before an adapter shortens it. It is no part of what is
            asked either.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int = 1024
    on_delta: OnDelta | None = field(default=None, compare=False, repr=False)
    scrub: Callable[[str], str] = field(default=str, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Served:
    """Who answered, as the endpoint itself says it. It is repeated, never vouched for.

    Attributes:
        model: The model's exact name or version.
        fingerprint: What else the endpoint calls its configuration by.
        id: The answer's own id there, by which its owner can be asked about it.
    """

    model: str = ""
    fingerprint: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One finished turn.

    Attributes:
        text: The model's words, empty when it only called tools.
        tool_calls: The tools it asks for, in its order.
        stop_reason: Why it stopped: `end_turn`, `tool_use`, `max_tokens`, or the vendor's own word.
        usage: The turn's token cost, None when the vendor did not say.
        blocks: The provider's content as JSON text for an exact continuation; empty when the text and calls say it all.
        served: Who answered, None when the endpoint did not say.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = field(default=())
    stop_reason: str = "end_turn"
    usage: Usage | None = None
    blocks: str = ""
    served: Served | None = None


class Model(Protocol):
    """A language model that takes a conversation and answers with one turn."""

    @property
    def name(self) -> str:
        """The model as the operator named it, such as `openai:gpt-x`."""
        ...

    @property
    def digest(self) -> bytes:
        """SHA-256 of what makes it this model: its name and parameters, or its script. A resumed run compares it."""
        ...

    @property
    def supports_tools(self) -> bool:
        """Whether it can ask for tools. One that cannot is not told of any."""
        ...

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Run one turn.

        Raises:
            ModelError: The call failed; `fault` says whether another attempt may help.

        Cancellation: the request is abandoned and its connection closed.
        """
        ...


@runtime_checkable
class ChosenParameters(Protocol):
    """A model that is asked with parameters which the operator chose; they are part of its digest."""

    @property
    def parameters(self) -> Mapping[str, object]:
        """The parameters by name, such as `temperature`; numbers as text, so that they can be recorded."""
        ...


@runtime_checkable
class HoldsSecrets(Protocol):
    """A model that was opened with secrets, which must not come out in anything that is recorded."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values."""
        ...


@runtime_checkable
class BoundedContext(Protocol):
    """A model whose context is known to be bounded."""

    @property
    def context_tokens(self) -> int:
        """The most tokens of a request and its answer together; 0 where it is not known."""
        ...
