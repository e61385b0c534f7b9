"""Fixed event streams, one for each thing that the screens can show. Nothing here depends on a clock or on chance."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from affidavit.actors.deltas import LiveText
from affidavit.actors.events import Event, Kind, Usage
from affidavit.tools.console.ui import Anchor, Mode, Typed, Ui
from affidavit.tools.console.view import View, fold, fold_live

RUN = "0197a3c4-52f0-7c11-9d2e-4b1a6e0c8f35"
NOON = 1_800_000_000 * 10**9
ARGS = bytes(range(32))
PAYMENT = (
    '{"account": "NL91 ABNA 0417 1643 00", "amount": "1250.00", "currency": "EUR", "for": "invoice 2026-118"}'
)
ANSWER = """## What the project does

It keeps a **ledger** of payments and checks each one:

- reads `payments.csv`
- matches it against [the bank's list](https://bank.example/list)
- reports what does not match

```python
for row in rows:
    check(row)
```

| account | amount |
|---|---|
| NL91 | 1250.00 |
"""
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07 the screen is mine \u202egnihton\u202c [bold red]loud[/] "
    "&#27;[31mred&#x202e; <script>alert(1)</script>\r\n\x9b31mcsi\x00"
)


def started(**spec: object) -> Event:
    """The first event of a run."""
    return Event(
        Kind.SESSION_STARTED,
        text="Find out what this project does, and pay the open invoice.",
        detail={"model": "openai:gpt-6", "spec": {"max_steps": 16, "max_tokens": 50_000, **spec}},
    )


def asked(call: int, turn: int, goal: str = "") -> list[Event]:
    """A model call that is admitted."""
    detail = {"reserved": {"tokens": 4_000}}
    return [
        Event(Kind.TURN_STARTED, turn=turn, goal=goal),
        Event(
            Kind.ACTION_ADMITTED,
            action="model.generate",
            call=call,
            trust="semi-trusted",
            goal=goal,
            detail=detail,
        ),
    ]


def said(call: int, turn: int, text: str, *tools: tuple[str, str, str], goal: str = "") -> list[Event]:
    """What the model answered: words and tool calls, each a name, an id and its arguments."""
    usage = Usage(1_200 * turn, 80, 600 * turn)
    detail = {"used": {"tokens": usage.input_tokens + usage.output_tokens, "cost_micros": 2_100, "ms": 1_500}}
    return [
        Event(
            Kind.ACTION_COMPLETED,
            action="model.generate",
            call=call,
            trust="semi-trusted",
            goal=goal,
            detail=detail,
        ),
        Event(Kind.ASSISTANT, turn=turn, text=text, goal=goal),
        *(
            Event(
                Kind.TOOL_CALL,
                turn=turn,
                tool=name,
                tool_use_id=use_id,
                input=arguments,
                goal=goal,
                args_digest=ARGS,
            )
            for name, use_id, arguments in tools
        ),
        Event(Kind.TURN_COMPLETED, turn=turn, stop_reason="end_turn", usage=usage, goal=goal),
    ]


def done(
    call: int, tool: str, use_id: str, result: str, *, failed: bool = False, goal: str = ""
) -> list[Event]:
    """A tool that was run."""
    fault = "terminal" if failed else ""
    return [
        Event(Kind.ACTION_ADMITTED, action=tool, call=call, trust="untrusted", goal=goal),
        Event(Kind.ACTION_COMPLETED, action=tool, call=call, trust="untrusted", error_class=fault, goal=goal),
        Event(Kind.TOOL_RESULT, tool=tool, tool_use_id=use_id, result=result, is_error=failed, goal=goal),
    ]


def dialed(host: str, *, allowed: bool, reason: str) -> Event:
    """A decision about a connection."""
    return Event(Kind.EGRESS_DECISION, host=host, allowed=allowed, reason=reason)


def sealed(size: int) -> list[Event]:
    """A seal over so many events, and its check."""
    return [
        Event(Kind.RECORD_SEALED, detail={"size": size, "root": bytes(range(32)), "kid": b"did:key:z6Mk"}),
        Event(Kind.RECORD_VERIFIED, detail={"size": size, "tiers": ("L1", "L2", "L3", "L4")}),
    ]


def numbered(events: list[Event]) -> list[Event]:
    """The events as a stream recorded them."""
    return [replace(event, seq=seq, time=NOON + seq * 10**9) for seq, event in enumerate(events, start=1)]


def reading() -> list[Event]:
    """A run that looks around, is refused something, and goes on."""
    return [
        started(),
        *asked(1, 1),
        dialed("104.18.7.192", allowed=True, reason="granted to the model"),
        *said(1, 1, "I will look at the files.", ("list_dir", "a", '{"path": "."}'), ("shell", "b", '{"run": "ls"}')),
        *done(2, "list_dir", "a", "README.md\npayments.csv\nsrc/"),
        Event(Kind.ACTION_REJECTED, action="shell", call=3, trust="untrusted", error_class="forbidden",
              error_code="capability_denied", reason="the grant does not name it"),
        Event(Kind.TOOL_RESULT, tool="shell", tool_use_id="b", result="capability_denied: not granted", is_error=True),
        *asked(4, 2),
        *said(4, 2, "", ("http_fetch", "c", '{"url": "https://bank.example/list"}')),
        dialed("10.0.0.8", allowed=False, reason="private address"),
        *done(5, "http_fetch", "c", "egress_denied: 10.0.0.8 is a private address", failed=True),
    ]  # fmt: skip


def waiting() -> list[Event]:
    """A run that waits for a person."""
    return [
        *reading(),
        *asked(6, 3),
        *said(6, 3, "The invoice is open; I will pay it.", ("pay_invoice", "d", PAYMENT)),
        Event(Kind.APPROVAL_REQUESTED, action="pay_invoice", call=7, tool_use_id="d",
              detail={"args": ARGS, "expires": NOON + 3600 * 10**9, "approvers": ("alice", "bob")}),
    ]  # fmt: skip


def finished() -> list[Event]:
    """The same run, approved and done, sealed and verified."""
    events = [
        *waiting(),
        Event(Kind.APPROVAL_DECIDED, action="pay_invoice", call=7, principal="alice",
              detail={"decision": "approved", "args": ARGS}),
        *done(7, "pay_invoice", "d", "paid"),
        *asked(8, 4),
        *said(8, 4, ANSWER),
        Event(Kind.CONVERGED, text=ANSWER),
    ]  # fmt: skip
    return [*events, *sealed(len(events))]


def fanned_out() -> list[Event]:
    """A run with children: done, failed, running, and one below another."""
    return [
        started(),
        *asked(1, 1),
        *said(1, 1, "I split it in three.", ("spawn", "s1", "{}"), ("spawn", "s2", "{}"), ("spawn", "s3", "{}")),
        Event(Kind.CHILD_SPAWNED, child="audit-1", text="Check the payments of January"),
        Event(Kind.CHILD_SPAWNED, child="audit-2", text="Check the payments of February, line by line, with the bank's list"),
        Event(Kind.CHILD_SPAWNED, child="audit-3", text="Check March"),
        *asked(2, 1, "audit-1"),
        *said(2, 1, "January matches.", goal="audit-1"),
        Event(Kind.CHILD_COMPLETED, child="audit-1", result="January matches."),
        *asked(3, 1, "audit-2"),
        Event(Kind.CHILD_SPAWNED, goal="audit-2", child="lines-1", text="Lines 1 to 400"),
        *asked(4, 1, "lines-1"),
        Event(Kind.ACTION_REJECTED, action="shell", call=5, trust="untrusted", goal="audit-3", error_class="forbidden"),
        Event(Kind.CHILD_COMPLETED, child="audit-3", result="it was refused its tool", is_error=True),
    ]  # fmt: skip


def stalled() -> list[Event]:
    """A run that was braked and then ended."""
    events = [
        *reading(),
        Event(Kind.BRAKE_ENGAGED, principal="carol", reason="wrong account"),
        Event(Kind.ACTION_REJECTED, action="model.generate", call=6, trust="semi-trusted", error_class="forbidden",
              error_code="braked"),
        Event(Kind.STALLED, err="the brake is on", error_class="forbidden"),
    ]  # fmt: skip
    return [*events, *sealed(len(events))]


def hostile() -> list[Event]:
    """A run whose model, tools and addresses try to take the terminal over."""
    return [
        replace(started(), text=HOSTILE),
        *asked(1, 1),
        *said(1, 1, HOSTILE, (HOSTILE, "x", HOSTILE)),
        *done(2, HOSTILE, "x", HOSTILE, failed=True),
        dialed(HOSTILE, allowed=False, reason=HOSTILE),
        Event(Kind.CHILD_SPAWNED, child=HOSTILE, text=HOSTILE),
        Event(HOSTILE, text=HOSTILE),
        Event(Kind.APPROVAL_REQUESTED, action=HOSTILE, call=9, detail={"approvers": (HOSTILE,)}),
    ]


@dataclass(frozen=True, slots=True)
class Scene:
    """One screen: what has happened, and what the person has done."""

    view: View
    ui: Ui = Ui(owns=True, can_decide=True)  # noqa: RUF009  # frozen


def view_of(events: list[Event]) -> View:
    """The view after a stream."""
    view = View(RUN)
    for event in numbered(events):
        view = fold(view, event)
    return view


def drafting() -> View:
    """A view with an answer in the making."""
    view = view_of([*reading(), *asked(6, 3)])
    piece = LiveText("", 3, 6, False, 0, "Now I compare the two lists, and so far")
    return fold_live(view, piece)


def _ui(**changes: object) -> Ui:
    return replace(Ui(owns=True, can_decide=True), **changes)  # type: ignore[arg-type]


def _deciding(mode: Mode, typed: Typed) -> Scene:
    view = view_of(waiting())
    return Scene(view, _ui(mode=mode, asked=view.waiting.pending[0], typed=typed))


SCENES: dict[str, Callable[[], Scene]] = {
    "nothing-yet": lambda: Scene(View(RUN)),
    "started": lambda: Scene(view_of([started()])),
    "reading": lambda: Scene(view_of(reading())),
    "drafting": lambda: Scene(drafting()),
    "waiting": lambda: Scene(view_of(waiting())),
    "approve": lambda: _deciding(Mode.APPROVE, Typed()),
    "refuse": lambda: _deciding(Mode.REFUSE, Typed("not this account", 16)),
    "finished": lambda: Scene(view_of(finished())),
    "tools-unfolded": lambda: Scene(view_of(reading()), _ui(tools=True)),
    "panels-folded": lambda: Scene(view_of(finished()), _ui(governance=False, fanout=False)),
    "scrolled": lambda: Scene(view_of(finished()), _ui(anchor=Anchor((8, 0)))),
    "fan-out": lambda: Scene(view_of(fanned_out())),
    "stalled": lambda: Scene(view_of(stalled())),
    "hostile": lambda: Scene(view_of(hostile())),
    "stop": lambda: Scene(view_of(reading()), _ui(mode=Mode.STOP)),
    "help": lambda: Scene(view_of(reading()), _ui(mode=Mode.HELP)),
    "watching": lambda: Scene(view_of(waiting()), Ui(notice="affidavit approve 0197a3c4 7")),
}
