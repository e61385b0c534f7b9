"""Any OpenAI-compatible chat-completions endpoint, its reply read as a stream of events.

One request is one attempt: retrying is its caller's affair. It honours no proxy or certificate setting of
the environment, follows no redirect, and bounds what it reads in time and size.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import final

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.chat_request import request_body
from affidavit.actors.models.chat_schema import as_turn, response_format, without_tools
from affidavit.actors.models.chat_stream import ChatAssembly
from affidavit.actors.models.endpoint import OPENAI, Endpoint, client_for, find_endpoint
from affidavit.actors.models.exchange import Call, Carrier, exchange
from affidavit.actors.models.limits import DEFAULT_LIMITS, CallLimits
from affidavit.actors.models.parameters import split_name
from affidavit.actors.models.port import NO_PARAMETERS, Delta, ModelReply, ModelRequest


@dataclass(frozen=True, slots=True)
class Profile:
    """What a model is called, and how it is asked.

    Attributes:
        name: The model as the operator named it.
        digest: What makes it this model.
        settings: Further request parameters, such as `temperature`.
        parameters: What is said of them on the record.
        supports_tools: Whether it can ask for tools of its own; tools are not sent to one that cannot.
        constrained: Whether it is held to a schema instead, so that it can all the same; see `chat_schema`.
        max_output_tokens: Lowers every request's own limit to this.
        context_tokens: The most tokens of a request and its answer together; 0 where it is not known.
    """

    name: str
    digest: bytes
    settings: Mapping[str, object] = field(default_factory=lambda: NO_PARAMETERS)
    parameters: Mapping[str, object] = field(default_factory=lambda: NO_PARAMETERS)
    supports_tools: bool = True
    constrained: bool = False
    max_output_tokens: int | None = None
    context_tokens: int = 0


@final
class OpenAIModel:
    """One model at one endpoint. Made by `open_openai_model`, which owns the client."""

    def __init__(
        self,
        client: Carrier,
        endpoint: Endpoint,
        model: str,
        profile: Profile,
        limits: CallLimits = DEFAULT_LIMITS,
    ) -> None:
        """Bind a model to a client that its maker closes.

        Args:
            client: The HTTP client.
            endpoint: Where to ask.
            model: The model's name at the endpoint.
            profile: What it is called, and how it is asked.
            limits: How long a call may take, and how much it may answer with.
        """
        self._client = client
        self._endpoint = endpoint
        self._model = model
        self._profile = profile
        self._limits = limits
        # The vendor's newer models refuse the old name of the limit; compatible services know the old one
        # only.
        self._limit_key = "max_completion_tokens" if endpoint.is_vendor else "max_tokens"

    @property
    def name(self) -> str:
        """The model as the operator named it."""
        return self._profile.name

    @property
    def digest(self) -> bytes:
        """SHA-256 of what makes it this model."""
        return self._profile.digest

    @property
    def supports_tools(self) -> bool:
        """Whether it can ask for tools."""
        return self._profile.supports_tools or self._profile.constrained

    @property
    def parameters(self) -> Mapping[str, object]:
        """The parameters that it is asked with."""
        return self._profile.parameters

    @property
    def context_tokens(self) -> int:
        """The most tokens of a request and its answer together; 0 where it is not known."""
        return self._profile.context_tokens

    @property
    def secrets(self) -> tuple[str, ...]:
        """The endpoint's key."""
        return (self._endpoint.key,) if self._endpoint.key else ()

    async def generate(self, request: ModelRequest) -> ModelReply:
        """Run one turn as one request.

        Raises:
            ModelError: See `exchange`.

        Cancellation: the connection is closed at once.
        """
        profile = self._profile
        constrained = profile.constrained and bool(request.tools)
        asked = without_tools(request) if constrained else request
        settings = dict(profile.settings)
        if constrained:
            settings["response_format"] = response_format(request.tools)
        reply = await self._ask(asked, settings)
        if not constrained:
            return reply
        turn = as_turn(reply)
        if request.on_delta is not None and turn.text:
            request.on_delta(Delta(turn.text))
        return turn

    async def _ask(self, request: ModelRequest, settings: Mapping[str, object]) -> ModelReply:
        body = self._body(request, settings)
        call = Call(
            self._endpoint, self._model, "/chat/completions", self._endpoint.key_headers, body, request.scrub
        )
        return await exchange(self._client, call, ChatAssembly(request.on_delta), self._limits)

    def _body(self, request: ModelRequest, settings: Mapping[str, object]) -> bytes:
        most = self._profile.max_output_tokens or request.max_output_tokens
        asked = replace(
            request,
            max_output_tokens=min(request.max_output_tokens, most),
            tools=request.tools if self._profile.supports_tools else (),
        )
        body = request_body(self._model, asked, limit_key=self._limit_key, settings=settings)
        # Escaped to ASCII, so that text with lone surrogates cannot fail the request.
        return json.dumps(body).encode("ascii")


@asynccontextmanager
async def open_openai_model(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    client: Carrier | None = None,
    limits: CallLimits = DEFAULT_LIMITS,
    provider: str = "openai",
) -> AsyncIterator[OpenAIModel]:
    """Open a model at an endpoint; nothing is sent before its first turn.

    Args:
        model: The model's name at the endpoint, and behind a `?` the parameters to ask with, see `parameters`.
        base_url: The endpoint's address; None reads OPENAI_BASE_URL, else the vendor's.
        api_key: The key; None reads OPENAI_API_KEY, or what OPENAI_API_KEY_FILE or OPENAI_API_KEY_KEYRING names.
        client: How requests are sent; its owner closes it. None makes one that goes out through the guard of the run that asks,
            which the endpoint is granted to, and so can be used within runs alone.
        limits: How long a call may take, and how much it may answer with.
        provider: What stands before the colon in its name.

    Raises:
        ConfigurationError: The model has no name, or the address, key or a parameter is missing or not usable.

    Closes: all connections of its own client, when the block is left.
    """
    name, parameters = split_name(model)
    if not name:
        raise ConfigurationError(f"the model has no name: write {provider}:NAME")
    settings = parameters.of_chat()
    endpoint = await find_endpoint(OPENAI, base_url, api_key)
    chosen = parameters.chosen()
    identity = [provider, endpoint.base_url, name, *([chosen] if chosen else [])]
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode("ascii")).digest()
    profile = Profile(
        f"{provider}:{model}",
        digest,
        settings=settings,
        parameters=chosen,
        constrained=parameters.tools is not None,
        max_output_tokens=parameters.max_output_tokens,
        context_tokens=parameters.context_tokens or 0,
    )
    async with client_for(endpoint, client) as used:
        yield OpenAIModel(used, endpoint, name, profile, limits)
