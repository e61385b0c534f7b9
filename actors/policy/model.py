"""The policy as a value: everything an operator can lay down for a run. Frozen, closed, with a digest.

A policy only ever takes away: what a goal asks for and the policy does not allow is not granted. Once a policy is bound, a tool
that it does not name is denied.
"""

from __future__ import annotations

from decimal import Decimal
from hashlib import sha256
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from affidavit.actors.pricing import Pricing
from affidavit.crypto import cbor

MICROS: Final = 1_000_000
DAY: Final = 24 * 60 * 60

Name = Annotated[str, StringConstraints(min_length=1, max_length=128, strip_whitespace=True)]
Money = Annotated[Decimal, Field(ge=0, max_digits=15, decimal_places=6)]
TrustName = Literal["trusted", "semi-trusted", "untrusted"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Grant(_Part):
    """Which tools a run may use at most.

    Attributes:
        tools: Their names; none by default.
    """

    tools: tuple[Name, ...] = ()


class Budget(_Part):
    """What a run may use at most, all its goals together. 0 sets no limit.

    Attributes:
        steps: Model turns.
        tokens: Model tokens, in and out together.
        cost: Money, in the currency of the prices.
        seconds: Time at work, summed over all actions; waiting for a person costs none.
    """

    steps: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)
    cost: Money = Decimal(0)
    seconds: float = Field(default=0, ge=0, allow_inf_nan=False)


class Prices(_Part):
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


class Approval(_Part):
    """Which tools run only when a person has approved the very call.

    Attributes:
        tools: Their names; `pay_*` stands for all that begin with `pay_`.
        expires_seconds: How long an approval can be given and used.
        approvers: Who may decide, by name; empty for anyone who may write the store.
        signed: Whether each decision must bear the approver's signature; their keys stand under `approver_keys`.
    """

    tools: tuple[Name, ...] = Field(min_length=1)
    expires_seconds: int = Field(default=DAY, gt=0)
    approvers: tuple[Name, ...] = ()
    signed: bool = False


class Breakers(_Part):
    """When a run is stopped without anybody asking. 0 sets no breaker.

    Attributes:
        repeated_calls: How often a tool may be asked for with the same arguments among the last 64 calls.
        failures: How many failures among the last `of` tool calls stop the run.
        of: See `failures`.
    """

    repeated_calls: int = Field(default=0, ge=0)
    failures: int = Field(default=0, ge=0)
    of: int = Field(default=10, ge=1, le=64)


class Check(_Part):
    """A command whose success backs the run's.

    Attributes:
        name: What it checks, for people and for the record.
        command: The program and its arguments; no shell.
        seconds: How long it may take.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}$")]
    command: tuple[str, ...] = Field(min_length=1)
    seconds: float = Field(default=120, gt=0, allow_inf_nan=False)


class Egress(_Part):
    """Which addresses may be reached; none by default.

    Attributes:
        allow: Rules such as `public`, `api.example.org:443`, `10.0.0.0/8:443`.
    """

    allow: tuple[str, ...] = ()


class Policy(_Part):
    """A whole policy.

    Attributes:
        grant: Which tools.
        budget: How much.
        prices: What tokens cost; needed for a budget of money.
        trust: Tools that are to be trusted less than they say, by name.
        approval: Which calls need a person.
        approver_keys: The approvers' Ed25519 public keys, by name.
        breakers: What stops a run by itself.
        check: What backs a success.
        egress: Which addresses.
    """

    grant: Grant = Grant()
    budget: Budget = Budget()
    prices: Prices | None = None
    trust: dict[Name, TrustName] = {}
    approval: tuple[Approval, ...] = ()
    approver_keys: dict[Name, str] = {}
    breakers: Breakers = Breakers()
    check: tuple[Check, ...] = ()
    egress: Egress = Egress()

    @model_validator(mode="after")
    def _consistent(self) -> Policy:
        if self.budget.cost and self.prices is None:
            raise ValueError("a budget of money needs [prices]")
        if self.breakers.failures > self.breakers.of:
            raise ValueError(f"{self.breakers.failures} failures cannot be among {self.breakers.of} calls")
        names = [check.name for check in self.check]
        if len(set(names)) < len(names):
            raise ValueError("two checks have the same name")
        return self

    @property
    def digest(self) -> bytes:
        """SHA-256 of the policy's canonical form; two files that say the same have the same digest."""
        return sha256(cbor.encode(self.model_dump_json())).digest()
