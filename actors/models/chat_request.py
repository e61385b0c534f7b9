"""Writes a `ModelRequest` in the words of the chat-completions protocol. Pure.

The messages stand last and one after the other, so that the request of a later turn, or of the same turn after a restart, begins
with the very bytes of the one before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from affidavit.actors.models.chat_stream import THINKING
from affidavit.actors.models.port import Message, ModelRequest, ToolCall, ToolSpec


def request_body(
    model: str, request: ModelRequest, *, limit_key: str, settings: Mapping[str, object]
) -> dict[str, object]:
    """Return the body of a streaming request.

    Args:
        model: The model's name at the endpoint.
        request: What the model is shown.
        limit_key: What the endpoint calls the limit on written tokens.
        settings: Further parameters, such as `temperature`.
    """
    body: dict[str, object] = {
        **settings,
        "model": model,
        limit_key: request.max_output_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    system = [{"role": "system", "content": request.system}] if request.system else []
    body["messages"] = [*system, *(_message(message) for message in request.messages)]
    return body


def _message(message: Message) -> dict[str, object]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_use_id, "content": message.text}
    if message.tool_calls:
        calls = [_call(call) for call in message.tool_calls]
        said = {"role": message.role, "content": message.text or None, "tool_calls": calls}
        # Services that think want the thinking of a turn with tools back; of other turns, some refuse it.
        return {**said, **_thinking(message.blocks)}
    return {"role": message.role, "content": message.text}


def _thinking(blocks: str) -> dict[str, object]:
    """Return the thinking that an earlier turn of this protocol kept; another protocol's content is no object."""
    try:
        kept = json.loads(blocks) if blocks else None
    except (ValueError, RecursionError):
        kept = None
    value = kept.get(THINKING[0]) if isinstance(kept, dict) else None
    return {THINKING[0]: value} if isinstance(value, str) else {}


def _call(call: ToolCall) -> dict[str, object]:
    function = {"name": call.name, "arguments": _as_json(call.input)}
    return {"id": call.id, "type": "function", "function": function}


def _as_json(text: str) -> str:
    # Some endpoints parse the arguments of earlier calls and fail the whole request over those that are
    # not JSON.
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return json.dumps(text)
    return text


def _tool(spec: ToolSpec) -> dict[str, object]:
    parameters = json.loads(spec.input_schema)
    function = {"name": spec.name, "description": spec.description, "parameters": parameters}
    return {"type": "function", "function": function}
