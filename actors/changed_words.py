"""What changed since a run was last driven, in words: for the refusal to resume it, and for the event that records it."""

from __future__ import annotations

from collections.abc import Iterable


def changed_words(names: Iterable[str]) -> str:
    """Return the names of parts as words, such as `another model and other tools`."""
    return " and ".join(f"other {name}" if name.endswith("s") else f"another {name}" for name in names)
