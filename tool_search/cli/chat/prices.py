"""Prices of models, in dollars for a million tokens, each with its source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from tool_search.config.bot import ProviderConfig
from tool_search.core.settings import dialect_of
from tool_search.providers.base import Usage
from tool_search.providers.known import OWN_HOSTS

__all__ = ["OWN_PRICES", "Price", "known_price"]

_MILLION = 1_000_000
# The table finds a model by the beginning of its name, which a dearer variant may share.
_SAME_MODEL = re.compile(r"|-latest|-\d{4}-?\d{2}-?\d{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of one model at one vendor.

    Attributes:
        model: The model's name in requests.
        host: The vendor's host.
        input: Input that no cache has.
        read: Input from a cache.
        written: Input that is written into a cache.
        output: Output.
        date: The date of the page, or the table; empty for prices of an option.
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


# What genai-prices lacks. Source: the page that benchmarks/prices.json names; a test compares them.
OWN_PRICES: tuple[Price, ...] = (
    Price(
        model="qwen3.7-plus", host="dashscope-intl.aliyuncs.com",
        input=0.4, read=0.08, written=0.4, output=1.6, date="2026-06-03",
    ),
)  # fmt: skip


def known_price(provider: ProviderConfig, now: datetime) -> Price | None:
    """Return the price of a provider's model at its endpoint; None if it is not known.

    Source: the table of genai-prices, as it was installed; no request updates it. Of a price with
    tiers, that of a short input; of one with hours, as DeepSeek's, that of the hour.
    """
    # The table takes 50 ms to import.
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    address = provider.base_url or f"https://{OWN_HOSTS[dialect_of(provider.type)]}"
    own = [
        p for p in OWN_PRICES if (p.model, p.host) == (provider.model, urlsplit(address).hostname)
    ]
    if own:
        return own[0]
    try:
        _, model = get_snapshot().find_provider_model(provider.model, None, None, address)
    except LookupError:
        return None
    if not _SAME_MODEL.fullmatch(provider.model.lower().removeprefix(model.id)):
        return None
    prices = vars(model.get_prices(now))
    fresh = _base(prices.get("input_mtok"))
    output = _base(prices.get("output_mtok"))
    if fresh is None or output is None:
        return None
    read, written = _base(prices.get("cache_read_mtok")), _base(prices.get("cache_write_mtok"))
    return Price(
        model=model.id,
        input=fresh,
        read=fresh if read is None else read,
        written=fresh if written is None else written,
        output=output,
        date=f"(genai-prices {version('genai-prices')})",
    )


def _base(price: Any) -> float | None:
    return None if price is None else float(getattr(price, "base", price))
