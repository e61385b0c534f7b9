"""The proxy against clients that mean harm: strangers, smuggled requests, heads without end. None reaches a server."""

from __future__ import annotations

import base64

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.netguard.proxy import open_proxy
from affidavit.actors.netguard.proxy_head import BadHead, RequestHead, read_request, read_response
from tests.actors.netguard.netkit import Book, authorization, exchange, open_site


@pytest.mark.parametrize(
    "credential",
    [
        "",
        "Proxy-Authorization: Basic\r\n",
        "Proxy-Authorization: Basic {wrong}\r\n",
        "Proxy-Authorization: Bearer {token}\r\n",
        "Proxy-Authorization: Basic {token}\r\n",
        "Authorization: Basic {right}\r\n",
        "Proxy-Authorization: Basic {right}x\r\n",
        "Proxy-Authorization: Basic {right}\r\nProxy-Authorization: Basic {wrong}\r\n",
    ],
)
async def test_a_stranger_is_told_nothing_and_reaches_nothing(credential: str) -> None:
    """Another program on the machine that finds the port has no use of it, whatever the call may reach, and leaves no record."""
    book = Book()
    async with open_site(book) as site, open_proxy(book.guard("127.0.0.0/8")) as proxy:
        place = f"127.0.0.1:{site.port}"
        right = base64.b64encode(f"affidavit:{proxy.token}".encode()).decode()
        wrong = base64.b64encode(b"affidavit:guess").decode()
        line = credential.format(right=right, wrong=wrong, token=proxy.token)
        for start in (f"CONNECT {place}", f"GET http://{place}/"):
            found = await exchange(proxy.port, f"{start} HTTP/1.1\r\nHost: {place}\r\n{line}\r\n")
            assert found.startswith(b"HTTP/1.1 407 Proxy Authentication Required\r\n")
            assert b'Proxy-Authenticate: Basic realm="affidavit"' in found
    assert (book.decisions, book.accepted) == ([], [])


async def test_each_proxy_has_a_credential_of_its_own() -> None:
    """What one call learnt is of no use with another call's proxy."""
    guard = Book().guard()
    async with open_proxy(guard) as one, open_proxy(guard) as two:
        assert one.token != two.token
        assert len(one.token) >= 32
        request = f"CONNECT a.example:443 HTTP/1.1\r\n{authorization(one.url)}\r\n"
        assert (await exchange(two.port, request))[9:12] == b"407"


HOST = "Host: 127.0.0.1:{port}"
LINE = "GET http://127.0.0.1:{port}/ HTTP/1.1"

MALFORMED = {
    "a length and chunks": f"POST http://127.0.0.1:{{port}}/ HTTP/1.1|{HOST}|Content-Length: 4|Transfer-Encoding: chunked",
    "two lengths": f"POST http://127.0.0.1:{{port}}/ HTTP/1.1|{HOST}|Content-Length: 4|Content-Length: 5",
    "the same length twice": f"POST http://127.0.0.1:{{port}}/ HTTP/1.1|{HOST}|Content-Length: 4|Content-Length: 4",
    "a list of lengths": f"{LINE}|{HOST}|Content-Length: 4, 4",
    "a signed length": f"{LINE}|{HOST}|Content-Length: +4",
    "a hexadecimal length": f"{LINE}|{HOST}|Content-Length: 0x4",
    "a length too large": f"{LINE}|{HOST}|Content-Length: 99999999999999999999",
    "an empty length": f"{LINE}|{HOST}|Content-Length: ",
    "another coding": f"{LINE}|{HOST}|Transfer-Encoding: gzip, chunked",
    "chunks twice": f"{LINE}|{HOST}|Transfer-Encoding: chunked|Transfer-Encoding: chunked",
    "a coding with something behind": f"{LINE}|{HOST}|Transfer-Encoding: chunked;x",
    "a coding in capitals": f"{LINE}|{HOST}|Transfer-Encoding: Chunked",
    "chunks in HTTP/1.0": f"GET http://127.0.0.1:{{port}}/ HTTP/1.0|{HOST}|Transfer-Encoding: chunked",
    "a folded header": f"{LINE}|{HOST}|X: 1| 2",
    "a fold at once": f"{LINE}| X: 1|{HOST}",
    "a space before the colon": f"{LINE}|{HOST}|Content-Length : 4",
    "a header without a name": f"{LINE}|{HOST}|: 4",
    "a header without a colon": f"{LINE}|{HOST}|X",
    "a lone line feed": f"{LINE}|{HOST}\nX: 1",
    "a lone carriage return": f"{LINE}|{HOST}|X: 1\rY: 2",
    "a zero byte": f"{LINE}|{HOST}|X: a\0b",
    "no host": LINE,
    "two hosts": f"{LINE}|{HOST}|{HOST}",
    "another host": f"{LINE}|Host: 127.0.0.2:{{port}}",
    "the host on another port": f"{LINE}|Host: 127.0.0.1",
    "a host with a user": f"{LINE}|Host: x@127.0.0.1:{{port}}",
    "an empty host": f"{LINE}|Host: ",
    "a host list": f"{LINE}|Host: 127.0.0.1:{{port}}, 127.0.0.2",
    "Connection names Host": f"{LINE}|{HOST}|Connection: host",
    "Connection names the length": f"{LINE}|{HOST}|Connection: close, Content-Length",
    "origin form": f"GET / HTTP/1.1|{HOST}",
    "asterisk form": f"OPTIONS * HTTP/1.1|{HOST}",
    "authority form without CONNECT": f"GET 127.0.0.1:{{port}} HTTP/1.1|{HOST}",
    "https without a tunnel": f"GET https://127.0.0.1:{{port}}/ HTTP/1.1|{HOST}",
    "another scheme": f"GET ftp://127.0.0.1:{{port}}/ HTTP/1.1|{HOST}",
    "a file": f"GET file:///etc/passwd HTTP/1.1|{HOST}",
    "a user in the address": f"GET http://u:p@127.0.0.1:{{port}}/ HTTP/1.1|{HOST}",
    "a fragment": f"GET http://127.0.0.1:{{port}}/#x HTTP/1.1|{HOST}",
    "no destination": f"GET http:/// HTTP/1.1|{HOST}",
    "HTTP/2": f"GET http://127.0.0.1:{{port}}/ HTTP/2.0|{HOST}",
    "HTTP/0.9": "GET http://127.0.0.1:{port}/",
    "two spaces": f"GET  http://127.0.0.1:{{port}}/ HTTP/1.1|{HOST}",
    "a tab": f"GET\thttp://127.0.0.1:{{port}}/ HTTP/1.1|{HOST}",
    "something behind the version": f"{LINE} x|{HOST}",
    "a tunnel without a port": "CONNECT 127.0.0.1 HTTP/1.1",
    "a tunnel to an address with a scheme": "CONNECT http://127.0.0.1:{port} HTTP/1.1",
    "a tunnel with a path": "CONNECT 127.0.0.1:{port}/ HTTP/1.1",
    "a tunnel with a body": "CONNECT 127.0.0.1:{port} HTTP/1.1|Content-Length: 4",
    "a tunnel with chunks": "CONNECT 127.0.0.1:{port} HTTP/1.1|Transfer-Encoding: chunked",
    "a tunnel for another host": "CONNECT 127.0.0.1:{port} HTTP/1.1|Host: 127.0.0.2:{port}",
    "a hundred headers too many": f"{LINE}|{HOST}" + "|X: 1" * 100,
    "a head without end": f"{LINE}|{HOST}|X: {'x' * 40000}",
}


@pytest.mark.parametrize("head", MALFORMED.values(), ids=MALFORMED)
async def test_a_request_in_doubt_is_refused_before_anybody_is_asked(head: str) -> None:
    """What two readers could read differently is a bad request: no decision, no connection."""
    book = Book()
    async with open_site(book) as site, open_proxy(book.guard("127.0.0.0/8")) as proxy:
        lines = head.format(port=site.port).replace("|", "\r\n")
        request = f"{lines}\r\n{authorization(proxy.url)}\r\nbody"
        found = await exchange(proxy.port, request)
        assert found.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert (book.decisions, book.accepted) == ([], [])


@pytest.mark.parametrize(
    "body",
    [
        "x\r\n",
        "-1\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5 \r\nhello",
        "ffffffffffffffff\r\n",
        ";\r\n",
        "\r\n",
        "5" * 2000,
        "0\r\n" + "X: 1\r\n" * 101,
    ],
)
async def test_a_malformed_chunk_is_never_handed_on_as_a_whole_body(body: str) -> None:
    """The server sees no end of the body, so it answers nothing, and the client hears why."""
    book = Book()
    async with open_site(book) as site, open_proxy(book.guard("127.0.0.0/8")) as proxy:
        place = f"127.0.0.1:{site.port}"
        head = f"POST http://{place}/ HTTP/1.1\r\nHost: {place}\r\nTransfer-Encoding: chunked\r\n"
        found = await exchange(proxy.port, f"{head}{authorization(proxy.url)}\r\n{body}")
        assert found.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert site.bodies == []


async def test_a_body_that_breaks_off_is_not_handed_on_as_a_whole_one() -> None:
    """A client that leaves in the middle of its body leaves the server without an end too."""
    book = Book()
    async with open_site(book) as site, open_proxy(book.guard("127.0.0.0/8")) as proxy:
        place = f"127.0.0.1:{site.port}"
        async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as stream:
            head = f"POST http://{place}/ HTTP/1.1\r\nHost: {place}\r\nContent-Length: 10\r\n"
            await stream.send_all(f"{head}{authorization(proxy.url)}\r\nhalf".encode())
            await stream.send_eof()
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert site.bodies == []


async def test_the_proxy_is_no_way_to_the_proxy() -> None:
    """Asked for its own address, a proxy treats it as any other: loopback is refused unless a rule opens it."""
    book = Book()
    async with open_proxy(book.guard("public")) as proxy:
        request = f"CONNECT 127.0.0.1:{proxy.port} HTTP/1.1\r\n{authorization(proxy.url)}\r\n"
        assert (await exchange(proxy.port, request))[9:12] == b"403"
    assert len(book.refused) == 1


async def test_a_client_that_leaves_harms_nobody() -> None:
    """Connections that open and close, at once or in the middle of a head, leave the proxy serving."""
    book = Book()
    async with open_site(book) as site, open_proxy(book.guard("127.0.0.0/8")) as proxy:
        for start in (b"", b"GET", b"CONNECT 127.0.0.1"):
            async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as stream:
                await stream.send_all(start)
        place = f"127.0.0.1:{site.port}"
        request = f"GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n{authorization(proxy.url)}\r\n"
        assert (await exchange(proxy.port, request)).endswith(b"reached")


@pytest.mark.parametrize(
    ("head", "host", "port", "path"),
    [
        (b"CONNECT a.example:443 HTTP/1.0", "a.example", 443, b""),
        (b"CONNECT [::1]:443 HTTP/1.1\r\nHost: [0:0::1]", "[::1]", 443, b""),
        (b"GET http://a.example HTTP/1.1\r\nHost: A.example.", "a.example", 80, b"/"),
        (b"GET HTTP://a.example?x=1 HTTP/1.1\r\nHost: a.example:80", "a.example", 80, b"/?x=1"),
        (b"GET http://127.1:8080/p HTTP/1.1\r\nHost: 127.0.0.1:8080", "127.1", 8080, b"/p"),
        (b"GET http://a.example/ HTTP/1.0", "a.example", 80, b"/"),
    ],
)
def test_a_proper_request_is_read(head: bytes, host: str, port: int, path: bytes) -> None:
    """Hosts are compared by what they mean and not by how they are written."""
    found = read_request(head)
    assert (found.host, found.port, found.path) == (host, port, path)
    assert found.is_tunnel is (path == b"")


def test_a_request_without_a_host_gets_one() -> None:
    """An HTTP/1.0 request goes on as HTTP/1.1, which needs the header."""
    assert read_request(b"GET http://a.example/ HTTP/1.0").forwarded() == (
        b"GET / HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n"
    )


@given(
    st.one_of(
        st.binary(max_size=200),
        st.lists(
            st.sampled_from(
                [
                    b"GET ",
                    b"http://a.example/",
                    b" HTTP/1.1",
                    b"\r\n",
                    b"Host: a.example",
                    b"Content-Length: 3",
                    b"\n",
                    b" ",
                    b"Transfer-Encoding: chunked",
                    b"CONNECT ",
                    b"a.example:443",
                    b":",
                    b"\0",
                    b"Connection: host",
                ]
            ),
            max_size=12,
        ).map(b"".join),
    )
)
def test_reading_a_head_is_total(head: bytes) -> None:
    """Any bytes are a request with one reading, or a `BadHead`; what is forwarded reads as the same request again."""
    try:
        found: RequestHead | None = read_request(head)
    except BadHead:
        found = None
    if found is not None and not found.is_tunnel:
        lines = found.forwarded().removesuffix(b"\r\n\r\n").split(b"\r\n")
        assert lines[0] == found.method + b" " + found.path + b" HTTP/1.1"
        again = read_request(
            b"\r\n".join(
                [
                    found.method + f" http://{found.host}:{found.port}".encode() + found.path + b" HTTP/1.1",
                    *lines[1:],
                ]
            )
        )
        assert (again.host, again.port, again.path, again.length) == (
            found.host,
            found.port,
            found.path,
            found.length,
        )
    try:
        read_response(head, b"GET")
    except BadHead:
        return
