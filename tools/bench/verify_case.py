"""One verification of one file in a process of its own, for `bench verify`: `python -m ... CASE FILE`.

Prints the most memory that the process, or one that it started, has held. The peer is imported only by its
own cases, so ours start no heavier for it.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from affidavit.crypto.event_form import MAX_EVENT_BYTES
from affidavit.crypto.failures import Tier
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.record import ROOT_ALONE, conclude_root, verify_root
from affidavit.crypto.record_fold import RecordFold
from affidavit.crypto.record_reader import RecordReader
from affidavit.tools._verify_input import Kind, open_artifact
from affidavit.tools._verify_run import Asked, verify_run_file
from affidavit.tools._verify_workers import Workers
from affidavit.tools.bench.made_record import KEY, KID


def _keyring() -> Keyring:
    return Keyring({KID: KEY.public})


def _peer(path: str) -> list[bytes]:
    import provetrail

    events: list[bytes] = provetrail.verify_run(
        Path(path).read_bytes(), {KID.decode(): KEY.public.raw}
    ).events
    return events


def _peer_and_check(path: str) -> None:
    import cbor2

    for event in _peer(path):
        if cbor2.dumps(cbor2.loads(event), canonical=True) != event:
            raise RuntimeError("an event is not canonical")


def _root(path: str) -> None:
    with open_artifact(path, Kind.RUN) as file:
        verify_root(file.read, file.bound, _keyring())


def _root_two(path: str) -> None:
    with open_artifact(path, Kind.RUN) as file:
        assert file.descriptor is not None  # noqa: S101 - a file has one
        reader = RecordReader(file.read, file.bound, max_event_bytes=MAX_EVENT_BYTES)
        fold = RecordFold(Tier.L2)
        with Workers(file.descriptor, ROOT_ALONE, 1) as workers:
            for part in workers.parts(reader):
                fold.add(part)
        conclude_root(reader, fold, _keyring())


def _full(path: str, jobs: int) -> None:
    with open_artifact(path, Kind.RUN) as file:
        verify_run_file(file, Asked(_keyring(), jobs=jobs))


CASES: Final[dict[str, Callable[[str], object]]] = {
    "peer": _peer,
    "peer_and_check": _peer_and_check,
    "l2": _root,
    "l2_two": _root_two,
    "full": lambda path: _full(path, 1),
    "full_two": lambda path: _full(path, 2),
}


def peak_kib() -> int:
    """Return the most memory that this process, or one that it waited for, has held."""
    # Not its own ru_maxrss, which a process inherits from the one that started it.
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    own = int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


if __name__ == "__main__":
    CASES[sys.argv[1]](sys.argv[2])
    print(peak_kib(), flush=True)
    # The peer holds a million events by now; giving them back one by one is no part of verifying.
    os._exit(0)
