"""A model endpoint on loopback that answers when the test lets it: a run can be held in the middle of a turn."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Gate:
    """Holds the endpoint's answers back."""

    url: str
    asked: threading.Event = field(default_factory=threading.Event)
    answer: threading.Event = field(default_factory=threading.Event)


@contextmanager
def held_endpoint(words: str = "Now it is done.", *, tool: str = "") -> Iterator[Gate]:
    """Serve an endpoint; it says `asked` with the first request, and answers once `answer` is set, always the same.

    Args:
        words: What it says.
        tool: A tool that it calls without arguments; none by default.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    gate = Gate(f"http://127.0.0.1:{server.server_address[1]}/v1")
    delta: dict[str, object] = {"content": words}
    if tool:
        call = {"index": 0, "id": "t1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        delta["tool_calls"] = [call]
    chunks = (
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if tool else "stop"}]},
    )
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            gate.asked.set()
            gate.answer.wait(60)
            try:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.wfile.write(body.encode())
            except ConnectionError:
                return  # the run was stopped meanwhile

        def log_message(self, *_: object) -> None:
            return

    server.RequestHandlerClass = Handler
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    try:
        yield gate
    finally:
        gate.answer.set()
        server.shutdown()
        serving.join()
        server.server_close()
