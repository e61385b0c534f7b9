"""The strict one-pass parser: the authority on what is canonical and on the code for what is not.

It is slow and exact. `cbor.decode` and `event.check_event` first try a faster way that accepts only what this
parser accepts, and come here for floats and for every refusal. It never recurses and never trusts a length.

Faults rank as in a decoder that checks form before content: what is not well-formed first, then bytes left
over, then a duplicate key or bad text, and only then a form that is not the canonical one.
"""

import math
import struct
from dataclasses import dataclass, field
from typing import Final

from affidavit.crypto import cbor_heads as heads
from affidavit.crypto.cbor_heads import Head
from affidavit.crypto.cbor_order import encoded_rank
from affidavit.crypto.failures import FailureCode, VerificationError

_CONSTANTS: Final[dict[int, bool | None]] = {20: False, 21: True, 22: None}
_FLOAT_FORMS: Final = {25: ">e", 26: ">f", 27: ">d"}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A well-formed item: its value, the number of its floats, and its first departure from the form."""

    value: object
    floats: int
    non_canonical: str | None


@dataclass(slots=True)
class _Frame:
    """A container being filled. `wanted` counts the items still to come, keys and values alike."""

    target: dict[str, object] | list[object]
    wanted: int
    key: str | None = None
    rank: tuple[int, bytes] = (-1, b"")


@dataclass(slots=True)
class _Parser:
    data: bytes
    max_depth: int
    pos: int = 0
    floats: int = 0
    content_fault: VerificationError | None = None
    non_canonical: str | None = None
    frames: list[_Frame] = field(default_factory=list)

    def run(self) -> Parsed:
        value = self._item()
        while self.frames:
            frame = self.frames[-1]
            if frame.wanted == 0:
                self.frames.pop()
                continue
            frame.wanted -= 1
            if isinstance(frame.target, list):
                frame.target.append(self._item())
            elif frame.key is None:
                frame.key = self._key(frame)
            else:
                key, frame.key = frame.key, None
                frame.target[key] = self._item()
        if self.pos != len(self.data):
            raise VerificationError(
                FailureCode.ENC_TRAILING_BYTES, f"{len(self.data) - self.pos} bytes follow the encoding"
            )
        if self.content_fault is not None:
            raise self.content_fault
        return Parsed(value, self.floats, self.non_canonical)

    def _head(self) -> Head:
        head = heads.read_head(self.data, self.pos)
        if not head.minimal:
            self._note(f"a head at byte {self.pos} is not the shortest")
        self.pos = head.end
        return head

    def _note(self, what: str) -> None:
        if self.non_canonical is None:
            self.non_canonical = what

    def _fault(self, code: FailureCode, detail: str) -> None:
        if self.content_fault is None:
            self.content_fault = VerificationError(code, detail)

    def _item(self) -> object:
        head = self._head()
        match head.major:
            case heads.UINT:
                return head.arg
            case heads.NEGATIVE:
                return -1 - head.arg
            case heads.BYTES:
                return self._string(head)
            case heads.TEXT:
                return self._text(head)
            case heads.ARRAY | heads.MAP:
                return self._open(head)
            case heads.TAG:
                raise VerificationError(FailureCode.ENC_DECODE, f"tag {head.arg} is not allowed")
            case _:
                return self._simple(head)

    def _string(self, head: Head) -> bytes:
        raw = heads.take(self.data, head)
        self.pos += len(raw)
        return raw

    def _text(self, head: Head) -> str:
        raw = self._string(head)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self._fault(FailureCode.ENC_INVALID_UTF8, "a text string is not valid UTF-8")
            return raw.decode(errors="replace")

    def _open(self, head: Head) -> object:
        if len(self.frames) >= self.max_depth:
            raise VerificationError(FailureCode.ENC_DECODE, f"nested deeper than {self.max_depth} levels")
        if head.major == heads.ARRAY:
            frame = _Frame([], heads.bound_count(self.data, head))
        else:
            frame = _Frame({}, heads.bound_count(self.data, head, 2) * 2)
        self.frames.append(frame)
        return frame.target

    def _key(self, frame: _Frame) -> str:
        head = self._head()
        if head.major != heads.TEXT:
            raise VerificationError(FailureCode.ENC_DECODE, "a map key is not a text string")
        key = self._text(head)
        if key in frame.target:
            self._fault(FailureCode.ENC_DUPLICATE_MAP_KEY, f"the key {key[:80]!r} stands twice in one map")
        rank = encoded_rank(key)
        if rank < frame.rank:
            self._note("the keys of a map are not in canonical order")
        frame.rank = rank
        return key

    def _simple(self, head: Head) -> object:
        if head.info in _CONSTANTS:
            return _CONSTANTS[head.info]
        form = _FLOAT_FORMS.get(head.info)
        if form is None:
            raise VerificationError(FailureCode.ENC_DECODE, f"simple value {head.arg} is not allowed")
        value: float = struct.unpack(form, self.data[self.pos - struct.calcsize(form) : self.pos])[0]
        self.floats += 1
        if math.isnan(value):
            self._fault(FailureCode.ENC_DECODE, "a float that is not a number")
        elif form != _shortest_form(value):
            self._note("a float is not in its shortest form")
        return value


def _shortest_form(value: float) -> str:
    for form in (">e", ">f"):
        try:
            if struct.unpack(form, struct.pack(form, value))[0] == value:
                return form
        except OverflowError:
            continue
    return ">d"


def parse(data: bytes, *, max_depth: int) -> Parsed:
    """Parse one item that fills `data`, with integers of up to 64 bits, floats, and text keys only.

    Args:
        data: The encoding.
        max_depth: How many containers may be open at once.

    Returns:
        The value, with what the caller still has to judge.

    Raises:
        VerificationError: With the `enc.*` code of the fault, except `enc.non_canonical_cbor`.
    """
    return _Parser(data, max_depth).run()
