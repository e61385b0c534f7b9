"""Puts an answer of the chat-completions protocol together from its stream. Pure, and total towards odd fragments.

Fragments of text are joined in their order, fragments of tool calls by their index. What a vendor adds beyond the protocol is
left aside, but for the thinking that some want to be sent back. A fragment that is no JSON object, an error that the endpoint
sends in the stream, two answers mixed into one, and a reply beyond all bounds raise.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final, final

from affidavit.actors.events import Usage
from affidavit.actors.models.port import Delta, ModelReply, OnDelta, Served, ToolCall
from affidavit.actors.models.sse import ServerEvent
from affidavit.actors.models.wire import (
    MAX_CALLS,
    MAX_REPLY_CHARS,
    BadChunk,
    Spliced,
    StreamedFailure,
    as_count,
    as_index,
    as_object,
    as_reason,
    as_text,
    parse_object,
)

END: Final = "[DONE]"
# What services call the model's thinking; the first is also the name under which it is sent back.
THINKING: Final = ("reasoning_content", "reasoning")
_REASONS: Final = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}


@dataclass(slots=True)
class _Call:
    place: tuple[int, int]
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@final
class ChatAssembly:
    """A reply in the making; see `wire.Assembly`."""

    def __init__(self, on_delta: OnDelta | None = None) -> None:
        """Begin an answer.

        Args:
            on_delta: Is told of each piece of text.
        """
        self.finished = False
        self.ended = False
        self.begun = False
        self._on_delta = on_delta
        self._texts: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._reason = ""
        self._refused = False
        self._has_gone_on = False
        self._usage: Usage | None = None
        self._size = 0
        self._served = Served()

    def add(self, event: ServerEvent) -> None:
        """Take in one event; see the port."""
        if event.data.strip() == END:
            self.finished = self.ended = True
            return
        chunk = parse_object(event.data)
        if chunk.get("error"):
            raise StreamedFailure(chunk["error"])
        self._identify(chunk)
        self._usage = _usage(as_object(chunk.get("usage"))) or self._usage
        choices = chunk.get("choices")
        if isinstance(choices, list) and choices:
            self._choice(as_object(choices[0]))

    def reply(self) -> ModelReply:
        """Return the reply as it stands."""
        ordered = sorted(self._calls, key=lambda call: call.place)
        calls = tuple(ToolCall(call.id, call.name, "".join(call.arguments)) for call in ordered)
        thinking = "".join(self._thinking)
        return ModelReply(
            "".join(self._texts),
            calls,
            self._stop_reason(calls=bool(calls)),
            self._usage,
            json.dumps({THINKING[0]: thinking}) if thinking else "",
            self._served if self._served != Served() else None,
        )

    def _stop_reason(self, *, calls: bool) -> str:
        if self._refused:
            return "refusal"
        reason = _REASONS.get(self._reason, self._reason) or "end_turn"
        # Some endpoints say `stop` after a turn that calls tools.
        return "tool_use" if calls and reason == "end_turn" else reason

    def _identify(self, chunk: dict[str, object]) -> None:
        """Note whose answer this is. Chunks without an id, and those of services that give none, belong to any."""
        answer, seen = as_text(chunk.get("id")), self._served
        if answer and seen.id and answer != seen.id:
            raise Spliced("parts of two answers, with different ids, in one stream")
        self._served = Served(
            seen.model or as_text(chunk.get("model")),
            seen.fingerprint or as_text(chunk.get("system_fingerprint")),
            seen.id or answer,
        )

    def _choice(self, choice: dict[str, object]) -> None:
        delta = as_object(choice.get("delta"))
        self._expect_no_beginning(delta, choice)
        refusal = as_text(delta.get("refusal"))
        self._refused = self._refused or bool(refusal)
        self._say(next((text for name in THINKING if (text := as_text(delta.get(name)))), ""), thinking=True)
        for text in (as_text(delta.get("content")), refusal):
            self._say(text)
        fragments = delta.get("tool_calls")
        for fragment in fragments if isinstance(fragments, list) else ():
            self._call(as_object(fragment))
        reason = as_reason(choice.get("finish_reason"))
        if reason:
            self._reason = reason
            self.finished = True

    def _expect_no_beginning(self, delta: dict[str, object], choice: dict[str, object]) -> None:
        """Refuse an answer that begins again. Services that say the role with every piece are none of these."""
        says_more = delta.get("tool_calls") or choice.get("finish_reason")
        if not delta.get("role"):
            self._has_gone_on = self._has_gone_on or bool(delta.get("content") or says_more)
        elif self._has_gone_on and delta.get("content") == "" and not says_more:
            raise Spliced("a second beginning of its answer")

    def _say(self, text: str, *, thinking: bool = False) -> None:
        if not text:
            return
        self._grow(text)
        (self._thinking if thinking else self._texts).append(text)
        if self._on_delta is not None:
            self._on_delta(Delta(text, thinking))

    def _call(self, fragment: dict[str, object]) -> None:
        function = as_object(fragment.get("function"))
        call_id, name = as_text(fragment.get("id")), as_text(function.get("name"))
        arguments = as_text(function.get("arguments"))
        call = self._call_of(as_index(fragment.get("index")), call_id, name)
        self._grow(call_id + name + arguments)
        call.id = call.id or call_id
        # Names come once, or in pieces, or whole with every fragment.
        call.name = call.name if name == call.name else call.name + name
        call.arguments.append(arguments)

    def _call_of(self, index: int | None, call_id: str, name: str) -> _Call:
        """Return the call that a fragment belongs to. A new id with a name begins a new call, whatever its index says."""
        last = self._calls[-1] if self._calls else None
        found = last if index is None else self._by_index.get(index)
        if found is not None and call_id and found.id and call_id != found.id:
            if not name:
                raise Spliced("a tool call whose id changes in its middle")
            # Some services number every call of a turn 0, or none.
            found = next((call for call in self._calls if call.id == call_id), None)
        if found is None:
            arrived = len(self._calls)
            if arrived == MAX_CALLS:
                raise BadChunk(f"more than {MAX_CALLS} tool calls in one turn")
            found = _Call((arrived if index is None else index, arrived))
            self._calls.append(found)
        if index is not None:
            self._by_index[index] = found
        return found

    def _grow(self, text: str) -> None:
        if self.finished and text:
            raise Spliced("more of an answer that it had ended")
        self.begun = self.begun or bool(text)
        self._size += len(text)
        if self._size > MAX_REPLY_CHARS:
            raise BadChunk(f"a turn of more than {MAX_REPLY_CHARS} characters")


def _usage(usage: dict[str, object]) -> Usage | None:
    if not usage:
        return None
    details = as_object(usage.get("prompt_tokens_details"))
    return Usage(
        input_tokens=as_count(usage.get("prompt_tokens")),
        output_tokens=as_count(usage.get("completion_tokens")),
        cache_read_tokens=as_count(details.get("cached_tokens")),
        cache_write_tokens=as_count(details.get("cache_write_tokens")),
    )
