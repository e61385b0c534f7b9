"""The workspace tools: no path, link or race leads outside, and nothing is left open."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from affidavit.actors.errors import ConfigurationError, ToolFailed
from affidavit.actors.toolbox import reading
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.actors.toolbox.workspace import WorkspaceTools
from tests.actors.toolbox.workspaces import SECRET, call, read


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
    ("path", "put", "said"),
    [
        ("README.md", lambda path: path.symlink_to("../secret.txt"), "cannot be opened"),
        ("README.md", os.mkfifo, "not a regular file"),
        ("README.md", lambda path: path.mkdir(), "not a regular file"),
        ("src/main.py", lambda path: path.symlink_to("../../secret.txt"), "cannot be opened"),
    ],
)
async def test_a_file_exchanged_after_the_look_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, path: str, put: Any, said: str
) -> None:
    """Between check and opening a file becomes a link, a pipe or a directory: refused, not waited for."""
    exchange(monkeypatch, root / path, put)
    with pytest.raises(ToolFailed, match=said):
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


async def test_what_is_kept_back_is_not_read_by_any_name(root: Path) -> None:
    """A store and a file with a secret that lie in the workspace: by path, by link, by hard link, in a listing, in a search."""
    store = root / "data" / "store"
    store.mkdir(parents=True)
    (store / "runs").write_text(SECRET)
    (root / "passphrase").write_text(SECRET)
    (root / "link").symlink_to("data/store/runs")
    (root / "folder").symlink_to("data/store")
    (root / "hard").hardlink_to(root / "passphrase")
    tools = Toolbox(WorkspaceTools(root, keep_back=(store, root / "passphrase", root / "absent")).tools)
    for path in ("data/store/runs", "passphrase", "link", "folder/runs", "hard", "data/store/../store/runs"):
        with pytest.raises(ToolFailed, match="withheld"):
            await tools["read_file"].run({"path": path})
    for name in ("list_dir", "search_text"):
        with pytest.raises(ToolFailed, match="withheld"):
            await tools[name].run({"path": "data/store", **({"pattern": "x"} if name != "list_dir" else {})})
    assert "no match" in await tools["search_text"].run({"pattern": SECRET})
    assert "hello" in await tools["read_file"].run({"path": "src/main.py"})


async def test_a_workspace_whose_path_has_become_a_link_is_not_followed(root: Path) -> None:
    """A folder above it may be another agent's workspace, who puts a link in the place of this one, or above it."""
    work = root / "a" / "work"
    work.mkdir(parents=True)
    tools = Toolbox(WorkspaceTools(work).tools)
    other = root.parent / "other"
    (other / "work").mkdir(parents=True)
    (other / "work" / "file").write_text(SECRET)
    (root / "a").rename(root / "away")
    (root / "a").symlink_to(other)
    with pytest.raises(ToolFailed, match="not where it was"):
        await tools["read_file"].run({"path": "file"})
