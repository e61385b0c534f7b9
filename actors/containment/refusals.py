"""Which system calls a sandboxed command is refused, by name and number, and why.

The mount, process, network and user namespaces hold a command already. These refusals take away what namespaces do not cover,
and the parts of the kernel that a command of an agent has no use for and that its holes were found in. Two machines are known,
x86-64 and arm64; on any other there is no filter, and so no level `kernel`.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Final

from affidavit.actors.containment.seccomp import Refusal, Where, assemble

# name: (x86-64, arm64); the calls from 424 on have one number everywhere. None: that machine has no such call.
_FORBIDDEN: Final[dict[str, tuple[int | None, int | None]]] = {
    # Other processes: their memory, their descriptors, their execution.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # The file system's shape, and files by handle, which no mount hides.
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    # New namespaces, in which a command would have every capability.
    "unshare": (272, 97),
    "setns": (308, 268),
    # Keys of the user, which are in no namespace that bwrap makes.
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Programs and traps in the kernel.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    # The machine itself.
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "syslog": (103, 116),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "vhangup": (153, 58),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
}
# Programs ask whether these exist and do without: the error says that they do not.
_ABSENT: Final[dict[str, tuple[int | None, int | None]]] = {
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # Their flags lie in memory, where a filter cannot look; libraries then use clone and openat.
    "clone3": (435, 435),
    "openat2": (437, 437),
    # Memory that belongs to no process, so that no limit of ours would count it.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
}
_NEWEST: Final = 467  # What a later kernel adds is refused until somebody has looked at it.
_NEW_NAMESPACES: Final = 0x7E02_0000  # CLONE_NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET and NEWNS
_SET_ID_BITS: Final = 0o6000
_CREATES: Final = os.O_CREAT | 0o20000000  # O_CREAT and the bit that makes O_TMPFILE
_FAMILIES: Final = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# How a file gets a mode: the call, its numbers, the argument that is the mode, and the one with the flags of open.
_MODES: Final[tuple[tuple[tuple[int | None, int | None], int, int | None], ...]] = (
    ((90, None), 1, None),  # chmod
    ((91, 52), 1, None),  # fchmod
    ((268, 53), 2, None),  # fchmodat
    ((452, 452), 2, None),  # fchmodat2
    ((133, None), 1, None),  # mknod
    ((259, 33), 2, None),  # mknodat
    ((85, None), 1, None),  # creat
    ((2, None), 2, 1),  # open
    ((257, 56), 3, 2),  # openat
)


@dataclass(frozen=True, slots=True)
class _Machine:
    architecture: int
    column: int
    clone: int
    ioctl: int
    socket: int
    socketpair: int


_MACHINES: Final = {
    "x86_64": _Machine(0xC000_003E, 0, clone=56, ioctl=16, socket=41, socketpair=53),
    "aarch64": _Machine(0xC000_00B7, 1, clone=220, ioctl=29, socket=198, socketpair=199),
}


def filter_for(machine: str) -> bytes | None:
    """Return the filter for a machine, named as `uname -m` names it; None if its system calls are not known here."""
    known = _MACHINES.get(machine)
    if known is None:
        return None
    return assemble(known.architecture, _NEWEST, _refusals(known))


def _refusals(machine: _Machine) -> list[Refusal]:
    found = [
        *_plain(_FORBIDDEN, machine, errno.EPERM),
        *_plain(_ABSENT, machine, errno.ENOSYS),
        Refusal(machine.clone, errno.EPERM, [Where(0, (0,), mask=_NEW_NAMESPACES, among=False)]),
        # Input pushed into the terminal that we may have been started from.
        Refusal(machine.ioctl, errno.EPERM, [Where(1, (_TIOCSTI, _TIOCLINUX))]),
        # vsock reaches the hypervisor whatever the network namespace; the other families are only attack surface.
        Refusal(machine.socket, errno.EAFNOSUPPORT, [Where(0, _FAMILIES, among=False)]),
        Refusal(machine.socketpair, errno.EAFNOSUPPORT, [Where(0, (1,), among=False)]),
    ]
    # A file in the workspace that runs with its owner's rights would outlive the sandbox.
    for numbers, mode, flags in _MODES:
        number = numbers[machine.column]
        if number is not None:
            creating = () if flags is None else (Where(flags, (0,), mask=_CREATES, among=False),)
            setting = Where(mode, (0,), mask=_SET_ID_BITS, among=False)
            found.append(Refusal(number, errno.EPERM, [*creating, setting]))
    return found


def _plain(calls: dict[str, tuple[int | None, int | None]], machine: _Machine, error: int) -> list[Refusal]:
    numbers = (pair[machine.column] for pair in calls.values())
    return [Refusal(number, error) for number in numbers if number is not None]
