"""The waist under everything at once: no interleaving overspends, acts unadmitted or refused, or widens a grant (G1, G3, G4, G5).

Goals of one run ask for tools and models concurrently; people decide, let expire, and pull the brake; the clock moves on; work
ends well, badly or never; the log fails at any append, written or not; owners crash, park and take the run up again.
"""

from __future__ import annotations

from contextlib import suppress

import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from affidavit.actors.amounts import Amounts
from affidavit.actors.approvals import Approval, Decision, waiting
from affidavit.actors.errors import ApprovalRefused, LogError
from affidavit.actors.run_book import RunBook
from tests.actors.fakes import Fault
from tests.machines.waist_rules import Ledger, check_answers, check_deeds, verified
from tests.machines.waist_world import RUN, TOOLS, WANTED, Loop, World

GOALS = st.sampled_from(sorted(WANTED))
FAULTS = st.sampled_from(list(Fault))


class WaistMachine(RuleBasedStateMachine):
    """See the module's docstring."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = Loop()
        self.world = World(self.loop)

    @initialize()
    def begin(self) -> None:
        """Open the run."""
        self.loop.do(self.world.open)

    def goes_on(self) -> bool:
        """Whether this owner may still record."""
        return self.world.life.record.is_live and not self.world.log.closed

    def own(self) -> None:
        """See that somebody owns the run, so that nearly every step does something."""
        if not self.goes_on():
            self.loop.do(self.world.take_up)

    def asked_for(self) -> tuple[Approval, ...]:
        """What waits for a person; if nothing does, somebody is made to ask."""
        if not waiting(self.loop.do(self.world.events)):
            self.own()
            tool = ("pay", "pay_again")[len(self.world.asked) % 2]
            self.loop.do(lambda: self.world.ask("", tool))
        return waiting(self.loop.do(self.world.events))

    @rule(goal=GOALS, tool=st.sampled_from([*TOOLS, "ghost"]))
    def ask(self, goal: str, tool: str) -> None:
        """A goal's model asks for a tool: granted or not, existing or not, with or without a person's approval."""
        self.own()
        self.loop.do(lambda: self.world.ask(goal, tool))

    @rule(
        wanted=st.lists(
            st.tuples(GOALS, st.integers(0, 30), st.integers(0, 20), st.booleans()), min_size=1, max_size=4
        )
    )
    def ask_models(self, wanted: list[tuple[str, int, int, bool]]) -> None:
        """Goals ask their models, all at once, for the first time or once more."""
        self.own()

        async def step() -> None:
            for goal, tokens, cost, again in wanted:
                self.world.ask_model(goal, Amounts(tokens, cost), again=again)

        self.loop.do(step)

    @rule(goals=st.lists(GOALS, min_size=2, max_size=5))
    def look_together(self, goals: list[str]) -> None:
        """Goals ask for a tool all at once, for which there may be no time left."""
        self.own()

        async def step() -> None:
            async with trio.open_nursery() as nursery:
                for goal in goals:
                    nursery.start_soon(self.world.ask, goal, "look")

        self.loop.do(step)

    @rule(data=st.data(), fails=st.sampled_from(["", "", "badly", "crash"]))
    def finish(self, data: st.DataObject, fails: str) -> None:
        """Some work ends, having used no more than was held back for it."""
        if not self.world.working:
            return
        call = data.draw(st.sampled_from(sorted(self.world.working)))
        most = self.world.working[call].action.reserve
        used = Amounts(data.draw(st.integers(0, most.tokens)), data.draw(st.integers(0, most.cost_micros)))

        async def step() -> None:
            self.world.finish(call, used=used, fails=fails)

        self.loop.do(step)

    @rule(data=st.data(), approved=st.booleans(), shown=st.sampled_from(["", "", "exact", "others"]))
    def decide(self, data: st.DataObject, approved: bool, shown: str) -> None:
        """A person decides about a call that waits; over other arguments than were asked with, that is no decision."""
        asked = self.asked_for()
        self.own()
        if not asked:
            return
        approval = data.draw(st.sampled_from(asked))
        args = {"": None, "exact": approval.args, "others": b"others"}[shown]
        decision = Decision(approval.call, approved, "ann", "because", args)

        async def step() -> str:
            try:
                await self.world.life.rulings.decide(decision)
            except ApprovalRefused as refused:
                return refused.code
            except LogError:
                return ""
            return ""

        code = self.loop.do(step)
        assert (
            code == "args_changed" if shown == "others" else code in ("", "expired", "not_asked", "decided")
        )

    @rule(
        data=st.data(),
        approved=st.sampled_from([True, True, False]),
        later=st.sampled_from([0, 0, 30, 101]),
        alter=st.sampled_from([True, True, False]),
    )
    def decide_meanwhile(self, data: st.DataObject, approved: bool, later: int, alter: bool) -> None:
        """A person decides while nobody drives the run; it is taken up later, perhaps too late or with other arguments."""
        asked = self.asked_for()
        if not asked:
            return
        approval = data.draw(st.sampled_from(asked))
        decision = Decision(approval.call, approved, "ann")

        async def step() -> None:
            await self.world.open_idle()
            with suppress(ApprovalRefused, LogError):
                await self.world.life.rulings.decide(decision)
            self.world.clock.move(later)
            await self.world.take_up(alter=alter)

        self.loop.do(step)

    @rule(engage=st.booleans())
    def brake(self, engage: bool) -> None:
        """A person pulls the brake, or lets it go."""
        self.own()

        async def step() -> None:
            try:
                await self.world.life.rulings.brake(engage=engage, principal="ann", reason="enough")
            except LogError:
                return

        self.loop.do(step)

    @rule(seconds=st.integers(1, 70))
    def time_passes(self, seconds: int) -> None:
        """The clock goes on; what waits for a person may expire."""

        async def step() -> None:
            self.world.clock.move(seconds)

        self.loop.do(step)

    @rule(ahead=st.integers(1, 4), fault=FAULTS)
    def fault_ahead(self, ahead: int, fault: Fault) -> None:
        """One of the next appends is going to fail, with or without having written."""
        self.own()
        self.world.fail(ahead, fault)

    @rule(crash=st.booleans())
    def stop(self, crash: bool) -> None:
        """The owner is killed, or parks."""
        self.loop.do(lambda: self.world.stop(crash=crash))

    @rule(alter=st.booleans())
    def take_up(self, alter: bool) -> None:
        """A new owner takes the run up; now and then it comes with other arguments than were asked with."""
        self.loop.do(lambda: self.world.take_up(alter=alter))

    @invariant()
    def the_record_keeps_every_rule(self) -> None:
        """Budgets, brake, grants and approvals on the record; deeds and answers against it; sealed, it passes L4."""
        assert self.world.faults == []
        events = self.loop.do(self.world.events)
        Ledger().check(events)
        check_deeds(events, self.world.began)
        check_answers(events)
        rows = self.loop.do(lambda: self.world.truth.read(RUN, 0, 10_000))
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        if rows:
            verified([row.data for row in rows])

    @invariant()
    def what_is_known_is_what_is_recorded(self) -> None:
        """The book that the owner goes by is the fold of the record: nothing is held or used that does not stand there."""
        if not self.goes_on():
            return
        book = RunBook()
        for event in self.loop.do(self.world.events):
            book.apply(event)
        assert book == self.world.life.ledger.book

    def teardown(self) -> None:
        """Let the last owner finish everything that is left."""
        try:
            self.loop.do(self.world.take_up)
            while self.world.working:
                self.loop.do(self._finish_all)
            self.the_record_keeps_every_rule()
        finally:
            self.loop.close()

    async def _finish_all(self) -> None:
        for call in list(self.world.working):
            self.world.finish(call, used=Amounts(), fails="")


WaistMachine.TestCase.settings = settings(deadline=None, max_examples=80, stateful_step_count=40)
TestWaistMachine = WaistMachine.TestCase
