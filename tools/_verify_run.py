"""A sealed run verified from its open file: in one process, or in several where it is large."""

import os
from dataclasses import dataclass
from typing import Final

from affidavit.crypto import cbor
from affidavit.crypto.event_form import MAX_EVENT_BYTES
from affidavit.crypto.failures import Tier
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.record import conclude, verify_run
from affidavit.crypto.record_fold import RecordFold
from affidavit.crypto.record_part import Checks
from affidavit.crypto.record_reader import RecordReader
from affidavit.crypto.record_verdict import VerifiedRun
from affidavit.tools._verify_input import Artifact
from affidavit.tools._verify_progress import Progress
from affidavit.tools._verify_workers import Workers

# What a second process takes to start is what one needs to check about a tenth of this.
_WORTH_TWO: Final = 16 << 20


def jobs_for(size: int, asked: int | None) -> int:
    """Return how many processes check a record of so many bytes: as many as were asked for, else one or two."""
    if asked is not None:
        return asked
    return 2 if size >= _WORTH_TWO and len(os.sched_getaffinity(0)) > 1 else 1


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a verification.

    Attributes:
        keyring: The keys trusted.
        tier: Where to stop.
        jobs: How many processes check a run; None to choose by its size.
        max_depth: How many containers an event may nest.
    """

    keyring: Keyring
    tier: Tier = Tier.L4
    jobs: int | None = None
    max_depth: int = cbor.DEFAULT_MAX_DEPTH


def verify_run_file(artifact: Artifact, asked: Asked) -> VerifiedRun:
    """Verify a sealed run, up to a tier, in memory that does not grow with it.

    Args:
        artifact: The open file.
        asked: How.

    Raises:
        VerificationError: With the code of the first check that fails.
        OSError: It cannot be read, or changed meanwhile.
    """
    read, size, tier, keyring = artifact.read, artifact.bound, asked.tier, asked.keyring
    with Progress(artifact.size) as progress:
        done = 0

        def counted(count: int) -> bytes:
            nonlocal done
            block = read(count)
            done += len(block)
            progress.advance(done)
            return block

        # What cannot be read twice is checked where it is read.
        descriptor = artifact.descriptor
        count = jobs_for(size, asked.jobs)
        if count == 1 or descriptor is None:
            return verify_run(counted, size, keyring, tier=tier, max_depth=asked.max_depth)
        reader = RecordReader(counted, size, max_event_bytes=MAX_EVENT_BYTES)
        fold = RecordFold(tier)
        with Workers(descriptor, Checks.up_to(tier, max_depth=asked.max_depth), count - 1) as workers:
            for part in workers.parts(reader):
                fold.add(part)
                reader.is_wanted = fold.fault is None
        return conclude(reader, fold, keyring, tier)
