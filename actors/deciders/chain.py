"""Asks the deciders in order. The first refusal stands, whoever else would have allowed it; nobody can allow what one refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from affidavit.actors.deciders.port import (
    Action,
    Ask,
    Decider,
    Denial,
    Judgement,
    Later,
    Standing,
    Trim,
)
from affidavit.actors.events import FaultClass


def judge(deciders: Sequence[Decider], action: Action, standing: Standing) -> Judgement | Denial | Later:
    """Return what becomes of an action.

    Args:
        deciders: In the order in which they are asked. Each sees the action as those before it have trimmed it.
        action: What is to be done.
        standing: Where the run stands.

    Returns:
        The first refusal; else whether it must wait for others to end; else the action as it may begin, and the approval that it
        needs first. Nobody is asked to approve what would be refused anyway.
    """
    ask: Ask | None = None
    later: Later | None = None
    for decider in deciders:
        answer = decider.decide(action, standing)
        if answer is None:
            continue
        match answer:
            case Denial():
                return answer
            case Ask():
                both = answer if ask is None else _both(ask, answer)
                if isinstance(both, Denial):
                    return both
                ask = both
            case Later():
                later = answer
            case Trim(reserve):
                if reserve != action.reserve:
                    action = action.holding(reserve)
    return Judgement(action, ask) if later is None else later


def _both(first: Ask, second: Ask) -> Ask | Denial:
    """Join what two rules ask for the same call: whoever approves it must satisfy both."""
    approvers = tuple(name for name in first.approvers if name in second.approvers)
    if not (first.approvers and second.approvers):
        approvers = first.approvers or second.approvers
    elif not approvers:
        return Denial(
            FaultClass.NEEDS_APPROVAL,
            "no_approver",
            "two rules ask for its approval, and no person may give both",
        )
    return replace(
        first,
        expires=min(first.expires, second.expires),
        approvers=approvers,
        signed=first.signed or second.signed,
        keys=tuple(sorted({**dict(second.keys), **dict(first.keys)}.items())),
    )
