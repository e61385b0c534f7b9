"""What a person can do about an error: the half of a sentence that follows what went wrong.

The runtime's errors are written for every program that embeds it, and so name no command; here each gets its next step. The rule:
a sentence that says what to do by itself is left alone, and none is left without.
"""

from __future__ import annotations

import errno
import re
from typing import Final

from affidavit.actors.errors import (
    HostFailed,
    LogClosed,
    LogFull,
    LogLocked,
    LogStateUnknown,
    ModelError,
    RunFinished,
    RunOwned,
    SealRefused,
    SessionFailed,
    StoreDamaged,
    StoreUnusable,
    UnknownGoal,
    UnknownRun,
    WriterFenced,
)
from affidavit.actors.signers.keyfile import KeyFileError
from affidavit.crypto.failures import VerificationError

_VERBS: Final = "add|choose|end|find|get|give|look|make|move|name|open|put|run|say|see|set|start|try|unlock|use|wait|write"
# A command in back quotes, an option, or a verb that tells somebody to do something, at the beginning of a part of the sentence.
# At the very beginning `run` is no verb. What something must be says what to make of it.
_STEP: Final = re.compile(
    rf"`affidavit |(?<!\w)--[a-z]|pip install|(?:^(?!run)|[;:,] (?:or |and )?)(?:{_VERBS})\b|\bmust (?:be|look)\b|: is it running"
)
_ROOM: Final = "make room there and do it again; nothing that was acknowledged is lost"
_ELSEWHERE: Final = "name another place, or get the permission for this one"
_FSCK: Final = "`affidavit fsck` tells what is wrong, and docs/operating.md what to do about it"
_OTHER_FOLDER: Final = "--store names the folder of another store"

# What the reasons for which a store cannot be opened have in them, the first that fits; a test holds them to the sentences.
_STORE: Final = (
    ("there is no store", '`affidavit run "..."` makes one, and --store names another'),
    ("newer version", "use that version, or name another store with --store"),
    ("while it is in use", "end the processes that use it, and try again"),
    ("no room", _ROOM),
    ("damaged", _FSCK),
    ("half made", 'such as `affidavit run "..."`'),
    (
        "is read-only",
        "commands that read work on it; to write, get the permission, or name another store with --store",
    ),
    ("locks", "put the store on a local file system; --store names another folder"),
    ("write-ahead log", "put the store on a local file system; --store names another folder"),
    ("not be read", "get the permission to read it, or name another store with --store"),
    ("cannot be", "see that its folder is there and may be used, or name another store with --store"),
    ("", _OTHER_FOLDER),
)
_KEY_FILE: Final = (
    ("never overwritten", "`affidavit keys show` shows it; to make another, move it away first"),
    ("another key", "move that file away; it is made again"),
    ("not an OpenSSH", "`affidavit keys new` makes one"),
    ("there is no key file", "`affidavit keys new` makes one"),
    ("passphrase", "try again; AFFIDAVIT_PASSPHRASE or AFFIDAVIT_PASSPHRASE_FILE may hold another"),
    ("", "see that it is there, and that you may use it"),
)
_SYSTEM: Final = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: _ROOM,
    errno.ENOENT: "make what is missing, or name another place",
    errno.ENOTDIR: "name another place",
    errno.EISDIR: "name a file in it",
    errno.EACCES: _ELSEWHERE,
    errno.EPERM: _ELSEWHERE,
    errno.EROFS: _ELSEWHERE,
    errno.EMFILE: "end what holds so many files open, or raise the limit with `ulimit -n`",
}
_KINDS: Final[tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...]] = (
    ((StoreDamaged, VerificationError), _FSCK),
    (LogFull, _ROOM),
    (LogLocked, "try again in a moment; if it stays so, find out which process has it open"),
    (
        (LogStateUnknown, LogClosed),
        "look at the disk, then try again: opening the store finds out what stands",
    ),
    (WriterFenced, "see docs/operating.md on what takes a run away from its owner, then try again"),
    (RunOwned, "wait for it, or end it with `affidavit cancel`"),
    (RunFinished, "`affidavit replay` shows how it ended"),
    (SealRefused, "`affidavit seal` signs what a run has recorded so far"),
    (UnknownRun, "`affidavit sessions` lists the runs"),
    (UnknownGoal, "`affidavit replay` shows which goals a run has"),
    ((SessionFailed, HostFailed), "`affidavit resume` goes on with what stands"),
    (ModelError, "see docs/models.md, and that the model and its address are the right ones"),
)


def with_next_step(text: str, error: BaseException) -> str:
    """Return a sentence with what to do at its end, unless it says so by itself.

    Args:
        text: What went wrong.
        error: The error that it is about.
    """
    step = "" if has_step(text) else next_step(error)
    return f"{text}; {step}" if step else text


def has_step(text: str) -> bool:
    """Tell whether a sentence says what to do."""
    return _STEP.search(text) is not None


def next_step(error: BaseException) -> str:
    """Return what a person can do about an error; empty where that hangs on the command alone."""
    match error:
        case StoreUnusable():
            return _first(_STORE, str(error))
        case KeyFileError():
            return _first(_KEY_FILE, str(error))
        case SessionFailed() | HostFailed() if error.__cause__ is not None:
            # What stopped it is what can be done something about.
            return next_step(error.__cause__)
        case OSError():
            return _SYSTEM.get(error.errno or 0, "")
        case _:
            return next((step for kinds, step in _KINDS if isinstance(error, kinds)), "")


def _first(steps: tuple[tuple[str, str], ...], text: str) -> str:
    return next(step for part, step in steps if part in text)
