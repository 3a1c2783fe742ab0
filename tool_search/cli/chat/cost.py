"""The cost of a conversation, and an estimate of the same with every tool in each request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tool_search.cli.chat.prices import Price
from tool_search.cli.terminal.language import number
from tool_search.i18n import Language, text
from tool_search.providers.base import Usage

__all__ = ["ConversationCost", "ProviderCost"]

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCost:
    """The requests of a conversation to one provider.

    Attributes:
        model: Its model.
        price: Its price; None if it is not known.
        has_cache: True if it has a prompt cache.
        requests: The requests that were answered.
        searches: Those whose reply only searched: with every tool there are none.
        usage: Their tokens, as the provider counted them.
        shown_tokens: The estimated tokens of the definitions in all of them.
        full_tokens: The estimated tokens of every definition, in one request.
    """

    model: str
    price: Price | None
    has_cache: bool
    requests: int = 0
    searches: int = 0
    usage: Usage = field(default_factory=Usage)
    shown_tokens: int = 0
    full_tokens: int = 0

    def with_turn(
        self, *, requests: int, searches: int, usage: Usage, shown: int, full: int
    ) -> ProviderCost:
        """Return the cost with one more turn.

        Args:
            requests: Its requests.
            searches: Those whose reply only searched.
            usage: Their tokens.
            shown: The tokens of the definitions in its last request.
            full: The tokens of every definition.
        """
        return replace(
            self,
            requests=self.requests + requests,
            searches=self.searches + min(searches, max(0, requests - 1)),
            usage=self.usage + usage,
            shown_tokens=self.shown_tokens + requests * shown,
            full_tokens=full,
        )

    @property
    def full_requests(self) -> int:
        """The number of requests with every tool, which needs no search."""
        return self.requests - self.searches

    @property
    def full_input_tokens(self) -> int:
        """About the input tokens with every tool in each request."""
        if not self.requests:
            return 0
        others = max(0, self.usage.input_tokens - self.shown_tokens) / self.requests
        return round(self.full_requests * (others + self.full_tokens))

    @property
    def dollars(self) -> float | None:
        """The price of the requests; None if it is not known."""
        if self.price is None:
            return None
        return self.price.input_dollars(self.usage) + self.price.output_dollars(self.usage)

    @property
    def full_dollars(self) -> float | None:
        """About the price with every tool in each request.

        The definitions that search leaves out are new in the first request. A provider with a
        cache then reads them from there.
        """
        if self.price is None:
            return None
        if not self.requests:
            return 0.0
        left_out = max(0.0, self.full_tokens - self.shown_tokens / self.requests)
        again = self.price.read if self.has_cache else self.price.input
        definitions = left_out * (self.price.written + (self.full_requests - 1) * again)
        same = self.price.input_dollars(self.usage) * self.full_requests / self.requests
        return same + definitions / _MILLION + self.price.output_dollars(self.usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationCost:
    """The cost of a conversation.

    Attributes:
        providers: The providers that answered, by `id`.
    """

    providers: Mapping[str, ProviderCost]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name; dollars are null if a price is not known."""
        usage = self.usage
        dollars, full_dollars = self._sum("dollars"), self._sum("full_dollars")
        return {
            "requests": sum(each.requests for each in self.providers.values()),
            "input_tokens": usage.input_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "output_tokens": usage.output_tokens,
            "full_input_tokens": self.full_input_tokens,
            "dollars": None if dollars is None else round(dollars, 6),
            "full_dollars": None if full_dollars is None else round(full_dollars, 6),
        }

    @property
    def usage(self) -> Usage:
        """The tokens of all requests."""
        return sum((each.usage for each in self.providers.values()), Usage())

    @property
    def full_input_tokens(self) -> int:
        """About the input tokens with every tool in each request."""
        return sum(each.full_input_tokens for each in self.providers.values())

    def sentences(self, language: Language) -> list[str]:
        """Return the cost as a person reads it."""

        def said(key: str, **values: object) -> str:
            return text(f"chat.{key}", language, **values)

        if not self.providers:
            return [said("cost_nothing")]
        usage = self.usage
        lines = [
            said(
                "cost_tokens",
                requests=sum(each.requests for each in self.providers.values()),
                read=number(usage.input_tokens),
                cached=number(usage.cache_read_tokens),
                written=number(usage.output_tokens),
            ),
            said("cost_full_tokens", read=number(self.full_input_tokens)),
        ]
        # In the mode `full` both are equal, except for rounding.
        if self.full_input_tokens < usage.input_tokens - len(self.providers):
            lines.append(said("cost_search_more"))
        return [*lines, *self._money(said)]

    def _money(self, said: Callable[..., str]) -> list[str]:
        dollars, full_dollars = self._sum("dollars"), self._sum("full_dollars")
        if dollars is None or full_dollars is None:
            unknown = (each.model for each in self.providers.values() if each.price is None)
            return [said("cost_no_price", models=", ".join(dict.fromkeys(unknown)))]
        lists = (
            f"{each.price.model} {each.price.date}"
            for each in self.providers.values()
            if each.price is not None and each.price.date
        )
        money = said("cost_money", dollars=f"${dollars:.4f}", full=f"${full_dollars:.4f}")
        dated = ", ".join(dict.fromkeys(lists))
        return [money, said("cost_prices", lists=dated)] if dated else [money]

    def _sum(self, name: str) -> float | None:
        """Return the sum of dollars; None if a price is not known."""
        sums: list[float | None] = [getattr(each, name) for each in self.providers.values()]
        known = [dollars for dollars in sums if dollars is not None]
        return sum(known) if len(known) == len(sums) else None
