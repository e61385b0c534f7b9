"""Two wire formats behind one face, so that one suite of tests can hold both adapters to the same promises."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from affidavit.actors.models.anthropic import open_anthropic_model
from affidavit.actors.models.chat_stream import ChatAssembly
from affidavit.actors.models.endpoint import new_client
from affidavit.actors.models.limits import DEFAULT_LIMITS, CallLimits
from affidavit.actors.models.messages_stream import MessagesAssembly
from affidavit.actors.models.openai import open_openai_model
from affidavit.actors.models.port import Model, OnDelta
from affidavit.actors.models.sdk_anthropic import open_anthropic_sdk_model
from affidavit.actors.models.sdk_openai import open_openai_sdk_model
from affidavit.actors.models.wire import Assembly
from tests.actors.models.asking import KEY
from tests.actors.models.endpoints import delta, sse

Call = tuple[str, str, str]
"""A tool call as a test writes it: id, name, arguments."""


@dataclass(frozen=True)
class Dialect:
    """One wire format.

    Attributes:
        name: Who laid it down.
        open: Opens its adapter at an address.
        assembly: Begins an answer in the making.
        events: Writes an answer of words and calls as the endpoint streams it, in pieces of a few letters, one string each.
        error: Writes a failure in mid-stream, given its type and message.
        usage: What the answer's tokens are said to be: input, output, cache reads, cache writes.
        provider: What stands before the colon in a model's name.
    """

    name: str
    open: Callable[..., AbstractAsyncContextManager[Model]]
    assembly: Callable[[OnDelta | None], Assembly]
    events: Callable[[str, tuple[Call, ...]], list[str]]
    error: Callable[[str, str], str]
    usage: tuple[int, int, int, int]
    provider: str

    @asynccontextmanager
    async def opened(
        self, url: str, limits: CallLimits = DEFAULT_LIMITS, api_key: str = KEY
    ) -> AsyncIterator[Model]:
        """The adapter, at that address, to be used outside of any run."""
        async with (
            new_client() as client,
            self.open("m", base_url=url, api_key=api_key, limits=limits, client=client) as model,
        ):
            yield model

    @property
    def plainly(self) -> Dialect:
        """The same wire format without an official client."""
        return next(each for each in ALL if each.provider == self.name)


def _pieces(text: str) -> list[str]:
    return [text[at : at + 3] for at in range(0, len(text), 3)]


def _chat_events(text: str, calls: tuple[Call, ...]) -> list[str]:
    def chunk(**fields: Any) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "model": "m-2026", **fields}

    chunks = [chunk(**delta(role="assistant", content=""))]
    chunks += [chunk(**delta(content=piece)) for piece in _pieces(text)]
    for index, (call_id, name, arguments) in enumerate(calls):
        begin = {"index": index, "id": call_id, "function": {"name": name, "arguments": ""}}
        chunks.append(chunk(**delta(tool_calls=[begin])))
        chunks += [
            chunk(**delta(tool_calls=[{"index": index, "function": {"arguments": piece}}]))
            for piece in _pieces(arguments)
        ]
    chunks.append(chunk(**delta("tool_calls" if calls else "stop")))
    counts = {
        "prompt_tokens": 90,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 20},
    }
    chunks.append(chunk(choices=[], usage=counts))
    return [sse(each).decode() for each in [*chunks, "[DONE]"]]


def event(kind: str, **fields: Any) -> str:
    """One event of the Messages protocol."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


START = event(
    "message_start",
    message={
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-2026",
        "content": [],
        "stop_reason": None,
        "usage": {
            "input_tokens": 30,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 40,
            "output_tokens": 1,
        },
    },
)


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[str]:
    """The events of one block."""
    return [
        event("content_block_start", index=index, content_block=start),
        *(event("content_block_delta", index=index, delta=each) for each in deltas),
        event("content_block_stop", index=index),
    ]


def text_block(index: int, text: str) -> list[str]:
    """The events of a block of words."""
    pieces = ({"type": "text_delta", "text": piece} for piece in _pieces(text))
    return block(index, {"type": "text", "text": ""}, *pieces)


def tool_block(index: int, call: Call) -> list[str]:
    """The events of a tool call."""
    call_id, name, arguments = call
    pieces = ({"type": "input_json_delta", "partial_json": piece} for piece in _pieces(arguments))
    return block(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}}, *pieces)


def ending(reason: str) -> list[str]:
    """The events that end a message."""
    return [
        event(
            "message_delta",
            delta={"stop_reason": reason, "stop_sequence": None},
            usage={"output_tokens": 7},
        ),
        event("message_stop"),
    ]


def _messages_events(text: str, calls: tuple[Call, ...]) -> list[str]:
    blocks = text_block(0, text) if text else []
    for index, call in enumerate(calls, 1 if text else 0):
        blocks += tool_block(index, call)
    return [START, event("ping"), *blocks, *ending("tool_use" if calls else "end_turn")]


OPENAI = Dialect(
    "openai",
    open_openai_model,
    ChatAssembly,
    _chat_events,
    lambda kind, message: sse({"error": {"type": kind, "message": message}}).decode(),
    (90, 7, 40, 20),
    "openai",
)
ANTHROPIC = Dialect(
    "anthropic",
    open_anthropic_model,
    MessagesAssembly,
    _messages_events,
    lambda kind, message: event("error", error={"type": kind, "message": message}),
    (90, 7, 40, 20),
    "anthropic",
)
# The same wire formats, carried by the vendors' official clients.
OPENAI_SDK = replace(OPENAI, open=open_openai_sdk_model, provider="openai-sdk")
ANTHROPIC_SDK = replace(ANTHROPIC, open=open_anthropic_sdk_model, provider="anthropic-sdk")
SDKS = tuple(
    dialect
    for dialect, package in ((OPENAI_SDK, "openai"), (ANTHROPIC_SDK, "anthropic"))
    # Under CI=true all the tools must be there, so a missing one is not left aside.
    if os.environ.get("CI") == "true" or find_spec(package) is not None
)
ALL = (OPENAI, ANTHROPIC, *SDKS)
