"""The last program before the sandbox: for root it lays out the mounts by descriptor and gives root up; then it becomes bwrap.

Runs alone, with the standard library only and no package around it. Root without capabilities is still root: it owns the
kernel's settings in /proc/sys and the device nodes, and no process limit holds it. So a sandbox is never made as root. The
mounts that the sandbox will use are cloned from the descriptors that were handed over, shown as owned by a user that exists
nowhere else (an id-mapped mount), and root is dropped for good before bwrap starts. An ordinary user needs none of this.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

# Above the ranges that distributions and container managers hand out, below 2^31.
SANDBOX_ID = 0x7000_0000
STAGE = "/tmp"  # noqa: S108  # in a mount namespace of our own, under a file system of our own

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # The same on every architecture.
_AT_EMPTY_PATH, _AT_FDCWD = 0x1000, -100
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_F_EMPTY_PATH = 4
_MOUNT_ATTR_IDMAP = 0x0010_0000
_CLONE_NEWNS, _CLONE_NEWUSER = 0x0002_0000, 0x1000_0000
_MS_REC, _MS_PRIVATE = 0x4000, 0x4_0000


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def main(plan: str, control: str) -> None:
    """Follow the plan, JSON with `parent`, `mounts` (null for an ordinary user) and `argv`, which ends with `control`."""
    told = json.loads(plan)
    with suppress(OSError):
        # If the machine runs out of memory, the sandbox is what the kernel ends first.
        _write("/proc/self/oom_score_adj", "1000")
    try:
        if told["mounts"] is not None:
            lay_out(told["mounts"])
            os.setgroups([])
            os.setresgid(SANDBOX_ID, SANDBOX_ID, SANDBOX_ID)
            os.setresuid(SANDBOX_ID, SANDBOX_ID, SANDBOX_ID)
        if os.getppid() != told["parent"]:
            raise OSError("the process that asked for a sandbox is gone")
        os.execve(told["argv"][0], [*told["argv"], control], {})  # noqa: S606  # no shell is wanted
    except OSError as error:
        sys.exit(f"the sandbox could not be prepared: {error.strerror or error}")


def lay_out(mounts: Mapping[str, Mapping[str, int]]) -> None:
    """Mount each descriptor's directory at `STAGE`/name, in a mount namespace of this process alone.

    Args:
        mounts: By name: `descriptor`, and with `mapped` set the owner's files shown as the sandbox user's.
    """
    trees = {name: _clone(told["descriptor"]) for name, told in mounts.items()}
    for name, told in mounts.items():
        if told["mapped"]:
            _map_owner(trees[name], os.fstat(told["descriptor"]))
    _checked("mount namespace", _libc().unshare(_CLONE_NEWNS))
    _checked("mount", _libc().mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
    _checked("mount", _libc().mount(b"tmpfs", STAGE.encode(), b"tmpfs", 0, b"mode=755"))
    for name, tree in trees.items():
        target = f"{STAGE}/{name}"
        os.mkdir(target)  # noqa: PTH102  # as in _write
        empty = ctypes.c_char_p(b"")
        _syscall(
            _MOVE_MOUNT, tree, empty, _AT_FDCWD, ctypes.c_char_p(target.encode()), _MOVE_MOUNT_F_EMPTY_PATH
        )
        os.close(tree)


def _clone(descriptor: int) -> int:
    flags = _AT_EMPTY_PATH | _OPEN_TREE_CLONE | os.O_CLOEXEC
    return _syscall(_OPEN_TREE, descriptor, ctypes.c_char_p(b""), flags)


def _map_owner(tree: int, owner: os.stat_result) -> None:
    """Show the owner's files on a detached mount as the sandbox user's, and record what that user makes as the owner's."""
    namespace = _user_namespace(owner.st_uid, owner.st_gid)
    attributes = _MountAttributes(_MOUNT_ATTR_IDMAP, 0, 0, namespace)
    size = ctypes.sizeof(attributes)
    _syscall(_MOUNT_SETATTR, tree, ctypes.c_char_p(b""), _AT_EMPTY_PATH, ctypes.byref(attributes), size)
    os.close(namespace)


def _user_namespace(uid: int, gid: int) -> int:
    """Return a descriptor of a user namespace that maps these two to the sandbox user; no process stays in it."""
    made, say_made = os.pipe()
    pid = os.fork()
    if pid == 0:
        failed = _libc().unshare(_CLONE_NEWUSER)
        os.write(say_made, b"n" if failed else b"y")
        signal.pause()
    os.close(say_made)
    try:
        if os.read(made, 1) != b"y":
            raise OSError("a user namespace is refused")
        _write(f"/proc/{pid}/uid_map", f"{uid} {SANDBOX_ID} 1")
        _write(f"/proc/{pid}/gid_map", f"{gid} {SANDBOX_ID} 1")
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(made)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _libc() -> Any:  # noqa: ANN401  # ctypes has no types for what it finds in a library
    return ctypes.CDLL(None, use_errno=True)


def _checked(what: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _syscall(number: int, *arguments: Any) -> int:  # noqa: ANN401  # as above
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    names = {_OPEN_TREE: "open_tree", _MOVE_MOUNT: "move_mount", _MOUNT_SETATTR: "id-mapped mount"}
    return _checked(names[number], int(_libc().syscall(ctypes.c_long(number), *wide)))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:  # noqa: PTH123  # pathlib costs a third of the start
        file.write(text)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
