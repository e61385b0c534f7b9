"""What model calls cost. Whole millionths of a currency, rounded up, so that a budget is never passed by rounding."""

from __future__ import annotations

from dataclasses import dataclass

from affidavit.actors.events import Usage

_PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Pricing:
    """Prices in millionths of the currency per million tokens.

    Attributes:
        input: Input.
        output: Output.
        cache_read: The part of the input that the provider's cache served.
        cache_write: The part of the input that was written to the cache.
    """

    input: int
    output: int
    cache_read: int
    cache_write: int

    def cost(self, usage: Usage) -> int:
        """Return what a turn cost, in millionths of the currency."""
        plain = max(usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens, 0)
        return _up(
            plain * self.input
            + usage.cache_read_tokens * self.cache_read
            + usage.cache_write_tokens * self.cache_write
            + usage.output_tokens * self.output
        )

    def most(self, input_tokens: int, output_tokens: int) -> int:
        """Return what a turn may cost at most, in millionths of the currency, however the cache is used."""
        return _up(
            input_tokens * max(self.input, self.cache_read, self.cache_write) + output_tokens * self.output
        )


def _up(amount: int) -> int:
    return -(-amount // _PER)
