"""A proxy before a service that keeps the name of our search tool for itself."""

from __future__ import annotations

import json

import pytest

from tests.proxy.clients import ChatClient, ResponsesClient
from tests.proxy.conftest import serve
from tests.services.rules import xai
from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import ProxyConfig, UpstreamSettings


@pytest.mark.parametrize("kind", [ChatClient, ResponsesClient])
def test_a_search_and_a_call_where_the_service_keeps_the_search_tools_name(
    kind: type[ChatClient | ResponsesClient],
) -> None:
    with xai().running() as service:
        upstream = UpstreamSettings(
            id="xai", base_url=f"{service.url}/v1", dialects=("openai_chat", "openai_responses")
        )
        with serve(ToolSearchProxy(ProxyConfig(upstreams=(upstream,)))) as address:
            client = kind(address, stream=False, model="grok-4.5")
            answers = [client.ask("Please use count_words") for _ in range(2)]
    assert service.refused == []
    assert client.called == ["count_words"] * 2
    assert all(answer.startswith("answer") for answer in answers)
    assert '"find_tools"' in json.dumps(service.bodies)
