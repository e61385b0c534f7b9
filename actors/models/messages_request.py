"""Writes a `ModelRequest` in the words of Anthropic's Messages protocol. Pure.

What the provider said itself is sent back as the very text that was recorded. The messages stand last and one after the other, so
that the request of a later turn, or of the same turn after a restart, begins with the very bytes of the one before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import groupby
from typing import Final

from affidavit.actors.models.messages_blocks import as_arguments, compact
from affidavit.actors.models.port import Message, ModelRequest, ToolSpec

_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
# The protocol has no place for a message without words.
_NOTHING: Final = "(nothing)"


def request_text(model: str, request: ModelRequest, settings: Mapping[str, object]) -> str:
    """Return the JSON text of a streaming request.

    Args:
        model: The model's name at the endpoint.
        request: What the model is shown.
        settings: Further parameters, such as `temperature`.
    """
    head: dict[str, object] = {
        "model": model,
        "max_tokens": request.max_output_tokens,
        **settings,
        "stream": True,
        # The endpoint keeps what it has read, and moves the mark on as the conversation grows.
        "cache_control": {"type": "ephemeral"},
    }
    if request.system.strip():
        head["system"] = request.system
    if request.tools:
        head["tools"] = [_tool(spec) for spec in request.tools]
    return f'{compact(head)[:-1]},"messages":[{",".join(_messages(request.messages))}]}}'


def _messages(messages: tuple[Message, ...]) -> Iterator[str]:
    for role, group in groupby(messages, key=lambda message: message.role):
        if role == "tool":
            # The results of one turn belong into one message.
            yield _user([_result(message) for message in group])
        elif role == "assistant":
            yield from (text for message in group if (text := _assistant(message)))
        else:
            yield from (
                _user([{"type": "text", "text": message.text if message.text.strip() else _NOTHING}])
                for message in group
            )


def _user(content: list[dict[str, object]]) -> str:
    return compact({"role": "user", "content": content})


def _result(message: Message) -> dict[str, object]:
    result: dict[str, object] = {"type": "tool_result", "tool_use_id": _safe_id(message.tool_use_id)}
    if message.text.strip():
        result["content"] = message.text
    if message.is_error:
        result["is_error"] = True
    return result


def _assistant(message: Message) -> str:
    content = message.blocks if _is_own(message) else f"[{','.join(_rebuilt(message))}]"
    return f'{{"role":"assistant","content":{content}}}' if content != "[]" else ""


def _rebuilt(message: Message) -> Iterator[str]:
    """Yield the blocks of a turn whose own ones were not kept, or are another protocol's."""
    if message.text.strip():
        yield compact({"type": "text", "text": message.text})
    for call in message.tool_calls:
        start = compact({"type": "tool_use", "id": _safe_id(call.id), "name": call.name})
        yield f'{start[:-1]},"input":{as_arguments(call.input)}}}'


def _is_own(message: Message) -> bool:
    """Tell whether a turn's blocks are of this protocol, and name its calls as they stand on the record."""
    try:
        blocks = json.loads(message.blocks) if message.blocks else None
    except (ValueError, RecursionError):
        return False
    if not isinstance(blocks, list) or not all(
        isinstance(block, dict) and isinstance(block.get("type"), str) for block in blocks
    ):
        return False
    named = [block.get("id") for block in blocks if block["type"] == "tool_use"]
    return bool(blocks) and named == [call.id for call in message.tool_calls]


def _safe_id(text: str) -> str:
    """Return an id that the protocol takes; for one that it does not take, another that is always the same."""
    return text if _ID.fullmatch(text) else f"id_{sha256(text.encode('utf-8', 'replace')).hexdigest()[:32]}"


def _tool(spec: ToolSpec) -> dict[str, object]:
    schema = json.loads(spec.input_schema)
    return {"name": spec.name, "description": spec.description, "input_schema": schema}
