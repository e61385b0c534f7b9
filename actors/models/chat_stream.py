"""Puts a reply together from the fragments of a stream. Pure, and total towards odd fragments.

Fragments of text are joined in their order, fragments of tool calls by their index. What a vendor adds
beyond the protocol is left aside. A fragment that is no JSON object, an error that the endpoint sends in
the stream, and a reply beyond all bounds raise.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final, cast

from affidavit.actors.events import Usage
from affidavit.actors.models.port import ModelReply, ToolCall

MAX_REPLY_CHARS: Final = 4 * 1024 * 1024
MAX_CALLS: Final = 128
MAX_REASON_CHARS: Final = 64
END: Final = "[DONE]"
_REASONS: Final = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}


class BadChunk(Exception):
    """A fragment that is not of this protocol, or more of them than any turn needs; the text says which."""


class StreamedFailure(Exception):
    """The endpoint reported a failure in the middle of its stream.

    Attributes:
        error: The error as it was sent.
    """

    def __init__(self, error: object) -> None:
        super().__init__("the endpoint reported a failure in its stream")
        self.error = error


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Assembly:
    """A reply in the making.

    Attributes:
        finished: Whether the endpoint said that the turn is over.
        ended: Whether it said that its stream is over too, so that nothing more will come.
    """

    finished: bool = False
    ended: bool = False
    _texts: list[str] = field(default_factory=list)
    _calls: dict[int, _Call] = field(default_factory=dict)
    _reason: str = ""
    _refused: bool = False
    _usage: Usage | None = None
    _size: int = 0

    def add(self, data: str) -> None:
        """Take in the data of one event of the stream.

        Raises:
            BadChunk: It is no JSON object, or the reply has become too large.
            StreamedFailure: It reports an error.
        """
        if data.strip() == END:
            self.finished = self.ended = True
            return
        chunk = _parse(data)
        if chunk.get("error"):
            raise StreamedFailure(chunk["error"])
        self._usage = _usage(_object(chunk.get("usage"))) or self._usage
        choices = chunk.get("choices")
        if isinstance(choices, list) and choices:
            self._choice(_object(choices[0]))

    def reply(self) -> ModelReply:
        """Return the reply as it stands."""
        calls = tuple(
            ToolCall(call.id, call.name, "".join(call.arguments)) for _, call in sorted(self._calls.items())
        )
        return ModelReply("".join(self._texts), calls, self._stop_reason(calls=bool(calls)), self._usage)

    def _stop_reason(self, *, calls: bool) -> str:
        if self._refused:
            return "refusal"
        reason = _REASONS.get(self._reason, self._reason) or "end_turn"
        # Some endpoints say `stop` after a turn that calls tools.
        return "tool_use" if calls and reason == "end_turn" else reason

    def _choice(self, choice: dict[str, object]) -> None:
        delta = _object(choice.get("delta"))
        refusal = _text(delta.get("refusal"))
        self._refused = self._refused or bool(refusal)
        for text in (_text(delta.get("content")), refusal):
            self._grow(text)
            self._texts.append(text)
        fragments = delta.get("tool_calls")
        for fragment in fragments if isinstance(fragments, list) else ():
            self._call(_object(fragment))
        reason = _text(choice.get("finish_reason"))
        if reason:
            self._reason = reason[:MAX_REASON_CHARS]
            self.finished = True

    def _call(self, fragment: dict[str, object]) -> None:
        function = _object(fragment.get("function"))
        call_id, name = _text(fragment.get("id")), _text(function.get("name"))
        arguments = _text(function.get("arguments"))
        call = self._calls.setdefault(self._index(fragment.get("index"), call_id), _Call())
        if len(self._calls) > MAX_CALLS:
            raise BadChunk(f"more than {MAX_CALLS} tool calls in one turn")
        self._grow(call_id + name + arguments)
        call.id = call.id or call_id
        # Names come once, or in pieces, or whole with every fragment.
        call.name = call.name if name == call.name else call.name + name
        call.arguments.append(arguments)

    def _index(self, index: object, id: str) -> int:
        if isinstance(index, int) and not isinstance(index, bool):
            return index
        # Without an index, a new id begins a new call and anything else goes on with the last one.
        last = max(self._calls, default=-1)
        begins = last < 0 or (bool(id) and id != self._calls[last].id)
        return last + 1 if begins else last

    def _grow(self, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_REPLY_CHARS:
            raise BadChunk(f"a turn of more than {MAX_REPLY_CHARS} characters")


def _parse(data: str) -> dict[str, object]:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadChunk("something that is not JSON") from error
    if not isinstance(chunk, dict):
        raise BadChunk("JSON that is not an object")
    return cast("dict[str, object]", chunk)


def _object(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def _usage(usage: dict[str, object]) -> Usage | None:
    if not usage:
        return None
    details = _object(usage.get("prompt_tokens_details"))
    return Usage(
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cache_read_tokens=_count(details.get("cached_tokens")),
    )
