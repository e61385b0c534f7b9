"""The view model: everything that the screens show of a run, folded from its events and the live pieces of its answers.

A frozen value with bounded memory. Folding is pure, so a run seen live, one watched from another process and one replayed look
the same once the same events have been folded; pieces of an answer are gone once the answer itself is on the record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from affidavit.actors.deltas import LiveText
from affidavit.actors.events import Event, Kind
from affidavit.actors.projection import Projection, reduce
from affidavit.tools.console import budget as budgets
from affidavit.tools.console import entries as transcript
from affidavit.tools.console import pending as approvals
from affidavit.tools.console.budget import Budget
from affidavit.tools.console.entries import Entries
from affidavit.tools.console.pending import Waiting

MAX_DRAFT: Final = 8 * 1024
MAX_DRAFTS: Final = 16
_NO_STATUS: Final = Projection()
_NO_BUDGET: Final = Budget()
_NOTHING_WAITS: Final = Waiting()


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer in the making.

    Attributes:
        goal: The goal it is made for.
        call: The model call; another attempt is another call.
        text: The words so far, or the last of them.
        thinking: Whether these are the model's thoughts, since it has said nothing yet.
    """

    goal: str
    call: int
    text: str
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of a run.

    Attributes:
        run_id: The run.
        model: The model that the record names.
        seq: The last event that was folded.
        status: The projection.
        entries: The transcript.
        budget: What may still be used.
        waiting: What waits for a person.
        drafts: Answers in the making, one for each goal.
    """

    run_id: str
    model: str = ""
    seq: int = 0
    status: Projection = _NO_STATUS
    entries: Entries = ()
    budget: Budget = _NO_BUDGET
    waiting: Waiting = _NOTHING_WAITS
    drafts: tuple[Draft, ...] = ()


def fold(view: View, event: Event) -> View:
    """Return the view after one more event; one that was folded already changes nothing."""
    if event.seq <= view.seq:
        return view
    arguments = view.waiting.arguments(event) if event.kind == Kind.APPROVAL_REQUESTED else None
    model, drafts = view.model, view.drafts
    if event.kind == Kind.SESSION_STARTED:
        model = str(event.detail.get("model", ""))
    elif drafts and event.kind in _END_OF_DRAFT:
        drafts = tuple(each for each in drafts if each.goal != event.goal)
    # Made anew and not by `replace`, which is several times as slow: this is done for each event of a run.
    return View(
        view.run_id,
        model,
        event.seq,
        reduce(view.status, event),
        transcript.with_event(view.entries, event, arguments),
        budgets.with_event(view.budget, event),
        approvals.with_event(view.waiting, event),
        drafts,
    )


def fold_live(view: View, piece: LiveText) -> View:
    """Return the view after one more piece of an answer. Pieces that were missed leave a gap that is marked."""
    others = tuple(each for each in view.drafts if each.goal != piece.goal)
    known = next((each for each in view.drafts if each.goal == piece.goal), None)
    if known is not None and known.call > piece.call:
        return view
    if known is None or known.call != piece.call or (known.thinking and not piece.thinking):
        known = Draft(piece.goal, piece.call, "… " if piece.offset else "", piece.thinking)
    elif piece.thinking and not known.thinking:
        return view
    text = (known.text + piece.text)[-MAX_DRAFT:]
    return replace(view, drafts=(*others, replace(known, text=text))[-MAX_DRAFTS:])


_END_OF_DRAFT: Final = frozenset(
    {Kind.ASSISTANT, Kind.ACTION_COMPLETED, Kind.TURN_STARTED, Kind.CONVERGED, Kind.STALLED}
)
