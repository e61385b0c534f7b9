"""The status of a run in words, from its projection. Every view that shows a run ends with these lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from affidavit.actors.projection import Projection
from affidavit.tools._verify_report import plain
from affidavit.tools.event_words import usage_words
from affidavit.tools.goals import children_words
from affidavit.tools.waits import Wait, waits_words


def sealed_words(p: Projection) -> str:
    """Return how much of a run is under a signed root, such as `sealed 23/23`."""
    return f"sealed {p.sealed_events}/{p.events}"


def state_words(p: Projection, waits: Sequence[Wait] = ()) -> str:
    """Return how a run stands, in a few words."""
    if not p.terminal:
        return waits_words(waits) or "unfinished"
    return f"stalled: {plain(p.err)}" if p.err else "converged"


def brief_line(p: Projection) -> str:
    """Return how a conversation stands, in one line."""
    return f"({state_words(p)}; turn {p.turns}, {usage_words(p.usage)}; {p.record}, {sealed_words(p)})"


def status_lines(p: Projection, waits: Sequence[Wait] = ()) -> Iterator[str]:
    """Go through the lines that sum a run up; `waits` is what it waits for a person to decide."""
    yield f"state      {state_words(p, waits)}"
    yield f"turns      {p.turns} ({usage_words(p.usage)})"
    yield f"actions    {p.admitted} admitted, {p.completed} completed, {p.rejected} refused"
    if p.egress_allowed or p.egress_blocked:
        connections = "connection" if p.egress_allowed == 1 else "connections"
        yield f"network    {p.egress_allowed} {connections} allowed, {p.egress_blocked} refused"
    if p.fanout:
        yield f"children   {children_words(p.fanout)}"
    yield f"record     {p.record}, {sealed_words(p)}"
