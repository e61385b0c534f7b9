"""How a mission is put together, and the digests that let a resumed one prove that it is still the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from affidavit.actors.checks import Check, require_distinct
from affidavit.actors.checks_command import command_check
from affidavit.actors.clock import Clock, SystemClock
from affidavit.actors.errors import ConfigurationError
from affidavit.actors.goal import GoalSpec
from affidavit.actors.models.port import ChosenParameters, Model
from affidavit.actors.netguard.policy import EgressPolicy
from affidavit.actors.policy.model import Check as DeclaredCheck
from affidavit.actors.policy.model import Policy
from affidavit.actors.rules import grant_of
from affidavit.actors.secrets import NO_SECRETS, Secrets
from affidavit.actors.text import DEFAULT_TEXT_LIMIT, clean
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.crypto import cbor

DEFAULT_ATTEMPTS: Final = 3
DEFAULT_TOOL_SECONDS: Final = 60.0
DEFAULT_MODEL_SECONDS: Final = 600.0
DEFAULT_BACKOFF_SECONDS: Final = 0.5
# With what else an event may hold, an event of such a text stays below the 1 MiB that one may have.
MAX_TEXT_LIMIT: Final = 384 * 1024
NOWHERE: Final = EgressPolicy()


@dataclass(frozen=True, slots=True)
class MissionConfig:
    """What a mission runs with.

    Attributes:
        model: The model to ask.
        toolbox: The tools that exist for it.
        clock: Times the waits between attempts.
        attempts: How often one model turn is tried while its failures are transient.
        backoff_seconds: The wait before the second attempt; it doubles from one to the next.
        tool_seconds: How long one tool call may take.
        model_seconds: How long one call of the model may take.
        text_limit: The most UTF-8 bytes of a text that are recorded and shown.
        policy: What the operator allows; None leaves a goal to its own limits.
        secrets: What must not come out in anything that is recorded or shown; a model's own key is added to them.
        egress: Where the tools may connect to if there is no policy; nowhere by default.
        checks: What backs a success, in order; those of the policy come after them.
        place: The directory in which the policy's checks run.
        is_root: Whether it is for the run's root goal, whose success the checks back.

    Raises:
        ValueError: A limit is out of range.
        ConfigurationError: Two checks share a name, or the policy's have no place to run in.
    """

    model: Model
    toolbox: Toolbox = field(default_factory=Toolbox)
    clock: Clock = field(default_factory=SystemClock)
    attempts: int = DEFAULT_ATTEMPTS
    backoff_seconds: float = DEFAULT_BACKOFF_SECONDS
    tool_seconds: float = DEFAULT_TOOL_SECONDS
    model_seconds: float = DEFAULT_MODEL_SECONDS
    text_limit: int = DEFAULT_TEXT_LIMIT
    policy: Policy | None = None
    secrets: Secrets = NO_SECRETS
    egress: EgressPolicy = NOWHERE
    checks: tuple[Check, ...] = ()
    place: str = ""
    is_root: bool = True

    def __post_init__(self) -> None:
        """Check the limits and the checks."""
        if self.attempts < 1:
            raise ValueError(f"a model turn needs at least one attempt, not {self.attempts}")
        if not 1 <= self.text_limit <= MAX_TEXT_LIMIT:
            raise ValueError(f"a text limit is 1 to {MAX_TEXT_LIMIT} bytes, not {self.text_limit}")
        require_distinct(self.declared_checks)

    @property
    def declared_checks(self) -> tuple[Check, ...]:
        """What backs a success: the host's checks, then the policy's. None for a goal that work was handed to."""
        if not self.is_root:
            return ()
        ordered = () if self.policy is None else self.policy.check
        if ordered and not self.place:
            raise ConfigurationError("the policy's checks are commands and need a place to run in")
        return (*self.checks, *(_check(each, self.place) for each in ordered))

    @property
    def egress_policy(self) -> EgressPolicy:
        """Where the tools may connect to. The model's own endpoint is granted apart from it."""
        return self.egress if self.policy is None else EgressPolicy(self.policy.egress.allow)

    def describe(self, spec: GoalSpec) -> Mapping[str, object]:
        """Return what session.started says of the configuration.

        The model, its chosen parameters, the policy's budget for whoever watches, and one digest for each part.
        """
        said: dict[str, object] = {"model": self.model.name, "digests": self.digests(spec)}
        if isinstance(self.model, ChosenParameters) and self.model.parameters:
            said["parameters"] = dict(self.model.parameters)
        return said | self.budget_said

    @property
    def budget_said(self) -> dict[str, object]:
        """The policy's budget as the record states it; nothing where it sets none."""
        if self.policy is None:
            return {}
        prices = self.policy.prices
        budget = self.policy.budget.as_detail(prices.currency if prices else "")
        return {"budget": budget} if budget else {}

    def digests(self, spec: GoalSpec) -> dict[str, bytes]:
        """Return the SHA-256 digests of model, tools, policy and configuration."""
        grant = grant_of(spec, self.policy)
        laid_down = [self.egress.digest] if self.egress != NOWHERE else []
        if self.policy is not None:
            laid_down = [self.policy.digest]
        declared: list[object] = [[each.name, each.idempotent, *each.means] for each in self.checks]
        if self.policy is not None and self.policy.check:
            # The same command in another folder checks something else.
            declared.append(self.place)
        return {
            "model": self.model.digest,
            "tools": self.toolbox.digest,
            "policy": _digest([grant.digest, spec.max_steps, spec.max_tokens, *laid_down, *declared]),
            # Of the words as they are recorded, so that a resumed run arrives at the same digest.
            "configuration": _digest([clean(spec.system), spec.max_output_tokens, self.text_limit]),
        }


def changed_digests(recorded: object, now: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the names of the parts that differ from what a run recorded when it started.

    Only what was recorded is compared: a part that an earlier version did not name cannot have changed.
    """
    if not isinstance(recorded, Mapping):
        return ()
    return tuple(name for name, digest in now.items() if name in recorded and recorded[name] != digest)


def _check(declared: DeclaredCheck, place: str) -> Check:
    return command_check(
        declared.name,
        declared.command,
        place,
        seconds=declared.seconds,
        idempotent=declared.idempotent,
    )


def _digest(value: object) -> bytes:
    return sha256(cbor.encode(value)).digest()
