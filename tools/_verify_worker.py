"""The process that checks ranges of a record for another one: its program, and the few bytes they exchange.

A request is a range; the answer is its parts one by one, each behind its length, and a length of zero at the
end. Whatever goes wrong here just ends the process: whoever started it checks the range itself and finds out.
"""

import os
import struct
import sys
from collections.abc import Callable
from typing import BinaryIO, Final

from affidavit.crypto.event_scan import EventRange
from affidavit.crypto.failures import AffidavitError
from affidavit.crypto.record_part import Checks, parts_of
from affidavit.crypto.record_wire import encode_part

REQUEST: Final = struct.Struct("=4Q")
LENGTH: Final = struct.Struct("=I")
# Whether leaves are hashed, events read and rules judged; the longest event and the deepest nesting.
CHECKS: Final = struct.Struct("=3?2Q")


def pack_checks(checks: Checks) -> str:
    """Return what is to be checked, as an argument of the process."""
    return CHECKS.pack(
        checks.hashed, checks.read, checks.judged, checks.max_event_bytes, checks.max_depth
    ).hex()


def pack_request(where: EventRange) -> bytes:
    """Return the request for a range."""
    return REQUEST.pack(where.index, where.count, where.start, where.end)


def reader_at(descriptor: int, start: int) -> Callable[[int], bytes]:
    """Return a reader of an open file from an offset on, which leaves the file's own position alone.

    The reader raises OSError where the file cannot be read.
    """
    offset = start

    def read(count: int) -> bytes:
        nonlocal offset
        block = os.pread(descriptor, count, offset)
        offset += len(block)
        return block

    return read


def main(descriptor: int, checks: str) -> None:
    """Answer requests on standard input until it ends.

    Args:
        descriptor: The record's file, inherited and open.
        checks: As `pack_checks` gives it.
    """
    hashed, read, judged, max_event_bytes, max_depth = CHECKS.unpack(bytes.fromhex(checks))
    what = Checks(hashed, read, judged, max_event_bytes, max_depth)
    try:
        while len(request := sys.stdin.buffer.read(REQUEST.size)) == REQUEST.size:
            answer(descriptor, EventRange(*REQUEST.unpack(request)), what, sys.stdout.buffer)
    except (AffidavitError, OSError, KeyboardInterrupt):
        # Without the interpreter's farewell, which would try to flush to a reader that may be gone.
        os._exit(1)


def answer(descriptor: int, where: EventRange, checks: Checks, out: BinaryIO) -> None:
    """Check a range and write its parts.

    Raises:
        VerificationError: The file no longer holds what it did when the range was found.
        OSError: It cannot be read, or nobody takes the answer.
    """
    for part in parts_of(reader_at(descriptor, where.start), where, checks):
        data = encode_part(part)
        out.write(LENGTH.pack(len(data)) + data)
        out.flush()
    out.write(LENGTH.pack(0))
    out.flush()
