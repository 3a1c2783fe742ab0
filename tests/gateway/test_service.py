"""Lists, searches and calls of a gateway's clients, without a transport."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.gateway.helpers import SERVERS, FakeSource, listed, served, text_of, tools_of
from tool_search import Tool
from tool_search.errors import ConfigurationError, SourceError
from tool_search.serving.gateway import gateway_config
from tool_search.serving.gateway.calls import RefusedRequestError
from tool_search.serving.gateway.service import GatewayService

SEARCH, CALL = "search_available_tools", "call_tool"
FIRST = ["github___create_issue", "github___list_commits", "github___merge_pull_request"]


async def test_a_client_sees_the_first_tools_and_the_search() -> None:
    async with served(FakeSource(tools_of(SERVERS))) as service:
        client = service.clients.open_session(service.offer)
        assert listed(service, client) == [*FIRST, SEARCH]
        *_, search = service.list_tools(client)
        assert search["description"].startswith("Search through 4 additional available tools.")
        assert search["inputSchema"]["required"] == ["query"]


async def test_a_search_changes_the_list_of_its_client_alone() -> None:
    async with served(FakeSource(tools_of(SERVERS))) as service:
        first = service.clients.open_session(service.offer)
        second = service.clients.open_session(service.offer)
        answer = await service.call_tool(first, SEARCH, {"query": "read the inbox"})
        assert (answer.list_changed, answer.found) == (True, True)
        assert listed(service, first)[0] == "mail___read_inbox"
        assert listed(service, second) == [*FIRST, SEARCH]
        again = await service.call_tool(first, SEARCH, {"query": "read the inbox"})
        assert (again.list_changed, again.found) == (False, True)


async def test_a_search_answers_with_numbered_lines() -> None:
    async with served(FakeSource(tools_of(SERVERS)), maxResults=1) as service:
        client = service.clients.open_session(service.offer)
        assert await text_of(service, client, SEARCH, query="read inbox") == (
            "Found 1 matching tools:\n1. mail___read_inbox - Read inbox at mail."
        )
        nothing = "No tools found matching 'qqqzzz'. Try a different search term."
        before = listed(service, client)
        assert await text_of(service, client, SEARCH, query="qqqzzz") == nothing
        assert await text_of(service, client, SEARCH, query=" ") == nothing.replace("qqqzzz", "")
        assert listed(service, client) == before


@pytest.mark.parametrize(("arguments", "said"), [
    ({}, "'query' is missing"), ({"query": 3}, "'query' must be text, not 3"),
    ({"Query": "x"}, "'query' is missing"),
])  # fmt: skip
async def test_a_search_without_a_query_is_refused(arguments: dict[str, Any], said: str) -> None:
    async with served(FakeSource(tools_of(SERVERS))) as service:
        client = service.clients.open_session(service.offer)
        with pytest.raises(RefusedRequestError, match=said) as refused:
            await service.call_tool(client, SEARCH, arguments)
        assert refused.value.kind == "invalid"


async def test_hidden_tools_run_by_full_name_and_by_call_tool() -> None:
    source = FakeSource(tools_of(SERVERS))
    async with served(source) as service:
        client = service.clients.open_session(service.offer)
        hidden = await text_of(service, client, "mail___send_mail", text="hi")
        assert hidden == "mail send_mail {'text': 'hi'}"
        inner = {"name": "chat___list_channels", "arguments": '{"text": "x"}'}
        assert await text_of(service, client, CALL, **inner) == "chat list_channels {'text': 'x'}"
        assert source.requests == [
            ("mail", "tools/call", {"name": "send_mail", "arguments": {"text": "hi"}}),
            ("chat", "tools/call", {"name": "list_channels", "arguments": {"text": "x"}}),
        ]


async def test_a_client_that_cannot_be_told_apart_has_one_list_and_the_schemas() -> None:
    async with served(FakeSource(tools_of(SERVERS))) as service:
        others = service.clients.others(service.offer)
        assert listed(service, others) == [*FIRST, SEARCH, CALL]
        answer = await service.call_tool(others, SEARCH, {"query": "send mail"})
        assert (answer.list_changed, answer.found) == (False, True)
        words, schemas = (item["text"] for item in answer.content["content"])
        assert words.splitlines()[1] == "1. mail___send_mail - Send mail at mail."
        assert '"properties":{"text":{"type":"string"}}' in schemas
        assert schemas.endswith("use call_tool with its name and arguments.")
        assert listed(service, others) == [*FIRST, SEARCH, CALL]


@pytest.mark.parametrize(("name", "kind"), [
    ("nope", "unknown"), ("nope___x", "unknown"), ("mail___nope", "unknown"), ("", "unknown"),
    ("x" * 100_000, "unknown"),
])  # fmt: skip
async def test_an_unknown_tool_is_refused(name: str, kind: str) -> None:
    async with served(FakeSource(tools_of(SERVERS))) as service:
        client = service.clients.open_session(service.offer)
        with pytest.raises(RefusedRequestError) as refused:
            await service.call_tool(client, name, {})
        assert refused.value.kind == kind
        assert len(str(refused.value)) < 500


async def test_a_server_that_fails_is_an_error_that_names_it() -> None:
    failure = SourceError("is not connected: gone", server="mail")
    async with served(FakeSource(tools_of(SERVERS), {"send_mail": failure})) as service:
        client = service.clients.open_session(service.offer)
        answer = await service.call_tool(client, "mail___send_mail", {})
        assert answer.error is failure
        assert answer.content["isError"] is True
        assert "server 'mail': is not connected: gone" in answer.content["content"][0]["text"]
        assert "chat" in await text_of(service, client, "chat___send_message")


async def test_answers_of_servers_pass_as_they_are() -> None:
    given = {
        "content": [
            {"type": "text", "text": "ok", "annotations": {"audience": ["user"]}},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
        ],
        "structuredContent": {"a": 1},
        "isError": True,
        "_meta": {"x": 1, "io.modelcontextprotocol/serverInfo": {"name": "s"}},
    }
    async with served(FakeSource(tools_of(SERVERS), {"send_mail": given})) as service:
        client = service.clients.open_session(service.offer)
        answer = await service.call_tool(client, "mail___send_mail", {})
        assert answer.content == {**given, "_meta": {"x": 1}}


async def test_answers_of_servers_are_capped() -> None:
    given = {
        "content": [
            {"type": "text", "text": "x" * 3_000_000}, {"type": "text", "text": "y" * 10},
            {"type": "image", "data": "a" * 40_000_000, "mimeType": "image/png"}, 7, {"a": 1},
        ],
    }  # fmt: skip
    source = FakeSource(tools_of(SERVERS), {"send_mail": given})
    async with served(source) as service:
        client = service.clients.open_session(service.offer)
        items = (await service.call_tool(client, "mail___send_mail", {})).content["content"]
        assert len(str(items)) < 1_001_000
        assert "40,000," in items[2]["text"]
        big = {"content": [], "structuredContent": {"x": "y" * 2_000_000}}
        source.answers["send_mail"] = big
        answer = await service.call_tool(client, "mail___send_mail", {})
        assert answer.content["isError"] is True
        assert len(str(answer.content)) < 1_000


async def test_what_a_server_asks_for_is_passed_on_and_the_input_goes_back() -> None:
    asked = {"inputRequests": {"a": {"method": "elicitation/create"}}, "requestState": "s"}
    source = FakeSource(tools_of(SERVERS), {"send_mail": {**asked, "resultType": "input_required"}})
    async with served(source) as service:
        client = service.clients.open_session(service.offer)
        answer = await service.call_tool(client, "mail___send_mail", {})
        assert answer.content == {**asked, "resultType": "input_required"}
        more = {"inputResponses": {"a": {"action": "accept"}}, "requestState": "s"}
        await service.call_tool(client, "mail___send_mail", {}, more=more)
        assert source.requests[-1][2] == {"name": "send_mail", "arguments": {}, **more}


async def test_progress_passes() -> None:
    heard = []

    async def on_progress(*facts: object) -> None:
        heard.append(facts)

    async with served(FakeSource(tools_of(SERVERS))) as service:
        client = service.clients.open_session(service.offer)
        await service.call_tool(client, "mail___send_mail", {}, on_progress=on_progress)
        assert heard == [(1, 2, "half")]


async def test_permissions_hold_for_searches_lists_and_calls() -> None:
    rules = {"deny": ["mcp__mail__*"], "ask": ["mcp__chat__send_message"]}
    async with served(FakeSource(tools_of(SERVERS)), permissions=rules) as service:
        client = service.clients.open_session(service.offer)
        assert "No tools found" in await text_of(service, client, SEARCH, query="inbox")
        with pytest.raises(RefusedRequestError):
            await service.call_tool(client, "mail___send_mail", {})
        with pytest.raises(RefusedRequestError):  # nobody can be asked
            await service.call_tool(client, "chat___send_message", {})
        assert "chat" in await text_of(service, client, "chat___list_channels")


async def test_a_denied_argument_is_denied_in_a_call() -> None:
    source = FakeSource(tools_of(SERVERS))
    rules = {"deny": ["mcp__mail__send_mail(text=secret*)"]}
    async with served(source, permissions=rules) as service:
        client = service.clients.open_session(service.offer)
        answer = await service.call_tool(client, "mail___send_mail", {"text": "secret plan"})
        assert answer.content["isError"] is True
        assert not source.requests
        assert "mail" in await text_of(service, client, "mail___send_mail", text="open")


async def test_a_source_without_servers_is_served_too() -> None:
    class Plain:
        tools = (Tool(name="add", description="Add numbers."),)
        executor = FakeSource(()).executor

        def subscribe(self, _: Any) -> Any:
            return lambda: None

    async with served(Plain(), servers=()) as service:
        client = service.clients.open_session(service.offer)
        assert listed(service, client) == ["add"]
        assert await text_of(service, client, "add") == "ran add"


async def changed(service: GatewayService, before: object) -> None:
    """Wait until the offer is another one."""
    while service.offer is before:  # noqa: ASYNC110  # the offer has no event
        await asyncio.sleep(0.01)


async def test_servers_that_come_and_go_change_lists_and_tell_each_session() -> None:
    source = FakeSource(tools_of(SERVERS))
    async with served(source) as service:
        told = list[str]()
        clients = [service.clients.open_session(service.offer) for _ in range(2)]
        for client in clients:

            async def notify(kind: str, key: str = client.key) -> None:
                assert kind == "tools"
                told.append(key)

            client.notify = notify
        before = service.offer
        source.replace([*source.tools, *tools_of({"news": ["read_news"]})])
        await changed(service, before)
        while len(told) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert sorted(told) == sorted(client.key for client in clients)
        assert "news___read_news" in await text_of(service, clients[0], SEARCH, query="read news")


async def test_a_client_that_is_gone_is_forgotten() -> None:
    async with served(FakeSource(tools_of(SERVERS))) as service:
        client = service.clients.open_session(service.offer)
        assert len(service.clients) == 1
        service.clients.close(client)
        assert len(service.clients) == 0


async def test_a_search_is_one_record_with_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with served(FakeSource(tools_of(SERVERS)), debug=True, searchThreshold=0.9) as service:
        client = service.clients.open_session(service.offer)
        await service.call_tool(client, SEARCH, {"query": "send the quarterly mail"})
    (record,) = [each for each in caplog.records if each.getMessage().startswith("tool_search:")]
    facts = record.__dict__
    assert facts["query"] == "send the quarterly mail"
    assert facts["index_size"] == 7
    assert facts["matches_before_threshold"] > facts["matches_after_threshold"]
    assert facts["seconds"] > 0


def test_an_unknown_engine_is_an_error_of_the_configuration() -> None:
    config = gateway_config({"tool_search": {"engine": "nope"}})
    with pytest.raises(ConfigurationError, match=r"^tool_search\.engine is 'nope': there are bm25"):
        GatewayService(config, FakeSource(()))


async def test_a_large_list_has_pages_and_a_small_one_has_not() -> None:
    tools = [
        Tool(name=f"t{number}", server="a", kind="mcp", description="x" * 7_000)
        for number in range(250)
    ]
    async with served(FakeSource(tools), servers=["a"], enabled=False) as service:
        client = service.clients.open_session(service.offer)
        found, cursor, pages = list[str](), None, 0
        while pages == 0 or cursor is not None:
            page, cursor = service.list_page(client, cursor)
            assert len(str(page)) < 1_000_000
            found += [tool["name"] for tool in page]
            pages += 1
        assert pages == 3
        assert sorted(found) == sorted(f"a___t{number}" for number in range(250))
        for wrong in ("x", "-1", "251", "9" * 5_000):
            with pytest.raises(RefusedRequestError, match="the cursor"):
                service.list_page(client, wrong)
