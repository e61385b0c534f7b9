"""A scripted model: it says what a JSON file tells it to, turn by turn. For demonstrations and tests.

It answers by position in the conversation (how many assistant messages the request holds), never by a
counter of its own, so that a run resumed in another process gets the turn that comes next. The only thing
it counts in memory is how often a scripted error was raised.

The file, every key but `turns` optional:

    {"turns": [
        {"text": "I will look.", "tool_calls": [{"name": "list_dir", "input": {"path": "."}, "id": "c1"}]},
        {"text": "Done.", "stop_reason": "end_turn", "usage": {"input_tokens": 12, "output_tokens": 3},
         "error": {"message": "overloaded", "fault": "transient", "code": "rate_limited", "times": 1}}
    ]}

A tool call's `input` is any JSON value; a string stands for the text that the model wrote, as it is, so
that arguments that are no JSON can be scripted too. An `error` is raised instead of the turn: the first
`times` times it is asked for, or always.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Final, Literal, Self, final

import trio
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from affidavit.actors.errors import ConfigurationError, ModelError
from affidavit.actors.events import Usage
from affidavit.actors.models.files import read_operator_file
from affidavit.actors.models.port import ModelReply, ModelRequest, ToolCall

MAX_SCRIPT_BYTES: Final = 4 * 1024 * 1024
_Count = Annotated[int, Field(ge=0, le=2**53)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ScriptedCall(_Part):
    """A tool call that the script makes."""

    name: str
    input: JsonValue = {}
    id: str = ""

    def as_call(self) -> ToolCall:
        """Return the call as a model would have made it."""
        text = self.input if isinstance(self.input, str) else json.dumps(self.input, allow_nan=False)
        return ToolCall(self.id, self.name, text)


class ScriptedUsage(_Part):
    """The token cost that the script claims for a turn."""

    input_tokens: _Count = 0
    output_tokens: _Count = 0
    cache_read_tokens: _Count = 0
    cache_write_tokens: _Count = 0


class ScriptedError(_Part):
    """A failure that the script raises instead of a turn."""

    message: str
    fault: Literal["transient", "terminal"] = "transient"
    code: str = "scripted"
    times: Annotated[int, Field(ge=1)] | None = None


class ScriptedTurn(_Part):
    """One turn of the script."""

    text: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    stop_reason: str = ""
    usage: ScriptedUsage | None = None
    error: ScriptedError | None = None

    def as_reply(self) -> ModelReply:
        """Return the turn as a model would have answered it."""
        calls = tuple(call.as_call() for call in self.tool_calls)
        reason = self.stop_reason or ("tool_use" if calls else "end_turn")
        usage = Usage(**self.usage.model_dump()) if self.usage else None
        return ModelReply(self.text, calls, reason, usage)


class Script(_Part):
    """The whole file."""

    turns: Annotated[tuple[ScriptedTurn, ...], Field(min_length=1)]


@final
class ScriptModel:
    """A model that answers from a script. Build it with `load` or `from_text`."""

    def __init__(self, script: Script, *, name: str, digest: bytes) -> None:
        self._replies = tuple(turn.as_reply() for turn in script.turns)
        self._errors = tuple(turn.error for turn in script.turns)
        self._raised: Counter[int] = Counter()
        self._name = name
        self._digest = digest

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a script from a file.

        Raises:
            ConfigurationError: The file is absent, unreadable, too large, or no script.
        """
        name = Path(path).name
        return cls.from_text(read_operator_file(path, "script", MAX_SCRIPT_BYTES), name=name)

    @classmethod
    def from_text(cls, text: str | bytes, *, name: str = "inline") -> Self:
        """Read a script from its JSON text.

        Args:
            text: The JSON text.
            name: What stands behind `script:` in the model's name.

        Raises:
            ConfigurationError: The text is no script.
        """
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        try:
            script = Script.model_validate_json(data)
            return cls(script, name=f"script:{name}", digest=hashlib.sha256(data).digest())
        except ValidationError as error:
            raise ConfigurationError(f"the script {name} is not valid: {_first_fault(error)}") from error
        except ValueError as error:  # NaN or an infinity, which JSON has no word for
            raise ConfigurationError(f"the script {name} is not valid: {error}") from error

    @property
    def name(self) -> str:
        """`script:` and the file's name."""
        return self._name

    @property
    def digest(self) -> bytes:
        """SHA-256 of the script's bytes: what this model is, for the run's configuration digest."""
        return self._digest

    @property
    def supports_tools(self) -> bool:
        """Always: whether tools are called is the script's own matter."""
        return True

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Answer the turn at the conversation's position.

        Raises:
            ModelError: The script raises an error here, or has no such turn (terminal).

        Cancellation: a checkpoint; nothing is counted when cancelled there.
        """
        await trio.lowlevel.checkpoint()
        position = sum(message.role == "assistant" for message in request.messages)
        if position >= len(self._replies):
            raise ModelError(f"{self._name} has no turn {position + 1}", code="script_ended")
        error = self._errors[position]
        if error is not None and (error.times is None or self._raised[position] < error.times):
            self._raised[position] += 1
            raise ModelError(error.message, fault=error.fault, code=error.code)
        return self._replies[position]


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
