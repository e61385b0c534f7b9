"""The forward proxy: what a child can do through it, and what it does on the way."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from affidavit.actors.netguard.decision import Decision
from affidavit.actors.netguard.policy import EgressPolicy
from affidavit.actors.netguard.proxy import Proxy, open_proxy
from tests.actors.netguard.netkit import (
    Book,
    Site,
    authorization,
    exchange,
    forward,
    names,
    open_site,
    response,
)

CHILD = """
import sys, urllib.request, urllib.error
try:
    print(urllib.request.urlopen(sys.argv[1], data=sys.argv[2].encode() or None, timeout=20).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


async def child(proxy: Proxy, url: str, body: str = "") -> str:
    """Run a program that knows nothing of us and takes its proxy from the environment, as programs do."""
    done = await trio.run_process(
        [sys.executable, "-c", CHILD, url, body],
        env=proxy.environment,
        capture_stdout=True,
        stderr=subprocess.STDOUT,
    )
    return done.stdout.decode().strip()


async def test_a_child_reaches_what_is_allowed_and_nothing_else() -> None:
    """A program that takes its proxy from the environment is under the same policy and on the same record."""
    book = Book()
    async with open_site(book) as site, open_proxy(book.guard(f"127.0.0.1:{site.port}")) as proxy:
        assert await child(proxy, f"http://127.0.0.1:{site.port}/x") == "reached"
        refused = await child(proxy, f"http://127.0.0.2:{site.port}/x")
        assert refused.startswith(f"403 no connection to 127.0.0.2:{site.port}: loopback address")
    assert book.accepted == [("127.0.0.1", site.port)]
    assert [(one.host, one.allowed, one.goal) for one in book.decisions] == [
        ("127.0.0.1", True, "the-goal"),
        ("127.0.0.2", False, "the-goal"),
    ]


async def test_the_environment_leaves_no_way_round() -> None:
    """Both spellings of each variable, and no host that is excepted."""
    async with open_proxy(Book().guard()) as proxy:
        found = proxy.environment
        assert set(found) == {
            *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
            *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        }
        assert found["http_proxy"] == found["HTTPS_PROXY"] == proxy.url
        assert found["NO_PROXY"] == found["no_proxy"] == ""
        assert proxy.url.endswith(f"@127.0.0.1:{proxy.port}")
        assert proxy.environment_at("10.0.2.2", 3128)["https_proxy"].endswith("@10.0.2.2:3128")
        assert proxy.token not in repr(proxy)


async def test_a_request_goes_on_as_the_child_wrote_it_but_for_what_is_the_connections_own() -> None:
    """Headers of the hop, those that Connection names, and the credential stay behind; the path, the host and the rest go on."""
    book = Book()
    async with open_site(book) as site, open_proxy(book.guard("127.0.0.0/8")) as proxy:
        place = f"127.0.0.1:{site.port}"
        request = forward(
            proxy,
            place,
            "X-One: 1",
            "X-Hop: 2",
            "Connection: keep-alive, X-Hop",
            "Proxy-Connection: keep-alive",
            "TE: trailers",
            "Upgrade: websocket",
            "Keep-Alive: 5",
            path="/a?b=c",
        )
        answer = await exchange(proxy.port, request)
        assert site.heads == [
            f"GET /a?b=c HTTP/1.1\r\nhost: {place}\r\nx-one: 1\r\nconnection: close",
        ]
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [b"HTTP/1.1 200 OK", b"content-length: 7", b"connection: close"]
    assert body == b"reached"


async def test_a_body_goes_on_whole_by_its_length() -> None:
    """All of it and no more: what a client sends behind it is not a second request."""
    book = Book()
    async with open_site(book) as site, open_proxy(book.guard("127.0.0.0/8")) as proxy:
        request = forward(
            proxy,
            f"127.0.0.1:{site.port}",
            "Content-Length: 5",
            method="POST",
            body="hello" + forward(proxy, f"127.0.0.1:{site.port}", path="/smuggled"),
        )
        assert (await exchange(proxy.port, request)).endswith(b"reached")
        assert site.bodies == [b"hello"]
        assert len(site.heads) == 1


async def test_a_body_goes_on_whole_in_chunks() -> None:
    """Chunk by chunk, without extensions and trailers; what follows the last chunk stays behind."""
    book = Book()
    async with open_site(book) as site, open_proxy(book.guard("127.0.0.0/8")) as proxy:
        request = forward(
            proxy,
            f"127.0.0.1:{site.port}",
            "Transfer-Encoding: chunked",
            method="PUT",
            body="5;ext=1\r\nhello\r\n0A\r\n0123456789\r\n0\r\nX-Trailer: 1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        )
        assert (await exchange(proxy.port, request)).endswith(b"reached")
        assert site.bodies == [b"5\r\nhello\r\na\r\n0123456789\r\n"]
        assert len(site.heads) == 1


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            b"3\r\nabc\r\n0\r\n\r\n",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", b""),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", b""),
    ],
)
async def test_a_response_ends_where_it_says(answer: bytes, body: bytes) -> None:
    """The connection to the client is closed with the end of the response, though the server keeps its own open."""
    book = Book()
    async with open_site(book, lambda head: answer) as site, open_proxy(book.guard("127.0.0.0/8")) as proxy:
        found = await exchange(proxy.port, forward(proxy, f"127.0.0.1:{site.port}"))
        assert b"connection: close" in found
        assert found.endswith(b"\r\n\r\n" + body)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"no http\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 1\n\n1",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: 1\r\n\r\n",
        b"HTTP/1.1 999 What\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 40000,
    ],
)
async def test_a_response_in_doubt_is_a_bad_gateway(answer: bytes) -> None:
    """A server's malformed response does not reach the client as if it were one."""
    book = Book()

    async with open_site(book) as site, open_proxy(book.guard("127.0.0.0/8")) as proxy:

        async def handle(stream: trio.SocketStream) -> None:
            await stream.receive_some()
            await stream.send_all(answer)
            await stream.aclose()

        site.handle = handle  # type: ignore[method-assign]  # a server of another kind
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(trio.serve_tcp, handle, 0)
            port = listeners[0].socket.getsockname()[1]
            found = await exchange(proxy.port, forward(proxy, f"127.0.0.1:{port}"))
            nursery.cancel_scope.cancel()
    assert found.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")


async def test_a_tunnel_carries_bytes_both_ways_until_both_have_ended() -> None:
    """What is sent right behind the request is carried too, and an end on one side is told to the other."""
    book = Book()

    async def echo(stream: trio.SocketStream) -> None:
        async for data in stream:
            await stream.send_all(data.upper())
        await stream.send_all(b"!")

    async with trio.open_nursery() as nursery, open_proxy(book.guard("127.0.0.0/8")) as proxy:
        listeners = await nursery.start(trio.serve_tcp, echo, 0)
        place = f"127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as stream:
            await stream.send_all(f"CONNECT {place} HTTP/1.1\r\n{authorization(proxy.url)}\r\nearly".encode())
            await stream.send_eof()
            got = b""
            while more := await stream.receive_some():
                got += more
        assert got == b"HTTP/1.1 200 Connection established\r\n\r\nEARLY!"
        nursery.cancel_scope.cancel()


async def test_a_tunnel_does_not_outlive_the_policy() -> None:
    """After the policy changed, the next bytes for the server are refused on the record, and the tunnel is closed."""
    book = Book()
    async with open_site(book) as site:
        guard = book.guard("127.0.0.0/8")
        async with open_proxy(guard) as proxy, await trio.open_tcp_stream("127.0.0.1", proxy.port) as stream:
            place = f"127.0.0.1:{site.port}"
            await stream.send_all(f"CONNECT {place} HTTP/1.1\r\n{authorization(proxy.url)}\r\n".encode())
            await stream.receive_some()
            guard.replace_policy(EgressPolicy())
            await stream.send_all(b"GET /secret HTTP/1.1\r\n\r\n")
            assert await stream.receive_some() == b""
        assert site.heads == []
    assert [one.allowed for one in book.decisions] == [True, False]


async def test_what_comes_back_does_not_outlive_the_policy_either() -> None:
    """Bytes of a server that come after the policy changed are not handed on."""
    book = Book()
    onward = trio.Event()

    async def late(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"early")
        await onward.wait()
        await stream.send_all(b"late")

    guard = book.guard("127.0.0.0/8")
    async with trio.open_nursery() as nursery, open_proxy(guard) as proxy:
        listeners = await nursery.start(trio.serve_tcp, late, 0)
        place = f"127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as stream:
            await stream.send_all(f"CONNECT {place} HTTP/1.1\r\n{authorization(proxy.url)}\r\nhello".encode())
            got = b""
            while not got.endswith(b"early"):
                got += await stream.receive_some()
            guard.replace_policy(EgressPolicy())
            onward.set()
            assert await stream.receive_some() == b""
        nursery.cancel_scope.cancel()
    assert [one.allowed for one in book.decisions] == [True, False]


class SlowBook(Book):
    """A recorder that takes so long that whatever can happen meanwhile does."""

    async def record(self, decision: Decision) -> None:
        """Record once nothing else moves."""
        await trio.testing.wait_all_tasks_blocked(0.05)
        self.decisions.append(decision)


async def test_one_refusal_is_recorded_though_both_directions_meet_it() -> None:
    """A tunnel is one connection, so its end is one decision."""
    book = SlowBook()
    onward = trio.Event()

    async def late(stream: trio.SocketStream) -> None:
        await onward.wait()
        await stream.send_all(b"late")
        await trio.sleep_forever()

    guard = book.guard("127.0.0.0/8")
    async with trio.open_nursery() as nursery, open_proxy(guard) as proxy:
        listeners = await nursery.start(trio.serve_tcp, late, 0)
        place = f"127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as stream:
            await stream.send_all(f"CONNECT {place} HTTP/1.1\r\n{authorization(proxy.url)}\r\n".encode())
            assert b"200" in await stream.receive_some()
            guard.replace_policy(EgressPolicy())
            onward.set()
            await stream.send_all(b"more")
            with suppress(trio.BrokenResourceError):
                assert await stream.receive_some() == b""
        nursery.cancel_scope.cancel()
    assert [one.allowed for one in book.decisions] == [True, False]


async def test_it_listens_on_a_unix_socket_that_a_sandbox_can_be_handed(tmp_path: Path) -> None:
    """Then there is no port; the socket is its owner's alone and is gone with the proxy."""
    path = tmp_path / "proxy"
    book = Book()
    async with open_site(book) as site, open_proxy(book.guard("127.0.0.0/8"), unix_path=path) as proxy:
        assert (proxy.host, proxy.port, path.stat().st_mode & 0o777) == ("", 0, 0o600)
        async with await trio.open_unix_socket(path) as stream:
            await stream.send_all(forward(proxy, f"127.0.0.1:{site.port}").encode())
            answer = b""
            while more := await stream.receive_some():
                answer += more
        assert answer.endswith(b"reached")
        assert book.unexplained == []
    assert not path.exists()


async def test_a_decision_that_cannot_be_recorded_ends_the_call() -> None:
    """The recorder's error comes out of the block as itself, and nobody was contacted."""

    class LogGone(Exception):
        pass

    def full(decision: Decision) -> None:
        raise LogGone

    book = Book(before=full)

    async def call(place: str) -> None:
        async with open_proxy(book.guard("127.0.0.0/8")) as proxy:
            await exchange(proxy.port, forward(proxy, place))
            await trio.sleep_forever()

    async with open_site(book) as site:
        with pytest.raises(LogGone):
            await call(f"127.0.0.1:{site.port}")
    assert book.accepted == []


async def test_the_bodys_own_error_comes_out_as_itself() -> None:
    """A proxy wraps nothing."""
    with pytest.raises(KeyError):
        async with open_proxy(Book().guard()):
            raise KeyError


async def test_a_name_without_an_address_and_a_place_where_nobody_listens_are_bad_gateways() -> None:
    """A failure is told as one, and is no refusal."""
    book = Book()
    async with open_site(Book()) as site:
        port = site.port
    async with open_proxy(book.guard("127.0.0.0/8")) as proxy:
        with names():
            assert (await exchange(proxy.port, forward(proxy, "a.example")))[9:12] == b"502"
        assert (await exchange(proxy.port, forward(proxy, f"127.0.0.1:{port}")))[9:12] == b"502"


async def test_leaving_the_block_closes_every_connection() -> None:
    """Nothing of a call's connections is left when the call has ended."""
    book = Book()
    async with open_site(book, lambda head: response(b"x")) as site:
        async with open_proxy(book.guard("127.0.0.0/8")) as proxy:
            stream = await trio.open_tcp_stream("127.0.0.1", proxy.port)
            place = f"127.0.0.1:{site.port}"
            await stream.send_all(f"CONNECT {place} HTTP/1.1\r\n{authorization(proxy.url)}\r\n".encode())
            await stream.receive_some()
        async with stream:
            assert await stream.receive_some() == b""
        with pytest.raises(OSError, match="failed"):
            await trio.open_tcp_stream("127.0.0.1", proxy.port)


def test_a_site_is_what_the_tests_take_it_for() -> None:
    """A site answers every head with `reached` unless told otherwise."""
    assert Site(Book()).reply("").endswith(b"reached")
