"""Reads the head of a request to the proxy, and of a response, strictly: what two readers could read differently is refused.

Pure: bytes in, a value or `BadHead` out. It forwards nothing that speaks of the connection itself (RFC 9110, 7.6.1), and lets no
message through whose length is in doubt (RFC 9112, 6.3 and 11.2), since that is how a second request is smuggled behind a first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from affidavit.actors.netguard.hosts import BadHost, read_host

MAX_HEADERS: Final = 100
MAX_BODY: Final = 1 << 40
HTTP_PORT: Final = 80
HTTPS_PORT: Final = 443

_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST: Final = re.compile(rb"(" + _TOKEN + rb") ([!-~]+) HTTP/1\.([01])\Z")
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [\t -~\x80-\xff]*)?\Z")
_HEADER: Final = re.compile(
    rb"(" + _TOKEN + rb"):[ \t]*((?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?)[ \t]*\Z"
)
_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#]+)(?::([0-9]{1,5}))?\Z")
_LENGTH: Final = re.compile(rb"[0-9]{1,13}\Z")
_OF_THE_CONNECTION: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"upgrade",
    }
)
# Named in Connection they would be taken off the message, which they frame or address.
_NEVER_OF_THE_CONNECTION: Final = frozenset({b"content-length", b"host", b"transfer-encoding"})
_BODILESS: Final = frozenset({204, 304})

Headers = tuple[tuple[bytes, bytes], ...]


class BadHead(ValueError):
    """The head cannot be used; the message says why, fit for the body of a response."""


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request to the proxy.

    Attributes:
        method: As written.
        host: The destination's host, as written.
        port: Its port.
        path: What to ask the destination for; empty for CONNECT.
        headers: All of them, names in lower case.
        length: The body's length in bytes, or None where it comes in chunks.
    """

    method: bytes
    host: str
    port: int
    path: bytes
    headers: Headers
    length: int | None

    @property
    def is_tunnel(self) -> bool:
        """Whether it asks for a tunnel."""
        return self.method == b"CONNECT"

    def credential(self) -> bytes:
        """Return what the client sent as Proxy-Authorization; empty for none, and for more than one."""
        found = _values(self.headers, b"proxy-authorization")
        return found[0] if len(found) == 1 else b""

    def forwarded(self) -> bytes:
        """Return the head as the destination gets it: for one request on a connection of its own."""
        lines = [self.method + b" " + self.path + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in _end_to_end(self.headers)]
        if not _values(self.headers, b"host"):
            lines.append(b"host: " + _authority_text(self.host, self.port))
        return b"\r\n".join([*lines, b"connection: close", b"", b""])


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """A server's response.

    Attributes:
        status: The status code.
        line: The status line.
        headers: All of them, names in lower case.
        length: The body's length, or None where only the body's own form or its end tells.
        chunked: Whether it comes in chunks, and in no other coding.
    """

    status: int
    line: bytes
    headers: Headers
    length: int | None
    chunked: bool = False

    @property
    def is_interim(self) -> bool:
        """Whether another response follows."""
        return self.status < 200  # noqa: PLR2004  # RFC 9110, 15.2

    def forwarded(self) -> bytes:
        """Return the head as the client gets it: the connection ends with this response."""
        lines = [self.line, *(name + b": " + value for name, value in _end_to_end(self.headers))]
        if not self.is_interim:
            lines.append(b"connection: close")
        return b"\r\n".join([*lines, b"", b""])


def read_request(head: bytes) -> RequestHead:
    """Read a request's head.

    Args:
        head: All bytes up to and without the empty line.

    Raises:
        BadHead: It is not one that every reader reads in the same way, or not one for a proxy.
    """
    line, *rest = head.split(b"\r\n")
    found = _REQUEST.match(line)
    if found is None:
        raise BadHead("the request line is malformed")
    method, target, minor = found.groups()
    headers = _headers(rest)
    if method == b"CONNECT":
        host, port = _authority(target.decode("ascii"), None)
        _same_host(headers, host, port, HTTPS_PORT)
        if _values(headers, b"content-length") or _values(headers, b"transfer-encoding"):
            raise BadHead("CONNECT has no body")
        return RequestHead(method, host, port, b"", headers, 0)
    host, port, path = _absolute(target.decode("ascii"))
    hosts = _same_host(headers, host, port, HTTP_PORT)
    if minor == b"1" and hosts == 0:
        raise BadHead("the Host header is missing")
    return RequestHead(method, host, port, path, headers, _body_length(headers, minor))


def read_response(head: bytes, method: bytes) -> ResponseHead:
    """Read a response's head.

    Args:
        head: All bytes up to and without the empty line.
        method: The request's method.

    Raises:
        BadHead: It is malformed, or changes the protocol, which was not asked for.
    """
    line, *rest = head.split(b"\r\n")
    found = _STATUS.match(line)
    if found is None:
        raise BadHead("the server's status line is malformed")
    headers = _headers(rest)
    status = int(found[1])
    if status == 101:  # noqa: PLR2004  # RFC 9110, 15.2.2
        raise BadHead("the server changed the protocol unasked")
    if method == b"HEAD" or status in _BODILESS:
        return ResponseHead(status, line, headers, 0)
    codings = _values(headers, b"transfer-encoding")
    lengths = _values(headers, b"content-length")
    if len(lengths) > 1 or (lengths and (codings or not _LENGTH.match(lengths[0]))):
        raise BadHead("the length of the server's response is in doubt")
    length = int(lengths[0]) if lengths else None
    return ResponseHead(status, line, headers, length, chunked=codings == (b"chunked",))


def _headers(lines: list[bytes]) -> Headers:
    if len(lines) > MAX_HEADERS:
        raise BadHead(f"there are more than {MAX_HEADERS} headers")
    found = [_HEADER.match(line) for line in lines]
    # A line that begins with a space (obs-fold), a space before the colon, a lone CR or LF and a zero byte all fail the pattern.
    if not all(found):
        raise BadHead("a header is malformed")
    headers = tuple((match[1].lower(), match[2]) for match in found if match is not None)
    if any(option in _NEVER_OF_THE_CONNECTION for option in _options(headers)):
        raise BadHead("the Connection header names a header that frames the message")
    return headers


def _values(headers: Headers, name: bytes) -> tuple[bytes, ...]:
    return tuple(value for header, value in headers if header == name)


def _options(headers: Headers) -> frozenset[bytes]:
    listed = b",".join(_values(headers, b"connection")).lower().split(b",")
    return frozenset(option.strip(b" \t") for option in listed)


def _end_to_end(headers: Headers) -> Headers:
    dropped = _OF_THE_CONNECTION | _options(headers)
    return tuple((name, value) for name, value in headers if name not in dropped)


def _body_length(headers: Headers, minor: bytes) -> int | None:
    lengths, codings = _values(headers, b"content-length"), _values(headers, b"transfer-encoding")
    if len(lengths) > 1 or (lengths and codings):
        raise BadHead("the length of the body is in doubt")
    if codings:
        if codings != (b"chunked",) or minor != b"1":
            raise BadHead("chunked is the only transfer coding, from HTTP/1.1 on")
        return None
    if not lengths:
        return 0
    if not _LENGTH.match(lengths[0]) or int(lengths[0]) > MAX_BODY:
        raise BadHead("the Content-Length header is malformed")
    return int(lengths[0])


def _absolute(target: str) -> tuple[str, int, bytes]:
    scheme, mark, rest = target.partition("://")
    if not mark or scheme.lower() != "http":
        raise BadHead("ask a proxy for http://host/path, or with CONNECT for host:port")
    end = next((at for at, letter in enumerate(rest) if letter in "/?#"), len(rest))
    path = rest[end:]
    if "#" in path:
        raise BadHead("a request has no fragment")
    host, port = _authority(rest[:end], HTTP_PORT)
    return host, port, (path if path.startswith("/") else f"/{path}").encode("ascii")


def _authority(text: str, default: int | None) -> tuple[str, int]:
    found = _AUTHORITY.match(text)
    digits = found[2] if found else None
    if found is None or (digits is None and default is None):
        raise BadHead("the destination must be a host with a port, without a user")
    return found[1], int(digits) if digits is not None else default or 0


def _same_host(headers: Headers, host: str, port: int, default: int) -> int:
    """Return how many Host headers there are, none or one that names the request's own destination."""
    hosts = _values(headers, b"host")
    if len(hosts) > 1:
        raise BadHead("there is more than one Host header")
    for value in hosts:
        named, at = _authority(value.decode("latin-1"), default)
        if (_plain(named), at) != (_plain(host), port):
            raise BadHead("the Host header names another destination than the request")
    return len(hosts)


def _plain(host: str) -> str:
    try:
        return read_host(host).name
    except BadHost:
        # Left to the guard, which refuses it on the record.
        return host.lower()


def _authority_text(host: str, port: int) -> bytes:
    return (host if port == HTTP_PORT else f"{host}:{port}").encode("ascii")
