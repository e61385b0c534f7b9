"""Finds out, once per process, whether this machine can hold a command at the level `kernel`, by holding one and looking.

That bwrap is installed says little: user namespaces may be switched off, the file system of a workspace may not be one that can
be mounted for another user, a filter may be missing. So a command is run, and what it saw of itself must show every protection.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from affidavit.actors.containment.bubblewrap import Bubblewrap
from affidavit.actors.containment.levels import Level
from affidavit.actors.containment.port import Containment, ContainmentFailed, Limits, Outcome

_LOOK: Final = "cat /proc/self/status && readlink /proc/self/ns/net && : > probe"
_SHOWS: Final = {
    "the command has capabilities": rb"^CapEff:\s+0+$",
    "the command can gain privileges": rb"^NoNewPrivs:\s+1$",
    "there is no system call filter": rb"^Seccomp:\s+2$",
}
_known: Final[dict[tuple[str | None, tuple[str, ...]], Availability]] = {}


@dataclass(frozen=True, slots=True)
class Availability:
    """What this machine can do.

    Attributes:
        containment: The level `kernel`, ready for use; None where it does not work.
        reason: Why it does not; empty where it does.
    """

    containment: Containment | None
    reason: str

    @property
    def level(self) -> Level:
        """The strongest level there is here."""
        return Level.NONE if self.containment is None else self.containment.level


async def detect(*, withheld: Sequence[str] = (), program: str | None = None) -> Availability:
    """Tell whether commands can be held at the level `kernel` here. The answer is remembered for the life of this process.

    Args:
        withheld: Paths that no sandbox may contain: the store, files with a secret.
        program: The path of bwrap; None looks for it in PATH.

    Cancellation: the probe is ended, and nothing is remembered.
    """
    key = program, tuple(withheld)
    if key not in _known:
        _known[key] = await _probe(program, withheld)
    return _known[key]


async def _probe(program: str | None, withheld: Sequence[str]) -> Availability:
    try:
        found = Bubblewrap(program=program, withheld=withheld)
        with tempfile.TemporaryDirectory(prefix="affidavit-probe-", dir=_scratch()) as folder:
            outcome = await found.run(
                ["/bin/sh", "-c", _LOOK], limits=Limits(), workspace=folder, environment={}
            )
    except (ContainmentFailed, OSError) as error:
        return Availability(None, str(error))
    lacking = _lacking(outcome)
    return Availability(None, lacking) if lacking else Availability(found, "")


def _scratch() -> str:
    # A sandbox takes real paths alone, and this one is often a link.
    return os.path.realpath(tempfile.gettempdir())


def _lacking(outcome: Outcome) -> str:
    """Return which protection the probe did not see, or an empty text."""
    if outcome.exit_code != 0:
        said = outcome.stderr.head.decode(errors="replace").strip() or f"it ended with {outcome.exit_code}"
        return f"a command in the sandbox fails: {said}"
    seen = outcome.stdout.head
    for lack, pattern in _SHOWS.items():
        if not re.search(pattern, seen, re.MULTILINE):
            return lack
    if seen.rstrip().endswith(os.readlink("/proc/self/ns/net").encode()):  # noqa: PTH115  # as text
        return "the command shares our network"
    return ""
