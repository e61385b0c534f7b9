"""The workspace tools: what they answer, and within which bounds."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import trio
import trio.testing

from affidavit.actors.errors import ToolFailed
from affidavit.actors.toolbox import reading, searching, workspace
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.toolbox.workspace import WorkspaceTools
from tests.actors.toolbox.workspaces import SECRET, call, read


async def test_reading_a_part_says_which(root: Path) -> None:
    """Offset and limit choose lines; a note says which of how many; past the end is a sentence."""
    assert await read(root, "README.md", offset=2, limit=1) == "two\n[lines 2 to 2 of 3]"
    assert await read(root, "README.md", offset=2) == "two\nthree\n[lines 2 to 3 of 3]"
    with pytest.raises(ToolFailed, match="has 3 lines; there is no line 4"):
        await read(root, "README.md", offset=4)
    for bad in ({"offset": 0}, {"limit": 0}, {"limit": "1"}, {"ofset": 1}):
        with pytest.raises(ToolFailed, match="argument"):
            await read(root, "README.md", **bad)


async def test_reading_odd_files(root: Path) -> None:
    """Empty, binary, invalid UTF-8, a directory and a file too large each have an answer of their own."""
    (root / "empty").touch()
    (root / "binary").write_bytes(b"\x7fELF\0\0")
    (root / "latin").write_bytes(b"caf\xe9\n")
    with (root / "huge").open("wb") as file:
        file.truncate(reading.MAX_FILE_BYTES + 1)
    assert await read(root, "empty") == "[the file is empty]"
    assert await read(root, "latin") == "caf\ufffd"
    for path, said in [
        ("binary", "binary file of 6 bytes"),
        ("src", "is a directory"),
        ("huge", "holds 16777217 bytes"),
        ("README.md/", "^$"),
    ]:
        if said == "^$":
            assert await read(root, path) == "one\ntwo\nthree"
            continue
        with pytest.raises(ToolFailed, match=said):
            await read(root, path)


async def test_a_long_result_is_cut_with_a_note(root: Path) -> None:
    """Many lines or one endless line: a result stays under its bound and says what is missing."""
    (root / "lines").write_text("x" * 99 + "\n" + ("y" * 99 + "\n") * 1999)
    (root / "line").write_text("z" * 200_000)
    text = await read(root, "lines")
    assert len(text) < reading.MAX_RESULT_CHARS + 100
    assert text.endswith("[lines 1 to 655 of 2000]")
    text = await read(root, "line")
    assert len(text) < reading.MAX_RESULT_CHARS + 100
    assert text.endswith("[cut: line 1 of 1 is 200000 characters long]")


async def test_listing_says_what_each_entry_is(root: Path) -> None:
    """Folders, files with size, links, pipes and names that are no text are told apart, in order of name."""
    (root / "link").symlink_to("README.md")
    os.mkfifo(root / "pipe")
    os.close(os.open(os.fsencode(root) + b"/bad\xff\nname", os.O_CREAT | os.O_WRONLY))
    assert (await call(root, "list_dir")).split("\n") == [
        "README.md  (14 bytes)",
        "bad\ufffd\ufffdname  (0 bytes)",
        "link@",
        "pipe  (neither file nor directory)",
        "src/",
    ]
    (root / "void").mkdir()
    assert await call(root, "list_dir", path="void") == "[the directory is empty]"
    with pytest.raises(ToolFailed, match="is a file"):
        await call(root, "list_dir", path="README.md")


async def test_a_long_listing_is_cut_with_a_note(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing stays under its bound and says how many entries there are."""
    for number in range(8):
        (root / "src" / f"f{number}").touch()
    monkeypatch.setattr(reading, "MAX_ENTRIES", 3)
    assert (await call(root, "list_dir", path="src")).endswith("\n[cut: 3 of 9 entries]")
    monkeypatch.setattr(reading, "MAX_SCANNED", 5)
    assert (await call(root, "list_dir", path="src")).endswith("\n[cut: 3 of 5 or more entries]")


async def test_searching_finds_lines_by_plain_text(root: Path) -> None:
    """A pattern is text and not an expression; hits come as path, line number and line."""
    (root / "src" / "other.py").write_text("a\nprint('[a-z]*')\n")
    assert await call(root, "search_text", pattern="print(") == (
        "src/main.py:1: print('hello')\nsrc/other.py:2: print('[a-z]*')\n[3 files searched]"
    )
    assert "src/other.py:2" in await call(root, "search_text", pattern="[a-z]*", path="src")
    assert (
        await call(root, "search_text", pattern="two", path="./README.md")
        == "README.md:2: two\n[1 files searched]"
    )
    assert await call(root, "search_text", pattern="absent") == "[no match for 'absent']\n[3 files searched]"
    for bad in ("", "a\nb", "x" * (workspace.MAX_PATTERN_CHARS + 1)):
        with pytest.raises(ToolFailed, match="one line"):
            await call(root, "search_text", pattern=bad)


async def test_searching_leaves_out_what_is_not_meant(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links, pipes, .git, binary and large files are not searched; the last two are counted."""
    monkeypatch.setattr(searching, "MAX_SEARCHED_FILE", 100)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("needle")
    (root / "link").symlink_to("../secret.txt")
    (root / "linkdir").symlink_to("../outside")
    os.mkfifo(root / "pipe")
    (root / "binary").write_bytes(b"\0needle")
    (root / "large").write_text("needle" * 100)
    assert await call(root, "search_text", pattern="needle") == (
        "[no match for 'needle']\n[2 files searched, 2 left out as binary, too large or unreadable]"
    )
    assert "no match" in await call(root, "search_text", pattern=SECRET)


@pytest.mark.parametrize(
    ("bound", "value", "said"),
    [("MAX_MATCHES", 2, "2 matches"), ("MAX_FILES", 3, "3 files"), ("MAX_TOTAL_BYTES", 4, "4 bytes")],
)
async def test_a_search_ends_at_each_bound(
    root: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int, said: str
) -> None:
    """Matches, files and bytes are bounded, and the result says which bound ended the search."""
    for number in range(9):
        (root / f"f{number}").write_text("needle\n" * 3)
    monkeypatch.setattr(searching, bound, value)
    text = await call(root, "search_text", pattern="needle")
    assert f"stopped early: {said}" in text
    assert text.count("needle") <= 9


async def test_a_search_that_takes_too_long_returns_what_it_has(
    root: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """When the time is up the result so far is returned with a note, and the thread is told to stop."""
    release, stopped = threading.Event(), threading.Event()
    real = reading.read_whole

    def slow(handle: int, path: str, limit: int) -> bytes:
        if path.endswith("main.py"):
            release.wait(60)
        return real(handle, path, limit)

    class Watched(searching.Search):
        def run(self, root: str, path: str) -> None:
            super().run(root, path)
            if self.stop.is_set():
                stopped.set()

    monkeypatch.setattr(searching, "read_whole", slow)
    monkeypatch.setattr(workspace, "Search", Watched)
    autojump_clock.autojump_threshold = 0.2
    text = await call(root, "search_text", pattern="two")
    release.set()
    assert text == "README.md:2: two\n[1 files searched; stopped early: 10 seconds had passed]"
    assert await trio.to_thread.run_sync(stopped.wait, 60)


def test_the_tools_only_read(root: Path) -> None:
    """All three are idempotent, and offered with a schema that names every argument."""
    box = Toolbox(WorkspaceTools(root).tools)
    assert list(box) == ["list_dir", "read_file", "search_text"]
    assert all(tool.idempotent for tool in box.values())
    assert '"pattern"' in box["search_text"].spec.input_schema
    assert WorkspaceTools(root).root == os.path.realpath(root)
