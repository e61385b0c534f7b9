"""The content blocks of the Messages protocol, grown delta by delta and written back exactly. Pure.

A block is kept whole, whatever its kind: thinking and its signature are worth nothing in any other form. A tool call's arguments
are kept as the text that the model wrote, since reading and writing it again could change a number.
"""

from __future__ import annotations

import json
from typing import Final, NoReturn, final

from affidavit.actors.models.port import Delta, ToolCall
from affidavit.actors.models.wire import BadChunk, as_text

# How arguments that are no JSON object are put into one; the name is the vendor's own proposal.
NOT_JSON: Final = "INVALID_JSON"
# kind of delta: the key of its piece, and the key of the block that the piece is added to
_PIECES: Final = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
}


@final
class Block:
    """One block in the making."""

    def __init__(self, start: dict[str, object]) -> None:
        """Begin a block as `content_block_start` gives it."""
        self.kind = as_text(start.get("type"))
        self.open = True
        self._start = start
        self._pieces: list[str] = []
        self._signature: str | None = None
        self._citations: list[object] = []

    @property
    def text(self) -> str:
        """The words of a text block."""
        return as_text(self._start.get("text")) + "".join(self._pieces) if self.kind == "text" else ""

    @property
    def call(self) -> ToolCall:
        """The call that a tool_use block is."""
        return ToolCall(as_text(self._start.get("id")), as_text(self._start.get("name")), self._arguments())

    def add(self, delta: dict[str, object]) -> Delta | None:
        """Take in one delta.

        Returns:
            What a reader may be shown of it.

        Raises:
            BadChunk: It is of a kind that is not known, so that the block could not be kept whole, or not for this kind of block.
        """
        kind = as_text(delta.get("type"))
        if kind == "input_json_delta" and "input" in self._start:
            self._pieces.append(as_text(delta.get("partial_json")))
        elif kind in _PIECES and _PIECES[kind][1] == self.kind:
            piece = as_text(delta.get(_PIECES[kind][0]))
            self._pieces.append(piece)
            return Delta(piece, kind == "thinking_delta") if piece else None
        elif kind == "signature_delta" and self.kind == "thinking":
            self._signature = as_text(delta.get("signature"))
        elif kind == "citations_delta" and self.kind == "text":
            self._citations.append(delta.get("citation"))
        else:
            raise BadChunk("a piece of a kind that does not go with its block's")
        return None

    def as_json(self) -> str:
        """Return the block as JSON text, in the form in which it is sent back."""
        block = dict(self._start)
        if self.kind in {"text", "thinking"}:
            block[self.kind] = as_text(block.get(self.kind)) + "".join(self._pieces)
        if self._signature is not None:
            block["signature"] = self._signature
        if self._citations:
            block["citations"] = self._citations
        if "input" not in block or not self._pieces:
            return compact(block)
        del block["input"]
        return f'{compact(block)[:-1]},"input":{as_arguments(self._arguments())}}}'

    def _arguments(self) -> str:
        return "".join(self._pieces) or compact(self._start.get("input", {}))


def as_arguments(text: str) -> str:
    """Return the text of a call's arguments as it stands if it is a JSON object, and else an object that holds it."""
    return text if _is_object(text) else compact({NOT_JSON: text})


def compact(value: object) -> str:
    """Return a value as JSON text in ASCII, the same for the same value."""
    return json.dumps(value, separators=(",", ":"))


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
