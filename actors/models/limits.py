"""How long a call of a model may take, and how much it may answer with. Values only."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits of one call. Each is a limit of its own, so that a healthy long answer is not cut by what catches a dead one.

    Attributes:
        connect_seconds: To reach the endpoint, its TLS included.
        first_seconds: From the beginning of the call to the first piece of the answer. A long conversation has to be read
            first; signs of life without content do not count.
        gap_seconds: Between two events of the answer. A drip of bytes or comments that never makes an event does not count.
        whole_seconds: For everything together.
        event_bytes: Of one event of the stream, and so of one line.
        stream_bytes: Of the stream as a whole, whatever it holds.
        error_bytes: Of an answer that is a refusal; the rest is not read.

    Raises:
        ValueError: A limit is not above zero.
    """

    connect_seconds: float = 10.0
    first_seconds: float = 300.0
    gap_seconds: float = 120.0
    whole_seconds: float = 900.0
    event_bytes: int = MIB
    stream_bytes: int = 64 * MIB
    error_bytes: int = 64 * 1024

    def __post_init__(self) -> None:
        """Check the limits."""
        for item in fields(self):
            value = getattr(self, item.name)
            if math.isnan(value) or value <= 0:
                raise ValueError(f"{item.name} is a limit above zero, not {value}")


DEFAULT_LIMITS: Final = CallLimits()
