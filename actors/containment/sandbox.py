"""What a sandbox is made of, as the arguments of bwrap: the one place that says what a contained command can see.

The root is empty but for what is named here: the system's programs and libraries, read-only; a few files of /etc, among them a
user database of one user; an own /proc, /dev and /tmp; and the workspace, the only thing in it that outlives the command. The
homes, the store and the keys are not hidden in it: they are not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from affidavit.actors.containment.port import MIB, Limits

WORKSPACE: Final = "/workspace"
HOME: Final = "/tmp"  # noqa: S108  # the sandbox's own, which ends with it
USER_ID: Final = 1000
SHARED_MEMORY_BYTES: Final = 64 * MIB
MEMORY_MOUNTS: Final = ("/tmp", "/dev/shm")  # noqa: S108  # as above

_TOP: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC: Final = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/protocols",
    "/etc/services",
)
FILES: Final[Mapping[str, bytes]] = {
    "/etc/passwd": f"agent:x:{USER_ID}:{USER_ID}::{HOME}:/bin/sh\n".encode(),
    "/etc/group": f"agent:x:{USER_ID}:\n".encode(),
    "/etc/hosts": b"127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
}


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the outside of a sandbox comes from.

    Attributes:
        workspace: The two arguments of bwrap that name the workspace, such as `--bind-fd` and a number.
        interpreter: The same for the folder of our interpreter; empty where that lies in /usr.
        interpreter_at: The path of that folder, which is its path inside too.
        files: A descriptor for each of `FILES`, by path, with its content.
        filter: A descriptor with the system call filter.
        status: A descriptor that bwrap writes its status to.
    """

    workspace: tuple[str, ...]
    interpreter: tuple[str, ...]
    interpreter_at: str
    files: Mapping[str, int]
    filter: int
    status: int


def options(sources: Sources, limits: Limits) -> list[str]:
    """Return the options of bwrap for one run."""
    scratch = min(limits.disk_bytes, limits.memory_bytes)
    built = [
        *("--unshare-all", "--unshare-user", "--disable-userns"),
        *("--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"),
        *("--uid", str(USER_ID), "--gid", str(USER_ID), "--hostname", "sandbox"),
        *("--ro-bind", "/usr", "/usr"),
        *_system_folders(_TOP),
        *_flat(("--ro-bind-try", path, path) for path in _ETC),
        *_flat(("--ro-bind-data", str(number), path) for path, number in sources.files.items()),
        *("--proc", "/proc", "--remount-ro", "/proc"),
        *("--dev", "/dev", "--size", str(min(SHARED_MEMORY_BYTES, scratch)), "--perms", "1777"),
        *("--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108  # the sandbox's own
        *("--size", str(scratch), "--perms", "1777", "--tmpfs", "/tmp"),  # noqa: S108  # the sandbox's own
    ]
    if sources.interpreter:
        built += [*sources.interpreter, sources.interpreter_at]
    built += [*sources.workspace, WORKSPACE, "--chdir", WORKSPACE, "--remount-ro", "/"]
    return [*built, "--seccomp", str(sources.filter), "--json-status-fd", str(sources.status)]


def rlimits(limits: Limits) -> dict[str, int]:
    """Return the kernel's limits for one process, by their names in `resource`."""
    return {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": limits.cpu_seconds,
        "RLIMIT_FSIZE": limits.file_bytes,
        # Counted in the sandbox's own user namespace, init included; the user's processes outside do not count there.
        "RLIMIT_NPROC": limits.processes + 1,
        "RLIMIT_NOFILE": limits.open_files,
        # Private memory counts here when it may be used. Address space is only a backstop: runtimes reserve far more of it
        # than they ever use.
        "RLIMIT_DATA": limits.memory_bytes,
        "RLIMIT_AS": 16 * limits.memory_bytes,
        "RLIMIT_MEMLOCK": 64 * 1024,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_SIGPENDING": 1024,
        "RLIMIT_RTPRIO": 0,
    }


def base_environment() -> dict[str, str]:
    """Return the variables that every sandboxed command has."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
        "HOME": HOME,
        "TMPDIR": HOME,
        "LANG": "C.UTF-8",
        "USER": "agent",
        "SHELL": "/bin/sh",
    }


def _system_folders(paths: Iterable[str]) -> list[str]:
    """Return each top folder as what it is on this system: a link into /usr, or a folder of its own."""
    found: list[str] = []
    for path in paths:
        if os.path.islink(path):  # noqa: PTH114  # a plain string in, a plain string out
            found += ["--symlink", os.readlink(path), path]  # noqa: PTH115  # as above
        else:
            found += ["--ro-bind-try", path, path]
    return found


def _flat(groups: Iterable[tuple[str, ...]]) -> list[str]:
    return [part for group in groups for part in group]
