"""Approval by a person: asked for once, bound to one call and its exact arguments, used once, and not after it expires."""

from __future__ import annotations

from dataclasses import dataclass

from affidavit.actors.approvals import Approval
from affidavit.actors.clock import NANOSECONDS
from affidavit.actors.deciders.port import Action, Ask, Denial, Standing
from affidavit.actors.events import FaultClass
from affidavit.crypto.approval import APPROVED, REFUSED


@dataclass(frozen=True, slots=True)
class ApprovalGate:
    """Lets certain tools run only when a person has approved the very call.

    Attributes:
        tools: Which tools; names, or the beginning of names followed by `*`.
        expires_seconds: How long after it was asked for an approval can be given and used.
        approvers: Who may decide; empty for anyone.
        signed: Whether the decision must bear a signature.
        keys: The raw Ed25519 public keys of those who may sign, by name.
    """

    tools: tuple[str, ...]
    expires_seconds: int
    approvers: tuple[str, ...] = ()
    signed: bool = False
    keys: tuple[tuple[str, bytes], ...] = ()

    def covers(self, name: str) -> bool:
        """Tell whether a tool of this name needs approval."""
        return any(name.startswith(each[:-1]) if each.endswith("*") else name == each for each in self.tools)

    def decide(self, action: Action, standing: Standing) -> Denial | Ask | None:
        """Ask, wait, refuse, or let pass what was approved just so."""
        if not action.tool_use_id or not self.covers(action.name):
            return None
        approval = standing.approval
        if approval is None:
            expires = standing.now + self.expires_seconds * NANOSECONDS
            return Ask(expires, self.approvers, self.signed, self.keys)
        if approval.args != action.args_digest:
            return _needed("args_changed", "the arguments are not those that approval was asked for")
        if approval.decision == REFUSED:
            why = f": {approval.reason}" if approval.reason else ""
            return _needed("refused", f"{approval.principal} refused it{why}")
        if standing.now >= approval.expires:
            return _needed("expired", "its approval has expired")
        if not self._holds(approval):
            return _needed("rules_changed", "its approval was asked for under rules that hold no more")
        if approval.decision == APPROVED:
            return None
        return Ask(approval.expires, approval.approvers, approval.signed, tuple(approval.keys.items()))

    def _holds(self, approval: Approval) -> bool:
        """Tell whether what was asked for, or given, perhaps under an earlier policy, is what this rule asks for."""
        who = (approval.principal,) if approval.decision == APPROVED else approval.approvers
        if self.approvers and not (who and set(who) <= set(self.approvers)):
            return False
        keys = dict(self.keys)
        return not self.signed or (
            approval.signed
            and all(approval.keys.get(each) == keys.get(each) for each in who or approval.keys)
        )


def _needed(code: str, reason: str) -> Denial:
    return Denial(FaultClass.NEEDS_APPROVAL, code, reason)
