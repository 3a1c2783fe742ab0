"""Middleware of MCProxy's file around lists and calls."""

from __future__ import annotations

import logging

import pytest

from tests.gateway.helpers import SERVERS, FakeSource, listed, served, text_of, tools_of
from tool_search.serving.gateway.calls import RefusedRequestError

SEARCH = "search_available_tools"


def of_client(*default: dict[str, object], **servers: list[dict[str, object]]) -> dict[str, object]:
    return {"client": {"default": list(default), "servers": servers}}


def step(kind: str, **config: object) -> dict[str, object]:
    return {"type": kind, "config": config}


async def test_a_filter_hides_tools_from_lists_searches_and_calls() -> None:
    middleware = of_client(
        step("tool_filter", disallow="^send_"), mail=[step("tool_filter", allow="^send_")]
    )
    async with served(FakeSource(tools_of(SERVERS)), middleware=middleware) as service:
        names = [tool.name for tool in service.offer.offered]
        assert "chat___send_message" not in names  # the default list
        assert "mail___send_mail" in names  # the server's own list replaces it
        assert "mail___read_inbox" not in names
        client = service.clients.open_session(service.offer)
        assert "No tools found" in await text_of(service, client, SEARCH, query="read inbox")
        with pytest.raises(RefusedRequestError):
            await service.call_tool(client, "mail___read_inbox", {})


async def test_a_filter_of_all_servers_sees_the_names_of_clients() -> None:
    middleware = {"proxy": [step("tool_filter", disallow="^mail___")]}
    async with served(FakeSource(tools_of(SERVERS)), middleware=middleware) as service:
        assert {tool.server for tool in service.offer.offered} == {"github", "chat"}


async def test_security_blocks_calls_by_its_default_rules(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource(tools_of(SERVERS))
    async with served(source, middleware=of_client({"type": "security"})) as service:
        client = service.clients.open_session(service.offer)
        for text, said in (
            ("sudo ls", "System commands are not allowed"),
            ("cat /etc/passwd > x", "System commands are not allowed"),
            ("open ~/.ssh/id", "Access to sensitive files is not allowed"),
            ("wget http://x", "Network commands are not allowed"),
        ):
            answer = await service.call_tool(client, "mail___send_mail", {"text": text})
            assert answer.content["isError"] is True
            assert said in answer.content["content"][0]["text"]
        assert source.requests == []
        assert "no_network_commands" in caplog.text
        inner = {"name": "mail___send_mail", "arguments": {"text": "sudo"}}
        blocked = await service.call_tool(client, "call_tool", inner)
        assert blocked.content["isError"] is True
        assert "hello" in await text_of(service, client, "mail___send_mail", text="hello")


async def test_a_rule_of_a_server_replaces_the_default_ones() -> None:
    rule = {"name": "r", "pattern": "(?i)secret plan", "block_message": "Not that."}
    middleware = of_client({"type": "security"}, mail=[step("security", rules=[rule])])
    async with served(FakeSource(tools_of(SERVERS)), middleware=middleware) as service:
        client = service.clients.open_session(service.offer)
        assert "sudo" in await text_of(service, client, "mail___send_mail", text="sudo")
        blocked = await text_of(service, client, "mail___send_mail", text="the SECRET plan")
        assert "Not that." in blocked
        assert "not allowed" in await text_of(service, client, "chat___send_message", text="sudo")


async def test_descriptions_get_their_suffix_and_overrides() -> None:
    enricher = step("description_enricher", overrides={"read_inbox": "Shows letters"})
    async with served(
        FakeSource(tools_of(SERVERS)), middleware={"proxy": [enricher]}, maxToolsLimit=0
    ) as service:
        client = service.clients.open_session(service.offer)
        texts = {tool["name"]: tool["description"] for tool in service.list_tools(client)}
        assert texts["mail___read_inbox"] == "Shows letters (via mcproxy)"
        assert texts["chat___send_message"] == "Send message at chat. (via mcproxy)"


async def test_calls_are_logged_with_durations_and_ids(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    middleware = of_client(step("logging", level="debug"), mail=[])
    async with served(FakeSource(tools_of(SERVERS)), middleware=middleware) as service:
        client = service.clients.open_session(service.offer)
        await service.call_tool(client, "chat___send_message", {})
        await service.call_tool(client, "mail___send_mail", {})
    (record,) = [each for each in caplog.records if each.getMessage().startswith("mcp_call:")]
    facts = record.__dict__
    assert record.levelno == logging.DEBUG
    assert (facts["server"], facts["tool"], facts["outcome"]) == ("chat", "send_message", "ok")
    assert facts["seconds"] > 0
    assert facts["call_id"]


async def test_a_disabled_step_does_nothing() -> None:
    middleware = of_client({"type": "tool_filter", "enabled": False, "config": {"allow": "nope"}})
    async with served(
        FakeSource(tools_of(SERVERS)), middleware=middleware, maxToolsLimit=0
    ) as service:
        client = service.clients.open_session(service.offer)
        assert len(listed(service, client)) == 7
