"""Base58 in the Bitcoin alphabet, as the multibase prefix `z` means it in a did:key. Nothing else uses it."""

from typing import Final

_ALPHABET: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUE: Final = {letter: value for value, letter in enumerate(_ALPHABET)}


def encode(data: bytes) -> str:
    """Return the base58 text of some bytes; each leading zero byte becomes a leading `1`."""
    number, letters = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        letters = _ALPHABET[digit] + letters
    return "1" * (len(data) - len(data.lstrip(b"\x00"))) + letters


def decode(text: str) -> bytes:
    """Return the bytes of a base58 text.

    Raises:
        ValueError: For a letter outside the alphabet.
    """
    number = 0
    for letter in text:
        if letter not in _VALUE:
            raise ValueError(f"{letter!r} is no base58 letter")
        number = number * 58 + _VALUE[letter]
    zeros = len(text) - len(text.lstrip("1"))
    return b"\x00" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")
