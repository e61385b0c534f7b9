"""The events that show a run being governed, in words: what was admitted, what was refused, what is sealed."""

from __future__ import annotations

from affidavit.actors.approvals import EXPIRED
from affidavit.actors.event_json import format_time
from affidavit.actors.events import Event
from affidavit.crypto.approval import APPROVED
from affidavit.tools.terminal import Tone
from affidavit.tools.words import Words, quiet


def admitted(event: Event) -> Words:
    """Return what to say of action.admitted."""
    decided = event.detail.get("approval")
    approved = f", as approved at event {decided}" if decided else ""
    return quiet(f"call {event.call}: {event.action}, {event.trust}{approved}")


def completed(event: Event) -> Words:
    """Return what to say of action.completed."""
    if event.fault:
        return Words(f"call {event.call}: {event.action} failed: {event.fault}", Tone.BAD, folded=True)
    return quiet(f"call {event.call}: {event.action} ended")


def rejected(event: Event) -> Words:
    """Return what to say of action.rejected."""
    return Words(
        f"REFUSED call {event.call}: {event.action} ({event.fault or 'no code'}){_why(event)}",
        Tone.BAD,
    )


def approval_requested(event: Event, arguments: str | None) -> Words:
    """Return what to say of approval.requested, given the exact arguments where they are known."""
    who = event.detail.get("approvers")
    by = f" by {', '.join(map(str, who))}" if isinstance(who, list | tuple) else ""
    signed = ", signed" if event.detail.get("signed") else ""
    text = f"call {event.call}: {event.action} WAITS for approval{by}{signed}, until {when(event.detail.get('expires'))}"
    return Words(text if arguments is None else f"{text}, with\n{arguments}", Tone.STRONG)


def approval_decided(event: Event) -> Words:
    """Return what to say of approval.decided."""
    decision = event.detail.get("decision")
    if decision == EXPIRED:
        return Words(f"call {event.call}: {event.action} was approved by nobody in time", Tone.BAD)
    how = "signed" if event.detail.get("statement") else "on the host's word"
    is_approved = decision == APPROVED
    word = "APPROVED" if is_approved else "REFUSED"
    return Words(
        f"call {event.call}: {event.action} {word} by {event.principal or 'nobody'} ({how}){_why(event)}",
        Tone.GOOD if is_approved else Tone.BAD,
    )


def brake_engaged(event: Event) -> Words:
    """Return what to say of brake.engaged."""
    return Words(f"BRAKE pulled by {event.principal or 'nobody'}{_why(event)}", Tone.BAD)


def brake_released(event: Event) -> Words:
    """Return what to say of brake.released."""
    return Words(f"brake released by {event.principal or 'nobody'}{_why(event)}", Tone.GOOD)


def _why(event: Event) -> str:
    return f": {event.reason}" if event.reason else ""


def when(time: object) -> str:
    """Return a time to the second, in UTC."""
    try:
        return (
            f"{format_time(time)[:19].replace('T', ' ')} UTC" if isinstance(time, int) else "an unknown time"
        )
    except ValueError:
        return "a time that cannot be"


def egress(event: Event) -> Words:
    """Return what to say of net.egress."""
    name, port = event.detail.get("name"), event.detail.get("port")
    host = f"[{event.host}]" if port is not None and ":" in event.host else event.host
    where = (
        host
        + (f":{port}" if port is not None else "")
        + (f" ({name})" if name and name != event.host else "")
    )
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
