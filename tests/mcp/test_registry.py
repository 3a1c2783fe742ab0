"""A registry that follows real MCP servers."""

from __future__ import annotations

from tests.mcp.helpers import call, plain, until
from tool_search import CallRunner, ToolCall
from tool_search.adapters.mcp import MCPSource
from tool_search.sources.registry import Backend, RegistryFront, ToolRegistry


async def test_tools_of_servers_have_ids_backends_and_run() -> None:
    registry = ToolRegistry(strict=False)
    async with MCPSource({"a": plain("get", "a b"), "b": plain("get")}) as source:
        registry.follow(source)
        assert [one.id for one in registry.search("")] == ["a:a b", "a:get", "b:get"]
        assert registry.get("b:get").backends == (Backend.mcp("b", tool="b__get"),)
        runner = CallRunner(catalog=registry.catalog, executor=registry.executor)
        context = runner.context("me", "en-US")
        names = [name for name in registry.catalog if registry.tool_id(name) == "b:get"]
        calls = [ToolCall(id="1", name=names[0], arguments='{"value": "x"}')]
        (result,) = await runner.results(calls, context)
        assert (result.content, result.is_error) == ('get: {"value": "x"}', False)
        ran = await RegistryFront(registry).run_tool("a:get", {"value": "y"})
        assert ran.content == 'get: {"value": "y"}'


async def test_a_server_that_lists_again_changes_the_registry() -> None:
    registry = ToolRegistry()
    async with MCPSource({"a": plain("more_tools")}) as source:
        stop = registry.follow(source)
        await call(source, "more_tools", names=["one"])
        await until(lambda: registry.namespaces() == ("a",) and len(registry.tools) == 2)
        assert [one.id for one in registry.search("")] == ["a:more_tools", "a:one"]
        stop()
        assert registry.namespaces() == ()
