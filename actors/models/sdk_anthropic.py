"""Anthropic's official client as the carrier of our requests: `anthropic-sdk:NAME`, with the extra `affidavit[anthropic]`.

The official client gets our HTTP client, which goes out through the guard of the run that asks, and tries nothing again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.anthropic import AnthropicModel, open_anthropic_model
from affidavit.actors.models.endpoint import ANTHROPIC, client_for, find_endpoint
from affidavit.actors.models.limits import DEFAULT_LIMITS, CallLimits
from affidavit.actors.models.sdk_carrier import NO_KEY, SdkCarrier, SdkKinds, client_of_sdk, making_sdk


@asynccontextmanager
async def open_anthropic_sdk_model(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    client: httpx2.AsyncClient | None = None,
    limits: CallLimits = DEFAULT_LIMITS,
) -> AsyncIterator[AnthropicModel]:
    """Open a model that is asked by the official client; else as `open_anthropic_model`.

    Raises:
        ConfigurationError: The official client is not installed, or is too old; or as `open_anthropic_model`.

    Closes: all connections of its own client, when the block is left.
    """
    try:
        # Imported here since it is slow to import, and an extra.
        import anthropic  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError(
            "Anthropic's official client is not installed: pip install 'affidavit[anthropic]'"
        ) from error
    endpoint = await find_endpoint(ANTHROPIC, base_url, api_key)
    async with (
        client_for(endpoint, client) as used,
        client_of_sdk(used, endpoint, limits.error_bytes) as handed,
    ):
        with making_sdk("Anthropic", "anthropic"):
            sdk = anthropic.AsyncAnthropic(
                api_key=NO_KEY,
                base_url=endpoint.base_url,
                http_client=handed,
                max_retries=0,
                # Else it would describe each call to whatever tracing the process has.
                open_telemetry=False,
            )
            kinds = SdkKinds(
                anthropic.AsyncStream[object], anthropic.APIStatusError, anthropic.APIConnectionError
            )
        async with open_anthropic_model(
            model,
            base_url=endpoint.base_url,
            api_key=endpoint.key,
            client=SdkCarrier(sdk, kinds),
            limits=limits,
            provider="anthropic-sdk",
        ) as made:
            yield made
