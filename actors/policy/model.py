"""The policy as a value: everything an operator can lay down for a run. Frozen, closed, with a digest.

A policy only ever takes away: what a goal asks for and the policy does not allow is not granted. Once a policy is bound, a tool
that it does not name is denied.
"""

from __future__ import annotations

from decimal import Decimal
from hashlib import sha256
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from affidavit.actors.deciders.fanout import DEFAULT_CHILDREN, DEFAULT_DEPTH, MAX_CHILDREN, MAX_DEPTH
from affidavit.actors.policy.parts import (
    MAX_SECONDS,
    MICROS,
    Count,
    Flag,
    Keys,
    Money,
    Name,
    Names,
    Part,
    Rules,
    Seconds,
    ToolNames,
    ToolPatterns,
    Trusts,
)
from affidavit.actors.pricing import Pricing
from affidavit.actors.run_book import WINDOW
from affidavit.crypto import cbor

__all__ = [
    "MICROS",
    "Agent",
    "Approval",
    "Breakers",
    "Budget",
    "Check",
    "Delegation",
    "Egress",
    "Grant",
    "Policy",
    "Prices",
]

DAY: Final = 24 * 60 * 60
Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}$")]
Word = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")]
Text = Annotated[str, StringConstraints(max_length=32_768, pattern=r"^[^\x00]*$")]


class Grant(Part):
    """Which tools a run may use at most.

    Attributes:
        tools: Their names; none by default.
    """

    tools: ToolNames = ()


class Budget(Part):
    """What a run may use at most, all its goals together. 0 sets no limit.

    Attributes:
        steps: Model turns.
        tokens: Model tokens, in and out together.
        cost: Money, in the currency of the prices.
        seconds: Time at work, summed over all actions; waiting for a person costs none.
    """

    steps: Count = 0
    tokens: Count = 0
    cost: Money = Decimal(0)
    seconds: Seconds = 0.0

    def as_detail(self, currency: str) -> dict[str, object]:
        """Return the limits as a payload value, as whole numbers, those that are not set left out.

        Args:
            currency: What the money is in.
        """
        limits: dict[str, object] = {
            "steps": self.steps,
            "tokens": self.tokens,
            "cost_micros": int(self.cost * MICROS),
            "ms": int(self.seconds * 1000),
        }
        said = {name: limit for name, limit in limits.items() if limit}
        return {**said, "currency": currency} if self.cost else said


class Prices(Part):
    """What a million tokens cost. Cached input that has no price of its own costs as much as other input.

    Attributes:
        currency: Its name, for people.
        input: Input.
        output: Output.
        cache_read: Input served from the provider's cache.
        cache_write: Input written to the provider's cache.
    """

    currency: Name = "USD"
    input: Money
    output: Money
    cache_read: Money | None = None
    cache_write: Money | None = None

    def pricing(self) -> Pricing:
        """Return the prices as the model calls are charged by them."""

        def micros(price: Money | None) -> int:
            return int((self.input if price is None else price) * MICROS)

        return Pricing(
            micros(self.input), micros(self.output), micros(self.cache_read), micros(self.cache_write)
        )


class Approval(Part):
    """Which tools run only when a person has approved the very call.

    Attributes:
        tools: Their names; `pay_*` stands for all that begin with `pay_`.
        expires_seconds: How long an approval can be given and used.
        approvers: Who may decide, by name; empty for anyone who may write the store.
        signed: Whether each decision must bear the approver's signature; their keys stand under `approver_keys`.
    """

    tools: ToolPatterns
    expires_seconds: Annotated[Count, Field(ge=1, le=MAX_SECONDS)] = DAY
    approvers: Names = ()
    signed: Flag = False


class Breakers(Part):
    """When a run is stopped without anybody asking. 0 sets no breaker.

    Attributes:
        repeated_calls: How often a tool may be asked for with the same arguments among the last 64 calls of one goal.
        failures: How many failures among the last `of` tool calls, of all goals together, stop the run.
        of: See `failures`.
    """

    repeated_calls: Annotated[Count, Field(le=WINDOW)] = 0
    failures: Annotated[Count, Field(le=WINDOW)] = 0
    of: Annotated[Count, Field(ge=1, le=WINDOW)] = 10


class Check(Part):
    """A command whose success backs the run's.

    Attributes:
        name: What it checks, for people and for the record.
        command: The program and its arguments; no shell.
        seconds: How long it may take.
        idempotent: Whether it may be run again when it was interrupted.
    """

    name: Label
    command: tuple[Word, ...] = Field(min_length=1)
    seconds: Annotated[Seconds, Field(gt=0)] = 120.0
    idempotent: Flag = False


class Egress(Part):
    """Which addresses may be reached; none by default.

    Attributes:
        allow: Rules such as `public`, `api.example.org:443`, `10.0.0.0/8:443`.
    """

    allow: Rules = ()


class Delegation(Part):
    """How far a goal may hand work on to others, by the tool `spawn`.

    Attributes:
        depth: How many goals may stand below one another, the run's own left out: 1 keeps a child from handing work on.
        children: How many goals one goal may hand work to, all together.
    """

    depth: Annotated[Count, Field(ge=1, le=MAX_DEPTH)] = DEFAULT_DEPTH
    children: Annotated[Count, Field(ge=1, le=MAX_CHILDREN)] = DEFAULT_CHILDREN


class Agent(Part):
    """A named kind of agent that work may be handed to.

    Attributes:
        name: How the model asks for it.
        description: What it is good for, told to the model that may ask.
        system: Its system prompt; that of the goal above if it is left out.
        tools: The tools that it asks for, of which it gets those that the goal above has; all of these if left out.
        model: The model that it works with, as for `--model`; that of the goal above if it is left out.
        max_steps: The most model turns that it may take; 0 for as many as the goal above.
    """

    name: Label
    description: Text = ""
    system: Text = ""
    tools: ToolNames | None = None
    model: Word | None = None
    max_steps: Count = 0


def _by_name(agents: tuple[Agent, ...]) -> tuple[Agent, ...]:
    """Return agents in the order of their names, since the order in which they are written means nothing."""
    return tuple(sorted(agents, key=lambda agent: agent.name))


class Policy(Part):
    """A whole policy.

    Attributes:
        grant: Which tools.
        budget: How much.
        prices: What tokens cost; needed for a budget of money.
        trust: Tools that are to be trusted less than they say, by name.
        approval: Which calls need a person.
        approver_keys: The approvers' Ed25519 public keys, by name; given in any form, kept as 64 hexadecimal digits.
        breakers: What stops a run by itself.
        check: What backs a success.
        egress: Which addresses.
        delegation: How far work may be handed on; None leaves that to the tool `spawn`.
        agent: The kinds of agent that work may be handed to.
    """

    grant: Grant = Grant()
    budget: Budget = Budget()
    prices: Prices | None = None
    trust: Trusts = Field(default_factory=dict)
    approval: tuple[Approval, ...] = ()
    approver_keys: Keys = Field(default_factory=dict)
    breakers: Breakers = Breakers()
    check: tuple[Check, ...] = ()
    egress: Egress = Egress()
    delegation: Delegation | None = None
    agent: Annotated[tuple[Agent, ...], AfterValidator(_by_name)] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Policy:
        if self.budget.cost and self.prices is None:
            raise ValueError("budget.cost needs [prices]: without them nobody knows what a call costs")
        if self.breakers.failures > self.breakers.of:
            raise ValueError(
                f"breakers.failures cannot be {self.breakers.failures} of {self.breakers.of} calls (breakers.of)"
            )
        for kind, names in (
            ("checks", [check.name for check in self.check]),
            ("agents", [agent.name for agent in self.agent]),
        ):
            if len(set(names)) < len(names):
                raise ValueError(f"two {kind} have the same name")
        for rule in self.approval:
            self._check_keys(rule)
        return self

    def _check_keys(self, rule: Approval) -> None:
        if not rule.signed:
            return
        if not rule.approvers and not self.approver_keys:
            raise ValueError("an approval is to be signed, and [approver_keys] holds nobody's key")
        keyless = [name for name in rule.approvers if name not in self.approver_keys]
        if keyless:
            raise ValueError(
                f"an approval is to be signed, and [approver_keys] holds no key of {', '.join(map(repr, keyless))}"
            )

    @property
    def digest(self) -> bytes:
        """SHA-256 of the policy's canonical form; two files that say the same have the same digest."""
        # A tool that several rules cover must satisfy them all, so their order means nothing.
        rules = {rule.model_dump_json(): rule for rule in self.approval}
        meaning = self.model_copy(update={"approval": tuple(rules[each] for each in sorted(rules))})
        # Left out where nothing is said, so that a policy from before there were such parts keeps its digest.
        silent = {
            name for name, value in (("delegation", self.delegation), ("agent", self.agent)) if not value
        }
        return sha256(cbor.encode(meaning.model_dump_json(exclude=silent))).digest()
