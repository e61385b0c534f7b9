"""Numbers and lists in words, for the sentences on a policy."""

from __future__ import annotations


def many(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 turn` or `1,000 turns`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(names: tuple[str, ...], last: str = "and") -> str:
    """Return names as one enumerates them: `a, b and c`. There is at least one."""
    *first, end = names
    return f"{', '.join(first)} {last} {end}" if first else end
