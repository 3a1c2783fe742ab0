"""The inspector of a gateway: its searches and calls as records."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.gateway.helpers import SERVERS, FakeSource, tools_of
from tool_search.serving.gateway import gateway_config
from tool_search.serving.gateway.service import GatewayService
from tool_search.serving.inspector.figures import figures
from tool_search.serving.inspector.mcp_calls import McpRecords
from tool_search.serving.inspector.settings import InspectorSettings

SEARCH = "search_available_tools"


class Waiting(FakeSource):
    """Servers that answer a call when they are let go."""

    def __init__(self) -> None:
        super().__init__(tools_of(SERVERS))
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def request(
        self, server: str, method: str, params: Mapping[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        self.asked.set()
        await self.go.wait()
        return await super().request(server, method, params, **more)


@pytest.mark.parametrize("leaves", [False, True])
async def test_a_call_under_way_has_a_row_that_its_end_replaces(*, leaves: bool) -> None:
    config = gateway_config({"mcpServers": {name: {"command": "never"} for name in SERVERS}})
    records, source = McpRecords(InspectorSettings()), Waiting()
    recorder = records.recorder
    service = GatewayService(config, source, records=records)
    await service.start()
    try:
        client = service.clients.open_session(service.offer)
        call = asyncio.create_task(service.call_tool(client, "mail___send_mail", {"text": "hi"}))
        await source.asked.wait()
        ((row_id, row),) = recorder.running().items()
        if leaves:
            call.cancel()
        source.go.set()
        await asyncio.wait([call])
    finally:
        await service.aclose()
    records.settle()

    shown = json.loads(row)
    assert (shown["running"], shown["passed"], shown["conversation"]) == (
        True,
        "called",
        client.key,
    )
    ended = recorder.get(row_id)
    assert ended is not None
    assert (ended.status, ended.running) == (499 if leaves else 200, False)
    assert recorder.running() == {}


async def test_searches_and_calls_are_recorded() -> None:
    config = gateway_config({
        "mcpServers": {name: {"command": "never"} for name in SERVERS},
        "tool_search": {"maxToolsLimit": 3, "maxResults": 2},
    })  # fmt: skip
    records = McpRecords(InspectorSettings(bodies=True))
    failed = {"send_mail": {"content": [{"type": "text", "text": "no"}], "isError": True}}
    service = GatewayService(config, FakeSource(tools_of(SERVERS), failed), records=records)
    await service.start()
    try:
        client = service.clients.open_session(service.offer)
        await service.call_tool(client, SEARCH, {"query": "send mail"})
        await service.call_tool(client, "mail___send_mail", {"text": "hi", "password": "hunter2"})
        await service.call_tool(client, SEARCH, {"query": "xyzzy"})
    finally:
        await service.aclose()
    records.settle()
    (search, call, empty), catalogs = records.recorder.all()

    opened = records.recorder.get(search.id)
    assert opened is not None
    best = opened.searched[0].queries[0].hits[0]
    assert best.name.endswith("send_mail")
    assert best.reasons is not None
    assert best.reasons["fields"]["name"] == ["send", "mail"]
    assert (search.conversation, search.path, search.dialect) == (client.key, "tools/call", "mcp")
    assert (search.tools, search.declared + search.deferred) == (7, 7)
    assert 0 < search.tokens < search.full_tokens
    assert (call.called, call.status, call.client_side.calls) == (1, 500, (best.name,))
    assert json.loads(call.client_side.request or "") == {"text": "hi", "password": "***"}
    assert (empty.searches, empty.empty_searches, empty.status) == (1, 1, 200)
    found = figures([search, call, empty], catalogs)
    assert found["most_used"] == [{"name": best.name, "count": 1}]
    assert best.name not in found["never_found"]
    assert found["never_found_total"] > 0
