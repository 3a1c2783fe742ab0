"""Prices of models, in dollars for a million tokens, each with its page and date."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from tool_search.config.bot import ProviderConfig
from tool_search.config.kinds import dialect_of
from tool_search.providers.base import Usage
from tool_search.providers.known import OWN_HOSTS

__all__ = ["KNOWN_PRICES", "Price", "known_price"]

_MILLION = 1_000_000
# A vendor's dated name of the same model: `-20260115`, `-2026-01-15`.
_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of one model at one vendor.

    Attributes:
        model: The model's name in requests.
        host: The vendor's host; empty: the vendor of the dialect itself.
        input: Input that no cache has.
        read: Input from a cache.
        written: Input that is written into a cache.
        output: Output.
        date: The date of the page; empty for prices of an option.
    """

    model: str = ""
    host: str = ""
    input: float
    read: float
    written: float
    output: float
    date: str = ""

    def input_dollars(self, usage: Usage) -> float:
        """Return the price of the input of requests."""
        fresh = max(0, usage.uncached_tokens - usage.cache_write_tokens)
        parts = (
            fresh * self.input,
            usage.cache_read_tokens * self.read,
            usage.cache_write_tokens * self.written,
        )
        return sum(parts) / _MILLION

    def output_dollars(self, usage: Usage) -> float:
        """Return the price of the output of requests."""
        return usage.output_tokens * self.output / _MILLION


# Source: the pages that benchmarks/prices.json names for each; a test compares the two.
KNOWN_PRICES: tuple[Price, ...] = (
    Price(
        model="claude-sonnet-4-6", input=3.0, read=0.3, written=3.75, output=15.0, date="2026"
    ),
    Price(model="gpt-5.4", input=2.5, read=0.25, written=2.5, output=15.0, date="2026-04-13"),
    Price(
        model="deepseek-flash", host="api.deepseek.com",
        input=0.15, read=0.003, written=0.15, output=0.6, date="2026-10",
    ),
    Price(
        model="deepseek-v4-pro", host="api.deepseek.com",
        input=0.66, read=0.022, written=0.66, output=1.98, date="2026-10",
    ),
    Price(
        model="kimi-k3", host="api.moonshot.ai",
        input=3.0, read=0.3, written=3.0, output=15.0, date="2026-07-18",
    ),
    Price(
        model="kimi-k2.6", host="api.moonshot.ai",
        input=0.95, read=0.16, written=0.95, output=4.0, date="2026-06",
    ),
    Price(
        model="qwen3.7-plus", host="dashscope-intl.aliyuncs.com",
        input=0.4, read=0.08, written=0.4, output=1.6, date="2026-06-03",
    ),
)  # fmt: skip


def known_price(provider: ProviderConfig) -> Price | None:
    """Return the price of a provider's model; None if it is not known."""
    host = urlsplit(provider.base_url or "").hostname or ""
    if host == OWN_HOSTS[dialect_of(provider.type)]:
        host = ""  # the vendor's own address, written out
    for price in KNOWN_PRICES:
        same = provider.model == price.model or (
            provider.model.startswith(price.model)
            and _DATE.fullmatch(provider.model.removeprefix(price.model))
        )
        if same and host == price.host:
            return price
    return None
