"""The governance panel: what waits for a person and with which arguments, recent actions, the egress ledger, what may be used."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from affidavit.actors.ledgers import ActionEntry, ActionState, EgressEntry
from affidavit.tools.console.budget import Budget
from affidavit.tools.console.ink import (
    BAD,
    BAD_MARK,
    DONE_MARK,
    GOOD,
    QUIET,
    RUNNING_MARK,
    STRONG,
    WAITS,
    WAITS_MARK,
    Line,
    block,
    exact,
    hung,
    line,
    piece,
    shortened,
    width_of,
    wrapped,
)
from affidavit.tools.console.pending import Pending
from affidavit.tools.console.status_region import count
from affidavit.tools.console.view import View
from affidavit.tools.governance_words import when

_SIDE_BY_SIDE = 72
_ARGUMENT_LINES = 3
_MICROS = 1_000_000
_MARKS = {
    ActionState.RUNNING: (RUNNING_MARK, WAITS),
    ActionState.DONE: (DONE_MARK, GOOD),
    ActionState.BLOCKED: (BAD_MARK, BAD),
}


def governance_lines(view: View, width: int, height: int) -> list[Line]:
    """Return the panel, exactly so large: what waits comes first, then the rest beside or below one another.

    Args:
        view: What there is to show.
        width: Columns.
        height: Lines, the panel's title not among them.
    """
    waits = [each for pending in view.waiting.pending for each in _pending(pending, width)]
    if view.waiting.braked:
        waits.insert(0, line(f"{BAD_MARK} the brake is on: every action is refused", BAD))
    waits = waits[: max(height - 2, 1)]
    rest = height - len(waits)
    if width < _SIDE_BY_SIDE:
        return block([*waits, *_stacked(view, width, rest)], width, height)
    left = width // 2
    actions = block(_recent(_actions(view, left - 2), rest), left - 2, rest)
    others = [*_budget(view.budget, width - left), *_egress(view, width - left)]
    right = block(_recent(others, rest), width - left, rest)
    beside = [(*one, piece("│ ", QUIET), *other) for one, other in zip(actions, right, strict=True)]
    return block([*waits, *beside], width, height)


def wanted_height(view: View, width: int) -> int:
    """Return how many lines the panel would fill."""
    waits = sum(len(list(_pending(pending, width))) for pending in view.waiting.pending)
    actions = max(len(view.status.actions), 1)
    others = len(list(_budget(view.budget, width))) + max(len(view.status.egress), 1)
    rest = max(actions, others) if width >= _SIDE_BY_SIDE else actions + others
    return waits + view.waiting.braked + rest


def _recent(lines: Iterator[Line] | list[Line], height: int) -> list[Line]:
    """Return the first lines; rows stand newest first, so these are the ones that matter."""
    return list(islice(lines, max(height, 0)))


def _stacked(view: View, width: int, height: int) -> Iterator[Line]:
    budget, egress = list(_budget(view.budget, width)), list(_egress(view, width))
    room = max(height - len(budget), 1)
    share = min(len(egress), max(room // 3, 1))
    yield from budget
    yield from _recent(_actions(view, width), room - share)
    yield from egress[:share]


def pending_words(pending: Pending) -> str:
    """Return which call waits, for whom and until when."""
    by = f" by {', '.join(pending.approvers)}" if pending.approvers else ""
    signed = "; the decision must be signed" if pending.signed else ""
    goal = f"[{pending.goal}] " if pending.goal else ""
    until = when(pending.expires)
    return f"{goal}call {pending.call}: {pending.action} waits for approval{by}{signed}, until {until}"


def arguments_lines(pending: Pending, width: int) -> list[Line]:
    """Return the exact arguments, every one of them."""
    if pending.arguments is None:
        return list(wrapped("its arguments are NOT those on the record: it cannot be approved", width, BAD))
    return list(exact(pending.arguments, width, STRONG))


def _pending(pending: Pending, width: int) -> Iterator[Line]:
    head = piece(f"{WAITS_MARK} ", WAITS)
    yield from hung(wrapped(pending_words(pending), width - 2, WAITS), head, 2)
    lines = arguments_lines(pending, width - 2)
    more = len(lines) - _ARGUMENT_LINES
    if more > 0:
        lines = [*lines[:_ARGUMENT_LINES], line(f"… {more} more lines; a shows them all", WAITS)]
    yield from hung(lines, piece("  "), 2)


def _actions(view: View, width: int) -> Iterator[Line]:
    if not view.status.actions:
        yield line("no action yet", QUIET)
    for entry in reversed(view.status.actions):
        yield _action(entry, width)


def _action(entry: ActionEntry, width: int) -> Line:
    mark, style = _MARKS[entry.state]
    failed = entry.state is ActionState.DONE and entry.fault
    head = piece(f"{BAD_MARK if failed else mark} ", BAD if failed else style)
    fault = f"  {entry.fault}" if entry.fault else ""
    tail = f"  {entry.trust}{fault}"
    name = shortened(f"{entry.call} {entry.action}", max(width - 2 - len(tail), 8))
    room = max(width - 2 - width_of((piece(name),)), 1)
    return (head, piece(name), piece(shortened(tail, room), BAD if entry.fault else QUIET))


def _egress(view: View, width: int) -> Iterator[Line]:
    if not view.status.egress:
        yield line("no connection yet", QUIET)
    for entry in reversed(view.status.egress):
        yield _connection(entry, width)


def _connection(entry: EgressEntry, width: int) -> Line:
    mark, style = (DONE_MARK, GOOD) if entry.allowed else (BAD_MARK, BAD)
    word = "allowed" if entry.allowed else "blocked"
    where = f"{entry.host} {word}"
    room = max(width - 2 - len(where), 1)
    return (
        piece(f"{mark} ", style),
        piece(shortened(where, width - 2)),
        piece(shortened(f": {entry.reason}", room), QUIET),
    )


def _budget(budget: Budget, width: int) -> Iterator[Line]:
    yield from (line(shortened(each, width)) for each in _budget_words(budget))


def _budget_words(budget: Budget) -> Iterator[str]:
    steps = f"{budget.steps} of {budget.max_steps}" if budget.max_steps else f"{budget.steps}"
    together = f", {budget.all_steps} of {budget.limits.steps} in all" if budget.limits.steps else ""
    yield f"steps {steps}{together}"
    used, held, left = budget.used, budget.reserved, budget.left
    holds = f", {count(held.tokens)} held" if held.tokens else ""
    tokens_left = f", {count(left.tokens)} of {count(budget.tokens)} left" if budget.tokens else ""
    yield f"tokens {count(used.tokens)} used{holds}{tokens_left}"
    limits = budget.limits.amounts
    work_left = f" used, {left.ms / 1000:.1f} of {limits.ms / 1000:g} s left" if limits.ms else ""
    cost = f", cost {used.cost_micros / _MICROS:.4f}" if used.cost_micros and not limits.cost_micros else ""
    yield f"work {used.ms / 1000:.1f} s{work_left}{cost}"
    if limits.cost_micros:
        of = f"{limits.cost_micros / _MICROS:g} {budget.limits.currency}"
        yield f"cost {used.cost_micros / _MICROS:.4f} used, {left.cost_micros / _MICROS:.4f} of {of} left"
