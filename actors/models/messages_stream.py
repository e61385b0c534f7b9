"""Puts an answer of Anthropic's Messages protocol together from its stream. Pure, and strict where a block could be damaged.

Events go message_start, then for each block start, deltas and stop, then message_delta and message_stop; pings and kinds that are
not known may stand anywhere. What does not fit into that order belongs to another answer, and is refused.
"""

from __future__ import annotations

from typing import Final, final

from affidavit.actors.events import Usage
from affidavit.actors.models.messages_blocks import Block
from affidavit.actors.models.port import ModelReply, OnDelta, Served
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

_MAX_BLOCKS: Final = 8 * MAX_CALLS
# An answer that was cut off since the context is full is cut off like any other.
_REASONS: Final = {"model_context_window_exceeded": "max_tokens", "stop_sequence": "end_turn"}
_COUNTS: Final = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
)


@final
class MessagesAssembly:
    """A reply in the making; see `wire.Assembly`."""

    def __init__(self, on_delta: OnDelta | None = None) -> None:
        """Begin an answer.

        Args:
            on_delta: Is told of each piece of text and thinking.
        """
        self.ended = False
        self._on_delta = on_delta
        self._served: Served | None = None
        self._blocks: list[Block] = []
        self._reason = ""
        self._usage: dict[str, int] = {}
        self._size = 0

    @property
    def begun(self) -> bool:
        """Whether there is any content yet."""
        return bool(self._blocks)

    @property
    def finished(self) -> bool:
        """Whether the turn is over: here that is said together with the end of the stream."""
        return self.ended

    def add(self, event: ServerEvent) -> None:
        """Take in one event; see the port."""
        if not event.data:
            return
        data = parse_object(event.data)
        kind = as_text(data.get("type")) or event.name
        if kind == "error":
            raise StreamedFailure(data.get("error"))
        if kind == "message_start":
            self._start(as_object(data.get("message")))
        elif kind in {
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        }:
            if self._served is None:
                raise BadChunk(f"{kind} before the beginning of a message")
            self._go_on(kind, data)

    def reply(self) -> ModelReply:
        """Return the reply as it stands."""
        calls = tuple(block.call for block in self._blocks if block.kind == "tool_use")
        reason = _REASONS.get(self._reason, self._reason) or ("tool_use" if calls else "end_turn")
        return ModelReply(
            "".join(block.text for block in self._blocks),
            calls,
            reason,
            self._as_usage(),
            f"[{','.join(block.as_json() for block in self._blocks)}]" if self._blocks else "",
            self._served,
        )

    def _start(self, message: dict[str, object]) -> None:
        if self._served is not None:
            raise Spliced("the beginning of a second answer in the middle of the first")
        self._served = Served(as_text(message.get("model")), id=as_text(message.get("id")))
        self._count(as_object(message.get("usage")))

    def _go_on(self, kind: str, data: dict[str, object]) -> None:
        if kind == "message_delta":
            self._reason = as_reason(as_object(data.get("delta")).get("stop_reason")) or self._reason
            self._count(as_object(data.get("usage")))
            return
        if kind == "message_stop":
            if self._open is not None:
                raise Spliced("the end of an answer in the middle of one of its blocks")
            self.ended = True
            return
        self._grow(data)
        index = as_index(data.get("index"))
        if kind == "content_block_start":
            self._begin_block(index, as_object(data.get("content_block")))
            return
        block = self._open
        if block is None or index != len(self._blocks) - 1:
            raise Spliced("a piece of a block that is not in the making")
        if kind == "content_block_stop":
            block.open = False
            return
        delta = block.add(as_object(data.get("delta")))
        if delta is not None and self._on_delta is not None:
            self._on_delta(delta)

    @property
    def _open(self) -> Block | None:
        return self._blocks[-1] if self._blocks and self._blocks[-1].open else None

    def _begin_block(self, index: int | None, start: dict[str, object]) -> None:
        if self._open is not None or index != len(self._blocks):
            raise Spliced("the beginning of a block out of its order")
        if len(self._blocks) == _MAX_BLOCKS:
            raise BadChunk(f"more than {_MAX_BLOCKS} blocks in one turn")
        block = Block(start)
        self._blocks.append(block)
        if block.kind == "tool_use" and sum(each.kind == "tool_use" for each in self._blocks) > MAX_CALLS:
            raise BadChunk(f"more than {MAX_CALLS} tool calls in one turn")

    def _grow(self, data: dict[str, object]) -> None:
        if self._reason:
            raise Spliced("more of an answer that it had ended")
        delta = as_object(data.get("delta"))
        self._size += sum(len(value) for value in delta.values() if isinstance(value, str))
        if self._size > MAX_REPLY_CHARS:
            raise BadChunk(f"a turn of more than {MAX_REPLY_CHARS} characters")

    def _count(self, usage: dict[str, object]) -> None:
        """Take over the counts that are given; each is the total up to now."""
        self._usage |= {name: as_count(usage[name]) for name in _COUNTS if usage.get(name) is not None}

    def _as_usage(self) -> Usage | None:
        if not self._usage:
            return None
        fresh, written, read, output = (self._usage.get(name, 0) for name in _COUNTS)
        # The vendor counts cached input apart; here the input is all of it.
        return Usage(fresh + written + read, output, read, written)
