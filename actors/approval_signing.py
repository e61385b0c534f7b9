"""A decision about a call, signed by whoever decides, with a key of their own: what they put their name to, and how.

Pure but for the signer. Whether a signature counts is judged where the decision is recorded (`session_rulings`).
"""

from __future__ import annotations

from dataclasses import replace

from affidavit.actors.approvals import Approval, Decision
from affidavit.actors.signers.port import Signer
from affidavit.crypto.approval import ApprovalStatement, approval_signing_input, assemble_approval


def statement_of(run_id: str, approval: Approval, decision: Decision) -> ApprovalStatement:
    """Return what a person who decides so about a request puts their name to."""
    return ApprovalStatement(
        run=run_id,
        call=approval.call,
        action=approval.action,
        args=approval.args,
        decision=decision.word,
        principal=decision.principal,
        reason=decision.reason,
        request=approval.requested,
        expires=approval.expires,
    )


async def signed_decision(signer: Signer, run_id: str, approval: Approval, decision: Decision) -> Decision:
    """Return a decision signed by whoever makes it, as `Host.decide` and `Session.decide` take it.

    Args:
        signer: The key of the person whom the decision names, and not the store's.
        run_id: The run's whole id.
        approval: The request, as `Session.waiting` has it.
        decision: What is decided. What is signed cannot be changed afterwards, so no secret may stand in its reason.

    Raises:
        ProducerError: `enc.encode`; `sign.sign_failed` where the signer failed.

    Cancellation: nothing was signed.
    """
    statement = statement_of(run_id, approval, decision)
    signature = await signer.sign(approval_signing_input(statement, kid=signer.kid))
    return replace(decision, statement=assemble_approval(statement, kid=signer.kid, signature=signature))
