"""Any OpenAI-compatible chat-completions endpoint, its reply read as a stream of events.

One request is one attempt: retrying is its caller's affair. It honours no proxy or certificate setting of
the environment, follows no redirect, and bounds what it reads in time and size.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, final

import httpx2
import trio

from affidavit.actors.errors import ConfigurationError, ModelError
from affidavit.actors.models.chat_errors import refused, reported, unreachable
from affidavit.actors.models.chat_request import request_body
from affidavit.actors.models.chat_stream import Assembly, BadChunk, StreamedFailure
from affidavit.actors.models.endpoint import URL_VARIABLE, Endpoint, read_endpoint
from affidavit.actors.models.port import ModelReply, ModelRequest

CONNECT_SECONDS: Final = 10.0
# Between two fragments; the first one may have to wait until a long conversation is read.
SILENCE_SECONDS: Final = 180.0
TURN_SECONDS: Final = 900.0
END_SECONDS: Final = 2.0
MAX_ERROR_BYTES: Final = 64 * 1024
# No compression, so that what is read is bounded as it arrives.
_HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "text/event-stream",
    "Accept-Encoding": "identity",
}
NO_SETTINGS: Final[Mapping[str, object]] = {}


@final
class OpenAIModel:
    """One model at one endpoint. Made by `open_openai_model`, which owns the client."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        endpoint: Endpoint,
        model: str,
        *,
        name: str,
        digest: bytes,
        settings: Mapping[str, object] = NO_SETTINGS,
        supports_tools: bool = True,
        max_output_tokens: int | None = None,
    ) -> None:
        """Bind a model to a client that its maker closes.

        Args:
            client: The HTTP client.
            endpoint: Where to ask.
            model: The model's name at the endpoint.
            name: The model as the operator named it.
            digest: What makes it this model.
            settings: Further request parameters, such as `temperature`.
            supports_tools: Whether it can ask for tools; tools are not sent to one that cannot.
            max_output_tokens: Lowers every request's own limit to this.
        """
        self._client = client
        self._endpoint = endpoint
        self._model = model
        self._name = name
        self._digest = digest
        self._settings = dict(settings)
        self._supports_tools = supports_tools
        self._most = max_output_tokens
        # The vendor's newer models refuse the old name of the limit; compatible services know the old one
        # only.
        self._limit_key = "max_completion_tokens" if endpoint.is_vendor else "max_tokens"

    @property
    def name(self) -> str:
        """The model as the operator named it."""
        return self._name

    @property
    def digest(self) -> bytes:
        """SHA-256 of what makes it this model."""
        return self._digest

    @property
    def supports_tools(self) -> bool:
        """Whether it can ask for tools."""
        return self._supports_tools

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Run one turn as one request.

        Raises:
            ModelError: Transient for an endpoint that is busy, silent, out of reach or breaks off;
                terminal for a refused key, an unknown model, a refused request, or a reply that is not of
                this protocol.

        Cancellation: the connection is closed at once.
        """
        try:
            with trio.fail_after(TURN_SECONDS):
                return await self._ask(self._body(request))
        except httpx2.RequestError as error:
            raise unreachable(self._endpoint, error) from error
        except BadChunk as error:
            raise ModelError(f"{self._endpoint.where} sent {error}", code="bad_reply") from error
        except StreamedFailure as error:
            raise reported(self._endpoint, self._model, error.error) from error
        except trio.TooSlowError as error:
            what = f"did not end its answer within {TURN_SECONDS:g} seconds"
            raise ModelError(f"{self._endpoint.where} {what}", fault="transient", code="timeout") from error

    def _body(self, request: ModelRequest) -> bytes:
        body = request_body(self._model, request, limit_key=self._limit_key, settings=self._settings)
        if self._most is not None:
            body[self._limit_key] = min(request.max_output_tokens, self._most)
        if not self._supports_tools:
            body.pop("tools", None)
        # Escaped to ASCII, so that text with lone surrogates cannot fail the request.
        return json.dumps(body).encode("ascii")

    async def _ask(self, body: bytes) -> ModelReply:
        headers = dict(_HEADERS)
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        url = f"{self._endpoint.base_url}/chat/completions"
        async with self._client.stream("POST", url, content=body, headers=headers) as response:
            if response.status_code != httpx2.codes.OK:
                start = await _beginning(response)
                raise refused(self._endpoint, self._model, response.status_code, start)
            return await self._read(response)

    async def _read(self, response: httpx2.Response) -> ModelReply:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "text/event-stream":
            what = f"answered with {kind[:60] or 'no type'!r} and not with a stream: is {URL_VARIABLE} right?"
            raise ModelError(f"{self._endpoint.where} {what}", code="bad_reply")
        response.encoding = "utf-8"
        assembly = Assembly()
        await _take_in(response, assembly)
        if not assembly.finished:
            what = "ended its answer in the middle"
            raise ModelError(f"{self._endpoint.where} {what}", fault="transient", code="broken_off")
        return assembly.reply()


@asynccontextmanager
async def open_openai_model(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> AsyncIterator[OpenAIModel]:
    """Open a model at an endpoint; nothing is sent before its first turn.

    Args:
        model: The model's name at the endpoint.
        base_url: The endpoint's address; None reads OPENAI_BASE_URL, else the vendor's.
        api_key: The key; None reads OPENAI_API_KEY.
        transport: How connections are made, for a host that guards them; None makes plain ones.

    Raises:
        ConfigurationError: The model has no name, or the address or key is missing or not usable.

    Closes: all connections, when the block is left.
    """
    if not model:
        raise ConfigurationError("the model has no name: write openai:NAME")
    endpoint = read_endpoint(base_url, api_key)
    identity = json.dumps(["openai", endpoint.base_url, model]).encode("ascii")
    async with new_client(transport) as client:
        yield OpenAIModel(
            client, endpoint, model, name=f"openai:{model}", digest=hashlib.sha256(identity).digest()
        )


def new_client(transport: httpx2.AsyncBaseTransport | None = None) -> httpx2.AsyncClient:
    """Return a client that takes nothing from the environment and follows no redirect."""
    timeout = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
    return httpx2.AsyncClient(transport=transport, timeout=timeout, trust_env=False, follow_redirects=False)


# The client's stream is a chain of generators that only an end or an exception from within finishes. So
# the two functions below never break out of their loops: they cancel the next read, which comes up through
# the whole chain.


async def _take_in(response: httpx2.Response, assembly: Assembly) -> None:
    failure: BadChunk | StreamedFailure | None = None
    with trio.CancelScope() as scope:
        async for event in httpx2.EventSource(response):
            if failure is not None or scope.deadline != math.inf:
                continue
            try:
                assembly.add(event.data)
            except (BadChunk, StreamedFailure) as error:
                failure = error
                scope.cancel(reason="the stream is of no more use")
            if assembly.ended:
                # The body's own end comes at once from most servers and leaves the connection fit for the
                # next turn.
                scope.deadline = trio.current_time() + END_SECONDS
    if failure is not None:
        raise failure


async def _beginning(response: httpx2.Response) -> bytes:
    body = b""
    with trio.CancelScope() as scope:
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_ERROR_BYTES:
                scope.cancel(reason="enough of the error was read")
    return body[:MAX_ERROR_BYTES]
