"""`/cost`: tokens and money, and about what the mode `full` would have taken."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tool_search.cli.chat.cost import ConversationCost, ProviderCost
from tool_search.cli.chat.prices import OWN_PRICES, Price, known_price
from tool_search.config.bot import ProviderConfig
from tool_search.i18n import LANGUAGES, Language
from tool_search.providers.base import Usage

ROOT = Path(__file__).resolve().parents[3]
PRICE = Price(model="m", input=2.0, read=0.5, written=2.0, output=10.0, date="2026")
# An hour at which DeepSeek asks its usual price.
NIGHT = datetime(2026, 11, 28, 0, 15, tzinfo=UTC)
ONE_TURN = ProviderCost(model="m", price=PRICE, has_cache=True).with_turn(
    requests=3,
    searches=1,
    usage=Usage(input_tokens=3_000_000, output_tokens=100_000, cache_read_tokens=1_000_000),
    shown=200_000,
    full=1_200_000,
)


def test_full_mode_has_every_definition_and_no_search() -> None:
    # Each request has 800,000 tokens other than definitions; one of the three only searched.
    assert ONE_TURN.full_input_tokens == 2 * (800_000 + 1_200_000)


def test_money_has_the_prices_of_new_cached_and_written_tokens() -> None:
    assert ONE_TURN.dollars == pytest.approx(2 * 2.0 + 1 * 0.5 + 0.1 * 10)
    # A million tokens of definitions more: new once, then from the cache.
    assert ONE_TURN.full_dollars == pytest.approx(4.5 * 2 / 3 + 1 * 2.0 + 1 * 0.5 + 1.0)


def test_a_conversation_in_full_mode_costs_what_it_costs() -> None:
    full = ProviderCost(model="m", price=PRICE, has_cache=True).with_turn(
        requests=2, searches=0, usage=Usage(input_tokens=5_000), shown=1_000, full=1_000
    )
    assert full.full_input_tokens == 5_000
    assert full.full_dollars == full.dollars
    same = ConversationCost(providers={"a": full}).sentences("en-US")
    assert "tool_schema_mode" not in "\n".join(same)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("searches", [0, 1])
def test_a_search_that_takes_more_than_it_saves_is_said(language: Language, searches: int) -> None:
    few = ProviderCost(model="m", price=PRICE, has_cache=True).with_turn(
        requests=2, searches=searches, usage=Usage(input_tokens=1_000), shown=160, full=70
    )
    assert few.full_input_tokens < 1_000
    advice = "tool_schema_mode: auto"
    assert advice in "\n".join(ConversationCost(providers={"a": few}).sentences(language))
    many = ConversationCost(providers={"a": ONE_TURN}).sentences(language)
    assert advice not in "\n".join(many)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_model_without_a_price_is_named_and_no_money_invented(language: Language) -> None:
    unknown = ProviderCost(model="local-model", price=None, has_cache=True).with_turn(
        requests=1, searches=0, usage=Usage(input_tokens=10), shown=1, full=1
    )
    cost = ConversationCost(providers={"a": ONE_TURN, "b": unknown})
    assert cost.to_dict()["dollars"] is None
    lines = "\n".join(cost.sentences(language))
    assert "local-model" in lines
    assert "$" not in lines
    assert "$" in "\n".join(ConversationCost(providers={"a": ONE_TURN}).sentences(language))


def test_prices_are_those_that_the_benchmarks_name_with_their_pages() -> None:
    listed = {
        (row["model"], urlsplit(row["base_url"] or "").hostname or "", row["input"], row["read"],
         row["written"], row["output"])
        for row in json.loads((ROOT / "benchmarks" / "prices.json").read_text("utf-8"))
    }  # fmt: skip
    for price in OWN_PRICES:
        row = (price.model, price.host, price.input, price.read, price.written, price.output)
        assert row in listed
        assert price.date


@pytest.mark.parametrize(
    ("model", "base_url", "known"),
    [
        ("claude-sonnet-4-6", None, True),
        ("claude-sonnet-4-6-20260115", None, True),
        ("claude-sonnet-4-6-fast", None, False),
        ("claude-sonnet-4-6", "https://proxy.example", False),
        ("claude-sonnet-4-6", "https://api.anthropic.com", True),
        ("claude-opus-5-5", None, True),
        ("qwen3.7-plus", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", True),
        ("qwen3.7-plus", "https://dashscope.example/v1", False),
        ("deepseek-flash", "https://api.deepseek.com/v1", True),
        ("deepseek-flash", None, False),
    ],
)
def test_a_price_is_for_a_model_at_its_vendor(
    model: str, base_url: str | None, known: bool
) -> None:
    entry = ProviderConfig(id="p", type="anthropic", model=model, base_url=base_url)
    assert (known_price(entry, NIGHT) is not None) is known


@pytest.mark.parametrize(
    "row", json.loads((ROOT / "benchmarks" / "prices.json").read_text("utf-8"))
)
def test_prices_are_those_of_the_vendors_pages(row: dict[str, Any]) -> None:
    """The pages that the benchmarks name, read by hand, are a second source for a few models."""
    kind = row["dialect"]
    entry = ProviderConfig(id="p", type=kind, model=row["model"], base_url=row["base_url"])
    price = known_price(entry, NIGHT)
    if price is not None:
        assert (price.input, price.read, price.output) == (row["input"], row["read"], row["output"])
