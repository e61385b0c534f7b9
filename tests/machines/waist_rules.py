"""What must hold of any record of the waist's world, worked out from the events alone and apart from the product's own folds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from affidavit.actors.amounts import NOTHING, Amounts
from affidavit.actors.deciders.port import Action
from affidavit.actors.events import Event, FaultClass, Kind
from affidavit.crypto import Tier, VerifiedRecord, cbor, verify_record
from tests.crypto.samples import keyring, sealed
from tests.machines.waist_world import MOST, RUN, STEPS, TOOLS, granted


def verified(rows: Sequence[bytes]) -> VerifiedRecord:
    """Seal events with a key that the test trusts, and verify the record at L4."""
    record = verify_record(sealed(rows, origin=RUN), keyring())
    assert record.tier == Tier.L4
    return record


@dataclass
class Ledger:
    """One pass over the record."""

    held: dict[int, Amounts] = field(default_factory=dict)
    used: Amounts = NOTHING
    turns: int = 0
    last_call: int = 0
    braked: bool = False
    rejected: set[int] = field(default_factory=set)
    admitted: dict[int, Event] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    requests: dict[int, Event] = field(default_factory=dict)
    decisions: dict[int, Event] = field(default_factory=dict)
    spent_decisions: set[int] = field(default_factory=set)

    def check(self, events: Iterable[Event]) -> None:
        """Check every event in order."""
        for event in events:
            match event.kind:
                case Kind.TURN_STARTED:
                    self.turns += 1
                    assert self.turns <= STEPS
                case Kind.ACTION_ADMITTED:
                    self._admitted(event)
                case Kind.ACTION_COMPLETED:
                    self._ended(event)
                case Kind.ACTION_REJECTED:
                    self._rejected(event)
                case Kind.APPROVAL_REQUESTED:
                    assert event.call not in self.requests, "asked twice"
                    self._number(event.call)
                    self.requests[event.call] = event
                case Kind.APPROVAL_DECIDED:
                    self._decided(event)
                case Kind.BRAKE_ENGAGED:
                    self.braked = True
                case Kind.BRAKE_RELEASED:
                    self.braked = False
                case _:
                    pass
            self._budgets()

    def _number(self, call: int) -> None:
        if call not in self.requests:
            assert call == self.last_call + 1, "numbers count up, one for each call"
            self.last_call = call

    def _budgets(self) -> None:
        total = sum(self.held.values(), self.used)
        assert total.tokens <= MOST.tokens
        assert total.cost_micros <= MOST.cost_micros
        assert total.ms <= MOST.ms

    def _admitted(self, event: Event) -> None:
        assert not self.braked, "something began under the brake"
        self._number(event.call)
        assert event.call not in self.admitted
        assert event.call not in self.rejected
        self.admitted[event.call] = event
        self.held[event.call] = Amounts.read(event.detail.get("reserved"))
        own = granted(event.goal)
        assert event.detail["grant"] == sha256(cbor.encode(sorted(own))).digest(), "under another grant"
        if event.tool_use_id:
            assert event.action in own & TOOLS.keys(), "beyond what was granted"
        if event.action.startswith("pay"):
            self._approved(event)

    def _approved(self, event: Event) -> None:
        seq = event.detail["approval"]
        assert isinstance(seq, int)
        decision, request = self.decisions[seq], self.requests[event.call]
        assert decision.call == event.call
        assert decision.detail["decision"] == "approved"
        assert decision.principal
        assert request.detail["args"] == decision.detail["args"] == event.detail["args"]
        expires = request.detail["expires"]
        assert isinstance(expires, int)
        assert max(decision.time, event.time) < expires, "after it had expired"
        assert seq not in self.spent_decisions, "one approval, used twice"
        self.spent_decisions.add(seq)

    def _decided(self, event: Event) -> None:
        request = self.requests[event.call]
        assert event.detail["request"] == request.seq
        assert not any(each.call == event.call for each in self.decisions.values()), "decided twice"
        assert bool(event.principal) is (event.detail["decision"] != "expired")
        self.decisions[event.seq] = event

    def _ended(self, event: Event) -> None:
        assert event.call in self.admitted
        assert event.call not in self.ended
        self.ended.add(event.call)
        reserved, used = self.held.pop(event.call), Amounts.read(event.detail.get("used"))
        assert used.tokens <= reserved.tokens
        assert used.cost_micros <= reserved.cost_micros
        assert used.ms <= reserved.ms
        if (
            event.error_class in {FaultClass.INTERRUPTED, FaultClass.CANCELLED}
            or event.error_code == "crashed"
        ):
            assert (used.tokens, used.cost_micros) == (reserved.tokens, reserved.cost_micros), (
                "held back, then given back"
            )
        self.used += used

    def _rejected(self, event: Event) -> None:
        self._number(event.call)
        assert event.call not in self.admitted
        assert event.error_class
        assert event.error_code
        self.rejected.add(event.call)


def check_deeds(events: Sequence[Event], began: Sequence[tuple[Action, int]]) -> None:
    """Check what was really done against the record: nothing without its admission, nothing that was refused, nothing twice."""
    admitted = {event.call: event for event in events if event.kind == Kind.ACTION_ADMITTED}
    rejected = {event.call for event in events if event.kind == Kind.ACTION_REJECTED}
    once: set[tuple[str, str]] = set()
    assert len({call for _, call in began}) == len(began), "one admission, two deeds"
    for action, call in began:
        assert call not in rejected
        admission = admitted[call]
        said = (admission.action, admission.goal, admission.tool_use_id, admission.detail.get("args", b""))
        assert said == (action.name, action.goal, action.tool_use_id, action.args_digest)
        if action.tool_use_id and not action.idempotent:
            key = (action.goal, action.tool_use_id)
            assert key not in once, "what must not be repeated was repeated"
            once.add(key)


def check_answers(events: Sequence[Event]) -> None:
    """Check that each call is answered at most once, and never begins again once it is."""
    answered: set[tuple[str, str]] = set()
    for event in events:
        key = (event.goal, event.tool_use_id)
        if event.kind == Kind.TOOL_RESULT:
            assert key not in answered
            answered.add(key)
        elif event.kind in {Kind.ACTION_ADMITTED, Kind.APPROVAL_REQUESTED} and event.tool_use_id:
            assert key not in answered, "a call that has its answer began again"
