"""`http_fetch`: what the model is shown, and what bounds it."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
import trio
import trio.testing

from affidavit.actors.errors import ToolFailed
from affidavit.actors.netguard.decision import EgressDenied
from affidavit.actors.netguard.guard import Guard
from affidavit.actors.toolbox.arguments import validate_arguments
from affidavit.actors.toolbox.http_fetch import MAX_BODY_BYTES, http_fetch
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.netguard.netkit import Book, Reply, names, open_site, response


async def fetched(reply: Reply, path: str = "/", **arguments: Any) -> tuple[str, Book, list[str]]:
    """Fetch from a site of our own; in the answer its port stands as PORT."""
    book = Book()
    async with open_site(book, reply) as site:
        text = await fetch(book.guard("127.0.0.0/8"), f"http://127.0.0.1:{site.port}{path}", **arguments)
        return text.replace(str(site.port), "PORT"), book, site.heads


async def fetch(guard: Guard, url: str, **arguments: Any) -> str:
    """Run the tool as a mission does: through the toolbox and the check of its arguments."""
    tool = Toolbox((http_fetch(guard),))["http_fetch"]
    return await tool.run(validate_arguments(tool.spec, json.dumps({"url": url, **arguments})))


async def test_the_model_is_shown_status_address_and_text() -> None:
    """And the request asks for nothing compressed, names us, and holds nothing else."""
    text, book, heads = await fetched(
        lambda head: response("h\u00e4".encode(), "200 OK", "Content-Type: text/plain")
    )
    assert text == "HTTP 200 OK\nurl: http://127.0.0.1:PORT/\ncontent-type: text/plain\n\nh\u00e4"
    assert [one.goal for one in book.decisions] == ["the-goal"]
    names_sent = [line.split(":")[0].lower() for line in heads[0].split("\r\n")[1:]]
    assert sorted(names_sent) == ["accept", "accept-encoding", "connection", "host", "user-agent"]
    assert "identity" in heads[0]


async def test_an_error_of_the_server_is_an_answer() -> None:
    """The tool did what it was asked; what the server said is for the model to read."""
    text, _, _ = await fetched(lambda head: response(b"gone", "404 Not Found"))
    assert text.startswith("HTTP 404 Not Found\n")
    assert text.endswith("\n\ngone")


async def test_a_post_sends_its_body() -> None:
    """With its type, and as UTF-8."""
    book = Book()
    async with open_site(book) as site:
        url = f"http://127.0.0.1:{site.port}/"
        await fetch(book.guard("127.0.0.0/8"), url, method="POST", body="{}", content_type="application/json")
        assert site.bodies == [b"{}"]
        assert "application/json" in site.heads[0]


async def test_head_shows_no_body() -> None:
    """Nor waits for one."""
    text, _, heads = await fetched(
        lambda head: b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", method="HEAD"
    )
    assert text == "HTTP 200 OK\nurl: http://127.0.0.1:PORT/\n\n"
    assert heads[0].startswith("HEAD / ")


@pytest.mark.parametrize(
    "arguments",
    [
        {"method": "DELETE"},
        {"method": "GET", "body": "x"},
        {"headers": {"Authorization": "x"}},
        {"method": "POST", "content_type": "a\r\nX: y"},
        {"method": "POST", "content_type": ""},
        {"timeout": 1},
    ],
)
async def test_arguments_that_do_not_fit_are_told_to_the_model(arguments: dict[str, Any]) -> None:
    """And nothing is asked of anybody."""
    book = Book()
    with pytest.raises(ToolFailed):
        await fetch(book.guard("public"), "http://8.8.8.8/", **arguments)
    assert book.decisions == []


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://169.254.169.254/", r"refused: no connection to 169\.254\.169\.254:80: link-local address"),
        ("http://[::1]:99/", r"refused: no connection to \[::1\]:99: loopback address"),
        ("ftp://8.8.8.8/", "only http:// and https:// addresses"),
        ("ws://8.8.8.8/", "only http:// and https:// addresses"),
        ("wss://8.8.8.8/", "only http:// and https:// addresses"),
        ("8.8.8.8", "only http:// and https:// addresses"),
        ("", "only http:// and https:// addresses"),
        ("http://[::1/", "the fetch failed: "),
        ("http://a.example/", r"the fetch failed: no connection to a\.example:80: Name or service not known"),
        ("http://" + "a" * 5000, "url"),
    ],
)
async def test_what_cannot_be_fetched_is_told_to_the_model(url: str, why: str) -> None:
    """In one sentence, with the policy's reason where the policy refused it."""
    with names(), pytest.raises(ToolFailed, match=why) as caught:
        await fetch(Book().guard("public"), url)
    assert len(str(caught.value).splitlines()) == 1
    if "refused" in why:
        assert isinstance(caught.value.__cause__, EgressDenied)


async def test_redirects_are_followed_and_each_is_decided_on() -> None:
    """The final address is shown; one that leads where it may not ends the fetch on the record."""
    text, book, _ = await fetched(
        lambda head: (
            response(b"there") if "/there" in head else response(b"", "302 Found", "Location: /there")
        )
    )
    assert "url: http://127.0.0.1:PORT/there\n" in text
    assert len(book.decisions) == 1
    with pytest.raises(ToolFailed, match="refused: no connection to 10"):
        await fetched(lambda head: response(b"", "302 Found", "Location: http://10.0.0.1/"))
    with pytest.raises(ToolFailed, match="more than 5 redirects"):
        await fetched(lambda head: response(b"", "302 Found", "Location: /again"))
    with pytest.raises(ToolFailed, match="only http"):
        await fetched(lambda head: response(b"", "302 Found", "Location: file:///etc/passwd"))


async def test_a_body_is_cut_at_the_limit() -> None:
    """However much comes, only the beginning is read, and the model is told."""
    endless = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"x" * (MAX_BODY_BYTES + 100_000)
    text, _, _ = await fetched(lambda head: endless)
    assert text.endswith(
        f"(only the first {MAX_BODY_BYTES} bytes of the body are shown)\n\n" + "x" * MAX_BODY_BYTES
    )


@pytest.mark.parametrize(
    ("kind", "data", "shown"),
    [
        ("text/html", "\u00fc".encode(), "\u00fc"),
        ("text/html; charset=utf-8", b"\xff", "\ufffd"),
        ("text/html; charset=ISO-8859-1", b"\xfc", "\u00fc"),
        ('text/html; charset="shift_jis"', b"\x82\xa0", "\u3042"),
        ("text/html; charset=utf-16le", b"a\0", "a"),
        ("text/html; charset=punycode", b"a-b", "a-b"),
        ("text/html; charset=iso-8859-12", b"a", "a"),
        ("text/html; charset=utf-8-sig", b"a", "a"),
        ("image/png", b"\x89PNG\0", "(the body is no text: 5 bytes with SHA-256 "),
    ],
)
async def test_text_is_decoded_as_it_says_or_as_utf_8(kind: str, data: bytes, shown: str) -> None:
    """Nothing that a server sends breaks the tool; what is no text is described."""
    text, _, _ = await fetched(lambda head: response(data, "200 OK", f"Content-Type: {kind}"))
    assert text.partition("\n\n")[2].startswith(shown)


async def test_nothing_is_inflated() -> None:
    """A server that compresses unasked cannot make a small answer a large one."""
    bomb = gzip.compress(b"x" * 1000)
    text, _, _ = await fetched(lambda head: response(bomb, "200 OK", "Content-Encoding: gzip"))
    assert text.endswith(
        "(the body came compressed as 'gzip' although that was not asked for, and is not shown)"
    )


async def test_a_server_that_never_ends_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    """One time limit holds for the whole, however steadily bytes come."""

    async def drip(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")
        try:
            while True:
                await trio.sleep(1)
                await stream.send_all(b".")
        except trio.BrokenResourceError:
            return

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, drip, 0)
        port = listeners[0].socket.getsockname()[1]
        with pytest.raises(ToolFailed, match="the fetch did not end within 30 seconds"):
            await fetch(Book().guard("127.0.0.0/8"), f"http://127.0.0.1:{port}/")
        nursery.cancel_scope.cancel()


def test_the_tool_is_trusted_and_not_run_twice() -> None:
    """It may POST, so a call that a crash interrupted is not simply repeated."""
    tool = http_fetch(Book().guard())
    assert (tool.trust, tool.idempotent) == ("trusted", False)
    assert set(json.loads(tool.spec.input_schema)["properties"]) == {"url", "method", "body", "content_type"}
