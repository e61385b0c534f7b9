"""The status of a run as JSON: every field of its projection but the one that only bounds memory, and what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from affidavit.actors.projection import Projection
from affidavit.tools.waits import Wait


def status_json(run_id: str, at: int, p: Projection, waits: Sequence[Wait]) -> dict[str, object]:
    """Return how a run stood after its event of some seq, under the one key `status`.

    Args:
        run_id: The run's whole id.
        at: The seq of the last event that counted.
        p: What its events add up to.
        waits: What it waited for a person to decide.
    """
    fields = asdict(p)
    del fields["calls"]
    calls = [wait.approval.call for wait in waits]
    return {"status": {"run": run_id, "at": at, **fields, "sealed": p.sealed_events, "waits_for": calls}}
