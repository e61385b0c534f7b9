"""What a level of containment does: run one command within limits, and be sure that all of it is gone afterwards.

A level returns an `Outcome` for whatever the command did, its misdeeds included, and raises only when it could not hold the
command: then nothing was run. No level decides whether it is enough for a command; see `levels`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from hashlib import sha256
from typing import Final, Protocol
from urllib.parse import urlsplit

from affidavit.actors.containment.levels import Level
from affidavit.actors.errors import ActorError, ConfigurationError

MIB: Final = 1024 * 1024
LEAST_MEMORY: Final = 64 * MIB
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost"})


class ContainmentFailed(ActorError):
    """The command could not be held as asked, and was not run."""


class Struck(StrEnum):
    """The limit that ended a command; the empty one says that it ended by itself."""

    NOTHING = ""
    WALL = "wall"
    CPU = "cpu"
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one command may use, all its processes together unless said otherwise.

    Attributes:
        wall_seconds: Time from its start to its end.
        cpu_seconds: Processor time.
        memory_bytes: Memory, what lies in /tmp and /dev/shm included; also the most private memory of one process.
        processes: Processes and threads at once.
        open_files: Open files of one process.
        file_bytes: The size of one file that it writes.
        disk_bytes: How much its workspace may grow, and the size of its /tmp (never above memory_bytes).
        output_bytes: What it may print, standard output and error together.
        kept_bytes: How much of each of the two is kept: the first half of it and the last.
    """

    wall_seconds: float = 60.0
    cpu_seconds: int = 120
    memory_bytes: int = 2048 * MIB
    processes: int = 128
    open_files: int = 512
    file_bytes: int = 256 * MIB
    disk_bytes: int = 512 * MIB
    output_bytes: int = 64 * MIB
    kept_bytes: int = 128 * 1024

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) <= 0:
                raise ConfigurationError(f"the limit {field.name} must be more than 0")
        if self.memory_bytes < LEAST_MEMORY:
            raise ConfigurationError(f"the limit memory_bytes must be at least {LEAST_MEMORY}")


@dataclass(frozen=True, slots=True)
class Captured:
    """What was printed on one of the two outputs.

    Attributes:
        head: The kept bytes, from the beginning.
        tail: The last bytes, if some between had to be left out.
        length: How many bytes there were in all.
        sha256: The digest of all of them.
    """

    head: bytes = b""
    tail: bytes = b""
    length: int = 0
    sha256: bytes = sha256().digest()

    @property
    def left_out(self) -> int:
        """How many bytes between head and tail were not kept."""
        return self.length - len(self.head) - len(self.tail)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended. By the time it is returned no process of the command is left.

    Attributes:
        exit_code: Its exit code; None if a signal ended it.
        signal: The signal that ended it, if one did. Under `kernel` this is read off an exit code above 128, as a shell tells it.
        stdout: What it printed.
        stderr: What it printed as errors.
        struck: The limit that ended it, if one did.
        seconds: How long it ran.
    """

    exit_code: int | None
    signal: int | None
    stdout: Captured
    stderr: Captured
    struck: Struck
    seconds: float


@dataclass(frozen=True, slots=True)
class ProxyRoute:
    """Where a forward proxy on this machine's loopback listens, the only network that a contained command gets.

    Attributes:
        port: Its TCP port on 127.0.0.1.
        userinfo: The credential it asks for, as in a URL (`name:secret`); empty for none.
    """

    port: int
    userinfo: str = ""

    @classmethod
    def from_url(cls, url: str) -> ProxyRoute:
        """Read it from a URL such as `http://name:secret@127.0.0.1:8080`.

        Raises:
            ConfigurationError: It is no http URL of a port on 127.0.0.1.
        """
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = None
        if parts.scheme != "http" or parts.hostname not in _LOOPBACK or port is None:
            raise ConfigurationError("the proxy for commands must be an http URL with a port on 127.0.0.1")
        return cls(port, parts.netloc.rpartition("@")[0])

    def environment(self, port: int) -> dict[str, str]:
        """Return the variables by which programs find the proxy.

        Args:
            port: The port on the command's own loopback.
        """
        credential = f"{self.userinfo}@" if self.userinfo else ""
        url = f"http://{credential}127.0.0.1:{port}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        # An empty NO_PROXY, so that no exception is taken from elsewhere.
        pairs = dict.fromkeys(names, url) | {"NO_PROXY": ""}
        return pairs | {name.lower(): value for name, value in pairs.items()}


class Containment(Protocol):
    """One level of containment, ready to run commands."""

    @property
    def level(self) -> Level:
        """How strongly it holds a command."""
        ...

    async def run(
        self,
        command: Sequence[str],
        *,
        limits: Limits,
        workspace: str,
        environment: Mapping[str, str],
        proxy: ProxyRoute | None = None,
    ) -> Outcome:
        """Run a command and wait until it and every process that came of it are gone.

        Args:
            command: The program and its arguments; no shell reads them.
            limits: What it may use.
            workspace: The directory it works in, by its real path.
            environment: Variables it gets beside the level's own few; nothing of ours is inherited.
            proxy: The proxy it may reach; None for no network where the level can take it away.

        Raises:
            ContainmentFailed: It could not be held; nothing was run.

        Cancellation: all its processes are killed, and gone before this returns.
        """
        ...


def check_command(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Refuse what the system has no form for.

    Raises:
        ContainmentFailed: The command or its program's name is empty, or a text has a NUL or is not valid Unicode.
    """
    if not command or not command[0]:
        raise ContainmentFailed("the command is empty")
    for text in (*command, *environment, *environment.values()):
        if "\0" in text:
            raise ContainmentFailed("a command and its environment cannot hold a NUL character")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ContainmentFailed("a command and its environment must be valid Unicode") from error
    if any(not name or "=" in name for name in environment):
        raise ContainmentFailed("the name of an environment variable cannot be empty or hold '='")
