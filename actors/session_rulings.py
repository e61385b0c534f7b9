"""What people decide about a run while it goes on: a call approved or refused, the brake pulled or let go. Each is an event.

Crash states. Before the append: nothing was decided. After it: the decision stands, and whoever drives the run, now or later,
goes by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from affidavit.actors.approval_signing import statement_of
from affidavit.actors.approvals import Approval, Decision, decided
from affidavit.actors.asker import checked_asker
from affidavit.actors.clock import Clock
from affidavit.actors.errors import ApprovalRefused
from affidavit.actors.events import Event, Kind
from affidavit.actors.session_record import SessionRecord
from affidavit.crypto.approval import require_statement, verify_approval
from affidavit.crypto.failures import ProducerError, VerificationError
from affidavit.crypto.keyring import Keyring
from affidavit.crypto.keys import VerifyingKey


@final
class SessionRulings:
    """Records the rulings on one run."""

    def __init__(self, record: SessionRecord, clock: Clock) -> None:
        """Bind to a run's record; the clock tells whether a request has expired."""
        self._record: Final = record
        self._clock: Final = clock

    async def decide(self, decision: Decision, causation_id: str = "") -> Event:
        """Record what a person decided about a call that waits for approval.

        Returns:
            The approval.decided event.

        Raises:
            ApprovalRefused: Nothing waits under this number, or this person may not decide it so.
            RunFinished: The run has ended.
            LogError: It could not be recorded.
        """
        # Read here for what the event says; judged again at its turn to be appended, when nothing can come between.
        approval = self._check(decision)
        event = decided(
            approval,
            decision.word,
            principal=decision.principal,
            reason=decision.reason,
            causation_id=causation_id,
            statement=decision.statement,
        )
        if decision.statement and self._record.stream.as_recorded(event) != event:
            # Taken out of the event, it would stand in the statement still, and the two would contradict each other for ever.
            raise ApprovalRefused(
                "holds_secret",
                f"what was signed about call {decision.call} holds a secret of the run, which is never recorded",
            )

        def check() -> None:
            self._check(decision)

        return await self._rule(event, check)

    async def brake(self, *, engage: bool, principal: str, reason: str, causation_id: str = "") -> Event:
        """Record that the brake was pulled, or let go.

        Returns:
            The brake.engaged or brake.released event.

        Raises:
            ValueError: It names nobody, or cannot be recorded so; see `affidavit.actors.asker`.
            RunFinished: The run has ended.
            LogError: It could not be recorded.
        """
        if not principal:
            raise ValueError("the brake is pulled, or let go, by somebody")
        checked_asker(principal, reason)
        kind = Kind.BRAKE_ENGAGED if engage else Kind.BRAKE_RELEASED
        event = Event(kind, principal=principal, reason=reason, causation_id=causation_id)
        return await self._rule(event, lambda: None)

    async def _rule(self, event: Event, check: Callable[[], None]) -> Event:
        (recorded,) = await self._record.record((event,), check)
        return recorded

    def _waiting(self, call: int) -> Approval:
        try:
            approval = self._record.state.approvals[call]
        except KeyError:
            raise ApprovalRefused("not_asked", f"no approval is asked for call {call}") from None
        if approval.decision:
            raise ApprovalRefused(
                "decided", f"call {call} was {approval.decision} already, by {approval.principal or 'nobody'}"
            )
        return approval

    def _check(self, decision: Decision) -> Approval:
        approval = self._waiting(decision.call)
        if self._clock.now_ns() >= approval.expires:
            raise ApprovalRefused("expired", f"the request to approve call {decision.call} has expired")
        if approval.approvers and decision.principal not in approval.approvers:
            raise ApprovalRefused(
                "not_an_approver",
                f"{decision.principal} may not decide call {decision.call}; {', '.join(approval.approvers)} may",
            )
        if decision.args is not None and decision.args != approval.args:
            raise ApprovalRefused(
                "args_changed", f"the arguments shown were not those that call {decision.call} was asked with"
            )
        self._check_signature(approval, decision)
        return approval

    def _check_signature(self, approval: Approval, decision: Decision) -> None:
        if not decision.statement:
            if approval.signed:
                raise ApprovalRefused(
                    "signature_needed", f"a decision about call {decision.call} must be signed by who decides"
                )
            return
        key = approval.keys.get(decision.principal)
        if key is None and approval.signed:
            raise ApprovalRefused(
                "signature_invalid",
                f"the policy holds no key of {decision.principal} to check a signature with",
            )
        try:
            verified = verify_approval(decision.statement, Keyring())
            if key is not None and verified.kid != VerifyingKey(key).did_key.encode():
                raise ApprovalRefused(
                    "signature_invalid",
                    f"the signature on call {decision.call} is not by {decision.principal}'s key",
                )
            require_statement(verified, statement_of(self._record.stream.id, approval, decision))
        except (VerificationError, ProducerError) as error:
            raise ApprovalRefused(
                "signature_invalid",
                f"the signature of {decision.principal} on call {decision.call} does not hold: {error.detail}",
            ) from error
