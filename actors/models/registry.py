"""Opens the model that the operator named, by the provider before the colon: see `CHOICES`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.parameters import split_name
from affidavit.actors.models.port import Model
from affidavit.actors.models.script import ScriptModel

CHOICES = (
    "script:FILE, openai:NAME, anthropic:NAME, local, local:FILE.gguf, openai-sdk:NAME, or anthropic-sdk:NAME"
)


@asynccontextmanager
async def open_model(spec: str) -> AsyncIterator[Model]:
    """Open a model for as long as the block lasts.

    Args:
        spec: A provider, and behind a colon what that provider should open.

    Raises:
        ConfigurationError: There is no such provider, or it cannot open what it was asked for.

    Closes: whatever the provider opened, when the block is left.
    """
    # A model without a name has its parameters right behind the provider.
    provider, colon, rest = ("local", ":", spec[5:]) if spec.startswith("local?") else spec.partition(":")
    if provider == "script" and rest:
        yield await trio.to_thread.run_sync(ScriptModel.load, rest)
    elif provider == "openai" and rest:
        # Imported here since the HTTP client is slow to import, and most commands open no model.
        from affidavit.actors.models.openai import open_openai_model  # noqa: PLC0415

        async with open_openai_model(rest) as model:
            yield model
    elif provider == "openai-sdk" and rest:
        from affidavit.actors.models.sdk_openai import open_openai_sdk_model  # noqa: PLC0415  # as above

        async with open_openai_sdk_model(rest) as model:
            yield model
    elif provider == "anthropic-sdk" and rest:
        from affidavit.actors.models.sdk_anthropic import open_anthropic_sdk_model  # noqa: PLC0415  # as above

        async with open_anthropic_sdk_model(rest) as claude:
            yield claude
    elif provider == "anthropic" and rest:
        from affidavit.actors.models.anthropic import open_anthropic_model  # noqa: PLC0415  # as above

        async with open_anthropic_model(rest) as claude:
            yield claude
    elif provider == "local" and bool(rest) == bool(colon):
        from affidavit.actors.models.local import open_local_model  # noqa: PLC0415  # as above

        file, parameters = split_name(rest)
        async with open_local_model(file or None, parameters) as small:
            yield small
    else:
        raise ConfigurationError(f"no model {spec!r}: choose {CHOICES}")
