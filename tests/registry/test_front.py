"""The five functions over a registry, as plain functions and as tools of a model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.registry.samples import GITHUB, filled, tool
from tests.registry.test_searching import UnstableIndex
from tool_search import (
    CallOptions,
    CallRunner,
    Permissions,
    PermissionSettings,
    Tool,
    ToolCall,
    tool_from_function,
)
from tool_search.i18n import LANGUAGES
from tool_search.sources.registry import (
    Backend,
    InvalidCursorError,
    InvalidDocsError,
    RegistryError,
    RegistryFront,
    ToolDocs,
    ToolExample,
    ToolNotFoundError,
    ToolRegistry,
)

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def local(path: str) -> str:
    """A local handler."""
    return f"local {path}"


def runnable() -> ToolRegistry:
    """A registry of one tool that runs, with examples."""
    registry = ToolRegistry()
    examples = [ToolExample(title=f"{n}", args={"path": f"{n}"}) for n in range(8)]
    registry.register(
        tool(parameters=SCHEMA), Backend.local(local), docs=ToolDocs(notes="N.", examples=examples)
    )
    return registry


async def test_lists_have_20_items_unless_asked_and_never_more_than_100() -> None:
    front = RegistryFront(filled(*(f"tool_{number}" for number in range(130))))
    assert len((await front.search_tools())["tools"]) == 20
    assert len((await front.search_tools(limit=1000))["tools"]) == 100
    assert len((await front.search_tools("changes", limit=0))["tools"]) == 1
    with pytest.raises(RegistryError, match="whole number"):
        await front.search_tools(limit="5")  # type: ignore[arg-type]
    spaces = ToolRegistry()
    spaces.register_all([(tool(namespace=f"n{number:03}"), GITHUB) for number in range(130)])
    listed = await RegistryFront(spaces).list_namespaces()
    assert (len(listed["namespaces"]), listed["namespaces"][0]) == (20, "n000")
    more = await RegistryFront(spaces).list_namespaces(1000, listed["nextCursor"])
    assert (len(more["namespaces"]), more["namespaces"][0]) == (100, "n020")


async def test_pages_end_without_a_cursor_and_refuse_a_wrong_one() -> None:
    front = RegistryFront(filled(*"abc"))
    first = await front.search_tools("changes", limit=2)
    rest = await front.search_tools("changes", limit=2, cursor=first["nextCursor"])
    assert [one["id"] for one in first["tools"] + rest["tools"]] == ["git:a", "git:b", "git:c"]
    assert "nextCursor" not in rest
    with pytest.raises(InvalidCursorError):
        await front.search_tools(cursor="x")


async def test_an_engine_without_a_stable_order_gives_one_page() -> None:
    front = RegistryFront(filled(*"abc", index=UnstableIndex))
    assert list(await front.search_tools("x", limit=2)) == ["tools"]


async def test_a_search_can_be_filtered() -> None:
    registry = filled("a")
    registry.register(tool("b", namespace="svn", tags=["t"], category="c"), GITHUB)
    front = RegistryFront(registry)
    wanted: tuple[dict[str, Any], ...] = ({"namespace": "svn"}, {"tags": ["T"]}, {"category": "C"})
    for filters in wanted:
        assert [one["id"] for one in (await front.search_tools(**filters))["tools"]] == ["svn:b"]


async def test_a_description_is_plain_json_at_each_level() -> None:
    front = RegistryFront(runnable())
    summary = await front.describe_tool("git:status")
    assert summary == {"id": "git:status", "summary": "Show changes."}
    schema = await front.describe_tool("git:status", "schema")
    assert schema["tool"]["inputSchema"] == SCHEMA
    assert schema["schemaInfo"] == {"required": ["path"], "types": {"path": ["string"]}}
    full = await front.describe_tool("git:status", "full")
    assert json.loads(json.dumps(full)) == full
    assert (full["notes"], len(full["examples"])) == ("N.", 8)
    with pytest.raises(InvalidDocsError):
        await front.describe_tool("git:status", "most")
    with pytest.raises(ToolNotFoundError):
        await front.describe_tool("git:none")


async def test_examples_are_at_most_five() -> None:
    front = RegistryFront(runnable())
    assert len((await front.list_tool_examples("git:status"))["examples"]) == 5
    assert await front.list_tool_examples("git:status", 1) == {
        "examples": [{"title": "0", "args": {"path": "0"}}]
    }
    assert len((await front.list_tool_examples("git:status", 99))["examples"]) == 5


async def test_a_tool_runs_by_its_id_and_by_its_name() -> None:
    front = RegistryFront(runnable())
    for name in ("git:status", "status"):
        assert (await front.run_tool(name, {"path": "x"})).content == "local x"
    wrong = await front.run_tool("git:status", {"way": "x"})
    assert wrong.is_error
    assert "path" in wrong.content
    with pytest.raises(ToolNotFoundError):
        await front.run_tool("git:none")


async def test_a_tool_that_comes_later_runs_too() -> None:
    registry = runnable()
    front = RegistryFront(registry)
    item = tool_from_function(local, name="later")
    registry.register(item.tool, Backend.local(item))
    assert (await front.run_tool("later", {"path": "y"})).content == "local y"
    registry.unregister("later", Backend.local(item))
    with pytest.raises(ToolNotFoundError):
        await front.run_tool("later", {"path": "y"})


async def test_permissions_hold_for_what_is_run() -> None:
    settings = PermissionSettings(deny=("status",))
    options = CallOptions(permissions=Permissions(settings))
    result = await RegistryFront(runnable(), options=options).run_tool("git:status", {"path": "x"})
    assert result.is_error
    assert "local" not in result.content


async def test_a_model_calls_them_as_tools() -> None:
    runner = CallRunner(RegistryFront(runnable()).tools)
    calls = [
        ("search_tools", {"query": "changes"}),
        ("describe_tool", {"id": "git:status", "level": "schema"}),
        ("run_tool", {"id": "git:status", "arguments": {"path": "x"}}),
        ("run_tool", {"id": "git:none"}),
        ("describe_tool", {}),
    ]
    results = await runner.results(
        [
            ToolCall(id=str(number), name=name, arguments=json.dumps(arguments))
            for number, (name, arguments) in enumerate(calls)
        ],
        runner.context("me", "en-US"),
    )
    assert json.loads(results[0].content)["tools"][0]["id"] == "git:status"
    assert json.loads(results[1].content)["tool"]["name"] == "status"
    assert results[2].content == "local x"
    assert "tool not found: 'git:none'" in results[3].content
    assert [result.is_error for result in results] == [False, False, False, True, True]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_tools_are_described_in_each_language(language: str) -> None:
    tools = RegistryFront(ToolRegistry(), language=language).tools
    assert [item.tool.name for item in tools] == [
        "search_tools", "list_namespaces", "describe_tool", "list_tool_examples", "run_tool",
    ]  # fmt: skip
    assert len({item.tool.description for item in tools}) == 5


async def test_what_a_server_wrote_is_cut_before_a_model_reads_it() -> None:
    registry = ToolRegistry()
    long = "x" * 1_000_000
    registry.register(
        {
            "name": "t",
            "description": long,
            "inputSchema": {"type": "object", "properties": {"a": {"description": long}}},
            "outputSchema": {"type": "object", "description": long},
            "annotations": {"readOnlyHint": long, "other": long},
            "tags": [long[:10_000]] * 100,
            "_meta": {
                "summary": long,
                "category": long,
                "inputModes": [long[:10_000]] * 100,
                "securitySchemes": {long: {}},
            },
        },
        GITHUB,
    )
    front = RegistryFront(registry)
    assert len(json.dumps(await front.search_tools("t"))) < 6_000
    assert len(json.dumps(await front.describe_tool("t", "full"))) < 25_000


async def test_tools_of_the_operator_are_described_in_full() -> None:
    registry = ToolRegistry()
    registry.register(Tool(name="t", description="d" * 10_000), GITHUB)
    described = await RegistryFront(registry).describe_tool("t", "schema")
    assert len(described["tool"]["description"]) == 10_000
