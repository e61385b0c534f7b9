"""What a test says to another library: a call by name, and one exception for every refusal."""

from typing import Any, Protocol


class Refused(Exception):
    """The library raised; the argument is the name of the exception's class."""


class Peer(Protocol):
    """Calls a function of `worker.py` in the environment of the other libraries."""

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Return what the function returns."""
        ...


def accepts(peer: Peer, name: str, *arguments: Any) -> bool:
    """Say whether a library accepts: it neither raises nor answers false."""
    try:
        return peer(name, *arguments) is not False
    except Refused:
        return False
