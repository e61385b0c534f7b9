"""What a run waits for, told from its events: which calls, with which arguments, and whether anything else goes on."""

from dataclasses import replace
from pathlib import Path

from affidavit.actors.events import Event, Kind
from affidavit.actors.projection import Projection
from affidavit.tools.asking import system_name
from affidavit.tools.place import Place
from affidavit.tools.status import state_words
from affidavit.tools.waits import Waits, decision_lines, wait_lines, waits_words

NOW = 10**18
CALL = Event(
    Kind.TOOL_CALL, seq=1, tool="pay", tool_use_id="t1", input='{"n": "\x1b"}', args_digest=b"a" * 32
)
ASKED = Event(
    Kind.APPROVAL_REQUESTED,
    seq=2,
    action="pay",
    call=4,
    tool_use_id="t1",
    detail={"args": b"a" * 32, "expires": NOW, "signed": True},
)
ADMITTED = Event(Kind.ACTION_ADMITTED, seq=3, action="note", call=5, tool_use_id="t2")
ENDED = Event(Kind.ACTION_COMPLETED, seq=4, action="note", call=5, tool_use_id="t2")
BRAKE = Event(Kind.BRAKE_ENGAGED, seq=5, principal="ada")


def test_a_run_waits_for_a_person_while_nothing_else_goes_on() -> None:
    """Not while another call works, nor once the request has expired, nor under the brake, which refuses it anyway."""
    assert not Waits([CALL]).on_nothing_else(0)
    assert Waits([CALL, ASKED]).on_nothing_else(NOW - 1)
    assert not Waits([CALL, ASKED]).on_nothing_else(NOW)
    assert not Waits([CALL, ASKED, ADMITTED]).on_nothing_else(0)
    waits = Waits([CALL, ASKED, ADMITTED, ENDED])
    assert waits.on_nothing_else(0)
    waits.apply(ADMITTED)  # seen before
    assert waits.on_nothing_else(0)
    waits.apply(BRAKE)
    assert not waits.on_nothing_else(0)


def test_what_waits_is_shown_with_its_arguments_and_the_lines_that_decide() -> None:
    """Escaped, since a model wrote them; a status says it in a few words."""
    (wait,) = Waits([CALL, ASKED]).standing()
    lines = list(wait_lines(wait))
    assert lines[0] == "call 4: pay waits for approval; the decision must be signed"
    assert lines[2] == '  with {"n": "\\x1b"}'
    assert waits_words([wait]) == state_words(Projection(), [wait]) == "waits for approval of call 4"
    approve, refuse = decision_lines(Place(Path("/store"), named=True), "mine", wait.approval)
    assert approve == "affidavit approve mine 4 --key YOUR_KEY_FILE --store /store"
    assert "--refuse" in refuse


def test_the_lines_ask_for_a_name_where_this_user_is_none_of_the_approvers() -> None:
    """A line that is pasted as it stands would be refused: only ada and bob may decide. Who is one of them need say nothing."""
    place = Place(Path("/store"), named=False)
    (wait,) = Waits(
        [CALL, replace(ASKED, detail=dict(ASKED.detail) | {"approvers": ["ada", "bob"]})]
    ).standing()
    assert list(decision_lines(place, "mine", wait.approval)) == [
        "affidavit approve mine 4 --as YOUR_NAME --key YOUR_KEY_FILE",
        "affidavit approve mine 4 --refuse --reason WHY --as YOUR_NAME --key YOUR_KEY_FILE",
    ]
    own = replace(wait.approval, approvers=(system_name(),))
    assert next(decision_lines(place, "mine", own)) == "affidavit approve mine 4 --key YOUR_KEY_FILE"


def test_what_may_be_taken_for_something_else_stands_beneath_the_arguments() -> None:
    """Pointed out before anybody decides; nothing is said where there is nothing."""
    call = replace(CALL, input='{"to": "p\u0430ypal"}')
    (wait,) = Waits([call, ASKED]).standing()
    *_, arguments, doubt = wait_lines(wait)
    assert arguments == '  with {"to": "p\u0430ypal"}'
    assert doubt.startswith('  contains characters that look like others: "p\u0430ypal" has ')
    (harmless,) = Waits([CALL, ASKED]).standing()
    assert len(list(wait_lines(harmless))) == 3


def test_arguments_other_than_those_asked_for_are_not_shown_as_such() -> None:
    """A tool call that the request is not bound to is no ground to approve anything."""
    (wait,) = Waits([ASKED]).standing()
    assert wait.arguments is None
    assert "cannot be approved" in list(wait_lines(wait))[2]
