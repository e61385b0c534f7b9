"""How a test asks the chat-completions adapter, and what it takes for granted of every error."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from affidavit.actors.errors import ModelError
from affidavit.actors.models.openai import OpenAIModel, open_openai_model
from affidavit.actors.models.port import Message, ModelReply, ModelRequest
from tests.actors.models.endpoints import Piece, delta, serve, sse

KEY = "sk-secret-key-0123456789"
ASK = ModelRequest("Be brief.", (Message("user", "Hello"),))
HELLO = sse(delta(content="Hel"), delta(content="lo"), delta("stop"), "[DONE]")


def opened(url: str, key: str = KEY, model: str = "m") -> AbstractAsyncContextManager[OpenAIModel]:
    """The adapter, at that address."""
    return open_openai_model(model, base_url=url, api_key=key)


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
