"""The tool `run_command`: what the model is told, and that no command runs less held than it must be."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from affidavit.actors.containment.levels import Level
from affidavit.actors.containment.port import (
    Captured,
    Containment,
    ContainmentFailed,
    Limits,
    Outcome,
    ProxyRoute,
    Struck,
)
from affidavit.actors.errors import ToolFailed
from affidavit.actors.events import Trust
from affidavit.actors.toolbox.run_command import CommandTool, report
from tests.actors.containment.kit import witness


class Pretended:
    """A containment that runs nothing and remembers what it was asked."""

    def __init__(self, level: Level = Level.KERNEL, outcome: Outcome | Exception | None = None) -> None:
        self.level = level
        self.outcome = outcome or Outcome(0, None, Captured(), Captured(), Struck.NOTHING, 0.0)
        self.asked: list[tuple[Sequence[str], Limits, ProxyRoute | None]] = []

    async def run(
        self,
        command: Sequence[str],
        *,
        limits: Limits,
        workspace: str,
        environment: Mapping[str, str],
        proxy: ProxyRoute | None = None,
    ) -> Outcome:
        self.asked.append((command, limits, proxy))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def captured(content: bytes, *, kept: int = 1 << 20) -> Captured:
    """An output of which so much was kept."""
    head, tail = content[: kept // 2], content[kept // 2 :][-(kept // 2) :]
    return Captured(head, tail, len(content), hashlib.sha256(content).digest())


def told(out: bytes = b"", err: bytes = b"", *, kept: int = 1 << 20) -> str:
    """What the model is told of a command that ended well and printed this."""
    outcome = Outcome(0, None, captured(out, kept=kept), captured(err, kept=kept), Struck.NOTHING, 1.0)
    return report(outcome, Limits())


async def test_it_is_semi_trusted_and_not_repeated() -> None:
    """What a model chose to run is neither trusted nor harmless to run twice."""
    tool = CommandTool(Pretended(), "w").tool
    assert (tool.spec.name, tool.trust, tool.idempotent) == ("run_command", Trust.SEMI_TRUSTED, False)


@pytest.mark.parametrize(
    ("have", "trust"),
    [(Level.NONE, Trust.SEMI_TRUSTED), (Level.NONE, Trust.UNTRUSTED), (Level.KERNEL, Trust.UNTRUSTED)],
)
async def test_a_command_is_never_held_less_than_it_must_be(have: Level, trust: Trust) -> None:
    """Even if nobody before has refused it."""
    held = Pretended(have)
    with pytest.raises(ToolFailed, match="needs containment"):
        await CommandTool(held, "w", trust=trust).tool.run({"command": "true"})
    assert held.asked == []


async def test_text_is_for_the_shell_and_a_list_is_not() -> None:
    """A line goes to /bin/sh, a list goes as it is; a timeout can shorten and not lengthen."""
    held = Pretended()
    tool = CommandTool(held, "w", limits=Limits(wall_seconds=30)).tool
    await tool.run({"command": "echo $HOME"})
    await tool.run({"command": ["echo", "$HOME"], "timeout": 5})
    await tool.run({"command": ["x"], "timeout": 500.5})
    assert [list(command) for command, _, _ in held.asked] == [
        ["/bin/sh", "-c", "echo $HOME"],
        ["echo", "$HOME"],
        ["x"],
    ]
    assert [limits.wall_seconds for _, limits, _ in held.asked] == [30, 5, 30]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": 1},
        {"command": ["a", 1]},
        {"command": "x", "timeout": 0},
        {"command": "x", "cwd": "/"},
        {"command": "x" * 70_000},
    ],
)
async def test_wrong_arguments_are_told(arguments: dict[str, object]) -> None:
    """In words, and nothing is run."""
    held = Pretended()
    with pytest.raises(ToolFailed):
        await CommandTool(held, "w").tool.run(arguments)
    assert held.asked == []


async def test_what_was_not_run_is_told() -> None:
    """A containment that fails is a failed tool and no crash."""
    held = Pretended(outcome=ContainmentFailed("why"))
    with pytest.raises(ToolFailed, match="the command was not run: why"):
        await CommandTool(held, "w").tool.run({"command": "true"})


async def test_each_call_has_a_proxy_of_its_own() -> None:
    """It is open while the command runs and closed after it; the description says that there is one."""
    open_now: list[int] = []
    held = Pretended()

    @asynccontextmanager
    async def proxy() -> AsyncIterator[ProxyRoute]:
        open_now.append(1)
        yield ProxyRoute(1234, "a:b")
        open_now.pop()

    tool = CommandTool(held, "w", open_proxy=proxy).tool
    await tool.run({"command": "true"})
    assert [route for _, _, route in held.asked] == [ProxyRoute(1234, "a:b")]
    assert open_now == []
    assert "proxy" in tool.spec.description
    assert "no network" in CommandTool(held, "w").tool.spec.description


def test_the_end_is_told_first() -> None:
    """Exit code, signal or limit, then each output that there was."""
    nothing = Captured()
    out, err = captured(b"o\n"), captured(b"e\n")
    assert (
        report(Outcome(3, None, out, err, Struck.NOTHING, 1), Limits())
        == "exit code 3\n[stdout]\no\n[stderr]\ne"
    )
    assert (
        report(Outcome(None, 11, nothing, nothing, Struck.NOTHING, 1), Limits()) == "ended by signal SIGSEGV"
    )
    assert report(Outcome(None, 77, nothing, nothing, Struck.NOTHING, 1), Limits()) == "ended by signal 77"
    for struck in Struck:
        if struck:
            text = report(Outcome(None, 9, nothing, nothing, struck, 1), Limits())
            assert text.startswith(f"ended by a limit ({struck}): it ")


def test_bytes_that_are_no_text_are_marked() -> None:
    """They become U+FFFD, and it is said; text is left alone."""
    assert told("gr\u00fc\u00df".encode()) == "exit code 0\n[stdout]\ngr\u00fc\u00df"
    assert (
        told(b"caf\xe9\n")
        == "exit code 0\n[stdout]\ncaf\ufffd\n[bytes that are not UTF-8 are shown as \ufffd]"
    )


@pytest.mark.parametrize("character", ["e", "\u00e9", "\u20ac", "\U0001f600"])
@pytest.mark.parametrize("kept", range(16, 24))
def test_a_cut_falls_between_characters(character: str, kept: int) -> None:
    """A long output has a note of what is left out, and no piece of a character on either side of it."""
    content = (character * 100).encode()
    text = told(content, kept=kept)
    assert "\ufffd" not in text
    assert f"of {len(content)} bytes left out; SHA-256 of all: {hashlib.sha256(content).hexdigest()}" in text


def test_a_cut_output_that_is_no_text_is_marked() -> None:
    """The note of what is left out does not replace the mark."""
    assert "not UTF-8" in told(b"\xff\x80" * 100, kept=20)


async def test_a_cancelled_tool_leaves_nobody(level: Containment, work: Path) -> None:
    """When the run's limit for tools or its end cancels the call, the command's processes are gone first."""
    tool = CommandTool(level, str(work), trust=Trust.TRUSTED).tool
    script = "(setsid sh -c 'exec 3> alive; echo x >&3; sleep 1000' &); sleep 1000"
    with witness(work) as seen:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tool.run, {"command": script})
            await trio.to_thread.run_sync(seen.wait_for_life)
            nursery.cancel_scope.cancel()
        assert seen.nobody_is_left()


async def test_a_real_command_from_end_to_end(level: Containment, work: Path) -> None:
    """A line of shell, held, in words."""
    tool = CommandTool(level, str(work), trust=Trust.TRUSTED, environment={"A": "b"}).tool
    assert await tool.run({"command": "echo $A; exit 2"}) == "exit code 2\n[stdout]\nb"
