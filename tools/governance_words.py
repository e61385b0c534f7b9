"""The events that show a run being governed, in words: what was admitted, what was refused, what is sealed."""

from __future__ import annotations

from affidavit.actors.events import Event
from affidavit.tools.terminal import Tone
from affidavit.tools.words import Words, quiet


def admitted(event: Event) -> Words:
    """Return what to say of action.admitted."""
    return quiet(f"call {event.call}: {event.action}, {event.trust}")


def completed(event: Event) -> Words:
    """Return what to say of action.completed."""
    if event.fault:
        return Words(f"call {event.call}: {event.action} failed: {event.fault}", Tone.BAD, folded=True)
    return quiet(f"call {event.call}: {event.action} ended")


def rejected(event: Event) -> Words:
    """Return what to say of action.rejected."""
    why = event.reason
    return Words(
        f"REFUSED call {event.call}: {event.action} ({event.fault or 'no code'}){f': {why}' if why else ''}",
        Tone.BAD,
    )


def egress(event: Event) -> Words:
    """Return what to say of net.egress."""
    name = event.detail.get("name")
    where = f"{event.host}{f' ({name})' if name and name != event.host else ''}"
    if event.allowed:
        return quiet(f"connection to {where} allowed: {event.reason}")
    return Words(f"REFUSED connection to {where}: {event.reason}", Tone.BAD)


def sealed(event: Event) -> Words:
    """Return what to say of record.sealed."""
    root = event.detail.get("root")
    shown = root.hex()[:16] if isinstance(root, bytes) else "unknown"
    return Words(
        f"events 1 to {event.detail.get('size')} are signed, root {shown}...", Tone.GOOD, folded=True
    )


def verified(event: Event) -> Words:
    """Return what to say of record.verified."""
    tiers = event.detail.get("tiers")
    named = ", ".join(map(str, tiers)) if isinstance(tiers, list | tuple) else "no tier"
    return Words(
        f"events 1 to {event.detail.get('size')} were read back and checked: {named}", Tone.GOOD, folded=True
    )


def record_rejected(event: Event) -> Words:
    """Return what to say of record.rejected."""
    return Words(f"the record does NOT verify: {event.detail.get('code')}: {event.reason}", Tone.BAD)
