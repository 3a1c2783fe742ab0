"""The tokens from a prompt cache, as every adapter reports them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.adapters.contract import ADAPTERS, QUESTION, Adapter, plan_of, reply_of
from tool_search.core.messages import Message
from tool_search.core.settings import StrategyChoice
from tool_search.providers.base import Usage
from tool_search.testing import ModelReply, ScriptedModel, StandInServer

STRATEGIES: dict[str, StrategyChoice] = {"anthropic": "claude"}


@pytest.fixture
def server() -> Iterator[StandInServer]:
    """A server whose cache is empty."""
    with StandInServer(model=ScriptedModel([ModelReply(text="Sunny.")] * 2)) as running:
        yield running


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "whole"])
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.dialect)
async def test_second_request_reads_the_first_from_the_cache(
    server: StandInServer, adapter: Adapter, streaming: bool
) -> None:
    strategy = STRATEGIES.get(adapter.dialect, adapter.strategy)
    profile = replace(adapter, strategy=strategy).profile(server)
    plan = replace(plan_of(), system="Be brief. " * 1_000, cache_system=True)
    answer = Message(role="assistant", content="Sunny.")
    longer = replace(plan, messages=(*plan.messages, answer, QUESTION))
    providers = [adapter.connect(server, profile=profile, streaming=streaming) for _ in range(2)]
    first = (await reply_of(providers[0], plan)).usage
    second = (await reply_of(providers[1], longer)).usage
    assert first.cache_read_tokens == 0
    assert first.uncached_tokens == first.input_tokens
    assert second.cache_read_tokens >= 2_432
    assert second.uncached_tokens == second.input_tokens - second.cache_read_tokens > 0
    assert server.violations == ()


def test_usage_of_several_requests_is_their_sum() -> None:
    one = Usage(input_tokens=10, output_tokens=1, cache_read_tokens=4, cache_write_tokens=2)
    assert (one + one).uncached_tokens == 12
    assert Usage(cache_read_tokens=1).uncached_tokens == 0
