"""The kinds of value that a policy is written in, each brought into one form: what means the same is the same.

So two policies that say the same are equal and have one digest, however they are spelled: names in any order, 2.5 or 2.50.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.netguard.rules import parse_rule
from affidavit.crypto.failures import ProducerError
from affidavit.crypto.key_forms import read_public_key

MICROS: Final = 1_000_000
# As much time as a run can be given; it keeps every sum within 64 bits, and a slip of the pen from meaning "for ever".
MAX_SECONDS: Final = 366 * 24 * 60 * 60
MAX_COUNT: Final = 2**53


class Part(BaseModel):
    """A table of a policy: frozen, and closed to names that it does not have."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _number(value: object) -> object:
    if isinstance(value, bool | str):
        raise ValueError("must be a number")  # noqa: TRY004  # pydantic takes a ValueError for a bad value
    return value


def _plain(value: Decimal) -> Decimal:
    whole = value.to_integral_value()
    return abs(whole.quantize(Decimal(1)) if whole == value else value.normalize())


def _set(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


def _table(values: dict[str, str]) -> dict[str, str]:
    return dict(sorted(values.items()))


def _key(text: str) -> str:
    try:
        key, _ = read_public_key(text.encode())
    except ProducerError as error:
        raise ValueError(f"is no Ed25519 public key: {error.detail}") from None
    return key.hex


def _rule(text: str) -> str:
    try:
        return parse_rule(text).text
    except ConfigurationError as error:
        # Without the rule itself, which may be an address with a password in it.
        why = str(error).partition(" cannot be used: ")[2].partition(":")[0]
        raise ValueError(f"is no egress rule{why and ': '}{why}") from None


Name = Annotated[str, StringConstraints(min_length=1, max_length=128, strip_whitespace=True)]
Names = Annotated[tuple[Name, ...], AfterValidator(_set)]
# As the toolbox has it; so a slip like `pay*` is found when the policy is read.
ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
ToolNames = Annotated[tuple[ToolName, ...], AfterValidator(_set)]
ToolPattern = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_-]{1,64}|[A-Za-z0-9_-]{0,63}\*)$")]
ToolPatterns = Annotated[tuple[ToolPattern, ...], AfterValidator(_set), Field(min_length=1)]
TrustName = Literal["trusted", "semi-trusted", "untrusted"]
Trusts = Annotated[dict[ToolName, TrustName], AfterValidator(_table)]
Keys = Annotated[dict[Name, Annotated[str, AfterValidator(_key)]], AfterValidator(_table)]
Rules = Annotated[tuple[Annotated[str, AfterValidator(_rule)], ...], AfterValidator(_set)]
Count = Annotated[int, BeforeValidator(_number), Field(ge=0, le=MAX_COUNT)]
Flag = Annotated[bool, Field(strict=True)]
Money = Annotated[
    Decimal,
    BeforeValidator(_number),
    Field(ge=0, max_digits=15, decimal_places=6, allow_inf_nan=False),
    AfterValidator(_plain),
]
Seconds = Annotated[float, BeforeValidator(_number), Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]
