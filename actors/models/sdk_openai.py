"""OpenAI's official client as the carrier of our requests: `openai-sdk:NAME`, with the extra `affidavit[openai]`.

The official client gets our HTTP client, which goes out through the guard of the run that asks, and tries nothing again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.endpoint import OPENAI, client_for, find_endpoint
from affidavit.actors.models.limits import DEFAULT_LIMITS, CallLimits
from affidavit.actors.models.openai import OpenAIModel, open_openai_model
from affidavit.actors.models.sdk_carrier import NO_KEY, SdkCarrier, SdkKinds, client_of_sdk, making_sdk


@asynccontextmanager
async def open_openai_sdk_model(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    client: httpx2.AsyncClient | None = None,
    limits: CallLimits = DEFAULT_LIMITS,
) -> AsyncIterator[OpenAIModel]:
    """Open a model that is asked by the official client; else as `open_openai_model`.

    Raises:
        ConfigurationError: The official client is not installed, or is too old; or as `open_openai_model`.

    Closes: all connections of its own client, when the block is left.
    """
    try:
        # Imported here since it is slow to import, and an extra.
        import openai  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError(
            "OpenAI's official client is not installed: pip install 'affidavit[openai]'"
        ) from error
    endpoint = await find_endpoint(OPENAI, base_url, api_key)
    async with (
        client_for(endpoint, client) as used,
        client_of_sdk(used, endpoint, limits.error_bytes) as handed,
    ):
        with making_sdk("OpenAI", "openai"):
            sdk = openai.AsyncOpenAI(
                api_key=NO_KEY,
                base_url=endpoint.base_url,
                http_client=handed,
                max_retries=0,
            )
            kinds = SdkKinds(openai.AsyncStream[object], openai.APIStatusError, openai.APIConnectionError)
        async with open_openai_model(
            model,
            base_url=endpoint.base_url,
            api_key=endpoint.key,
            client=SdkCarrier(sdk, kinds),
            limits=limits,
            provider="openai-sdk",
        ) as made:
            yield made
