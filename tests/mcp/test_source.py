"""`MCPSource`: connections, lists, calls and their failures."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.helpers import (
    call,
    events,
    free_port,
    names,
    over_http,
    plain,
    until,
    with_sdk,
)
from tool_search import ToolCatalog
from tool_search.adapters.mcp import MCPSource
from tool_search.adapters.mcp.stdio import ServerProcess
from tool_search.core.messages import ImagePart
from tool_search.errors import ConfigurationError, SessionError, SourceError
from tool_search.runner.execution import CallProgress


async def test_tools_of_servers_are_deferred_and_of_kind_mcp() -> None:
    async with MCPSource({"mcpServers": {"a": plain("find", "send")}}) as source:
        assert [(tool.name, tool.kind, tool.server) for tool in source.tools] == [
            ("find", "mcp", "a"),
            ("send", "mcp", "a"),
        ]
        assert len(ToolCatalog(source.tools).deferred) == 2
        result = await call(source, "find", value="x")
        assert (result.content, result.is_error) == ('find: {"value": "x"}', False)


async def test_a_name_belongs_to_the_first_server_and_stays_its_own() -> None:
    servers = {"a": plain("get", "pid"), "b": plain("get", "Get", "more_tools")}
    async with MCPSource(servers) as source:
        assert names(source) == ["get", "pid", "b__get", "b__Get_2", "more_tools"]
        for name, own in (("get", "get"), ("b__get", "get"), ("b__Get_2", "Get")):
            assert (await call(source, name)).content.startswith(f"{own}:")
        await call(source, "more_tools", names=["pid"])
        await until(lambda: "b__pid" in names(source))
        assert names(source)[:5] == ["get", "pid", "b__get", "b__Get_2", "more_tools"]


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
async def test_a_server_on_the_sdk_is_called_over_each_transport(transport: str) -> None:
    if transport == "stdio":
        await _check_sdk_server(with_sdk())
        return
    async with over_http(transport, free_port()) as entry:
        await _check_sdk_server(entry)


async def _check_sdk_server(entry: dict[str, Any]) -> None:
    async with MCPSource({"mcpServers": {"sdk": entry}}, start_s=60) as source:
        assert [each.state for each in source.status] == ["connected"]
        assert (await call(source, "add", a=1, b=2)).data == {"result": 3}
        failed = await call(source, "fail", reason="no paper")
        assert failed.is_error
        assert failed.failure == "failed"
        asked = await call(source, "ask")
        assert asked.is_error
        assert "ask" in asked.content
        shown = await call(source, "picture")
        assert any(isinstance(part, ImagePart) for part in shown.parts)
        await call(source, "grow", name="grown")
        await until(lambda: "grown" in names(source))
        assert (await call(source, "grown")).content == "grown"
        told = await events(source, "count_slowly", steps=2, pause=0.2)
        assert told[0] == CallProgress("1/2 step 1")
        both = await asyncio.gather(
            call(source, "count_slowly", steps=3, pause=0.1), call(source, "add", a=4, b=5)
        )
        assert [one.content for one in both] == ["counted to 3", "9"]


async def test_a_killed_server_comes_back_inside_the_next_call_and_others_go_on() -> None:
    servers = {"a": plain("pid", "die"), "b": plain("find")}
    async with MCPSource(servers) as source:
        first = int((await call(source, "pid")).content)
        lost = await call(source, "die")
        assert lost.is_error
        assert "connection was lost" in lost.content
        assert not (await call(source, "find")).is_error
        assert int((await call(source, "pid")).content) != first
        assert names(source) == ["pid", "die", "find"]
        second = int((await call(source, "pid")).content)
        os.kill(second, signal.SIGKILL)
        await until(lambda: source.status[0].state != "connected")
        assert int((await call(source, "pid")).content) != second


async def test_a_restarted_http_server_is_found_again() -> None:
    port = free_port()
    async with over_http("http", port) as entry:
        source = MCPSource({"mcpServers": {"web": entry}}, start_s=60)
        await source.__aenter__()
        assert (await call(source, "add", a=1, b=1)).content == "2"
    try:
        assert (await call(source, "add", a=1, b=1)).is_error
        async with over_http("http", port):
            await until(lambda: bool(source.tools))
            assert (await call(source, "add", a=1, b=2)).content == "3"
    finally:
        await source.__aexit__(None, None, None)


async def test_a_failing_server_hides_its_tools_alone_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    late = plain("late", fail_once=str(tmp_path / "marker"))
    async with MCPSource({"a": plain("find"), "late": late}) as source:
        assert names(source) == ["find"]
        status = {each.server: each for each in source.status}
        assert status["late"].state == "failed"
        assert "password" not in str(status["late"].error)
        assert status["late"].last_lines == "refusing to start: the password is missing"
        changes: list[tuple[str, ...]] = []
        source.subscribe(lambda change: changes.append(change.servers))
        await until(lambda: names(source) == ["find", "late"])
        assert changes == [("late",)]
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len([text for text in warnings if "mcp_server_failed" in text]) == 1


async def test_a_program_that_is_not_there_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async with MCPSource({"a": {"command": "no-such-program-here"}, "b": plain("find")}) as source:
        assert names(source) == ["find"]
        assert "'no-such-program-here' is not in PATH" in str(source.status[0].error)


async def test_pages_and_changes_of_a_list_are_read() -> None:
    async with MCPSource({"a": plain(many=250, page=100)}) as source:
        assert len(source.tools) == 250
    async with MCPSource({"a": plain("more_tools")}) as source:
        await call(source, "more_tools", names=["one", "two"])
        await until(lambda: names(source) == ["more_tools", "one", "two"])


async def test_a_flood_of_changes_is_listed_a_few_times() -> None:
    async with MCPSource({"a": plain("more_tools", "lists")}) as source:
        await call(source, "more_tools", names=["one"], times=2_000)
        await until(lambda: "one" in names(source))
        assert int((await call(source, "lists")).content) <= 4


async def test_a_server_that_reports_no_changes_is_asked_again_after_a_call() -> None:
    entry = plain("more_tools", "lists", unreported=True)
    async with MCPSource({"a": entry}, start_s=60) as source:
        await call(source, "more_tools", names=["later"], times=0)
        for _ in range(100):
            await call(source, "lists")
        assert int((await call(source, "lists")).content) == 1
        while "later" not in names(source):
            await asyncio.sleep(0.3)
            await call(source, "lists")
        assert int((await call(source, "lists")).content) == 2


async def test_a_server_that_does_not_list_again_unasked_keeps_its_tools() -> None:
    entry = plain("find", unreported=True, lists_before_silence=1, timeout=3)
    async with MCPSource({"a": entry}, start_s=60) as source:
        await asyncio.sleep(2.1)
        assert not (await call(source, "find")).is_error
        await asyncio.sleep(3.2)
        assert (names(source), source.status[0].state) == (["find"], "connected")


async def test_wrong_definitions_leave_out_themselves(caplog: pytest.LogCaptureFixture) -> None:
    wrong = [
        {"name": "fine", "inputSchema": {"type": "object"}},
        {"name": "no_schema"},
        {"inputSchema": {"type": "object"}},
        {"name": 7, "inputSchema": {"type": "object"}},
        {"name": "list", "inputSchema": []},
        {"name": "text", "inputSchema": "text"},
        {"name": "loop", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#"}}}},
        {"name": "fine", "inputSchema": {"type": "object"}},
        "not a tool at all"[:0],
        None,
        {"name": "claims", "inputSchema": {}, "roles": ["admin"], "always_load": True,
         "kind": "builtin", "server": "b", "annotations": {"concurrency_safe": True}},
    ]  # fmt: skip
    async with MCPSource({"a": plain(*wrong), "b": plain("other")}) as source:
        assert {"fine", "no_schema", "claims", "other"} <= set(names(source))
        assert "list" not in names(source)
        claims = source.find("claims")
        assert claims is not None
        assert (claims.kind, claims.server, claims.roles, claims.always_load) == (
            "mcp", "a", (), False,
        )  # fmt: skip
        assert claims.annotations == {}
    told = [record.message for record in caplog.records if "mcp_definition" in record.message]
    assert any("server 'a'" in text and "'list'" in text for text in told)
    assert any("twice" in text for text in told)


async def test_a_description_of_10_mb_is_cut() -> None:
    async with MCPSource({"a": plain("find", long_description=10_000_000)}) as source:
        assert names(source) == ["find", "long"]
        assert len(source.tools[1].description) <= 100_000


async def test_a_server_with_no_tools_or_10_000_tools_is_listed() -> None:
    async with MCPSource({"none": plain(), "all": plain(many=10_000, page=500)}) as source:
        assert {each.server: each.tools for each in source.status} == {"none": 0, "all": 10_000}
        assert (await call(source, "tool_9999", value="x")).content.startswith("tool_9999")


async def test_a_result_of_megabytes_is_read_and_cut() -> None:
    async with MCPSource({"a": plain("rows")}) as source:
        params = {"name": "rows", "arguments": {"count": 100_000}}
        answer = await source.request("a", "tools/call", params)
        assert answer["structuredContent"]["rows"][-1] == {"a": 99_999, "b": "99999"}
        result = await call(source, "rows", count=100_000)
        assert result.content.startswith('{"rows":[{"a":0,"b":"0"},')
        assert len(result.content) <= 1_000_100


async def test_a_server_that_never_answers_is_given_up_and_others_go_on() -> None:
    slow = plain("late", never_answers=True, timeout=0.5)
    async with MCPSource({"slow": slow, "b": plain("find")}) as source:
        await until(lambda: source.status[0].state == "failed")
        assert "did not answer within 0.5 seconds" in str(source.status[0].error)
        assert not (await call(source, "find")).is_error


async def test_a_call_that_takes_too_long_is_cancelled_at_the_server(tmp_path: Path) -> None:
    log = tmp_path / "cancelled"
    async with MCPSource({"a": plain("silent", "find", timeout=1, cancelled=str(log))}) as source:
        result = await call(source, "silent")
        assert (result.failure, "1 seconds" in result.content) == ("timed_out", True)
        await until(log.exists)
        assert not (await call(source, "find")).is_error
        waiting = asyncio.create_task(call(source, "silent"))
        await asyncio.sleep(0.1)
        waiting.cancel()
        await until(lambda: len(log.read_text().split()) == 2)


@pytest.mark.parametrize("tool", ["cut_off", "flood"])
async def test_a_server_that_breaks_its_stream_costs_one_call(tool: str) -> None:
    async with MCPSource({"a": plain("find", tool), "b": plain("other")}) as source:
        result = await call(source, tool)
        assert result.is_error
        assert not (await call(source, "other")).is_error
        await until(lambda: source.status[0].state == "connected")
        assert not (await call(source, "find")).is_error


async def test_text_on_the_standard_output_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    async with MCPSource({"a": plain("find", prints="Server is running")}) as source:
        assert not (await call(source, "find")).is_error
    assert any("'Server is running'" in record.message for record in caplog.records)


async def test_a_refusal_is_an_error_with_the_servers_words() -> None:
    async with MCPSource({"a": plain("refuse")}) as source:
        assert "not today" in (await call(source, "refuse")).content
        with pytest.raises(SourceError, match="not today") as caught:
            await source.request("a", "tools/call", {"name": "refuse"})
        assert caught.value.code == -32050
        with pytest.raises(SourceError, match="there are: 'a'"):
            await source.request("b", "tools/list")


@pytest.mark.parametrize(
    ("answer", "content", "is_error"),
    [
        ({"content": []}, "", False),
        ({"content": [], "structuredContent": {"a": [1]}}, '{"a":[1]}', False),
        ({"content": [{"type": "text", "text": "bad"}], "isError": True}, "bad", True),
        ({"content": [], "isError": True}, "(no output)", True),
        (
            {"content": [{"type": "resource_link", "uri": "file:///a", "name": "A"}]},
            "A: file:///a",
            False,
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "x:y", "text": "inside"}}]},
            "x:y\ninside",
            False,
        ),
        (
            {"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]},
            "[left out: audio/wav, 3 bytes]",
            False,
        ),
    ],
)
async def test_a_result_is_given_as_a_model_reads_it(
    answer: dict[str, Any], content: str, is_error: bool
) -> None:
    async with MCPSource({"a": plain("raw")}) as source:
        result = await call(source, "raw", value=json.dumps(answer))
        assert (result.content, result.is_error) == (content, is_error)


async def test_values_have_variables_and_the_process_sees_no_others() -> None:
    entry = with_sdk()
    entry["env"] = {"GIVEN": "${WANTED:-x}"}
    environment = {**os.environ, "OPENAI_API_KEY": "secret"}
    async with MCPSource({"a": entry}, environment=environment, start_s=60) as source:
        seen = (await call(source, "secrets_seen")).content.split(",")
        assert "GIVEN" in seen
        assert "OPENAI_API_KEY" not in seen


async def test_a_missing_variable_fails_its_server_alone() -> None:
    servers = {"a": {"url": "http://127.0.0.1:9/${NOT_SET}"}, "b": plain("find")}
    async with MCPSource(servers, environment=dict(os.environ)) as source:
        assert names(source) == ["find"]
        assert "NOT_SET is not set" in str(source.status[0].error)


async def test_a_disabled_server_is_not_started() -> None:
    entry = {**plain("find"), "disabled": True}
    async with MCPSource({"a": entry}) as source:
        assert [(each.state, each.tools) for each in source.status] == [("disabled", 0)]
        with pytest.raises(SourceError, match="disabled"):
            await source.request("a", "tools/list")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"comand": "x"}, "known here: args, authorizationToken, command"),
        ({"command": "x", "args": "y"}, "args"),
        ({"command": "x", "url": "http://a"}, "both a command and a url"),
        ({}, "neither a command nor a url"),
        ({"url": "http://a", "type": "carrier-pigeon"}, "type"),
        ({"url": "http://a", "serverUrl": "http://b"}, "mean the same"),
        ({"command": "x", "timeout": 0}, "timeout"),
        ("x", "a"),
    ],
)
def test_a_wrong_entry_is_named(entry: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=r"mcpServers\.a") as caught:
        MCPSource({"mcpServers": {"a": entry}})
    assert problem in str(caught.value)


async def test_a_source_is_opened_once_at_a_time() -> None:
    source = MCPSource({"a": plain("find")})
    async with source:
        with pytest.raises(SessionError, match="open already"):
            await source.__aenter__()
    assert source.status[0].state == "closed"
    async with source:
        assert names(source) == ["find"]


async def test_a_process_that_is_being_ended_is_killed_if_the_source_is_closed() -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    process = ServerProcess(
        "a", command=command[0], args=command[1:], variables={}, inherited=os.environ, cwd="",
        on_end=lambda: None,
    )  # fmt: skip

    async def use() -> None:
        async with process.streams():
            await asyncio.Event().wait()

    using = asyncio.create_task(use())
    await until(lambda: process._process is not None)
    await asyncio.sleep(0.05)
    for _ in range(3):
        using.cancel()
        await asyncio.sleep(0.05)
    await asyncio.wait([using])
    assert process._process is not None
    assert await asyncio.wait_for(process._process.wait(), 20) == -signal.SIGKILL


@pytest.mark.parametrize("removed", ["SIGKILL", "killpg"])
async def test_a_server_is_ended_where_the_names_of_posix_are_missing(
    removed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows; what the server writes to standard error is kept there too."""
    monkeypatch.delattr(signal if removed == "SIGKILL" else os, removed)
    source = MCPSource({"a": plain("pid"), "b": plain("x", exit="no licence")})
    async with asyncio.timeout(60), source:
        pid = int((await call(source, "pid")).content)
        assert source.status[1].last_lines == "no licence"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
