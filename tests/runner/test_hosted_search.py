"""A bot whose provider searches its catalog itself."""

from __future__ import annotations

import pytest

from tests.runner.bench import KEY, SEARCHING, Bench, named, turn
from tool_search import Done, ProviderConfig
from tool_search.adapters import build_provider
from tool_search.testing import KeywordModel


@pytest.mark.parametrize("form", ["hosted", "deferred", "client"])
async def test_every_form_of_search_finds_and_calls_a_tool(bench: Bench, form: str) -> None:
    """By the service or by us, the tool is called, and the next turn needs no search."""
    bench.server.reset(model=KeywordModel())
    config = ProviderConfig.model_validate(
        {
            "id": "responses",
            "type": "openai_responses",
            "model": "gpt-5.4",
            "base_url": bench.server.openai_base_url,
            "api_key_env": None,
            "strategy": "openai_responses",
            "tool_search": form,
        }
    )
    provider = build_provider(config, api_key=KEY, fallbacks=False)
    bench.stack.push_async_callback(provider.aclose)
    runner = await bench.runner(providers={"responses": provider}, config=SEARCHING)
    for _ in range(2):
        (done,) = named(await turn(runner, 'Weather forecast for "Paris", please'), Done)
        assert done.answer == "get_forecast: get_forecast is done"
    assert bench.ran == [("get_forecast", {"city": "Paris"})] * 2
    requests = [len(request.body["input"]) for request in bench.requests]
    assert requests == sorted(requests)
