"""The project's error root and the closed set of failure codes, each with its tier.

Every rejection names one code of the published registry. Codes are stable: they are printed, compared by
scripts and quoted in reports, so none is ever renamed. This module imports nothing of ours.
"""

from enum import StrEnum
from typing import Final, Self


class AffidavitError(Exception):
    """Root of every error that this project raises for bad data or a bad environment."""


class Tier(StrEnum):
    """How much a verification covers; the names sort in the order in which the tiers build on each other."""

    L1 = "L1"
    L2 = "L2"
    L3 = "L3"
    L4 = "L4"


class FailureCode(StrEnum):
    """The registered failure codes of the record format."""

    ENC_NON_CANONICAL_CBOR = "enc.non_canonical_cbor"
    ENC_DUPLICATE_MAP_KEY = "enc.duplicate_map_key"
    ENC_INDEFINITE_LENGTH = "enc.indefinite_length"
    ENC_TRAILING_BYTES = "enc.trailing_bytes"
    ENC_INVALID_UTF8 = "enc.invalid_utf8"
    ENC_DECODE = "enc.decode"
    ENC_INVALID_ACTOR = "enc.invalid_actor"
    ENC_ENCODE = "enc.encode"
    ENC_TIME_OUT_OF_RANGE = "enc.time_out_of_range"
    CHAIN_NON_MONOTONIC_SEQ = "chain.non_monotonic_seq"
    CHAIN_STREAM_MISMATCH = "chain.stream_mismatch"
    CHAIN_EMPTY = "chain.empty"
    SIGN_SIGNATURE_INVALID = "sign.signature_invalid"
    SIGN_UNKNOWN_KEY = "sign.unknown_key"
    SIGN_BAD_CONTENT_TYPE = "sign.bad_content_type"
    SIGN_CHECKPOINT_DECODE = "sign.checkpoint_decode"
    RECORD_DECODE = "record.decode"
    RECORD_EMPTY = "record.empty"
    RECORD_SIZE_MISMATCH = "record.size_mismatch"
    RECORD_ROOT_MISMATCH = "record.root_mismatch"
    RECORD_NON_CANONICAL = "record.non_canonical"
    MERKLE_INCLUSION_INVALID = "merkle.inclusion_invalid"
    MERKLE_CONSISTENCY_INVALID = "merkle.consistency_invalid"
    MERKLE_MISSING_NODE = "merkle.missing_node"
    RECORD_INDEX_OUT_OF_RANGE = "record.index_out_of_range"
    GOV_UNADMITTED_ACTION = "gov.unadmitted_action"
    GOV_ADMISSION_DENIED_BUT_EXECUTED = "gov.admission_denied_but_executed"
    SHALLOW_NO_GROUND_TRUTH = "shallow.no_ground_truth"
    SIGN_EMPTY_KEY_ID = "sign.empty_key_id"
    SIGN_BAD_KEY = "sign.bad_key"
    SIGN_SIGN_FAILED = "sign.sign_failed"

    @property
    def tier(self) -> Tier | None:
        """The tier whose check raises this code; None for a code that belongs to a producer or a key."""
        return _TIER_OF.get(self, _TIER_OF_FAMILY[self.value.partition(".")[0]])


_TIER_OF_FAMILY: Final = {
    "enc": Tier.L1,
    "chain": Tier.L1,
    "sign": Tier.L2,
    "record": Tier.L2,
    "merkle": Tier.L3,
    "gov": Tier.L4,
    "shallow": Tier.L4,
}
# The codes whose tier is not that of their family.
_TIER_OF: Final[dict[str, Tier | None]] = {
    FailureCode.RECORD_INDEX_OUT_OF_RANGE: Tier.L3,
    FailureCode.SIGN_EMPTY_KEY_ID: None,
    FailureCode.SIGN_BAD_KEY: None,
    FailureCode.SIGN_SIGN_FAILED: None,
}


class CodedError(AffidavitError):
    """An error that carries a registered code and the evidence for it.

    Attributes:
        code: The registered failure code.
        detail: One plain clause for people; may quote unsigned data, so it is never to be read as fact.
        index: Zero-based position of the event at fault in its record, where there is one.
        expected: What the check needed (a root, a size), where it compares.
        actual: What it found.
    """

    def __init__(
        self,
        code: FailureCode,
        detail: str,
        *,
        index: int | None = None,
        expected: object = None,
        actual: object = None,
    ) -> None:
        super().__init__(code, detail)
        self.code: Final = code
        self.detail: Final = detail
        self.index: Final = index
        self.expected: Final = expected
        self.actual: Final = actual

    @property
    def tier(self) -> Tier | None:
        """The tier whose check raised it; that of its code, unless a subclass knows better."""
        return self.code.tier

    def __str__(self) -> str:
        """Return the code, then the detail."""
        return f"{self.code}: {self.detail}"

    def at(self, index: int) -> Self:
        """Return the same error, placed at the event of this zero-based index."""
        return type(self)(
            self.code,
            f"event {index + 1}: {self.detail}",
            index=index,
            expected=self.expected,
            actual=self.actual,
        )


class VerificationError(CodedError):
    """What was given does not verify; the code says which check failed."""


class ProducerError(CodedError):
    """What was asked for cannot be made: a value with no canonical form, a bad key, a failed signature."""
