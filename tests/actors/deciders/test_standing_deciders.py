"""The deciders that look at what went before: containment, brake, breakers, approval, and a refusal that stands."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.approvals import EXPIRED, Approval
from affidavit.actors.clock import NANOSECONDS
from affidavit.actors.containment.levels import Level
from affidavit.actors.deciders.approval import ApprovalGate
from affidavit.actors.deciders.brake import Brake, FailureBreaker, RepetitionBreaker
from affidavit.actors.deciders.containment import ContainmentGate
from affidavit.actors.deciders.port import MODEL_ACTION, Action, Ask, Decider, Denial, Standing
from affidavit.actors.deciders.refusal import RefusalStands
from affidavit.actors.events import FaultClass, Trust
from affidavit.crypto.approval import APPROVED, REFUSED

PAY = Action("pay", tool_use_id="t1", args_digest=b"exact")
ASKED = Approval(
    call=4, action="pay", goal="", turn=1, tool_use_id="t1", args=b"exact", expires=100, approvers=(), signed=False,
    requested=9,
)  # fmt: skip


def ruled(decision: str, by: str = "ann", reason: str = "") -> Approval:
    """The request, decided."""
    return replace(ASKED, decision=decision, principal=by, reason=reason, decided=10)


def fault(answer: object) -> tuple[str, str] | None:
    """The class and code of a denial."""
    return (answer.error_class, answer.error_code) if isinstance(answer, Denial) else None


TOO_LITTLE = (FaultClass.FORBIDDEN, "containment_insufficient")


@pytest.mark.parametrize(
    ("trust", "level", "expected"),
    [
        (Trust.TRUSTED, Level.NONE, None),
        (Trust.SEMI_TRUSTED, Level.NONE, TOO_LITTLE),
        (Trust.SEMI_TRUSTED, Level.KERNEL, None),
        (Trust.UNTRUSTED, Level.KERNEL, TOO_LITTLE),
        (Trust.UNTRUSTED, Level.MICRO_VM, None),
        (Trust.TRUSTED, Level.MICRO_VM, None),
        # A trust that nobody knows is none.
        ("unheard-of", Level.KERNEL, TOO_LITTLE),
    ],
)
def test_less_trust_needs_more_containment(
    trust: str, level: Level, expected: tuple[str, str] | None
) -> None:
    """Each trust has its least containment, never lowered."""
    assert fault(ContainmentGate().decide(Action("a", trust, containment=level), Standing())) == expected


def test_what_does_not_exist_is_not_refused_for_its_containment() -> None:
    """Whoever asks for an unknown tool is told that, and not something about containment."""
    assert ContainmentGate().decide(Action("ghost", Trust.UNTRUSTED, known=False), Standing()) is None


@pytest.mark.parametrize("action", [PAY, Action(MODEL_ACTION), Action("check.tests", declared=True)])
def test_the_brake_refuses_everything_while_it_is_on(action: Action) -> None:
    """Tools, model calls and checks alike; nothing while it is off."""
    assert Brake().decide(action, Standing()) is None
    assert fault(Brake().decide(action, Standing(brake="ann: stop"))) == (FaultClass.FORBIDDEN, "brake")
    # A brake without a word is a brake.
    assert fault(Brake().decide(action, Standing(brake=""))) == (FaultClass.FORBIDDEN, "brake")


@pytest.mark.parametrize(("repeats", "refused"), [(0, False), (3, False), (4, True)])
def test_a_repetition_beyond_the_most_is_refused(repeats: int, refused: bool) -> None:
    """As often as is allowed and not once more; model calls never repeat."""
    breaker = RepetitionBreaker(3)
    expected = (FaultClass.FORBIDDEN, "breaker_repetition") if refused else None
    assert fault(breaker.decide(PAY, Standing(repeats=repeats))) == expected
    assert breaker.decide(Action(MODEL_ACTION), Standing(repeats=repeats)) is None


@given(endings=st.lists(st.booleans(), max_size=64), failures=st.integers(1, 8), of=st.integers(1, 16))
def test_failures_count_among_the_last_calls_alone(endings: list[bool], failures: int, of: int) -> None:
    """The breaker trips exactly when so many of the last so many have failed, whatever lies before those."""
    answer = FailureBreaker(failures, of).decide(Action(MODEL_ACTION), Standing(endings=tuple(endings)))
    assert (answer is not None) is (sum(endings[-of:]) >= failures)
    assert fault(answer) in (None, (FaultClass.FORBIDDEN, "breaker_failures"))


@pytest.mark.parametrize(
    ("tools", "name", "covered"),
    [
        (("pay",), "pay", True),
        (("pay",), "pay_all", False),
        (("pay_*",), "pay_all", True),
        (("pay_*",), "pay", False),
        (("*",), "anything", True),
        (("look", "pay"), "pay", True),
    ],
)
def test_an_approval_rule_covers_tools_by_name_or_beginning(
    tools: tuple[str, ...], name: str, covered: bool
) -> None:
    """A name is that name; a beginning with a star is all that begin so."""
    answer = ApprovalGate(tools, 60).decide(replace(PAY, name=name), Standing(now=5))
    assert answer == (Ask(5 + 60 * NANOSECONDS) if covered else None)


def needed(code: str) -> tuple[str, str]:
    """The fault of a call whose approval is missing."""
    return (FaultClass.NEEDS_APPROVAL, code)


@pytest.mark.parametrize(
    ("approval", "now", "expected"),
    [
        (ruled(APPROVED), 99, None),
        (ruled(APPROVED), 100, needed("expired")),
        (ruled(REFUSED), 99, needed("refused")),
        (ruled(REFUSED), 100, needed("refused")),
        (ASKED, 100, needed("expired")),
        (replace(ruled(APPROVED), args=b"others"), 99, needed("args_changed")),
        (replace(ASKED, args=b"others"), 99, needed("args_changed")),
    ],
)
def test_an_approval_holds_for_the_exact_arguments_and_not_after_it_expires(
    approval: Approval, now: int, expected: tuple[str, str] | None
) -> None:
    """Approved just so and in time, or not at all."""
    answer = ApprovalGate(("pay",), 60).decide(PAY, Standing(approval=approval, now=now))
    assert fault(answer) == expected
    assert answer is None or isinstance(answer, Denial)


def test_a_request_that_stands_is_waited_for_as_it_was_made() -> None:
    """Neither its expiry nor who may decide moves with the rules or the time."""
    asked = replace(ASKED, approvers=("ann",), signed=True)
    answer = ApprovalGate(("pay",), 60).decide(PAY, Standing(approval=asked, now=50))
    assert isinstance(answer, Ask)
    assert (answer.expires, answer.approvers, answer.signed) == (100, ("ann",), True)


def test_only_the_models_calls_need_approval() -> None:
    """What the host declares, a check say, asks nobody, even under a rule for everything."""
    assert ApprovalGate(("*",), 60).decide(Action("check.tests", declared=True), Standing()) is None
    assert ApprovalGate(("*",), 60).decide(Action(MODEL_ACTION), Standing()) is None


@pytest.mark.parametrize(
    ("approval", "expected"),
    [
        (None, None),
        (ASKED, None),
        (ruled(APPROVED), None),
        (ruled(REFUSED, reason="too much"), needed("refused")),
        (ruled(EXPIRED, by=""), needed("expired")),
    ],
)
def test_a_decision_against_a_call_stands_whatever_the_rules_say_now(
    approval: Approval | None, expected: tuple[str, str] | None
) -> None:
    """Also where no rule asks for approval any more, as after a resume under a changed policy."""
    answer = RefusalStands().decide(PAY, Standing(approval=approval))
    assert fault(answer) == expected
    if approval is not None and approval.reason:
        assert isinstance(answer, Denial)
        assert answer.reason == "ann refused it: too much"


def test_deciders_are_values() -> None:
    """Equal where they say the same; nothing in them can change under a run."""
    made: list[Decider] = [
        Brake(),
        ContainmentGate(),
        RefusalStands(),
        RepetitionBreaker(2),
        FailureBreaker(1, 2),
    ]
    again: list[Decider] = [
        Brake(),
        ContainmentGate(),
        RefusalStands(),
        RepetitionBreaker(2),
        FailureBreaker(1, 2),
    ]
    assert made == again
    with pytest.raises(AttributeError):
        made[3].most = 9  # type: ignore[attr-defined]
