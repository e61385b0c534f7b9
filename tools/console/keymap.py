"""What each key does: a pure step from one state of the view to the next, and what is wanted of the run.

The rule: nothing happens to a run by one key alone. Approving wants `y` once the exact arguments have been shown to their end;
refusing wants a line and Enter; stopping wants the key twice. Pasted text types, and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from affidavit.tools.console.keys import Key, Name
from affidavit.tools.console.ui import FAR, Mode, Read, Typed, Ui
from affidavit.tools.console.view import View

MAX_LINE: Final = 2000
_LINES: Final = 3
_PAGE: Final = 12
_SCROLLS: Final = {
    Name.UP: _LINES,
    Name.DOWN: -_LINES,
    Name.PAGE_UP: _PAGE,
    Name.PAGE_DOWN: -_PAGE,
    Name.HOME: FAR,
    Name.END: -FAR,
}


@dataclass(frozen=True, slots=True)
class Decide:
    """A person has decided about the call that they were shown.

    Attributes:
        call: The call.
        approved: Whether it may run.
        args: The digest of the arguments that they were shown.
        reason: Why, in their words.
    """

    call: int
    approved: bool
    args: bytes
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """A person wants the run parked, or to stop watching."""


@dataclass(frozen=True, slots=True)
class Scroll:
    """A person wants to see what lies before, or behind.

    Attributes:
        by: Lines back; negative for forward.
    """

    by: int


Intent = Decide | Stop | Scroll | None


def press(ui: Ui, key: Key, view: View) -> tuple[Ui, Intent]:
    """Return the state after a key, and what is wanted of the run.

    Args:
        ui: The state before it.
        key: The key.
        view: What the person sees.
    """
    ui = replace(ui, notice="")
    match ui.mode:
        case Mode.APPROVE:
            return _approving(ui, key)
        case Mode.REFUSE:
            return _refusing(ui, key)
        case Mode.STOP:
            return replace(ui, mode=Mode.LOOK), Stop() if _is(key, "q") else None
        case Mode.HELP:
            return replace(ui, mode=Mode.LOOK), None
        case Mode.LOOK:
            return _looking(ui, key, view)


def settled(ui: Ui, view: View) -> Ui:
    """Return the state once a view has changed: what is no longer waiting is no longer asked about."""
    if ui.asked is None or ui.asked in view.waiting.pending:
        return ui
    told = f"call {ui.asked.call} waits no longer"
    return replace(_over(ui), notice=told)


def _is(key: Key, letter: str) -> bool:
    return key.name is Name.CHARACTER and key.text == letter


def _looking(ui: Ui, key: Key, view: View) -> tuple[Ui, Intent]:
    if key.name in _SCROLLS:
        return ui, Scroll(_SCROLLS[key.name])
    if key.name is not Name.CHARACTER:
        return ui, None
    match key.text:
        case "a":
            ui = _ask(ui, view, Mode.APPROVE)
        case "r":
            ui = _ask(ui, view, Mode.REFUSE)
        case "g":
            ui = replace(ui, governance=not ui.governance)
        case "f":
            ui = replace(ui, fanout=not ui.fanout)
        case "t":
            ui = replace(ui, tools=not ui.tools)
        case "q":
            ui = replace(ui, mode=Mode.STOP)
        case "?" | "h":
            ui = replace(ui, mode=Mode.HELP)
    return ui, None


def _ask(ui: Ui, view: View, mode: Mode) -> Ui:
    if not view.waiting.pending:
        return replace(ui, notice="nothing waits for you")
    asked = view.waiting.pending[0]
    if not ui.can_decide or asked.signed:
        why = "the decision must be signed" if asked.signed else "this only watches"
        return replace(
            ui, notice=f"{why}; decide in another terminal: affidavit approve {view.run_id} {asked.call}"
        )
    if mode is Mode.APPROVE and asked.arguments is None:
        return replace(ui, notice="its arguments are not those on the record: it can only be refused")
    return replace(_over(ui), mode=mode, asked=asked)


def _over(ui: Ui) -> Ui:
    return replace(ui, mode=Mode.LOOK, asked=None, page=0, read=Read(), typed=Typed())


def _turned(ui: Ui, key: Key) -> Ui | None:
    """Return the state with another page of the arguments; None for a key that turns none."""
    match key.name:
        case Name.PAGE_UP | Name.UP:
            return replace(ui, page=max(ui.page - 1, 0))
        case Name.PAGE_DOWN | Name.DOWN:
            return replace(ui, page=ui.page + 1)
        case _:
            return None


def _approving(ui: Ui, key: Key) -> tuple[Ui, Intent]:
    turned = _turned(ui, key)
    if turned is not None:
        return turned, None
    asked = ui.asked
    if asked is not None and _is(key, "y"):
        if not ui.read.is_whole:
            # The bottom line says how the rest is shown.
            return ui, None
        return _over(ui), Decide(asked.call, approved=True, args=asked.args)
    return replace(_over(ui), notice="not approved; it goes on waiting"), None


def _refusing(ui: Ui, key: Key) -> tuple[Ui, Intent]:
    turned = _turned(ui, key)
    if turned is not None:
        return turned, None
    if key.name is Name.ESCAPE:
        return replace(_over(ui), notice="not refused; it goes on waiting"), None
    if key.name is Name.ENTER:
        asked, reason = ui.asked, ui.typed.text.strip()
        decided = (
            None if asked is None else Decide(asked.call, approved=False, args=asked.args, reason=reason)
        )
        return _over(ui), decided
    return replace(ui, typed=typed(ui.typed, key)), None


def typed(line: Typed, key: Key) -> Typed:
    """Return a line that is being typed after one more key: a character, a paste, a move of the cursor or a deletion."""
    before, after = line.text[: line.at], line.text[line.at :]
    match key.name:
        case Name.CHARACTER | Name.PASTE:
            put = " ".join(key.text.split()) if key.name is Name.PASTE else key.text
            put = "".join(each for each in put if each.isprintable())[: max(MAX_LINE - len(line.text), 0)]
            return Typed(before + put + after, line.at + len(put))
        case Name.BACKSPACE if before:
            return Typed(before[:-1] + after, line.at - 1)
        case Name.DELETE:
            return Typed(before + after[1:], line.at)
        case Name.LEFT:
            return Typed(line.text, max(line.at - 1, 0))
        case Name.RIGHT:
            return Typed(line.text, min(line.at + 1, len(line.text)))
        case Name.HOME:
            return Typed(line.text, 0)
        case Name.END:
            return Typed(line.text, len(line.text))
        case _:
            return line
