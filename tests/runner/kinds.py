"""The kinds of provider that a conversation may be swapped between, by how they are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.runner.bench import FORECAST, Bench
from tool_search import ChatProvider
from tool_search.testing import ModelCall, ModelReply, ModelView

KINDS: Mapping[str, Mapping[str, Any]] = {
    "claude": {},
    "responses": {},
    "gpt": {},
    "glm": {},
    "responses-plain": {"strategy": "generic"},
    "gpt-kimi": {"strategy": "tools_in_messages", "model": "kimi-k3"},
    "gpt-bridge": {"strategy": "bridge", "model": "deepseek-chat"},
}
"""Their settings, by a name that `Bench.provider` makes them from."""


async def provider(bench: Bench, kind: str) -> ChatProvider:
    """A provider of a kind."""
    return await bench.provider(kind, **KINDS[kind])


def forecast(view: ModelView) -> ModelReply:
    """Calls the forecast as this request lets it be called: never unseen."""
    if view.tool("get_forecast") is not None:
        return ModelReply(calls=(FORECAST,), thinking="I have seen it.")
    shown = [result.text for message in view.messages for result in message.results]
    assert any('"get_forecast"' in text and '"parameters"' in text for text in shown), shown
    arguments = {"name": "get_forecast", "arguments": FORECAST.arguments}
    return ModelReply(calls=(ModelCall(name="call_tool", arguments=arguments),))
