"""The workspace tools: what they answer, and that no path, link or race leads outside."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from affidavit.actors.errors import ConfigurationError, ToolFailed
from affidavit.actors.toolbox import reading, searching, workspace
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.toolbox.workspace import WorkspaceTools

SECRET = "outside-secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace beside a secret that must never be read."""
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "deep.txt").write_text(SECRET)
    made = tmp_path / "work"
    (made / "src").mkdir(parents=True)
    (made / "README.md").write_text("one\ntwo\nthree\n")
    (made / "src" / "main.py").write_text("print('hello')\n")
    return made


async def call(root: Path, name: str, **arguments: Any) -> str:
    """Run one tool of the workspace."""
    return await Toolbox(WorkspaceTools(root).tools)[name].run(arguments)


async def read(root: Path, path: str, **more: Any) -> str:
    """Run read_file on a path."""
    return await call(root, "read_file", path=path, **more)


@pytest.mark.parametrize("path", ["README.md", "./README.md", "src/../README.md", "src/.././/README.md"])
async def test_a_file_inside_is_read(root: Path, path: str) -> None:
    """Any spelling of a path that stays inside reads the file."""
    assert await read(root, path) == "one\ntwo\nthree"


ESCAPES = [
    ("..", "outside the workspace"),
    ("../secret.txt", "outside the workspace"),
    ("src/../../secret.txt", "outside the workspace"),
    ("../work/README.md", "outside the workspace"),
    ("/etc/passwd", "absolute path"),
    ("//etc/passwd", "absolute path"),
    ("link-out", "outside the workspace"),
    ("link-abs", "outside the workspace"),
    ("link-dir/deep.txt", "outside the workspace"),
    ("link-dir-abs/deep.txt", "outside the workspace"),
    ("src/link-mid/secret.txt", "outside the workspace"),
    ("link-chain", "outside the workspace"),
    ("link-loop", "too many links"),
    ("link-proc/root/etc/passwd", "outside the workspace"),
    ("README.md/../../secret.txt", "not a directory"),
    ("README.md/x", "not a directory"),
    ("absent.txt", "No such file"),
    ("src/absent/../../README.md", "No such file"),
    ("pipe", "neither a file nor a directory"),
    ("socket", "neither a file nor a directory"),
    ("a\0b", "not a name"),
    ("\ud800", "not a name"),
    ("x" * 300, "too long"),
    ("x/" * 3000, "No such file|too long"),
]


@pytest.mark.parametrize("tool", ["read_file", "list_dir", "search_text"])
@pytest.mark.parametrize(("path", "said"), ESCAPES, ids=lambda value: ascii(value)[:40])
async def test_no_path_leads_outside(root: Path, tmp_path: Path, tool: str, path: str, said: str) -> None:
    """Each way out is a refusal in one sentence, for every tool, and shows nothing of what lies there."""
    (root / "link-out").symlink_to("../secret.txt")
    (root / "link-abs").symlink_to(tmp_path / "secret.txt")
    (root / "link-dir").symlink_to("../outside")
    (root / "link-dir-abs").symlink_to(tmp_path / "outside")
    (root / "src" / "link-mid").symlink_to("../..")
    (root / "link-chain").symlink_to("link-out")
    (root / "link-loop").symlink_to("link-loop")
    (root / "link-proc").symlink_to("/proc/self")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        more = {"pattern": "secret"} if tool == "search_text" else {}
        with pytest.raises(ToolFailed, match=said) as caught:
            await call(root, tool, path=path, **more)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_link_that_stays_inside_is_followed(root: Path) -> None:
    """A workspace's own links work, through directories and back up, as long as they end inside."""
    (root / "again.md").symlink_to("README.md")
    (root / "src" / "up").symlink_to("..")
    (root / "code").symlink_to("./src")
    assert await read(root, "again.md") == "one\ntwo\nthree"
    assert await read(root, "src/up/README.md") == "one\ntwo\nthree"
    assert await read(root, "code/main.py") == "print('hello')"
    assert "main.py" in await call(root, "list_dir", path="code")


async def test_the_root_may_itself_be_a_link(root: Path, tmp_path: Path) -> None:
    """The operator's path is trusted: links in it are followed once."""
    (tmp_path / "alias").symlink_to("work")
    assert await read(tmp_path / "alias", "README.md") == "one\ntwo\nthree"


def exchange(monkeypatch: pytest.MonkeyPatch, path: Path, put: Any) -> None:
    """Exchange `path` for what `put` makes, at the moment between the look at it and its opening."""
    real = os.stat
    done: list[bool] = []

    def look(name: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        found = real(name, *args, **kwargs)
        if name == path.name and not done:
            done.append(True)
            path.rename(path.with_name("moved"))
            put(path)
        return found

    monkeypatch.setattr(os, "stat", look)


@pytest.mark.parametrize(
    ("path", "put"),
    [
        ("README.md", lambda path: path.symlink_to("../secret.txt")),
        ("README.md", os.mkfifo),
        ("README.md", lambda path: path.mkdir()),
        ("src/main.py", lambda path: path.symlink_to("../../secret.txt")),
    ],
)
async def test_a_file_exchanged_after_the_look_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, path: str, put: Any
) -> None:
    """Between check and opening a file becomes a link, a pipe or a directory: refused, not waited for."""
    exchange(monkeypatch, root / path, put)
    with pytest.raises(ToolFailed):
        await read(root, path)
    assert (root / path).with_name("moved").exists()


async def test_a_directory_exchanged_for_a_link_after_the_look_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between check and opening a directory in the middle becomes a link that leads outside: refused."""
    (root.parent / "outside" / "main.py").write_text(SECRET)
    exchange(monkeypatch, root / "src", lambda path: path.symlink_to("../outside"))
    with pytest.raises(ToolFailed):
        await read(root, "src/main.py")


async def test_a_directory_moved_outside_does_not_take_dotdot_along(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`..` goes back to the directory that was opened, not to the parent that the disk has by then."""
    real = os.open

    def move(name: Any, *args: Any, **kwargs: Any) -> int:
        handle = real(name, *args, **kwargs)
        if name == "src":
            (root / "src").rename(root.parent / "outside" / "src")
        return handle

    (root.parent / "outside" / "README.md").write_text(SECRET)
    monkeypatch.setattr(os, "open", move)
    assert await read(root, "src/../README.md") == "one\ntwo\nthree"


def test_under_a_race_the_outside_is_never_read(root: Path) -> None:
    """A thread keeps exchanging a directory and a link to the outside; each read is inside or refused."""
    (root.parent / "outside" / "main.py").write_text(SECRET)
    (root / "away").symlink_to("../outside")
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            for one, two in (("src", "tmp"), ("away", "src"), ("src", "away"), ("tmp", "src")):
                (root / one).rename(root / two)

    thread = threading.Thread(target=churn)
    thread.start()
    results: set[str] = set()
    try:
        # The bound is generous since the two threads may not meet for a while; it ends as soon as they have.
        for count in range(50_000):
            try:
                results.add(reading.read_lines(str(root), "src/main.py", 1, 10))
            except ToolFailed as refused:
                results.add(str(refused))
            if count >= 400 and len(results) > 1 and "print('hello')" in results:
                break
    finally:
        stop.set()
        thread.join()
    assert "print('hello')" in results
    assert not any(SECRET in result for result in results)


def descriptors() -> set[str]:
    """The numbers of this process's open descriptors."""
    return {path.name for path in Path("/proc/self/fd").iterdir()}


async def test_no_descriptor_is_left_open(root: Path) -> None:
    """Successes and failures alike close what they opened."""
    (root / "link").symlink_to("../secret.txt")
    os.mkfifo(root / "pipe")
    await read(root, "src/main.py")
    before = descriptors()
    for path in ("src/main.py", "src/absent", "link", "pipe", "src/../..", "README.md/x", "src"):
        for name in ("read_file", "list_dir", "search_text"):
            try:
                await call(root, name, path=path, **({"pattern": "x"} if name == "search_text" else {}))
            except ToolFailed:
                continue
    assert descriptors() == before


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


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.touch(), "is not a directory"),
        (lambda path: path.symlink_to("nowhere"), "does not exist"),
        (lambda path: path.symlink_to(path.name), "cannot be read"),
    ],
)
def test_a_workspace_that_is_none_is_refused_at_once(tmp_path: Path, make: Any, said: str) -> None:
    """Absent, a file, a dangling link, a loop: one sentence when it is chosen, not at the first call."""
    make(tmp_path / "w")
    with pytest.raises(ConfigurationError, match=said):
        WorkspaceTools(tmp_path / "w")


async def test_a_workspace_that_is_gone_later_is_a_failed_tool(root: Path) -> None:
    """A root deleted during the run is told to the model; the tool does not crash."""
    tools = Toolbox(WorkspaceTools(root).tools)
    await trio.Path(root).rename(root.with_name("renamed"))
    with pytest.raises(ToolFailed, match="No such file"):
        await tools["list_dir"].run({})


def test_the_tools_only_read(root: Path) -> None:
    """All three are idempotent, and offered with a schema that names every argument."""
    box = Toolbox(WorkspaceTools(root).tools)
    assert list(box) == ["list_dir", "read_file", "search_text"]
    assert all(tool.idempotent for tool in box.values())
    assert '"pattern"' in box["search_text"].spec.input_schema
    assert WorkspaceTools(root).root == os.path.realpath(root)
