"""A model endpoint on loopback that answers when the test lets it: a run can be held in the middle of a turn."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.loopback import serving


@dataclass(frozen=True, slots=True)
class Gate:
    """Holds the endpoint's answers back."""

    url: str
    asked: threading.Event
    answer: threading.Event


@contextmanager
def held_endpoint(words: str = "Now it is done.", *, tool: str = "") -> Iterator[Gate]:
    """Serve an endpoint; it says `asked` with the first request, and answers once `answer` is set, always the same.

    Args:
        words: What it says.
        tool: A tool that it calls without arguments; none by default.
    """
    delta: dict[str, object] = {"content": words}
    if tool:
        call = {"index": 0, "id": "t1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        delta["tool_calls"] = [call]
    chunks = (
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if tool else "stop"}]},
    )
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    asked, answered = threading.Event(), threading.Event()

    def answer(_: bytes) -> bytes:
        asked.set()
        answered.wait(60)
        return body.encode()

    with serving(answer) as url:
        try:
            yield Gate(f"{url}/v1", asked, answered)
        finally:
            answered.set()
