"""Opens what a sandbox is made from, by descriptor, and writes down how our `outside` program is to make it.

Everything is opened here, once, before anything of the command runs: what a path is made to lead to later changes nothing.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from affidavit.actors.containment import inside, outside
from affidavit.actors.containment.handshake import line
from affidavit.actors.containment.port import ContainmentFailed, Limits
from affidavit.actors.containment.refusals import filter_for
from affidavit.actors.containment.sandbox import FILES, Sources, options, rlimits

INSIDE_AT: Final = "/run/inside.py"
_DIRECTORY: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ALL_IDS: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Our own interpreter, which must be there in the sandbox to run `inside`.

    Attributes:
        program: Its real path.
        folder: The folder it needs, or "/usr".
    """

    program: str
    folder: str

    @classmethod
    def ours(cls) -> Interpreter:
        """Return the one that runs this.

        Raises:
            ContainmentFailed: It does not lie in its own folder, so that it cannot be taken along.
        """
        program, folder = os.path.realpath(sys.executable), os.path.realpath(sys.base_prefix)
        if not within(program, folder):
            raise ContainmentFailed(f"the interpreter {program} does not lie in its folder {folder}")
        return cls(program, folder)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is needed to start one sandbox.

    Attributes:
        argv: The program to start, without the number of the control socket.
        descriptors: What it is to inherit.
        workspace: A descriptor of the workspace.
        status: The reading end of what bwrap tells of itself.
        first_line: The plan for `inside`.
        listen: Whether a socket that listens inside is to come back.
    """

    argv: Sequence[str]
    descriptors: Sequence[int]
    workspace: int
    status: int
    first_line: bytes
    listen: bool


def within(path: str, folder: str) -> bool:
    """Tell whether a real path is a real folder or lies below it."""
    return os.path.commonpath([path, folder]) == folder


def is_root() -> bool:
    """Tell whether this process is the machine's root, and not the root of a user namespace only."""
    if os.geteuid() != 0:
        return False
    return Path("/proc/self/uid_map").read_text(encoding="ascii").split() == ["0", "0", str(_ALL_IDS)]


@contextmanager
def prepare(
    bwrap: str,
    interpreter: Interpreter,
    workspace: str,
    limits: Limits,
    command: Sequence[str],
    *,
    listen: bool,
) -> Iterator[Prepared]:
    """Open everything that one sandbox needs; it is closed with the block.

    Args:
        bwrap: The program's path.
        interpreter: Ours.
        workspace: The workspace's real path.
        limits: What the command may use.
        command: The command.
        listen: Whether a socket that listens inside is wanted.

    Raises:
        ContainmentFailed: Something is not there, or this machine's system calls are not known.
    """
    rules = filter_for(platform.machine())
    if rules is None:
        raise ContainmentFailed(f"no system call filter is known for the machine {platform.machine()}")
    with ExitStack() as stack:
        hold = _Holder(stack)
        folders = {"workspace": hold.directory(workspace)}
        if not within(interpreter.folder, "/usr"):
            folders["interpreter"] = hold.directory(interpreter.folder)
        files = {path: hold.memory(content) for path, content in FILES.items()}
        files[INSIDE_AT] = hold.memory(Path(inside.__file__).read_bytes())
        status, tell = hold.pipe()
        filter_ = hold.memory(rules)
        as_root = is_root()
        sources = Sources(
            workspace=_source("--bind", "workspace", folders, as_root=as_root),
            interpreter=_source("--ro-bind", "interpreter", folders, as_root=as_root),
            interpreter_at=interpreter.folder,
            files=files,
            filter=filter_,
            status=tell,
        )
        start = [interpreter.program, "-I", "-S", INSIDE_AT]
        told = {
            "parent": os.getpid(),
            "mounts": _mounts(folders) if as_root else None,
            "argv": [bwrap, *options(sources, limits), "--", *start],
        }
        yield Prepared(
            argv=[interpreter.program, "-I", "-S", outside.__file__, json.dumps(told)],
            descriptors=[*folders.values(), *files.values(), filter_, tell],
            workspace=folders["workspace"],
            status=status,
            first_line=line(
                {"limits": rlimits(limits), "listen": listen, "folder": None, "command": list(command)}
            ),
            listen=listen,
        )


def _source(option: str, name: str, folders: Mapping[str, int], *, as_root: bool) -> tuple[str, ...]:
    """Return how bwrap is to be told of a folder: by descriptor, or as root by the place where `outside` mounts it."""
    if name not in folders:
        return ()
    if as_root:
        return option, f"{outside.STAGE}/{name}"
    return f"{option}-fd", str(folders[name])


def _mounts(folders: Mapping[str, int]) -> dict[str, dict[str, int]]:
    return {
        name: {"descriptor": number, "mapped": int(name == "workspace")} for name, number in folders.items()
    }


class _Holder:
    """Opens things and closes them with its stack."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def directory(self, path: str) -> int:
        """Open the directory of a real path, and see that it is the one: a folder above it may have been exchanged."""
        try:
            descriptor = self._hold(os.open(path, _DIRECTORY))
        except OSError as error:
            raise ContainmentFailed(f"the directory {path} cannot be opened: {error.strerror}") from error
        if os.readlink(f"/proc/self/fd/{descriptor}") != path:  # noqa: PTH115  # as text
            raise ContainmentFailed(f"the directory {path} cannot be opened: its path leads through a link")
        return descriptor

    def memory(self, content: bytes) -> int:
        descriptor = self._hold(os.memfd_create("sandbox", os.MFD_CLOEXEC))
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def pipe(self) -> tuple[int, int]:
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        return self._hold(reading), self._hold(writing)

    def _hold(self, descriptor: int) -> int:
        self._stack.callback(os.close, descriptor)
        return descriptor
