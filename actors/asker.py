"""Who asks something of a run and why, or says something on it, as it stands on the record and is shown to people and models.

The rule: a name is one short line that can be read, and a reason is short. Anybody who may write the store can ask, and what
could not be repeated in a refusal must not come onto the record in the first place.
"""

from __future__ import annotations

from typing import Final

from affidavit.actors.text import DEFAULT_TEXT_LIMIT

MAX_PRINCIPAL: Final = 128
MAX_REASON: Final = 4096
MAX_SAID: Final = DEFAULT_TEXT_LIMIT


def checked_asker(principal: str, reason: str = "") -> str:
    """Return the name of who asks.

    Args:
        principal: The name.
        reason: Why, in their words.

    Raises:
        ValueError: It names nobody, or is no name: longer than `MAX_PRINCIPAL` characters, or with some that cannot be seen.
            Or the reason is longer than `MAX_REASON` characters.
    """
    if not principal.strip():
        raise ValueError("it must be said by whom this is asked")
    if len(principal) > MAX_PRINCIPAL or not principal.isprintable():
        raise ValueError(f"a name has at most {MAX_PRINCIPAL} characters, all of which can be seen")
    if len(reason) > MAX_REASON:
        raise ValueError(f"a reason has at most {MAX_REASON:,} characters")
    return principal


def checked_words(text: str) -> str:
    """Return what a person says.

    Raises:
        ValueError: It is blank, or longer than `MAX_SAID` bytes as UTF-8.
    """
    if not text.strip():
        raise ValueError("nothing is said: the text is blank")
    if len(text.encode(errors="replace")) > MAX_SAID:
        raise ValueError(f"what is said at once has at most {MAX_SAID:,} bytes")
    return text
