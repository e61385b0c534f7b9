"""Attacks on the kernel and on other processes from inside a sandbox."""

from __future__ import annotations

import errno
import json
import os
import platform
import signal
from pathlib import Path

import pytest

from affidavit.actors.containment import refusals
from affidavit.actors.containment.bubblewrap import Bubblewrap
from tests.actors.containment.kit import printed, run, run_python

CALLS = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
found = {}
for name, number in json.loads(sys.argv[1]).items():
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *([ctypes.c_long(0)] * 6))
    found[name] = ctypes.get_errno() if result == -1 else 0
print(json.dumps(found))
"""
STATUS = r"import re; print(re.findall(r'^(?:Cap\w+|NoNewPrivs|Seccomp):.*$', open('/proc/self/status').read(), re.M))"


async def test_calls_that_namespaces_do_not_cover_fail(kernel: Bubblewrap, work: Path) -> None:
    """Each with its own error, whatever its arguments."""
    column = refusals._MACHINES[platform.machine()].column
    expected: dict[str, int] = {}
    numbers: dict[str, int] = {}
    for table, error in ((refusals._FORBIDDEN, errno.EPERM), (refusals._ABSENT, errno.ENOSYS)):
        for name, pair in table.items():
            number = pair[column]
            if number is not None:
                numbers[name], expected[name] = number, error
    outcome = await run_python(kernel, work, CALLS, json.dumps(numbers))
    assert json.loads(printed(outcome)) == expected


async def test_no_capability_and_no_way_to_one(kernel: Bubblewrap, work: Path) -> None:
    """All five sets are empty, no program raises them, and a filter stands."""
    seen = printed(await run_python(kernel, work, STATUS))
    assert seen.count("0000000000000000") == 5
    assert "NoNewPrivs:\\t1" in seen
    assert "Seccomp:\\t2" in seen


@pytest.mark.parametrize(
    "command",
    [
        "unshare -U true",
        "unshare -r -m true",
        "unshare -n true",
        "mount -t tmpfs none /tmp",
        "mount -o remount,rw /usr",
        "umount /proc",
        "chroot /tmp true",
        "su -c true",
        "hostname other",
        "date -s 12:00",
        "dmesg",
        "nsenter -t 1 -m true",
    ],
)
async def test_the_usual_programs_fail(kernel: Bubblewrap, work: Path, command: str) -> None:
    """Whatever the namespaces would have allowed."""
    outcome = await run(kernel, work, command)
    assert outcome.exit_code not in {0, None}


async def test_namespaces_cannot_be_made_by_clone(kernel: Bubblewrap, work: Path) -> None:
    """Neither by the call with flags in a register, nor by the one with flags in memory; an ordinary clone works."""
    script = (
        "import ctypes, os, platform, threading\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "number = {'x86_64': 56, 'aarch64': 220}[platform.machine()]\n"
        "for flag in (0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x20000):\n"
        "    result = libc.syscall(number, flag | 17, 0, 0, 0, 0)\n"
        "    if result == 0: os._exit(0)\n"
        "    print(result, ctypes.get_errno())\n"
        "pid = os.fork()\n"
        "if pid == 0: os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
        "thread = threading.Thread(target=print, args=('thread',)); thread.start(); thread.join()\n"
    )
    assert printed(await run_python(kernel, work, script)).split("\n") == [f"-1 {errno.EPERM}"] * 7 + [
        "thread"
    ]


async def test_a_terminal_cannot_be_typed_into(kernel: Bubblewrap, work: Path) -> None:
    """Not by either call, on whatever descriptor, nor with rubbish in the upper half of the request; and there is no terminal."""
    script = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for request in (0x5412, 0x541C, 0x5412 | 1 << 32):\n"
        "    libc.syscall({'x86_64': 16, 'aarch64': 29}[os.uname().machine], 0, ctypes.c_long(request), b'x')\n"
        "    print(ctypes.get_errno())\n"
        "try: os.open('/dev/tty', os.O_RDWR)\n"
        "except OSError: print('none')\n"
    )
    assert printed(await run_python(kernel, work, script)).split("\n") == [str(errno.EPERM)] * 3 + ["none"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the other ways to call are those of x86-64")
@pytest.mark.parametrize(
    "code",
    [
        pytest.param(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3", id="as i386: getpid by int 0x80"),
        pytest.param(b"\xb8\x27\x00\x00\x40\x0f\x05\xc3", id="as x32: getpid with bit 30"),
    ],
)
async def test_calls_by_another_architectures_rules_end_the_process(
    kernel: Bubblewrap, work: Path, code: bytes
) -> None:
    """There the numbers mean other calls, so that the table would not hold."""
    script = (
        "import ctypes, mmap, sys\n"
        "place = mmap.mmap(-1, 4096, prot=7)\n"
        "place.write(bytes.fromhex(sys.argv[1]))\n"
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(place)))()\n"
    )
    outcome = await run_python(kernel, work, script, code.hex())
    # A kernel built without the old way ends it by the other signal.
    assert outcome.signal in {signal.SIGSYS, signal.SIGSEGV}


async def test_other_processes_cannot_be_seen_or_reached(kernel: Bubblewrap, work: Path) -> None:
    """Ours is not there to signal, to trace or to read; and a signal to everybody stays inside."""
    script = (
        "import os, signal, sys\n"
        "pid = int(sys.argv[1])\n"
        "try: os.kill(pid, 0); print('reached')\n"
        "except ProcessLookupError: pass\n"
        "print(os.path.exists(f'/proc/{pid}'), os.getppid(), len([n for n in os.listdir('/proc') if n.isdigit()]))\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "try: os.kill(-1, signal.SIGTERM)\n"
        "except ProcessLookupError: print('nobody')\n"
    )
    # No namespace of a sandbox gets as far as our own number.
    assert os.getpid() > 10
    assert printed(await run_python(kernel, work, script, str(os.getpid()))) == "False 1 2\nnobody"


async def test_the_sandboxs_init_tells_and_gives_nothing(kernel: Bubblewrap, work: Path) -> None:
    """It has no variable of ours, no descriptor that leads out, and its memory cannot be written."""
    script = (
        "import os\n"
        "print(repr(open('/proc/1/environ').read()))\n"
        "for name in sorted(os.listdir('/proc/1/fd')):\n"
        "    target = os.readlink('/proc/1/fd/' + name)\n"
        "    print(target.split(':')[0])\n"
        "for path in ('/proc/1/mem', '/proc/self/mem'):\n"
        "    try: os.open(path, os.O_RDWR); print('opened')\n"
        "    except OSError: pass\n"
    )
    lines = printed(await run_python(kernel, work, script)).split("\n")
    assert lines[0] == "''"
    assert set(lines[1:]) <= {"/dev/null", "pipe", "anon_inode"}


async def test_no_descriptor_is_left_to_a_command(kernel: Bubblewrap, work: Path) -> None:
    """It has the three that it should have, and none of those by which its sandbox was made."""
    assert printed(await run(kernel, work, "echo /proc/$$/fd/*")).split() == [
        f"/proc/2/fd/{n}" for n in range(3)
    ] or (await run(kernel, work, "ls /proc/$$/fd")).stdout.head.split() == [b"0", b"1", b"2"]


async def test_keys_of_the_kernel_are_not_reached(kernel: Bubblewrap, work: Path) -> None:
    """Our session keyring may hold secrets, and no namespace hides it."""
    script = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "number = {'x86_64': 250, 'aarch64': 219}[os.uname().machine]\n"
        "print(libc.syscall(number, 0, -3, 0), ctypes.get_errno())\n"
    )
    assert printed(await run_python(kernel, work, script)) == f"-1 {errno.EPERM}"


async def test_it_is_not_root(kernel: Bubblewrap, work: Path) -> None:
    """Whoever we are: root without capabilities would be root still, and would own what the machine's root owns."""
    assert printed(await run(kernel, work, "id -u; stat -c %u /dev/null /usr")).split() == [
        "1000",
        "65534",
        "65534",
    ]
