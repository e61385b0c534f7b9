"""Tools for models that know of none, where the server can hold an answer to a JSON schema. Pure.

The model is told of its tools in words, and every turn is one JSON object: `{"tool": NAME, "arguments": {...}}`, or
`{"tool": "answer", "text": "..."}`. The server lets nothing else pass, so that even a small model calls a tool that exists, with
arguments of the right form. What it made of that is up to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from affidavit.actors.models.port import Message, ModelReply, ModelRequest, ToolCall, ToolSpec
from affidavit.actors.models.wire import as_object, as_text

ANSWER: Final = "answer"
_HOW: Final = """\
Every reply is one JSON object.
To use a tool: {"tool": NAME, "arguments": {...}}
To give the final answer: {"tool": "answer", "text": "..."}
Tools:"""


def without_tools(request: ModelRequest) -> ModelRequest:
    """Return the request in words alone: its tools in the system prompt, calls and results as ordinary messages."""
    told = [f"- {tool.name}: {tool.description} Arguments: {tool.input_schema}" for tool in request.tools]
    system = "\n".join([*([request.system, ""] if request.system else []), _HOW, *told])
    return replace(
        request, system=system, messages=tuple(_messages(request.messages)), tools=(), on_delta=None
    )


def response_format(tools: Iterable[ToolSpec]) -> dict[str, object]:
    """Return the schema of a turn, as the chat-completions protocol asks for it."""
    answer = _option(ANSWER, "text", {"type": "string"})
    calls = [_option(tool.name, "arguments", _arguments(tool)) for tool in tools if tool.name != ANSWER]
    return {
        "type": "json_schema",
        "json_schema": {"name": "turn", "strict": True, "schema": {"anyOf": [*calls, answer]}},
    }


def as_turn(reply: ModelReply) -> ModelReply:
    """Return the turn that a constrained reply stands for.

    A reply that is none, since it was cut off or the server did not hold it to the schema, is left as the words that it is.
    """
    try:
        said = as_object(json.loads(reply.text))
    except (ValueError, RecursionError):
        return reply
    tool = as_text(said.get("tool"))
    if tool == ANSWER and isinstance(said.get("text"), str):
        return replace(reply, text=as_text(said["text"]))
    if not tool or "arguments" not in said:
        return reply
    call = ToolCall("", tool, json.dumps(said["arguments"]))
    return replace(reply, text="", tool_calls=(call,), stop_reason="tool_use")


def _messages(messages: Iterable[Message]) -> Iterable[Message]:
    """Yield the messages, those that belong to tools put into words; a result names its tool, since it has no id here."""
    names: dict[str, str] = {}
    for message in messages:
        names |= {call.id: call.name for call in message.tool_calls}
        if message.role == "tool":
            name = names.get(message.tool_use_id, "the tool")
            what = "Error" if message.is_error else "Result"
            yield Message("user", f"{what} of {name}:\n{message.text}")
        elif message.role == "assistant":
            yield Message("assistant", "\n".join(_turns(message)))
        else:
            yield message


def _turns(message: Message) -> Iterable[str]:
    """Yield what the model must have written for a turn."""
    for call in message.tool_calls:
        yield json.dumps({"tool": call.name, "arguments": _value(call.input)})
    if not message.tool_calls:
        yield json.dumps({"tool": ANSWER, "text": message.text})


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _option(name: str, key: str, schema: dict[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {"tool": {"const": name}, key: schema},
        "required": ["tool", key],
        "additionalProperties": False,
    }


def _arguments(tool: ToolSpec) -> dict[str, object]:
    # References lead from the root of a schema, which a tool's own no longer is; its arguments are checked again anyway.
    if '"$ref"' in tool.input_schema:
        return {"type": "object"}
    return as_object(json.loads(tool.input_schema))
