"""The scripted model: position, errors, identity, and every way a script file can be wrong."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from affidavit.actors.errors import ConfigurationError, ModelError
from affidavit.actors.events import Usage
from affidavit.actors.models.port import Message, ModelRequest, ToolCall
from affidavit.actors.models.script import MAX_SCRIPT_BYTES, ScriptModel

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "scripts"


def asked(turns_done: int) -> ModelRequest:
    """A request in a conversation in which the model has answered that many times."""
    messages = [Message("user", "go")]
    for number in range(turns_done):
        messages += [Message("assistant", f"turn {number}"), Message("tool", "result", tool_use_id="x")]
    return ModelRequest("", tuple(messages))


def script(*turns: dict[str, object]) -> ScriptModel:
    """A model that says these turns."""
    return ScriptModel.from_text(json.dumps({"turns": turns}))


async def test_answers_by_position_in_the_conversation() -> None:
    """The same position gets the same turn, in any order and however often, as a resumed process needs."""
    model = script({"text": "one"}, {"text": "two"}, {"text": "three"})
    for position, text in [(2, "three"), (0, "one"), (1, "two"), (1, "two"), (0, "one")]:
        assert (await model.generate(asked(position))).text == text


async def test_past_the_end_is_terminal_and_names_the_turn() -> None:
    """A conversation longer than the script fails for good, with the number of the missing turn."""
    with pytest.raises(ModelError, match="script:inline has no turn 2") as caught:
        await script({"text": "one"}).generate(asked(1))
    assert caught.value.fault == "terminal"


async def test_a_turn_carries_all_it_says() -> None:
    """Text, calls with JSON or raw input, stop reason and usage come out as written."""
    model = script(
        {
            "text": "look",
            "tool_calls": [
                {"name": "a", "input": {"x": [1, None]}, "id": "c1"},
                {"name": "b", "input": "{not json"},
                {"name": "c"},
            ],
            "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_tokens": 1},
        },
        {"text": "cut", "stop_reason": "max_tokens"},
        {},
    )
    first = await model.generate(asked(0))
    assert first.text == "look"
    assert first.tool_calls == (
        ToolCall("c1", "a", '{"x": [1, null]}'),
        ToolCall("", "b", "{not json"),
        ToolCall("", "c", "{}"),
    )
    assert first.stop_reason == "tool_use"
    assert first.usage == Usage(5, 2, 1, 0)
    assert (await model.generate(asked(1))).stop_reason == "max_tokens"
    last = await model.generate(asked(2))
    assert (last.text, last.tool_calls, last.stop_reason, last.usage) == ("", (), "end_turn", None)


async def test_a_transient_error_is_raised_so_often_and_then_answered() -> None:
    """`times` counts the attempts that fail; the next one is answered, and other turns are not affected."""
    model = script(
        {"text": "one", "error": {"message": "busy", "code": "rate_limited", "times": 2}}, {"text": "two"}
    )
    for _ in range(2):
        with pytest.raises(ModelError, match="busy") as caught:
            await model.generate(asked(0))
        assert (caught.value.fault, caught.value.code) == ("transient", "rate_limited")
        assert (await model.generate(asked(1))).text == "two"
    assert (await model.generate(asked(0))).text == "one"


async def test_an_error_without_times_never_ends() -> None:
    """A scripted error with no count is raised at every attempt."""
    model = script({"error": {"message": "no", "fault": "terminal"}})
    for _ in range(5):
        with pytest.raises(ModelError, match="no") as caught:
            await model.generate(asked(0))
        assert caught.value.fault == "terminal"


def test_a_loaded_script_is_named_by_its_file_and_known_by_its_bytes(tmp_path: Path) -> None:
    """The name is the file's, the digest that of its bytes, and no path of this machine is in either."""
    path = tmp_path / "plan.json"
    path.write_text('{"turns": [{"text": "hello"}]}')
    model = ScriptModel.load(path)
    assert model.name == "script:plan.json"
    assert model.digest == hashlib.sha256(path.read_bytes()).digest()
    assert model.supports_tools


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "EOF"),
        ("not json", "Invalid JSON"),
        ("[]", "object"),
        ("{}", "turns: Field required"),
        ('{"turns": []}', "at least 1 item"),
        ('{"turns": [{"txt": "typo"}]}', "turns.0.txt"),
        ('{"turns": [{"text": 7}]}', "turns.0.text"),
        ('{"turns": [{"error": {"message": "x", "fault": "odd"}}]}', "turns.0.error.fault"),
        ('{"turns": [{"error": {"message": "x", "times": 0}}]}', "turns.0.error.times"),
        ('{"turns": [{"usage": {"input_tokens": -1}}]}', "turns.0.usage.input_tokens"),
        ('{"turns": [{"tool_calls": [{"name": "a", "input": NaN}]}]}', "not valid"),
        (
            '{"turns": [{"tool_calls": [{"name": "a", "input": ' + "[" * 5000 + "]" * 5000 + "}]}]}",
            "not valid",
        ),
        (b"\xff\xfe", "not valid"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_bad_script_is_one_sentence(text: str | bytes, said: str) -> None:
    """Whatever is wrong with a script, one line says where and no other error comes out."""
    with pytest.raises(ConfigurationError, match=said) as caught:
        ScriptModel.from_text(text)
    assert "\n" not in str(caught.value)


def test_a_script_file_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    """Absent, a directory, a pipe, too large, a NUL in the name: one sentence each, and no waiting."""
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    large.write_bytes(b" " * (MAX_SCRIPT_BYTES + 1))
    cases = {
        tmp_path / "absent.json": "No such file",
        tmp_path: "is not a file",
        pipe: "is not a file",
        large: "larger than",
        Path("a\0b"): "null",
    }
    for path, said in cases.items():
        with pytest.raises(ConfigurationError, match=said):
            ScriptModel.load(path)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.name)
def test_the_example_scripts_load(path: Path) -> None:
    """Every example in the documentation is a script."""
    assert ScriptModel.load(path).name == f"script:{path.name}"
