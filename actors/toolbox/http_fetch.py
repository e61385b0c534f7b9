"""`http_fetch`: one HTTP request as a tool, through the guard.

Its trust is `trusted`, and it runs in this process: the code is ours and does one thing; where it may reach is for the policy to
say and not for the model; each connection and each redirect is decided on anew; and what comes back is bounded and handled as
text alone. What a page says is data for the model, as untrusted as any other tool's output. It never sends a header or a
credential that the model did not write, keeps no cookies, and inflates nothing.
"""

from __future__ import annotations

import hashlib
import re
import ssl
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import httpx2
import trio
from pydantic import BaseModel, ConfigDict, Field

from affidavit.actors.errors import ToolFailed
from affidavit.actors.netguard.decision import EgressDenied
from affidavit.actors.netguard.guard import Guard
from affidavit.actors.netguard.http import MAX_REDIRECTS, guarded_client
from affidavit.actors.netguard.scope import current_guard
from affidavit.actors.toolbox.port import Tool
from affidavit.actors.toolbox.typed import TypedTool

FETCH_SECONDS: Final = 30.0
MAX_BODY_BYTES: Final = 128 * 1024
MAX_URL: Final = 4000
MAX_SENT_CHARS: Final = 64 * 1024
_HEADERS: Final = {"Accept-Encoding": "identity", "User-Agent": "affidavit", "Accept": "*/*"}
# Those that pages come in. Others that Python knows are no character sets, or cost more than linear time.
_CHARSET: Final = re.compile(
    r"charset\s*=\s*\"?(utf-?8|utf-?16(?:le|be)?|us-ascii|iso-8859-1?[0-9]|windows-125[0-8]|koi8-[ru]|"
    r"shift_jis|euc-(?:jp|kr)|gb(?:k|2312|18030)|big5)(?![\w.:-])",
    re.IGNORECASE,
)
_SHOWN_HEADERS: Final = ("content-type", "location", "retry-after")


class HttpFetch(BaseModel):
    """Arguments of `http_fetch`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    url: Annotated[str, Field(max_length=MAX_URL, description="An http:// or https:// address.")]
    method: Annotated[Literal["GET", "HEAD", "POST"], Field(description="The request's method.")] = "GET"
    body: Annotated[
        str, Field(max_length=MAX_SENT_CHARS, description="The body of a POST, sent as UTF-8.")
    ] = ""
    content_type: Annotated[
        str, Field(pattern=r"^[!-~][ -~]{0,199}$", description="The Content-Type of the body.")
    ] = "text/plain; charset=utf-8"


def http_fetch(guard: Guard | None = None, *, ssl_context: ssl.SSLContext | None = None) -> Tool:
    """Return the tool.

    Args:
        guard: Decides about its connections and records them; None takes that of the run which calls the tool.
        ssl_context: How servers are verified; None takes the machine's own trusted certificates.
    """

    async def work(arguments: HttpFetch) -> str:
        return await _fetch(guard or current_guard(), ssl_context, arguments)

    return TypedTool(
        "http_fetch",
        f"Fetch a web address and return status, final address and text (at most {MAX_BODY_BYTES // 1024} KiB). "
        f"Follows up to {MAX_REDIRECTS} redirects. Where it may connect to is limited by the run's policy.",
        HttpFetch,
        work,
    )


@dataclass(frozen=True, slots=True)
class _Beginning:
    data: bytes
    whole: bool


async def _fetch(guard: Guard, ssl_context: ssl.SSLContext | None, arguments: HttpFetch) -> str:
    if arguments.body and arguments.method != "POST":
        raise ToolFailed("only a POST has a body")
    try:
        with trio.fail_after(FETCH_SECONDS):
            async with guarded_client(guard, ssl_context=ssl_context, follow_redirects=True) as client:
                return await _ask(client, arguments)
    except EgressDenied as error:
        raise ToolFailed(f"refused: {error}", fault=error.fault, code=error.code) from error
    except httpx2.TooManyRedirects as error:
        raise ToolFailed(f"there were more than {MAX_REDIRECTS} redirects") from error
    except httpx2.UnsupportedProtocol as error:
        raise ToolFailed("only http:// and https:// addresses can be fetched") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ToolFailed(f"the fetch failed: {str(error) or type(error).__name__}") from error
    except trio.TooSlowError as error:
        raise ToolFailed(f"the fetch did not end within {FETCH_SECONDS:g} seconds") from error


async def _ask(client: httpx2.AsyncClient, arguments: HttpFetch) -> str:
    headers = dict(_HEADERS)
    content: bytes | None = None
    if arguments.method == "POST":
        headers["Content-Type"] = arguments.content_type
        content = arguments.body.encode("utf-8", "replace")
    async with client.stream(arguments.method, arguments.url, content=content, headers=headers) as response:
        return _report(response, await _beginning(response))


async def _beginning(response: httpx2.Response) -> _Beginning:
    """Read the body up to the limit.

    The body comes through a chain of generators that only an end or an exception from within finishes, so the loop is never
    left: the next read is cancelled instead.
    """
    body = bytearray()
    with trio.CancelScope() as scope:
        async for part in response.aiter_raw():
            body += part
            if len(body) > MAX_BODY_BYTES:
                scope.cancel(reason="enough of the body was read")
    return _Beginning(bytes(body[:MAX_BODY_BYTES]), whole=len(body) <= MAX_BODY_BYTES)


def _report(response: httpx2.Response, body: _Beginning) -> str:
    lines = [f"HTTP {response.status_code} {response.reason_phrase}".rstrip(), f"url: {response.url}"]
    lines += [f"{name}: {response.headers[name]}" for name in _SHOWN_HEADERS if name in response.headers]
    if not body.whole:
        lines.append(f"(only the first {MAX_BODY_BYTES} bytes of the body are shown)")
    return "\n".join([*lines, "", _text(response, body.data)])


def _text(response: httpx2.Response, data: bytes) -> str:
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if data and coding not in {"", "identity"}:
        return (
            f"(the body came compressed as {coding[:40]!r} although that was not asked for, and is not shown)"
        )
    found = _CHARSET.search(response.headers.get("content-type", ""))
    if found is None and b"\0" in data:
        return f"(the body is no text: {len(data)} bytes with SHA-256 {hashlib.sha256(data).hexdigest()})"
    try:
        return data.decode(found[1] if found else "utf-8", "replace")
    except LookupError:
        # Not every number that the pattern takes is one of a character set.
        return data.decode("utf-8", "replace")
