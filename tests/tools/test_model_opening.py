"""While a model is loaded into this process a terminal says so, and nothing of it is left afterwards."""

from __future__ import annotations

import sys

import pytest

from affidavit.actors.errors import ConfigurationError
from affidavit.tools.model_opening import open_shown_model
from tests.tools.commands.runner import READER
from tests.tools.test_progress import SHOW, terminal


async def test_a_local_model_is_said_to_be_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the beginning, since nothing moves meanwhile; and it is taken away, also where it cannot be loaded."""
    screen, _ = terminal(monkeypatch)
    for spec in ("local:absent.gguf", "local:absent.gguf?seed=7"):
        with pytest.raises(ConfigurationError, match=r"absent\.gguf"):
            async with open_shown_model(spec):
                pass
        assert "loading the model" in screen.getvalue()
        assert screen.getvalue().count(SHOW) == 1
        screen.seek(0)
        screen.truncate()
    assert sys.stderr is screen


async def test_any_other_model_is_opened_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there at once."""
    screen, _ = terminal(monkeypatch)
    async with open_shown_model(READER) as model:
        assert model.name.startswith("script:")
    with pytest.raises(ConfigurationError, match="no model 'localhost'"):
        async with open_shown_model("localhost"):
            pass
    assert screen.getvalue() == ""
