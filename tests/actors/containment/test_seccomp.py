"""The assembled filter, run step by step as the kernel runs it, against what the tables say."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.containment import refusals
from affidavit.actors.containment.refusals import filter_for
from affidavit.actors.containment.seccomp import ALLOW, FAIL, KILL, Refusal, Where, assemble

MACHINES = ("x86_64", "aarch64")
EPERM = FAIL | errno.EPERM
ENOSYS = FAIL | errno.ENOSYS
FAMILY = FAIL | errno.EAFNOSUPPORT


def verdict(program: bytes, architecture: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """What the kernel would return: an interpreter of the few instructions there are."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("=IIQ6Q", number & 0xFFFF_FFFF, architecture, 0, *padded)
    steps = list(struct.iter_unpack("=HBBI", program))
    at = register = 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        match code:
            case 0x20:
                register = struct.unpack_from("=I", data, value)[0]
            case 0x54:
                register &= value
            case 0x15:
                at += if_true if register == value else if_false
            case 0x35:
                at += if_true if register >= value else if_false
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"no such instruction: {code:#x}")


def rules(machine: str) -> tuple[bytes, refusals._Machine]:
    """The program of a machine and what is known of it."""
    program = filter_for(machine)
    assert program is not None
    return program, refusals._MACHINES[machine]


@pytest.mark.parametrize("machine", MACHINES)
def test_each_call_of_the_tables_fails_with_its_error(machine: str) -> None:
    """Whatever its arguments; and the program is within what the kernel takes."""
    program, known = rules(machine)
    assert len(program) // 8 <= 4096
    for table, expected in ((refusals._FORBIDDEN, EPERM), (refusals._ABSENT, ENOSYS)):
        for pair in table.values():
            number = pair[known.column]
            if number is not None:
                assert verdict(program, known.architecture, number, (-1 & 2**64 - 1,) * 6) == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_other_architectures_and_x32_end_the_process(machine: str) -> None:
    """Their numbers mean other calls."""
    program, known = rules(machine)
    assert verdict(program, 0x4000_0003, 20) == KILL
    assert verdict(program, known.architecture, 0x4000_0000 | 39) == KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_that_nobody_has_looked_at_do_not_exist(machine: str) -> None:
    """A later kernel has more of them; programs are told what an earlier one would tell."""
    program, known = rules(machine)
    assert {verdict(program, known.architecture, number) for number in (468, 500, 512, 547, 100_000)} == {
        ENOSYS
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_are_judged_by_their_arguments(machine: str) -> None:
    """Namespaces by clone, typing into terminals, families of sockets; in the lower half of an argument, which is what counts."""
    program, known = rules(machine)

    def judged(number: int, *arguments: int) -> int:
        return verdict(program, known.architecture, number, arguments)

    assert judged(known.clone, 0x0120_0011) == ALLOW
    for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert judged(known.clone, 0x0120_0011 | bit) == EPERM
    assert judged(known.ioctl, 0, 0x5401) == ALLOW
    for request in (0x5412, 0x541C, 0x5412 | 1 << 32, 0xFFFF_FFFF_0000_5412):
        assert judged(known.ioctl, 0, request) == EPERM
    assert {family for family in range(50) if judged(known.socket, family) == ALLOW} == {1, 2, 10, 16}
    assert {judged(known.socket, family) for family in (17, 38, 40)} == {FAMILY}
    assert {family for family in range(50) if judged(known.socketpair, family) == ALLOW} == {1}


@pytest.mark.parametrize("machine", MACHINES)
def test_modes_with_rights_of_the_owner_fail(machine: str) -> None:
    """In every call that sets a mode; open's last argument counts only when it makes a file."""
    program, known = rules(machine)
    for numbers, mode, flags in refusals._MODES:
        number = numbers[known.column]
        if number is None:
            continue
        for bits, makes, expected in (
            (0o4755, True, EPERM),
            (0o2755, True, EPERM),
            (0o1755, True, ALLOW),
            (0o755, True, ALLOW),
            (0o4755, False, ALLOW if flags is not None else EPERM),
        ):
            arguments = [0, 0, 0, 0]
            arguments[mode] = bits
            if flags is not None:
                arguments[flags] = 0o102 if makes else 0o2
            assert verdict(program, known.architecture, number, tuple(arguments)) == expected


@given(
    number=st.integers(0, 4),
    arguments=st.tuples(*[st.integers(0, 7)] * 3),
    table=st.lists(
        st.tuples(
            st.integers(0, 3),
            st.lists(
                st.tuples(
                    st.integers(0, 2), st.lists(st.integers(0, 7), min_size=1, max_size=3), st.booleans()
                ),
                max_size=3,
            ),
        ),
        max_size=6,
    ),
)
def test_the_assembler_means_what_the_rules_say(
    number: int,
    arguments: tuple[int, int, int],
    table: list[tuple[int, list[tuple[int, list[int], bool]]]],
) -> None:
    """For any rules: the first whose call and conditions all match decides, else it is allowed."""
    made = [
        Refusal(
            call,
            index + 1,
            [Where(argument, values, mask=7, among=among) for argument, values, among in conditions],
        )
        for index, (call, conditions) in enumerate(table)
    ]
    expected = ALLOW if number <= 3 else ENOSYS
    for index, (call, conditions) in enumerate(table):
        holds = all((arguments[argument] in values) is among for argument, values, among in conditions)
        if call == number and holds and number <= 3:
            expected = FAIL | index + 1
            break
    assert verdict(assemble(1, 3, made), 1, number, arguments) == expected


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    """So that there is no sandbox there rather than one without a filter."""
    assert filter_for("riscv64") is None
