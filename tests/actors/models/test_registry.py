"""The choice of a model by its name, and one sentence for each choice that is none."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.anthropic import AnthropicModel
from affidavit.actors.models.openai import OpenAIModel
from affidavit.actors.models.port import Model
from affidavit.actors.models.registry import open_model
from affidavit.actors.models.script import ScriptModel


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "gpt-4",
        "openai",
        "openai:",
        "script",
        "script:",
        "local:",
        "anthropic",
        "anthropic:",
        "openai-sdk",
        "anthropic-sdk:",
        "Local",
        "localx",
        ":x",
    ],
)
async def test_an_unknown_choice_lists_the_choices(spec: str) -> None:
    """What cannot be opened is named, with everything that can."""
    with pytest.raises(
        ConfigurationError,
        match=r"choose script:FILE, openai:NAME, anthropic:NAME, local, local:FILE.gguf, openai-sdk:NAME, or ant",
    ) as caught:
        async with open_model(spec):
            pass
    assert repr(spec) in str(caught.value)


async def test_a_script_is_opened_by_its_file(tmp_path: Path) -> None:
    """What stands behind the first colon is the file, whatever it holds."""
    path = tmp_path / "a:b.json"
    path.write_text('{"turns": [{}]}')  # noqa: ASYNC240  # a tiny file of the test's own
    async with open_model(f"script:{path}") as model:
        assert model.name == "script:a:b.json"
    with pytest.raises(ConfigurationError, match="cannot be read"):
        async with open_model(f"script:{tmp_path}/absent"):
            pass


async def test_an_endpoint_s_model_is_opened_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names with colons and slashes reach the endpoint whole; a missing key is told at once."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    async with open_model("openai:vendor/model:tag") as model:
        assert model.name == "openai:vendor/model:tag"
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        async with open_model("openai:m"):
            pass


async def test_an_anthropic_model_is_opened_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters stand behind the name and are part of it; the variables are the vendor's own."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    async with open_model("anthropic:some-model?temperature=0.5") as model:
        assert model.name == "anthropic:some-model?temperature=0.5"
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY"):
        async with open_model("anthropic:m"):
            pass


async def test_the_caller_s_exception_comes_out_as_itself(tmp_path: Path) -> None:
    """A failure in the block is not wrapped, and is not taken for one of the model's."""
    path = tmp_path / "s.json"
    path.write_text('{"turns": [{}]}')  # noqa: ASYNC240  # a tiny file of the test's own
    with pytest.raises(ZeroDivisionError):
        async with open_model(f"script:{path}"):
            raise ZeroDivisionError


def test_every_adapter_keeps_the_port() -> None:
    """Each has what the port names, so that one can take another's place."""
    wanted = {name for name in vars(Model) if not name.startswith("_")}
    for adapter in (ScriptModel, OpenAIModel, AnthropicModel):
        assert wanted <= vars(adapter).keys()
        assert inspect.iscoroutinefunction(adapter.generate)
