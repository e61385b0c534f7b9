"""Tells apart what may come out of outside code: a crash of its own, or something that ends more than that code. Pure.

Outside code (a model's client, a tool) may raise anything. A crash is its result; cancellation, Ctrl-C and the end of the loop
are not, and are never swallowed here.
"""

from __future__ import annotations


def stopping_part(error: BaseException) -> BaseException | None:
    """Return the part of an exception that ends more than the code it came from.

    Args:
        error: An exception, perhaps a group.

    Returns:
        The error itself if it is nothing else, the part of a group that is, or None for a plain crash. Code that asks for the
        program's exit has crashed: that is not its to decide.
    """
    if isinstance(error, BaseExceptionGroup):
        stop, crash = error.split(_stops)
        return error if crash is None else stop
    return error if _stops(error) else None


def words_of(error: BaseException) -> str:
    """Return an exception's message; total, since an exception's own `__str__` may fail."""
    try:
        return str(error)
    except Exception as second:  # outside code again
        return f"(no message: its __str__ raised {type(second).__name__})"


def _stops(error: BaseException) -> bool:
    return not isinstance(error, Exception | SystemExit | BaseExceptionGroup)
