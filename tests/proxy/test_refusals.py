"""A proxy before services that refuse what it writes, in words that are known or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest

from tests.proxy.clients import ChatClient, MessagesClient, ResponsesClient
from tests.proxy.conftest import serve
from tests.proxy.raw import raw_provider
from tests.proxy.test_app import CHAT, REPLY, TOOLS, client_of
from tests.services.raw import JSON, RawService
from tool_search.core.settings import Dialect
from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import ProxyConfig, UpstreamSettings

ODD = "Die Anfrage wurde nicht angenommen (E-4711)."
CLIENTS = (ChatClient, MessagesClient, ResponsesClient)
Client = ChatClient | MessagesClient | ResponsesClient


def _names(body: JSON) -> list[str]:
    return [str((tool.get("function") or tool).get("name")) for tool in body.get("tools", ())]


@contextmanager
def _proxy(service: RawService, **settings: Any) -> Iterator[str]:
    formats: tuple[Dialect, ...] = ("anthropic", "openai_chat", "openai_responses")
    with service.running():
        upstream = UpstreamSettings(id="odd", base_url=service.url, dialects=formats, **settings)
        with serve(ToolSearchProxy(ProxyConfig(upstreams=(upstream,)))) as address:
            yield address


def _searches(client: Client, service: RawService) -> None:
    """Two clients find and call a tool; what was refused once is not sent again."""
    assert client.ask("Please use count_words").startswith("answer")
    refused = len(service.refused)
    assert client.ask("Please use count_words").startswith("answer")
    assert client.called == ["count_words"] * 2
    assert len(service.refused) == refused


@pytest.mark.parametrize(
    ("kind", "stream"), [*((kind, False) for kind in CLIENTS), (ChatClient, True)]
)
@pytest.mark.parametrize(
    "words", [ODD, "The function name tool_search is reserved for the tool_search tool"]
)
def test_name_that_is_refused_is_another_in_the_same_turn_and_later_ones(
    kind: type[Client], stream: bool, words: str
) -> None:
    service = RawService(
        rule=lambda body: words if "tool_search" in _names(body) else None, streams=stream
    )
    with _proxy(service) as address:
        _searches(kind(address, stream=stream, model="house-model"), service)
        _searches(kind(address, stream=stream, model="house-model", key="other"), service)
    assert len(service.refused) == 1
    assert "find_tools" in json.dumps(service.bodies)


@pytest.mark.parametrize("words", [ODD, "Unknown parameter: 'tools[0].defer_loading'."])
def test_search_of_the_services_own_that_is_refused_becomes_a_list_that_grows(words: str) -> None:
    service = RawService(rule=lambda body: words if "defer_loading" in str(body) else None)
    with _proxy(service, strategy="claude") as address:
        _searches(MessagesClient(address, stream=False, model="claude-sonnet-4-6"), service)
    assert len(service.refused) == 1


async def test_request_goes_on_as_it_came_where_each_form_of_ours_is_refused() -> None:
    raw = json.dumps({**CHAT, "tools": TOOLS}, indent=1).encode()
    refusal = json.dumps({"error": {"message": ODD}}).encode()
    with raw_provider() as provider:
        provider.body = json.dumps(REPLY).encode()
        provider.bodies, provider.statuses = [refusal] * 3, [400] * 3
        async with client_of(provider) as client:
            replies = [await client.post("/v1/chat/completions", content=raw) for _ in range(2)]
        sent = [request.body for request in provider.requests]
    assert [reply.status_code for reply in replies] == [200, 200]
    assert b"tool_search" in sent[0]
    assert b"find_tools" in sent[1]
    assert len(sent) <= 5
    assert sent[-2:] == [raw, raw]


@pytest.mark.parametrize(("status", "most"), [(400, 5), (401, 1), (429, 1)])
def test_refusal_of_what_the_client_wrote_is_the_clients_to_read(status: int, most: int) -> None:
    wrong: Callable[[JSON], str | None] = lambda body: ODD if "Huh" in str(body) else None  # noqa: E731
    service = RawService(rule=wrong, status=status)
    with _proxy(service) as address:
        client = ChatClient(address, stream=False, model="house-model")
        with pytest.raises(openai.APIStatusError, match="E-4711"):
            client.ask("Huh")
        assert len(service.refused) <= most
        other = ChatClient(address, stream=False, model="house-model", key="other")
        assert other.ask("Please use count_words").startswith("answer")
        assert other.called == ["count_words"]
