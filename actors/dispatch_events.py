"""The events that the waist writes of an action: asked for, admitted, refused, ended. Pure."""

from __future__ import annotations

from dataclasses import replace

from affidavit.actors.amounts import Amounts
from affidavit.actors.approvals import EXPIRED, Approval, decided
from affidavit.actors.deciders.port import Action, Ask, Denial
from affidavit.actors.events import Event, Kind
from affidavit.crypto.approval import APPROVED


def requested(action: Action, call: int, ask: Ask) -> Event:
    """Return the event that asks a person to approve a call."""
    detail: dict[str, object] = {"args": action.args_digest, "expires": ask.expires}
    if ask.approvers:
        detail["approvers"] = list(ask.approvers)
    if ask.signed:
        detail["signed"] = True
    if ask.keys:
        detail["keys"] = dict(ask.keys)
    return _about(Kind.APPROVAL_REQUESTED, action, call, detail)


def expiry(approval: Approval, now: int) -> tuple[Event, ...]:
    """Return the event that says that nobody decided in time, if that is so."""
    if approval.decision or now < approval.expires:
        return ()
    return (decided(approval, EXPIRED),)


def admitted(action: Action, call: int, grant: bytes, approval: Approval | None) -> Event:
    """Return the event that admits an action; it must be durable before the work begins."""
    detail: dict[str, object] = {"grant": grant, "containment": str(action.containment)}
    if action.args_digest:
        detail["args"] = action.args_digest
    if action.idempotent:
        detail["idempotent"] = True
    if action.reserve:
        detail["reserved"] = action.reserve.as_detail()
    # Only what a person really approved is named; a request that the rules no longer ask for is left as it stands.
    if approval is not None and approval.decision == APPROVED and approval.args == action.args_digest:
        detail["approval"] = approval.decided
    return _about(Kind.ACTION_ADMITTED, action, call, detail)


def ended(action: Action, call: int, fault: str, code: str, used: Amounts) -> Event:
    """Return the event that ends an action."""
    detail: dict[str, object] = {"used": used.as_detail()} if used else {}
    return _about(Kind.ACTION_COMPLETED, action, call, detail, fault, code)


def rejected(action: Action, call: int, denial: Denial) -> Event:
    """Return the event that refuses an action."""
    detail: dict[str, object] = {"args": action.args_digest} if action.args_digest else {}
    event = _about(Kind.ACTION_REJECTED, action, call, detail, denial.error_class, denial.error_code)
    return replace(event, reason=denial.reason)


def _about(
    kind: str,
    action: Action,
    call: int,
    detail: dict[str, object],
    error_class: str = "",
    error_code: str = "",
) -> Event:
    return Event(
        kind=kind,
        action=action.name,
        call=call,
        # Plain strings, which are recorded as they are.
        trust=str(action.trust),
        goal=action.goal,
        turn=action.turn,
        tool_use_id=action.tool_use_id,
        error_class=str(error_class),
        error_code=error_code,
        detail=detail,
    )
