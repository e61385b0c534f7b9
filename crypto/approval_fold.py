"""Approvals of a record judged in order (tier L4): what was decided was asked for, and what an admission rests on was given.

In constant memory: only so many requests are followed at one time, and where there are more, that is a finding.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from affidavit.crypto.approval_notes import ASKED, DECIDED, DENIED, GIVEN, ApprovalNote
from affidavit.crypto.failures import FailureCode, Tier, VerificationError
from affidavit.crypto.findings import Finding, FindingKind, Findings
from affidavit.crypto.governance_steps import REJECT, START, Step
from affidavit.crypto.hashing import HASH_SIZE
from affidavit.crypto.keyring import KeyEntry, Keyring
from affidavit.crypto.keys import VerifyingKey

# A request counts one, and one for each key and each person that it names.
_MOST_FOLLOWED: Final = 4096
_MOST_SIGNERS: Final = 32


class StatementInvalid(VerificationError):
    """A signed statement in a record does not hold, or contradicts the events; found at L4, the record's own signature holds."""

    @property
    def tier(self) -> Tier:
        """The tier that finds it."""
        return Tier.L4


@dataclass(frozen=True, slots=True)
class ApprovalSigner:
    """Somebody whose signature stands under decisions of a record.

    Attributes:
        principal: The name that the decisions bear, its beginning.
        fingerprint: The key's, as OpenSSH prints it.
        count: How many decisions.
        entry: What the keyring says of that key; None where it does not hold it.
    """

    principal: str
    fingerprint: str
    count: int
    entry: KeyEntry | None


@dataclass(frozen=True, slots=True)
class ShownApprovals:
    """What a record shows of decisions by people.

    Attributes:
        approved: Calls approved.
        refused: Calls refused.
        expired: Requests that nobody decided in time.
        unsigned: Decisions on the host's word alone.
        unsigned_approved: Those of them that approve; the others refuse.
        unchecked: Decisions signed with a key that the record does not spell out.
        signers: Who signed the others, the first so many.
        signed: How many decisions bear a signature that holds.
    """

    approved: int
    refused: int
    expired: int
    unsigned: int
    unsigned_approved: int
    unchecked: int
    signers: tuple[ApprovalSigner, ...]
    signed: int

    @property
    def decided(self) -> int:
        """Decisions by people."""
        return self.approved + self.refused


class _Open(NamedTuple):
    asked: ApprovalNote
    answer: int | None = None
    decided: int = 0
    was_used: bool = False

    @property
    def weight(self) -> int:
        return 1 + len(self.asked.keys) + len(self.asked.named) // HASH_SIZE


@final
class ApprovalFold:
    """Takes the notes of one record in order, and its admissions and refusals between them."""

    __slots__ = ("_counts", "_fault", "_findings", "_open", "_overflowed", "_signers", "_weight")

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}
        self._weight = 0
        self._overflowed = False
        self._counts: Counter[str] = Counter()
        self._signers: dict[tuple[str, bytes], int] = {}
        self._findings = Findings()
        self._fault: VerificationError | None = None

    def join(self, notes: tuple[ApprovalNote, ...], steps: tuple[Step, ...]) -> None:
        """Take what a part of the record shows. Never raises: the first fault is kept until `finish`."""
        if not notes and not self._open:
            return
        left = iter(notes)
        note = next(left, None)
        for step in steps:
            while note is not None and note.place <= step[1]:
                self._take(note)
                note = next(left, None)
            if step[0] in (START, REJECT) and step[3] in self._open:
                self._close(step)
        while note is not None:
            self._take(note)
            note = next(left, None)

    def finish(self, keyring: Keyring) -> tuple[ShownApprovals, tuple[Finding, ...]]:
        """Return what the record shows, and what was noticed.

        Args:
            keyring: Tells whose keys the decisions are signed with.

        Raises:
            VerificationError: `sign.signature_invalid`, with the index of the decision at fault.
        """
        if self._fault is not None:
            raise self._fault
        by_key = {entry.key.raw: entry for entry in keyring.entries}
        signers = tuple(
            ApprovalSigner(name, VerifyingKey(raw).fingerprint, count, by_key.get(raw))
            for (name, raw), count in self._signers.items()
        )
        names = ("approved", "refused", "expired", "unsigned", "unsigned_approved", "unchecked", "signed")
        return ShownApprovals(
            **{name: self._counts[name] for name in names}, signers=signers
        ), self._findings.all()

    def _take(self, note: ApprovalNote) -> None:
        if self._fault is not None:
            return
        if note.kind == ASKED:
            self._ask(note)
        elif note.kind == DECIDED:
            self._decide(note)
        else:
            self._use(note)

    def _ask(self, note: ApprovalNote) -> None:
        if note.call in self._open:
            return
        asked = _Open(note)
        if self._weight + asked.weight > _MOST_FOLLOWED:
            self._overflowed = True
            self._note(
                FindingKind.APPROVAL_NOT_FOLLOWED,
                "so many approvals wait at once that one was not followed",
                note,
            )
            return
        self._weight += asked.weight
        self._open[note.call] = asked

    def _decide(self, note: ApprovalNote) -> None:
        found = self._open.get(note.call)
        trouble = note.trouble or _contradiction(note, found)
        if trouble:
            self._fault = StatementInvalid(
                FailureCode.SIGN_SIGNATURE_INVALID, f"the signed decision about call {note.call}: {trouble}"
            ).at(note.place)
            return
        self._count(note)
        if found is None:
            self._lost("a decision is about a call for which nothing was asked", note)
        elif found.asked.bind != note.bind:
            self._note(
                FindingKind.APPROVAL_OTHER_ARGS, "a decision is for other arguments than its request", note
            )
        elif found.answer is None:
            if found.asked.signed and note.who and not note.signed:
                self._note(
                    FindingKind.APPROVAL_UNSIGNED,
                    "a decision lacks the signature that its request asks for",
                    note,
                )
            self._judge_who_and_when(note, found.asked)
            self._open[note.call] = found._replace(answer=note.answer, decided=note.seq)

    def _judge_who_and_when(self, note: ApprovalNote, asked: ApprovalNote) -> None:
        if not note.who:
            return
        names = [asked.named[at : at + HASH_SIZE] for at in range(0, len(asked.named), HASH_SIZE)]
        if names and note.who not in names:
            self._note(
                FindingKind.APPROVAL_NOT_NAMED,
                "a decision is by somebody whom its request does not name",
                note,
            )
        elif asked.signed and note.signer and asked.keys and note.signer not in dict(asked.keys).values():
            self._note(
                FindingKind.APPROVAL_NOT_NAMED,
                "a decision is signed with a key that its request does not name",
                note,
            )
        self._judge_time(note, asked)

    def _judge_time(self, note: ApprovalNote, asked: ApprovalNote) -> None:
        if asked.expires is not None and note.time >= asked.expires:
            self._note(
                FindingKind.APPROVAL_LATE,
                "an approval is dated as given or used after its request had expired",
                note,
            )

    def _count(self, note: ApprovalNote) -> None:
        counts = self._counts
        if not note.who:
            counts["expired"] += 1
            return
        counts["approved" if note.answer == GIVEN else "refused"] += 1
        if not note.signed:
            counts["unsigned"] += 1
            counts["unsigned_approved"] += note.answer == GIVEN
        elif not note.signer:
            counts["unchecked"] += 1
        else:
            counts["signed"] += 1
            place = (note.shown, note.signer)
            if place in self._signers or len(self._signers) < _MOST_SIGNERS:
                self._signers[place] = self._signers.get(place, 0) + 1

    def _use(self, note: ApprovalNote) -> None:
        found = self._open.get(note.call)
        if found is None or found.answer is None or found.decided != note.answer:
            self._lost("an admission rests on an approval that is not on the record", note)
        elif found.answer != GIVEN:
            word = "was refused" if found.answer == DENIED else "had expired"
            self._note(FindingKind.APPROVAL_NOT_GIVEN, f"an admission rests on an approval that {word}", note)
        elif found.asked.bind != note.bind:
            self._note(
                FindingKind.APPROVAL_OTHER_ARGS, "an admission rests on an approval of other arguments", note
            )
        else:
            self._judge_time(note, found.asked)
        if found is not None:
            self._open[note.call] = found._replace(was_used=True)

    def _close(self, step: Step) -> None:
        rule, _, seq, call, _ = step
        if call is None:
            return
        found = self._open.pop(call)
        self._weight -= found.weight
        if rule == START and not found.was_used:
            self._findings.add(
                FindingKind.APPROVAL_NOT_GIVEN,
                "a call was admitted without the approval asked for it",
                [seq],
                ids=[call],
            )

    def _lost(self, detail: str, note: ApprovalNote) -> None:
        # Of a request that was not followed nothing is known, and that has been said.
        if not self._overflowed:
            self._note(FindingKind.APPROVAL_ABSENT, detail, note)

    def _note(self, kind: FindingKind, detail: str, note: ApprovalNote) -> None:
        self._findings.add(kind, detail, [note.seq], ids=[note.call])


def _contradiction(note: ApprovalNote, found: _Open | None) -> str:
    """Return how a signed decision contradicts its request; empty where it does not, or is not signed."""
    if not note.signer or found is None:
        return ""
    if note.expires != found.asked.expires:
        return "the statement is for another expiry than the request's"
    named = [key for name, key in found.asked.keys if name == note.who]
    if named and note.signer not in named:
        return "it is signed with another key than the request names for this person"
    return ""
