"""Prices of models, in dollars for a million tokens, each with its page and date: prices.json.

Prices change: `python benchmarks/conversation_cost.py --prices FILE` takes others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tool_search.core.settings import Dialect

__all__ = ["Price", "read_prices"]

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price list of one model at one vendor.

    Attributes:
        provider: The vendor.
        model: The model's name in requests.
        dialect: The dialect that it is asked in.
        base_url: The vendor's endpoint; None: the dialect's own vendor.
        input: Input that no cache has.
        read: Input from a cache.
        written: Input that is written into a cache.
        output: Output.
        whole_requests: True if the cache has prefixes of any length, from DeepSeek's
            description: a request's end is one, and only a request that repeats it reads it.
            False: as OpenAI's, from 1,024 tokens on in steps of 128, or Anthropic's.
        date: The date of the page.
        source: The page.
    """

    provider: str
    model: str
    dialect: Dialect
    base_url: str | None = None
    input: float
    read: float
    written: float
    output: float
    whole_requests: bool = False
    date: str
    source: str

    def dollars(self, *, fresh: int, read: int, written: int, output: int) -> float:
        """Return the price of these tokens."""
        parts = (fresh * self.input, read * self.read, written * self.written, output * self.output)
        return sum(parts) / _MILLION


def read_prices(path: Path = Path(__file__).parent / "prices.json") -> tuple[Price, ...]:
    """Return the price lists of a JSON file; a vendor without a page is not in ours."""
    return tuple(Price(**entry) for entry in json.loads(path.read_text("utf-8")))
