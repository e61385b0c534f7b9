"""Turns a model's reply into the events that record it. Pure; trusts nothing in the reply.

Whatever the vendor sent, what comes out can be recorded: texts are valid and bounded, ids are unique in the run, token counts are
counts. What had to be altered is marked beside it.
"""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import Final

from affidavit.actors.conversation import Conversation
from affidavit.actors.events import Event, Kind, Usage
from affidavit.actors.models.port import ModelReply, Served, ToolCall
from affidavit.actors.secrets import NO_SECRETS, SCRUBBED_MARK, Secrets
from affidavit.actors.text import REPLACED_MARK, clean, fit

# Bounds in UTF-8 bytes for what no honest vendor sends longer; an event as a whole has at most 1 MiB.
MAX_NAME: Final = 256
MAX_BLOCKS: Final = 512 * 1024
MAX_TOKENS: Final = 2**53


def reply_events(
    reply: ModelReply,
    conversation: Conversation,
    limit: int,
    secrets: Secrets = NO_SECRETS,
    left_out: int = 0,
) -> tuple[Event, ...]:
    """Return the assistant message, its tool calls, and the end of the turn if it calls no tool.

    Args:
        reply: What the model answered.
        conversation: The conversation so far; its turn is the one answered.
        limit: The most UTF-8 bytes of a text that are recorded.
        secrets: What is taken out of it first, so that no cut can leave half a secret.
        left_out: How many earlier turns the model was not shown.
    """
    turn = conversation.turn
    text, detail = fit_marked(reply.text, limit, secrets)
    detail |= _blocks(reply.blocks, secrets) | _served(reply.served, secrets)
    if left_out:
        detail["left_out"] = left_out
    stop_reason = _named(reply.stop_reason, secrets)
    usage = sound_usage(reply.usage)
    said = Event(Kind.ASSISTANT, turn=turn, text=text, stop_reason=stop_reason, usage=usage, detail=detail)
    ids = _call_ids(conversation, reply.tool_calls)
    calls = [
        _call_event(call, tool_use_id, turn, limit, secrets)
        for call, tool_use_id in zip(reply.tool_calls, ids, strict=True)
    ]
    if calls:
        return (said, *calls)
    return (said, Event(Kind.TURN_COMPLETED, turn=turn, stop_reason=stop_reason, usage=usage))


def sound_usage(usage: Usage | None) -> Usage | None:
    """Return a vendor's token counts, or None if they are none: negative or beyond any model, they would falsify a budget."""
    if usage is None or not all(type(count) is int and 0 <= count <= MAX_TOKENS for count in astuple(usage)):
        return None
    return usage


def fit_marked(text: str, limit: int, secrets: Secrets = NO_SECRETS) -> tuple[str, dict[str, object]]:
    """Return the text as it can be recorded, and the marks that say what was altered."""
    marks: dict[str, object] = {}
    scrubbed = secrets.scrub(text)
    if scrubbed != text:
        text, marks[SCRUBBED_MARK] = scrubbed, True
    shown, cut = fit(text, limit)
    if cut is not None:
        marks["cut"] = cut.as_detail()
    if clean(text) != text:
        marks[REPLACED_MARK] = True
    return shown, marks


def _named(text: str, secrets: Secrets) -> str:
    """Return a name from outside as it can be recorded."""
    return fit(secrets.scrub(text), MAX_NAME)[0]


def _served(served: Served | None, secrets: Secrets) -> dict[str, object]:
    """Say who answered, as far as the endpoint said it."""
    if served is None:
        return {}
    said = {item.name: _named(getattr(served, item.name), secrets) for item in fields(served)}
    return {"served": {name: value for name, value in said.items() if value}}


def _blocks(blocks: str, secrets: Secrets) -> dict[str, object]:
    """Keep the provider's own content only whole: shortened or altered it would not be what it claims to be."""
    if secrets.scrub(blocks) != blocks:
        return {SCRUBBED_MARK: True}
    kept, cut = fit(blocks, MAX_BLOCKS)
    if cut is not None:
        return {"blocks_cut": cut.as_detail()}
    return {"blocks": kept} if kept and kept == blocks else {}


def _call_event(call: ToolCall, tool_use_id: str, turn: int, limit: int, secrets: Secrets) -> Event:
    name = _named(call.name, secrets)
    arguments, detail = fit_marked(call.input, limit, secrets)
    if call.name != name:
        detail[REPLACED_MARK] = True
    if tool_use_id != call.id and call.id:
        detail["vendor_id"] = _named(call.id, secrets)
    return Event(
        Kind.TOOL_CALL, turn=turn, tool=name, tool_use_id=tool_use_id, input=arguments, detail=detail
    )


def _call_ids(conversation: Conversation, calls: tuple[ToolCall, ...]) -> list[str]:
    """Return an id for each call that is unique in the conversation: the vendor's where it is usable, else our own.

    Ids in our own form are never taken from a vendor, so that ours cannot collide with one.
    """
    ours = f"{conversation.spec.name if conversation.spec else ''}/"
    used = {call.id for message in conversation.messages for call in message.tool_calls}
    ids: list[str] = []
    for number, call in enumerate(calls, 1):
        sound = bool(call.id) and fit(call.id, MAX_NAME)[0] == call.id and not call.id.startswith(ours)
        chosen = call.id if sound and call.id not in used else f"{ours}{conversation.turn}/{number}"
        used.add(chosen)
        ids.append(chosen)
    return ids
