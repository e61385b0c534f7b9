"""Lets a vendor's official client carry our requests, over the HTTP client that it is handed.

What is asked and what is made of the answer stay ours: the body's bytes go out as they are, and the answer's bytes come back as
they came, so that both ways of asking keep the same promises. An official client is never given the key, since it logs what it
is given, and what it reads from the environment by itself is not sent. The official clients import asyncio and anyio, and run on
trio all the same; they are imported only where a model of theirs is opened.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

import httpx2

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.endpoint import Endpoint
from affidavit.actors.models.exchange import beginning

NO_KEY: Final = "none"
"""What an official client is given for a key, since it refuses to begin with none. It is never sent."""
# The official clients say of themselves what they are, and nothing of who asks.
_OWN_PREFIX: Final = "x-stainless-"
_PASSED_ON: Final = frozenset({
    "accept", "accept-encoding", "anthropic-version", "connection", "content-length", "content-type", "host",
    "idempotency-key", "user-agent",
})  # fmt: skip


class Sdk(Protocol):
    """What both vendors' clients have in common."""

    @property
    def post(self) -> Callable[..., Awaitable[Any]]:
        """Sends a request."""
        ...


@dataclass(frozen=True, slots=True)
class SdkKinds:
    """What a carrier has to know of one vendor's package.

    Attributes:
        stream: Its class of streamed answers.
        refused: What it raises for an answer that is no success.
        unreachable: What it raises for no answer, with the reason as its cause.
    """

    stream: object
    refused: type[Exception]
    unreachable: type[Exception]


@final
class SdkCarrier:
    """Carries requests by an official client; see `exchange.Carrier`."""

    def __init__(self, sdk: Sdk, kinds: SdkKinds) -> None:
        """Bind to one official client.

        Args:
            sdk: The client, made without retries, over a `client_of_sdk`.
            kinds: What its package calls things.
        """
        self._sdk = sdk
        self._kinds = kinds

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        content: bytes,
        headers: Mapping[str, str],
        timeout: httpx2.Timeout,  # noqa: ASYNC109  # the client's own kinds of limits, and no scope
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request, and lend the answer before its body is read.

        Raises:
            httpx2.RequestError: There is no answer.
            EgressDenied: The guard lets no connection through.

        Cancellation: the connection is closed at once.
        """
        if method != "POST":
            raise RuntimeError(f"models are asked by POST, not {method}")
        # The official clients log the headers that they are asked to send.
        keyless = {name: value for name, value in headers.items() if name.lower() in _PASSED_ON}
        try:
            answer = await self._sdk.post(
                url,
                cast_to=object,
                content=content,
                options={"headers": keyless, "timeout": timeout},
                stream=True,
                stream_cls=self._kinds.stream,
            )
        except self._kinds.refused as error:
            yield _read_again(error)
            return
        except self._kinds.unreachable as error:
            if isinstance(error.__cause__, Exception):
                raise error.__cause__ from None
            raise
        try:
            yield answer.response
        finally:
            await answer.response.aclose()


@contextmanager
def making_sdk(whose: str, extra: str) -> Iterator[None]:
    """Say in one sentence that an official client cannot be made, as one of another age than ours expects it.

    Args:
        whose: The vendor's name, as in a sentence.
        extra: The extra that installs one which can.

    Raises:
        ConfigurationError: It could not be made.
    """
    try:
        yield
    except Exception as error:
        raise ConfigurationError(
            f"the official client of {whose} that is installed cannot be used: pip install --upgrade 'affidavit[{extra}]'"
        ) from error


def client_of_sdk(client: httpx2.AsyncClient, endpoint: Endpoint, error_bytes: int) -> httpx2.AsyncClient:
    """Return the client to hand to an official client; the caller closes it, and the one below after it.

    Args:
        client: Ours, by which everything goes out.
        endpoint: Whose key each request is signed with.
        error_bytes: How much may be read of an answer that is no success. An official client would read all of it.
    """
    door = _Door(client, endpoint.key_headers, error_bytes)
    return httpx2.AsyncClient(transport=door, timeout=None, trust_env=False, follow_redirects=False)


@final
class _Door(httpx2.AsyncBaseTransport):
    """Stands between an official client and ours: signs, lets out no header that nobody here chose, and in no endless error."""

    def __init__(self, client: httpx2.AsyncClient, key_headers: Mapping[str, str], error_bytes: int) -> None:
        self._client = client
        self._key_headers = key_headers
        self._error_bytes = error_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        for name in list(request.headers):
            if name not in _PASSED_ON and not name.startswith(_OWN_PREFIX):
                del request.headers[name]
        request.headers.update(self._key_headers)
        answer = await self._client.send(request, stream=True, follow_redirects=False)
        if answer.is_success:
            return answer
        try:
            start = await beginning(answer, self._error_bytes)
        finally:
            await answer.aclose()
        return _refusal(answer, start)


def _read_again(error: Exception) -> httpx2.Response:
    """Return the answer that was no success, as it was before the official client read its body."""
    answer: httpx2.Response = getattr(error, "response")  # noqa: B009  # each package has a type of its own
    return _refusal(answer, answer.content)


def _refusal(answer: httpx2.Response, start: bytes) -> httpx2.Response:
    # The beginning of a body is no longer what its length and its encoding say.
    headers = [
        (name, value)
        for name, value in answer.headers.multi_items()
        if name not in {"content-length", "content-encoding", "transfer-encoding"}
    ]
    return httpx2.Response(
        answer.status_code, headers=headers, stream=httpx2.ByteStream(start), request=answer.request
    )
