"""The toolbox: names, grants, and a digest that changes with any tool."""

from __future__ import annotations

import pytest
import trio
from pydantic import BaseModel

from affidavit.actors.errors import ConfigurationError, ToolFailed
from affidavit.actors.events import Trust
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.toolbox.typed import TypedTool


class Echo(BaseModel):
    words: str
    times: int = 1


async def echo(arguments: Echo) -> str:
    """Repeat the words."""
    await trio.lowlevel.checkpoint()
    return arguments.words * arguments.times


def tool(
    name: str, description: str = "Repeats.", *, idempotent: bool = True, trust: str = "trusted"
) -> TypedTool[Echo]:
    """A tool that repeats words."""
    return TypedTool(name, description, Echo, echo, idempotent=idempotent, trust=trust)


def test_a_toolbox_is_a_mapping_ordered_by_name() -> None:
    """Tools are found by name and listed in one order, whatever order they came in."""
    box = Toolbox([tool("b"), tool("a")])
    assert list(box) == ["a", "b"]
    assert box["a"].spec.name == "a"
    assert len(box) == 2
    assert "c" not in box


def test_only_granted_tools_are_offered() -> None:
    """A model is told of the granted tools that exist, and of no other."""
    box = Toolbox([tool("b"), tool("a"), tool("c")])
    assert [spec.name for spec in box.specs({"c", "a", "absent"})] == ["a", "c"]
    assert box.specs(()) == ()
    assert [spec.name for spec in box.specs()] == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ä", "x" * 65, "a\n"])
def test_a_name_no_vendor_accepts_is_refused(name: str) -> None:
    """A tool that could not be offered is refused when the toolbox is made, not in the middle of a run."""
    with pytest.raises(ConfigurationError, match="a tool's name"):
        Toolbox([tool(name)])


def test_two_tools_of_one_name_are_refused() -> None:
    """Names are unique, so a grant names one tool."""
    with pytest.raises(ConfigurationError, match="two tools are named 'a'"):
        Toolbox([tool("a"), tool("a", "Other.")])


def test_the_digest_is_that_of_the_tools_and_of_nothing_else() -> None:
    """Order does not count; name, description, trust, idempotence and the set itself do."""
    base = Toolbox([tool("a"), tool("b")])
    assert base.digest == Toolbox([tool("b"), tool("a")]).digest
    others = [
        Toolbox([]),
        Toolbox([tool("a")]),
        Toolbox([tool("a"), tool("c")]),
        Toolbox([tool("a"), tool("b", "Other.")]),
        Toolbox([tool("a"), tool("b", idempotent=False)]),
        Toolbox([tool("a"), tool("b", trust=Trust.UNTRUSTED)]),
    ]
    assert len({base.digest, *(box.digest for box in others)}) == 7


async def test_a_typed_tool_checks_and_then_works() -> None:
    """Arguments that fit reach the work as the model's own type; others are a sentence for the model."""
    assert await tool("a").run({"words": "ab", "times": 2}) == "abab"
    with pytest.raises(ToolFailed, match="a: argument 'times': Input should be a valid integer"):
        await tool("a").run({"words": "x", "times": "many"})
    with pytest.raises(ToolFailed, match="argument 'words': Field required"):
        await tool("a").run({})


def test_the_same_tools_over_another_folder_are_other_tools() -> None:
    """What the tools work on goes into the digest, so a resumed run notices another workspace."""
    here, there = Toolbox((), place="/here"), Toolbox((), place="/there")
    assert len({Toolbox().digest, here.digest, there.digest}) == 3
    assert here.digest == Toolbox((), place="/here").digest
