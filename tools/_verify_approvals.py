"""What a record shows of decisions by people, in words: who signed, whose key that is, what rests on the host's word alone."""

from collections.abc import Iterator

from affidavit.crypto.approval_fold import ApprovalSigner, ShownApprovals


def approval_rows(found: ShownApprovals) -> Iterator[tuple[str, str]]:
    """Yield rows of a label and words; none where nobody decided anything. A name in them comes from the record."""
    if not found.decided and not found.expired:
        return
    counts = (
        (found.signed, "signed"),
        (found.unsigned_approved, "approved on the host's word"),
        (found.unsigned - found.unsigned_approved, "refused on the host's word"),
        (found.unchecked, "signed with a key that is not in the record: not checked"),
        (found.expired, "expired undecided"),
    )
    yield "approvals", ", ".join(f"{count} {words}" for count, words in counts if count)
    for signer in found.signers:
        yield "signed by", f"{signer.principal}, {signer.count} of them; {_whose(signer)}"
        yield "", signer.fingerprint


def _whose(signer: ApprovalSigner) -> str:
    entry = signer.entry
    if entry is None:
        return "that key is in no keyring given"
    if entry.revoked is not None:
        return f"that key is REVOKED in your keyring: {entry.revoked or 'no reason given'}"
    return f"your keyring calls it {entry.name}" if entry.name else "that key is in your keyring"


def approvals_json(found: ShownApprovals | None) -> dict[str, object] | None:
    """Return the same for `--json`."""
    if found is None:
        return None
    names = ("approved", "refused", "expired", "signed", "unsigned", "unsigned_approved", "unchecked")
    return {name: getattr(found, name) for name in names} | {
        "signers": [_signer_json(signer) for signer in found.signers]
    }


def _signer_json(signer: ApprovalSigner) -> dict[str, object]:
    entry = signer.entry
    return {
        "principal": signer.principal,
        "fingerprint": signer.fingerprint,
        "count": signer.count,
        "in_keyring": entry is not None,
        "name": entry.name if entry is not None else "",
        "revoked": entry.revoked if entry is not None else None,
    }
