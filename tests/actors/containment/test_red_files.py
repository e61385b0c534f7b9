"""Attacks on the file system from inside a sandbox: write outside, read what is not its own, lead us elsewhere by links."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import pytest
import trio

from affidavit.actors.containment.bubblewrap import Bubblewrap
from affidavit.actors.containment.held import open_sandbox
from affidavit.actors.containment.plan import Interpreter, prepare
from affidavit.actors.containment.port import ContainmentFailed
from affidavit.actors.errors import ToolFailed
from affidavit.actors.toolbox.run_command import CommandTool
from tests.actors.containment.kit import LIMITS, printed, run, run_python

WRITE_EVERYWHERE = """
import os, json
done = []
def attempt(name, work):
    try: work(); done.append(name)
    except OSError: pass
for folder, _, names in os.walk('/'):
    if folder.startswith(('/workspace', '/tmp', '/dev/shm', '/dev/pts')): continue
    attempt(folder, lambda: os.close(os.open(folder + '/planted', os.O_CREAT | os.O_WRONLY)))
    attempt(folder, lambda: os.chmod(folder, 0o777))
    for name in names if folder.startswith(('/etc', '/run', '/dev', '/proc/sys', '/proc/1', '/proc/self')) else ():
        path = folder + '/' + name
        if os.path.islink(path) or path.startswith(('/dev/null', '/dev/zero', '/dev/full', '/dev/tty', '/dev/ptmx',
            '/dev/random', '/dev/urandom', '/dev/pts')): continue
        attempt(path, lambda: os.close(os.open(path, os.O_WRONLY)))
        attempt(path, lambda: os.chmod(path, 0o777))
print(json.dumps(done))
"""


async def test_nothing_but_the_workspace_can_be_written(kernel: Bubblewrap, work: Path) -> None:
    """No folder outside it takes a file, and no file there opens for writing or takes a mode; /proc and /dev included."""
    assert json.loads(printed(await run_python(kernel, work, WRITE_EVERYWHERE))) == []


@pytest.mark.parametrize(
    "path",
    [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/swappiness",
        "/proc/sysrq-trigger",
        "/proc/self/oom_score_adj",
    ],
)
async def test_the_kernels_settings_cannot_be_set(kernel: Bubblewrap, work: Path, path: str) -> None:
    """Not even to what they are."""
    outcome = await run(kernel, work, f"echo 0 >> {path}")
    assert outcome.exit_code != 0


async def test_device_nodes_keep_their_mode(kernel: Bubblewrap, work: Path) -> None:
    """They are the machine's own: whoever could change one would change it for all."""
    before = os.stat("/dev/null").st_mode  # noqa: PTH116  # trio's check knows only the methods
    for node in ("null", "zero", "full", "random", "urandom", "tty"):
        outcome = await run(kernel, work, f"chmod 600 /dev/{node}")
        assert outcome.exit_code != 0
    assert os.stat("/dev/null").st_mode == before  # noqa: PTH116  # as above


async def test_what_was_not_given_is_not_there(kernel: Bubblewrap, work: Path, tmp_path: Path) -> None:
    """The homes, the store, the keys, other workspaces, the system's secrets, our own files in /tmp: no such file."""
    paths = [
        tmp_path / "secret",
        work,
        Path.home() / ".ssh",
        Path.home() / ".local",
        Path(__file__),
        *map(
            Path,
            (
                "/etc/shadow",
                "/etc/ssh",
                "/etc/machine-id",
                "/var",
                "/home",
                "/mnt",
                "/sys",
                "/boot",
                "/opt",
                "/srv",
            ),
        ),
        *map(
            Path,
            (
                "/run/docker.sock",
                "/run/user",
                "/dev/mem",
                "/dev/kmsg",
                "/dev/sda",
                "/dev/vda",
                "/dev/kvm",
                "/dev/fuse",
            ),
        ),
    ]
    tests = "; ".join(f"[ ! -e '{path}' ] || echo '{path}'" for path in paths)
    assert printed(await run(kernel, work, f"{tests}; true")) == ""


async def test_the_workspaces_owner_owns_what_is_made(kernel: Bubblewrap, work: Path, as_root: None) -> None:
    """As root the sandbox is nobody's; what it makes in a user's workspace is that user's, and others' files stay theirs."""
    (work / "theirs").write_text("x")
    os.chown(work, 4321, 4322)
    outcome = await run(
        kernel, work, "echo y > made; echo y > theirs; chmod 777 theirs; rm -f /workspace/../etc/passwd"
    )
    made, theirs = os.stat(work / "made"), os.stat(work / "theirs")  # noqa: PTH116  # trio's check knows only the methods
    assert (made.st_uid, made.st_gid, theirs.st_uid) == (4321, 4322, 0)
    assert b"theirs" in outcome.stderr.head


async def test_links_lead_nowhere(kernel: Bubblewrap, work: Path, tmp_path: Path) -> None:
    """Links, absolute or climbing, planted before or made inside, resolve within the sandbox."""
    (work / "absolute").symlink_to(tmp_path / "secret")
    (work / "climbing").symlink_to("../secret")
    (work / "folder").symlink_to(tmp_path)
    (work / "proc").symlink_to("/proc/1/root")
    script = (
        f"ln -s {tmp_path}/secret made; ln -s / root; cat absolute climbing folder/secret proc{tmp_path}/secret "
        f"made root{tmp_path}/secret ../secret ../../../..{tmp_path}/secret /proc/self/root{tmp_path}/secret "
        f"/proc/self/cwd/../secret; for fd in /proc/*/fd/*; do cat $fd/../secret $fd{tmp_path}/secret; done"
    )
    outcome = await run(kernel, work, script)
    assert b"SECRET" not in outcome.stdout.head
    assert b"No such file" in outcome.stderr.head


async def test_hard_links_cannot_be_made_across(kernel: Bubblewrap, work: Path) -> None:
    """A file of the system cannot be linked into the workspace, where it would be writable."""
    assert (await run(kernel, work, "ln /usr/bin/env here")).exit_code != 0
    assert not (work / "here").exists()  # noqa: ASYNC240  # a test may touch its own disk


async def test_a_workspace_that_is_swapped_is_not_followed(
    kernel: Bubblewrap, tmp_path: Path, work: Path
) -> None:
    """Between opening the workspace and mounting it somebody puts a link in its place: the sandbox does not hold the target."""
    (work / "mark").write_text("the workspace")
    other = tmp_path / "other"
    other.mkdir()
    (other / "mark").write_text("SECRET")
    program = shutil.which("bwrap")
    assert program is not None
    with prepare(program, Interpreter.ours(), str(work), LIMITS, ["cat", "mark"], listen=False) as prepared:
        os.rename(work, tmp_path / "away")  # noqa: PTH104  # trio's check knows only the methods
        os.symlink(other, work)  # noqa: PTH211  # as above
        try:
            sandbox = await open_sandbox(prepared)
        except ContainmentFailed:
            return
        out, err = sandbox.take_outputs()
        os.close(err)
        await sandbox.go({"PATH": "/usr/bin"})
        await sandbox.ended()
        assert os.read(out, 100) == b"the workspace"
        os.close(out)
        await sandbox.close()


async def test_a_workspace_whose_path_has_become_a_link_is_refused(
    kernel: Bubblewrap, tmp_path: Path, work: Path
) -> None:
    """A folder above it is another agent's workspace, who has put a link in the place of this one, or above it."""
    other = tmp_path / "other"
    (other / "inner").mkdir(parents=True)
    (other / "inner" / "mark").write_text("SECRET")
    for name in ("inner", "outer/inner"):
        (work / name).mkdir(parents=True, exist_ok=True)
        tool = CommandTool(kernel, str(work / name)).tool
        first = name.split("/")[0]
        (work / first).rename(work / f"was-{first}")
        (work / first).symlink_to(other / "inner" if first == name else other)
        with pytest.raises(ToolFailed, match="leads through a link"):
            await tool.run({"command": "cat mark"})


async def test_a_folder_that_is_exchanged_while_it_is_opened_is_found_out(tmp_path: Path, work: Path) -> None:
    """What was looked at and what was opened are one directory, or nothing is run."""
    (tmp_path / "link").symlink_to(work)
    (work / "inner").mkdir()
    path = str(tmp_path / "link" / "inner")
    made = prepare("bwrap", Interpreter.ours(), path, LIMITS, ["true"], listen=False)
    with pytest.raises(ContainmentFailed, match="leads through a link"), made:
        pass


async def test_the_store_and_the_keys_cannot_be_part_of_a_workspace(
    tmp_path: Path, work: Path, kernel: Bubblewrap
) -> None:
    """Neither around them, nor in them, nor through a link."""
    store = work / "data" / "store"
    store.mkdir(parents=True)
    (tmp_path / "link").symlink_to(store)
    held = Bubblewrap(withheld=[str(store)])
    for inside in (work, work / "data", store, tmp_path / "link"):
        with pytest.raises(ContainmentFailed, match="must stay out"):
            await run(held, inside, "true")
    (work / "beside").mkdir()
    assert printed(await run(held, work / "beside", "echo ran")) == "ran"


async def test_two_runs_see_nothing_of_each_other(kernel: Bubblewrap, tmp_path: Path) -> None:
    """Neither processes, nor /tmp, nor shared memory, nor the other's workspace."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    os.mkfifo(one / "up")
    os.mkfifo(two / "over")
    plant = "echo SECRET-ARG > /tmp/planted; echo x > /dev/shm/planted; echo x > up; sleep 1000 & echo $! > pid; wait"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, kernel, one, plant)
        await trio.to_thread.run_sync((one / "up").read_text)
        look = "ls /tmp /dev/shm; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls /workspace"
        seen = printed(await run(kernel, two, look))
        nursery.cancel_scope.cancel()
    assert "planted" not in seen
    assert "SECRET-ARG" not in seen


async def test_no_file_is_left_that_runs_with_its_owners_rights(kernel: Bubblewrap, work: Path) -> None:
    """The bits cannot be set in any way that sets a mode; else a user of this machine could become the workspace's owner."""
    script = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "held = os.open('kept', os.O_CREAT | os.O_WRONLY, 0o755)\n"
        "for way in (lambda: os.chmod('kept', 0o4755), lambda: os.fchmod(held, 0o2755),\n"
        "    lambda: os.chmod('kept', 0o6755, dir_fd=os.open('.', os.O_RDONLY)),\n"
        "    lambda: os.close(os.open('made', os.O_CREAT | os.O_WRONLY, 0o4755)),\n"
        "    lambda: os.close(os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755)),\n"
        "    lambda: os.mknod('node', 0o104755)):\n"
        "    try: way(); print('set')\n"
        "    except PermissionError: pass\n"
        "print(libc.syscall(452, -100, b'kept', 0o4755, 0))\n"
        "os.close(os.open('kept', os.O_RDONLY, 0o4755))\n"
        "os.chmod('kept', 0o700)\n"
    )
    assert printed(await run_python(kernel, work, script)) == "-1"
    for path in work.iterdir():  # noqa: ASYNC240  # a test may touch its own disk
        assert not path.stat().st_mode & 0o6000
    assert stat.S_IMODE(os.stat(work / "kept").st_mode) == 0o700  # noqa: PTH116  # as above


async def test_no_mount_gives_rights_or_devices(kernel: Bubblewrap, work: Path) -> None:
    """No set-user-id program works on any; devices only on those of /dev; and only what is the sandbox's own can be written."""
    for line in printed(await run(kernel, work, "cat /proc/self/mountinfo")).splitlines():
        place, options = line.split()[4], set(line.split()[5].split(","))
        assert "nosuid" in options, line
        assert "nodev" in options or place.startswith("/dev/"), line
        assert "ro" in options or place in {"/workspace", "/tmp", "/dev/shm"} or place.startswith("/dev/"), (
            line
        )


async def test_devices_cannot_be_made_or_used(kernel: Bubblewrap, work: Path, as_root: None) -> None:
    """Not made inside, and one that lies in the workspace cannot be opened."""
    os.mknod(work / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    (work / "zero").chmod(0o666)
    outcome = await run(kernel, work, "mknod made c 1 3; head -c 1 zero && echo read")
    assert outcome.stdout.length == 0
    assert not (work / "made").exists()  # noqa: ASYNC240  # as above
