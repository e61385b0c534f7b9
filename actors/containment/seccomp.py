"""Assembles the system call filter of a sandbox: a classic BPF program, as the kernel takes it (seccomp(2), bpf in filter.txt).

The filter refuses calls and never rewrites one. What it refuses, and why, is `refusals`; this is only the assembler. A call
made by another architecture's rules than the machine's own ends the process, since the numbers would mean other calls.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LOAD_WORD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
JUMP_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
RETURN: Final = 0x06  # BPF_RET | BPF_K
ALLOW: Final = 0x7FFF_0000
KILL: Final = 0x8000_0000
FAIL: Final = 0x0005_0000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X32: Final = 0x4000_0000
_ALL: Final = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on one argument: its low 32 bits, masked, equal to one of some values (or to none of them).

    Attributes:
        argument: Which one, from 0.
        values: What it is compared with.
        mask: The bits that count.
        among: True to match one of the values, False to match anything else.
    """

    argument: int
    values: Sequence[int]
    mask: int = _ALL
    among: bool = True


@dataclass(frozen=True, slots=True)
class Refusal:
    """One rule: this call, under all these conditions, fails with this error.

    Attributes:
        number: The system call's number on this machine.
        error: The error number that the caller gets.
        where: Conditions that must all hold; none for always.
    """

    number: int
    error: int
    where: Sequence[Where] = ()


def assemble(architecture: int, newest: int, refusals: Sequence[Refusal]) -> bytes:
    """Return the program for one architecture.

    Args:
        architecture: Its AUDIT_ARCH number.
        newest: The highest number that was looked at; calls above it fail as if the kernel had none.
        refusals: The rules; the first that matches stands, and what none matches is allowed.
    """
    program = [
        _load(_ARCHITECTURE),
        _step(JUMP_EQUAL, architecture, 1, 0),
        _step(RETURN, KILL),
        _load(_NUMBER),
        _step(JUMP_AT_LEAST, _X32, 0, 1),
        _step(RETURN, KILL),
        _step(JUMP_AT_LEAST, newest + 1, 0, 1),
        _step(RETURN, FAIL | errno.ENOSYS),
    ]
    for refusal in refusals:
        body = _conditions(refusal)
        # Each rule loads the number afresh, since the one before may have left an argument there.
        program += [_load(_NUMBER), _step(JUMP_EQUAL, refusal.number, 0, len(body)), *body]
    program.append(_step(RETURN, ALLOW))
    return b"".join(program)


def _conditions(refusal: Refusal) -> list[bytes]:
    """Return the steps after the number matched: they end the program if all hold, else fall through to the next rule."""
    steps = [_step(RETURN, FAIL | refusal.error)]
    for where in reversed(refusal.where):
        count = len(where.values)
        test: list[bytes] = []
        for index, value in enumerate(where.values):
            rest = count - index - 1
            if (
                where.among
            ):  # A match goes on to what follows this condition; no match at all leaves the rule.
                test.append(_step(JUMP_EQUAL, value, rest, 0 if rest else len(steps)))
            else:
                test.append(_step(JUMP_EQUAL, value, rest + len(steps), 0))
        steps = [_load(_ARGUMENTS + 8 * where.argument), _step(AND, where.mask), *test, *steps]
    return steps


def _load(offset: int) -> bytes:
    return _step(LOAD_WORD, offset)


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
