"""`verify` on files made to hurt: each gets its code, in little memory, however much it declares, nests or holds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from affidavit.crypto import Envelope, chain, encode_event, event_check
from affidavit.crypto.cbor import MAX_ITEMS
from affidavit.crypto.cbor_heads import ARRAY, write_bytes, write_head
from affidavit.tools import verify
from affidavit.tools._verify_workers import RANGE
from tests.crypto.samples import KEY, KID, checkpoint, events, sealed, tree
from tests.environment import ROOT

SIGNED = write_bytes(checkpoint(tree(events(3))))
EVENTS, CHECKPOINT = b"\xa2\x66events", b"\x6acheckpoint"
MANY, FEW = 300_000, 60_000
MIB = 64
PROGRAM = (
    "import re, sys; from affidavit.tools import verify; verify.main(sys.argv[1:]); "
    "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
)


def with_list(inside: bytes) -> bytes:
    """A record of one event with these bytes as a value of its payload."""
    base = encode_event(Envelope("s", 1, 0, "t", "agent", {"x": None}))
    return sealed([base.replace(b"\x61x\xf6", b"\x61x" + inside)])


FILES: dict[str, tuple[bytes, int, str | None]] = {
    "a crowd of empty lists": (
        with_list(write_head(ARRAY, 1_000_000) + b"\x80" * 1_000_000),
        0,
        "enc.decode",
    ),
    "as many as are allowed": (with_list(write_head(ARRAY, MAX_ITEMS) + b"\x80" * MAX_ITEMS), 0, None),
    "a tower": (with_list(b"\x81" * 1_000_000 + b"\x00"), 0, "enc.decode"),
    "a list of 2^60": (with_list(b"\x9b\x10" + bytes(7)), 0, "enc.decode"),
    "a text of 2^60": (with_list(b"\x7b\x10" + bytes(7)), 0, "enc.decode"),
    "a bignum": (with_list(b"\xc2\x5a\x00\x0f\x00\x00" + bytes(0x0F0000)), 0, "enc.decode"),
    "a regular expression": (with_list(b"\xd8\x23\x64(a+)"), 0, "enc.decode"),
    "not a number": (with_list(b"\xf9\x7e\x00"), 0, "enc.decode"),
    "a key twice": (with_list(b"\xa2\x61a\x00\x61a\x00"), 0, "enc.duplicate_map_key"),
    "empty events": (
        EVENTS + write_head(ARRAY, FEW) + b"\x40" * FEW + CHECKPOINT + SIGNED,
        0,
        "record.size_mismatch",
    ),
    "tiny events": (
        EVENTS + write_head(ARRAY, FEW) + b"\x42ab" * FEW + CHECKPOINT + SIGNED,
        0,
        "record.size_mismatch",
    ),
    "more events than can be events": (EVENTS + write_head(ARRAY, 1 << 28), 1 << 30, "record.decode"),
    "hundreds of thousands that are none": (
        EVENTS + write_head(ARRAY, MANY) + (b"\x58\x3f" + b"a" * 63) * MANY + CHECKPOINT + SIGNED,
        0,
        "record.size_mismatch",
    ),
    "a long path": (
        b"\xa5\x64size\x01\x65index\x00\x69canonical\x41a\x69inclusion"
        + write_head(ARRAY, MANY)
        + b"\x40" * MANY,
        0,
        "record.decode",
    ),
    "one event of zeros": (EVENTS + b"\x81\x5a\x0f\xf0\x00\x00", 1 << 28, "record.decode"),
    "a checkpoint of zeros": (
        EVENTS + b"\x81\x40" + CHECKPOINT + b"\x5a\x0f\xff\xff\xe6",
        1 << 28,
        "sign.signature_invalid",
    ),
    "nothing but zeros": (b"", 1 << 30, "record.decode"),
}


@pytest.mark.parametrize(("data", "size", "code"), FILES.values(), ids=FILES.keys())
def test_a_hostile_file_gets_its_code_in_little_memory(
    tmp_path: Path, data: bytes, size: int, code: str | None
) -> None:
    """No traceback, no other exit than by a verdict, and never more than 64 MiB."""
    path = tmp_path / "hostile"
    with path.open("wb") as file:
        file.write(data)
        file.truncate(max(size, len(data)))
    arguments = [f"--key={KID.decode()}={KEY.public.hex}", "--json", str(path)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=ROOT / "tests", capture_output=True, check=True
    )
    verdict, kib = done.stdout.splitlines()
    assert (json.loads(verdict)["failure_code"], done.stderr) == (code, b"")
    assert int(kib) < MIB * 1024


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_of_a_record_that_is_refused_already_no_further_event_is_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    """The first event decides, whatever number follow: they are passed over, and no bytes are read twice."""
    count = 3 * RANGE
    path = tmp_path / "hostile"
    path.write_bytes(
        EVENTS + write_head(ARRAY, count) + (b"\x58\x3f" + b"a" * 63) * count + CHECKPOINT + SIGNED
    )
    judged: list[bytes] = []
    examine = event_check.examine_event

    def watched(data: bytes, *, max_bytes: int, max_depth: int) -> event_check.CheckedEvent:
        judged.append(data)
        return examine(data, max_bytes=max_bytes, max_depth=max_depth)

    monkeypatch.setattr(chain, "examine_event", watched)
    assert verify.main([f"--key={KID.decode()}={KEY.public.hex}", "--jobs", jobs, str(path)]) == 1
    # With two processes, ranges may be begun before the first of them is known to be at fault: one event of each.
    assert len(judged) <= (1 if jobs == "1" else count // RANGE)
