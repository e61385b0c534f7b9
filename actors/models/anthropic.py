"""Any endpoint of Anthropic's Messages API, its reply read as a stream of events.

One request is one attempt: retrying is its caller's affair. Thinking and its signature come out whole in the reply's blocks, and
are sent back as they were. It honours no proxy or certificate setting of the environment and follows no redirect.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, final

from affidavit.actors.errors import ConfigurationError, ModelError
from affidavit.actors.models.endpoint import ANTHROPIC, Endpoint, client_for, find_endpoint
from affidavit.actors.models.exchange import Call, Carrier, exchange
from affidavit.actors.models.limits import DEFAULT_LIMITS, CallLimits
from affidavit.actors.models.messages_request import request_text
from affidavit.actors.models.messages_stream import MessagesAssembly
from affidavit.actors.models.parameters import ADAPTIVE, Parameters, split_name
from affidavit.actors.models.port import ModelReply, ModelRequest

VERSION: Final = "2023-06-01"


@final
class AnthropicModel:
    """One model at one endpoint. Made by `open_anthropic_model`, which owns the client."""

    def __init__(
        self,
        client: Carrier,
        endpoint: Endpoint,
        model: str,
        parameters: Parameters,
        *,
        name: str,
        limits: CallLimits = DEFAULT_LIMITS,
    ) -> None:
        """Bind a model to a client that its maker closes.

        Args:
            client: The HTTP client.
            endpoint: Where to ask.
            model: The model's name at the endpoint.
            parameters: The chosen parameters.
            name: The model as the operator named it.
            limits: How long a call may take, and how much it may answer with.
        """
        self._client = client
        self._endpoint = endpoint
        self._model = model
        self._chosen = parameters
        self._settings = _settings(parameters)
        self._name = name
        self._limits = limits

    @property
    def name(self) -> str:
        """The model as the operator named it."""
        return self._name

    @property
    def digest(self) -> bytes:
        """SHA-256 of what makes it this model."""
        identity = [self._name.partition(":")[0], self._endpoint.base_url, self._model, self._chosen.chosen()]
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode("ascii")).digest()

    @property
    def supports_tools(self) -> bool:
        """Always: every model of this protocol can ask for tools."""
        return True

    @property
    def parameters(self) -> Mapping[str, object]:
        """The parameters that it is asked with."""
        return self._chosen.chosen()

    @property
    def context_tokens(self) -> int:
        """The most tokens of a request and its answer together; 0 where it is not known."""
        return self._chosen.context_tokens or 0

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
        headers = {"anthropic-version": VERSION, **self._endpoint.key_headers}
        # The address is given without a version by some, and with it by others.
        path = "/messages" if self._endpoint.base_url.endswith("/v1") else "/v1/messages"
        call = Call(self._endpoint, self._model, path, headers, self._body(request), request.scrub)
        return await exchange(self._client, call, MessagesAssembly(request.on_delta), self._limits)

    def _body(self, request: ModelRequest) -> bytes:
        limit = min(request.max_output_tokens, self._chosen.max_output_tokens or request.max_output_tokens)
        thinking = self._chosen.thinking
        if isinstance(thinking, int) and thinking >= limit:
            raise ModelError(
                f"{self._name} cannot think with {thinking} tokens, since a turn may write only {limit}",
                code="bad_request",
            )
        asked = replace(request, max_output_tokens=limit)
        return request_text(self._model, asked, self._settings).encode("utf-8", "replace")


@asynccontextmanager
async def open_anthropic_model(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    client: Carrier | None = None,
    limits: CallLimits = DEFAULT_LIMITS,
    provider: str = "anthropic",
) -> AsyncIterator[AnthropicModel]:
    """Open a model at an endpoint; nothing is sent before its first turn.

    Args:
        model: The model's name at the endpoint, and behind a `?` the parameters to ask with, see `parameters`.
        base_url: The endpoint's address; None reads ANTHROPIC_BASE_URL, else the vendor's.
        api_key: The key; None reads ANTHROPIC_API_KEY, or what ANTHROPIC_API_KEY_FILE or ANTHROPIC_API_KEY_KEYRING names.
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
    if parameters.seed is not None:
        raise ConfigurationError("Anthropic models know no seed")
    if parameters.tools is not None:
        raise ConfigurationError("Anthropic models know tools of their own")
    endpoint = await find_endpoint(ANTHROPIC, base_url, api_key)
    async with client_for(endpoint, client) as used:
        yield AnthropicModel(used, endpoint, name, parameters, name=f"{provider}:{model}", limits=limits)


def _settings(parameters: Parameters) -> dict[str, object]:
    thinking = parameters.thinking
    if thinking is None:
        return parameters.sampling()
    how = {"type": thinking} if thinking == ADAPTIVE else {"type": "enabled", "budget_tokens": thinking}
    return {**parameters.sampling(), "thinking": how}
