"""How a test asks the chat-completions adapter, and what it takes for granted of every error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from affidavit.actors.errors import ModelError
from affidavit.actors.models.endpoint import new_client
from affidavit.actors.models.openai import OpenAIModel, open_openai_model
from affidavit.actors.models.port import Message, ModelReply, ModelRequest
from tests.actors.models.endpoints import Piece, delta, serve, sse

KEY = "sk-secret-key-0123456789"
ASK = ModelRequest("Be brief.", (Message("user", "Hello"),))
HELLO = sse(delta(content="Hel"), delta(content="lo"), delta("stop"), "[DONE]")


@asynccontextmanager
async def opened(url: str | None, key: str | None = KEY, model: str = "m") -> AsyncIterator[OpenAIModel]:
    """The adapter, at that address, to be used outside of any run."""
    async with (
        new_client() as client,
        open_openai_model(model, base_url=url, api_key=key, client=client) as made,
    ):
        yield made


async def answer(*pieces: Piece, request: ModelRequest = ASK) -> ModelReply:
    """The reply that the adapter makes of these bytes."""
    async with serve(pieces) as endpoint, opened(endpoint.url) as model:
        return await model.generate(request)


async def failure(*pieces: Piece, key: str = KEY) -> ModelError:
    """The error that the adapter makes of these bytes; its text names the endpoint, is one line, and has no key in it."""
    async with serve(pieces) as endpoint, opened(endpoint.url, key) as model:
        with pytest.raises(ModelError) as caught:
            await model.generate(ASK)
    text = str(caught.value)
    assert endpoint.url.split("/")[2] in text
    assert "\n" not in text
    assert KEY not in text
    return caught.value
