"""The canonical order of text keys (RFC 8949 section 4.2.1), remembered for key sets that recur.

Bytewise order of the encoded keys is, for text keys alone, shorter first and then bytewise. The memory is a
cache of pure results; it is bounded, since keys come from callers and from hostile records.
"""

from typing import Final

_MAX_SETS: Final = 4096
_MAX_KEYS: Final = 64
_MAX_CHARACTERS: Final = 2048
# The canonical order of a key set, or None where the set is in order as it stands.
_remembered: Final[dict[tuple[str, ...], tuple[str, ...] | None]] = {}


def encoded_rank(key: str) -> tuple[int, bytes]:
    """Return what a text key sorts by.

    Raises:
        UnicodeEncodeError: For a key with a lone surrogate.
    """
    raw = key.encode()
    return len(raw), raw


def reorder(keys: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the keys in canonical order, or None where they are in order as given.

    Args:
        keys: The keys; those of another class than str are refused, unless they equal a set seen before.

    Raises:
        TypeError: For a key that is not a text string.
        UnicodeEncodeError: For a key with a lone surrogate.
    """
    try:
        return _remembered[keys]
    except KeyError:
        for key in keys:
            if key.__class__ is not str:
                raise TypeError("a map key is not a text string") from None
        ordered = tuple(sorted(keys, key=encoded_rank))
    result = None if ordered == keys else ordered
    if len(keys) <= _MAX_KEYS and len(_remembered) < _MAX_SETS and sum(map(len, keys)) <= _MAX_CHARACTERS:
        _remembered[keys] = result
    return result
