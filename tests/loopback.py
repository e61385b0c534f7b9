"""A web server on loopback, answered from threads: it outlives every process that asks it, and needs no loop."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def serving(answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """Serve an event stream to every POST while the block lasts.

    Args:
        answer: Given a request's body, returns the stream; it may block.

    Yields:
        The server's address, without a path.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            stream = answer(self.rfile.read(int(self.headers["content-length"])))
            try:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.wfile.write(stream)
            except ConnectionError:
                return  # whoever asked was stopped meanwhile

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
