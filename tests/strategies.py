"""Hypothesis strategies for everything an event can hold, from single values to whole plausible runs.

`events` are what a program may report; `garbage_events` are any event at all; `runs` are what our own runtime
could have recorded: dense seq, calls in one sequence, delegated children, seals, continuations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from hypothesis import strategies as st

from affidavit.actors.codec import STORED_TYPES, actor_of
from affidavit.actors.events import NO_DETAIL, Detail, Event, FaultClass, Kind, Trust, Usage

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
COUNTS = st.integers(0, 1 << 40)
FAULTS = st.sampled_from(["", *FaultClass])
CODES = st.sampled_from(["", "capability_denied", "egress_denied"])
TRUSTS = st.sampled_from(["", *(str(trust) for trust in Trust)])
KINDS = st.sampled_from([str(kind) for kind in Kind])
# Surrogates are not in this alphabet: the stream repairs outside text before it is recorded.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
BROKEN_TEXTS = st.text(st.sampled_from('a\ud83d\ude00\udfff\n\u2028\x00"\\é'), max_size=6)

# Payload keys that a field of `Event` owns; `detail` is for all others.
OWNED_KEYS = frozenset(
    {
        *("goal", "child", "turn", "text", "tool", "toolUseID", "input", "result", "isError", "stopReason"),
        *("usage", "error", "action", "call", "trust", "error_class", "error_code", "host", "allowed"),
        *("reason", "salt"),
    }
)


def payload_values() -> st.SearchStrategy[object]:
    """Any value that the record format allows in a payload."""
    atoms = st.none() | st.booleans() | INT64 | TEXTS | st.binary(max_size=8)
    return st.recursive(
        atoms,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(payload_keys(), inner, max_size=3),
        max_leaves=6,
    )


def payload_keys() -> st.SearchStrategy[str]:
    """Keys inside payloads; those that JSON needs for bytes are likely, to meet their escaping."""
    return st.sampled_from(["hex", "map", "float", "size", "note"]) | TEXTS


def payloads() -> st.SearchStrategy[dict[str, object]]:
    """Any payload, its keys often those of a field and its values often of the wrong type for it."""
    keys = st.sampled_from(sorted(OWNED_KEYS)) | payload_keys()
    usages_like = st.dictionaries(
        st.sampled_from(["inputTokens", "outputTokens", "cacheReadTokens", "other"]), INT64 | st.booleans()
    )
    return st.dictionaries(keys, payload_values() | usages_like, max_size=6)


def details() -> st.SearchStrategy[Detail]:
    """What a program may put into `detail`."""
    keys = payload_keys().filter(lambda key: key not in OWNED_KEYS)
    filled = st.dictionaries(keys, payload_values(), min_size=1, max_size=3).map(MappingProxyType)
    return st.just(NO_DETAIL) | filled


def usages() -> st.SearchStrategy[Usage]:
    """Any token cost."""
    return st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS)


def unknown_kinds() -> st.SearchStrategy[str]:
    """Kinds that are no member of `Kind`, no stored type of one, and no record.*."""
    known = {str(kind) for kind in Kind} | set(STORED_TYPES.values())
    named = st.sampled_from(["provenance.declared", "erased", "goal", "sessionXstarted", "recording"])
    return (named | TEXTS).filter(lambda kind: kind and kind not in known and not kind.startswith("record."))


def inputs() -> st.SearchStrategy[str]:
    """A tool call's arguments as text: JSON, nearly JSON, and neither."""
    odd = st.sampled_from(
        [
            '{"path": "a.txt"}',
            '{"a":1,"a":2}',
            "NaN",
            "1e999",
            "-0.0",
            "null",
            '"text"',
            '"\\ud800"',
            "9" * 5000,
            "[" * 200 + "]" * 200,
            "{",
        ]
    )
    return odd | TEXTS


def events(kinds: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[Event]:
    """What a program may report, with every field that it may set."""
    return st.builds(
        Event,
        kind=kinds or KINDS | unknown_kinds(),
        goal=TEXTS,
        child=TEXTS,
        turn=st.integers(0, 99),
        text=TEXTS,
        tool=TEXTS,
        tool_use_id=TEXTS,
        input=inputs(),
        result=TEXTS,
        is_error=st.booleans(),
        stop_reason=TEXTS,
        usage=st.none() | usages(),
        err=TEXTS,
        action=TEXTS,
        call=st.integers(0, 99),
        trust=TRUSTS,
        error_class=FAULTS.map(str),
        error_code=CODES,
        host=TEXTS,
        allowed=st.booleans(),
        reason=TEXTS,
        principal=TEXTS,
        causation_id=TEXTS,
        detail=details(),
    )


def recorded_events(kinds: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[Event]:
    """An event as it is read from a log: with a seq, a time and the actor of its kind."""
    return st.builds(
        lambda event, seq, time: replace(
            event, seq=seq, time=time, actor=str(actor_of(event.kind, event.principal))
        ),
        events(kinds),
        st.integers(1, (1 << 63) - 1),
        INT64,
    )


def record_events() -> st.SearchStrategy[Event]:
    """Any record.* event, its size sensible, absent or of a wrong type."""
    kinds = st.sampled_from([Kind.RECORD_SEALED, Kind.RECORD_VERIFIED, Kind.RECORD_REJECTED, "record.other"])
    sizes = st.integers(0, 80) | INT64 | TEXTS | st.booleans() | st.none()
    details_ = st.just(NO_DETAIL) | sizes.map(lambda size: MappingProxyType({"size": size}))
    return st.builds(Event, kind=kinds.map(str), seq=st.integers(0, 90), detail=details_)


def garbage_events() -> st.SearchStrategy[Event]:
    """Any event at all: kinds and ids collide, numbers are negative or huge, text may be no Unicode."""
    ids = st.sampled_from(["", "c1", "c2"])
    wild = st.builds(
        replace,
        events(),
        seq=st.integers(-2, 90),
        time=INT64,
        goal=ids,
        child=ids,
        text=BROKEN_TEXTS,
        input=inputs() | BROKEN_TEXTS,
        call=st.integers(-2, 6) | INT64,
        turn=INT64,
    )
    return wild | record_events()


class RunBuilder:
    """Records a plausible run step by step, each event with the next seq."""

    def __init__(self, draw: Callable[[st.SearchStrategy[object]], object]) -> None:
        self._draw = draw
        self.events: list[Event] = []
        self.calls = 0
        self.turns = 0
        self.waiting: list[tuple[int, str]] = []
        self.children: list[str] = []
        self.open_children: list[str] = []
        self.terminal = False
        self.add(Kind.SESSION_STARTED, text="settle the ledger")

    def add(self, kind: Kind, **fields: object) -> None:
        """Record one event."""
        seq = len(self.events) + 1
        event = Event(str(kind), seq=seq, time=seq * 10**9, actor=str(actor_of(kind)))
        self.events.append(replace(event, **fields))  # type: ignore[arg-type]  # by name, as the steps give them

    def step(self, name: str) -> None:
        """Record what one named step records, or nothing where it has no place."""
        if self.terminal and name not in {"say", "seal", "verify", "reject_record"}:
            return
        getattr(self, name)()

    def goal(self) -> str:
        """Pick the root or a child that runs."""
        return str(self._draw(st.sampled_from(["", *self.open_children])))

    def turn(self) -> None:
        self.turns += 1
        goal = self.goal()
        usage = self._draw(st.none() | usages())
        self.add(Kind.TURN_STARTED, turn=self.turns, goal=goal)
        self.add(Kind.ASSISTANT, turn=self.turns, goal=goal, text="thinking", usage=usage)
        self.add(Kind.TURN_COMPLETED, turn=self.turns, goal=goal, usage=usage, stop_reason="end_turn")

    def admit(self) -> None:
        self.calls += 1
        goal = self.goal()
        self.waiting.append((self.calls, goal))
        trust = self._draw(TRUSTS)
        self.add(Kind.ACTION_ADMITTED, call=self.calls, goal=goal, action=f"tool{self.calls}", trust=trust)

    def complete(self) -> None:
        if self.waiting:
            index = self._draw(st.integers(0, len(self.waiting) - 1))
            assert isinstance(index, int)
            call, goal = self.waiting.pop(index)
            self.add(Kind.ACTION_COMPLETED, call=call, goal=goal, error_class=str(self._draw(FAULTS)))

    def reject(self) -> None:
        self.calls += 1
        self.add(
            Kind.ACTION_REJECTED,
            call=self.calls,
            goal=self.goal(),
            action="pay",
            trust="untrusted",
            error_class="forbidden",
            error_code=self._draw(CODES),
        )

    def dial(self) -> None:
        allowed = self._draw(st.booleans())
        self.add(Kind.EGRESS_DECISION, host="169.254.169.254", allowed=allowed, reason="policy")

    def spawn(self) -> None:
        child = f"c{len(self.children) + 1}"
        self.children.append(child)
        parent = self.goal() or "run"
        self.open_children.append(child)
        self.add(Kind.CHILD_SPAWNED, goal=parent, child=child, text=f"part {child}")

    def fold(self) -> None:
        if self.open_children:
            child = self.open_children.pop()
            failed = self._draw(st.booleans())
            self.add(Kind.CHILD_COMPLETED, goal="run", child=child, result=f"answer {child}", is_error=failed)

    def converge(self) -> None:
        self.add(Kind.GOAL_PHASE)
        self.add(Kind.CONVERGED, text="settled")
        self.terminal = True

    def stall(self) -> None:
        self.add(Kind.STALLED, err="out of budget", error_class="budget_exceeded")
        self.terminal = True

    def say(self) -> None:
        if self.terminal:
            self.add(Kind.USER_MESSAGE, text="and now?", principal="ada")
            self.terminal = False

    def seal(self) -> None:
        self.add(Kind.RECORD_SEALED, detail=MappingProxyType({"size": len(self.events)}))

    def verify(self) -> None:
        sizes = [event.detail["size"] for event in self.events if event.kind == Kind.RECORD_SEALED]
        if sizes:
            self.add(Kind.RECORD_VERIFIED, detail=MappingProxyType({"size": sizes[-1]}))

    def reject_record(self) -> None:
        self.add(Kind.RECORD_REJECTED, detail=MappingProxyType({"code": "record.root_mismatch"}))


# Some are listed twice, to be drawn more often.
STEPS = (
    *("turn", "admit", "complete", "reject", "dial", "spawn", "fold", "converge", "stall", "say", "seal"),
    *("verify", "reject_record", "admit", "complete", "admit", "complete", "spawn", "turn", "say"),
)


@st.composite
def runs(draw: st.DrawFn, max_steps: int = 40) -> list[Event]:
    """A whole plausible run, fan-out included."""
    builder = RunBuilder(draw)
    for name in draw(st.lists(st.sampled_from(STEPS), max_size=max_steps)):
        builder.step(name)
    return builder.events
