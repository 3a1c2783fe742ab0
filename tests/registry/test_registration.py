"""Registrations, ids, backends and events, as tooldiscovery's users know them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.registry.samples import ACME, GITHUB, filled, tool
from tool_search import CatalogError, Tool, ToolSearchError
from tool_search.errors import InvalidToolError
from tool_search.sources.registry import (
    Backend,
    InvalidBackendError,
    InvalidDocsError,
    RegistryError,
    RegistryEvent,
    ToolDocs,
    ToolId,
    ToolNotFoundError,
    ToolRegistry,
    normal_tags,
    parse_tool_id,
)

MCP = {"name": "status", "description": "Show changes.", "inputSchema": {"type": "object"}}


def run(path: str = ".") -> str:
    """A local handler."""
    return f"clean: {path}"


def heard(registry: ToolRegistry) -> list[RegistryEvent]:
    """The events of a registry from now on."""
    events: list[RegistryEvent] = []
    registry.subscribe(events.append)
    return events


@pytest.mark.parametrize(
    ("facts", "written"),
    [
        ({"namespace": "git"}, "git:status"),
        ({"namespace": "git", "version": "1.0"}, "git:status:1.0"),
        ({"namespace": None}, "status"),
        ({"namespace": None, "version": "1.0"}, "status"),
    ],
)
def test_an_id_has_namespace_name_and_version(facts: dict[str, Any], written: str) -> None:
    assert tool(**facts).id == written
    assert str(parse_tool_id(written)) == written


@pytest.mark.parametrize("text", ["", ":", "a:", ":a", "a::b", "a:b:", "a:b:c:d", 7])
def test_an_id_with_an_empty_part_or_three_colons_is_refused(text: Any) -> None:
    with pytest.raises(InvalidToolError, match=r"invalid tool id|must be a string"):
        parse_tool_id(text)


_PARTS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1)


@given(namespace=_PARTS, name=_PARTS, version=st.none() | _PARTS)
def test_an_id_says_its_parts_whatever_they_are(
    namespace: str, name: str, version: str | None
) -> None:
    known = ToolId(namespace, name, version)
    assert parse_tool_id(str(known)) == known


@pytest.mark.parametrize(
    ("tags", "written"),
    [
        (["  TAG ONE ", "tag-one", "a/b", "v1.2_x"], ("tag-one", "ab", "v1.2_x")),
        (["!", "", " "], ()),
        (["x" * 70], ("x" * 64,)),
        ([f"t{n}" for n in range(30)], tuple(f"t{n}" for n in range(20))),
        (["\tmany   spaces\n"], ("many-spaces",)),
    ],
)
def test_tags_are_normalized_as_tooldiscovery_does(
    tags: list[str], written: tuple[str, ...]
) -> None:
    assert normal_tags(tags) == written


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ({**MCP, "name": "x" * 129}, "exceeds 128 characters"),
        ({**MCP, "name": "a b!c d"}, "invalid characters: ' ', '!'"),
        ({"name": "status"}, "inputSchema is required"),
        ({"name": "status", "inputSchema": None}, "inputSchema is required"),
        (7, "must be a Tool or a definition"),
        ({"description": "x"}, "has no name"),
        ({"type": "tool_search_tool_regex_20251119", "name": "x"}, "provider's own tool"),
    ],
)
def test_a_strict_registry_refuses_a_wrong_definition(definition: Any, problem: str) -> None:
    registry = ToolRegistry()
    with pytest.raises(InvalidToolError, match=problem):
        registry.register(definition, GITHUB)
    assert registry.version == 0
    assert registry.tools == ()


def test_a_registry_that_is_not_strict_takes_servers_names_as_they_are() -> None:
    registry = ToolRegistry(strict=False)
    ids = [registry.register({"name": name}, GITHUB) for name in ("a b", "a:b", "查找", "x" * 200)]
    assert ids == ["a b", "a%3Ab", "查找", "x" * 200]
    assert [str(registry.get(one).tool.name) for one in ids] == ["a b", "a:b", "查找", "x" * 200]


def test_a_tool_has_several_backends_and_a_local_one_runs_it() -> None:
    registry = ToolRegistry()
    local = Backend.local(run)
    for backend in (GITHUB, ACME, local):
        registry.register(tool(), backend)
    assert registry.get("git:status").backends == (GITHUB, ACME, local)
    assert registry.backend("git:status") == local
    registry.unregister("git:status", local)
    assert registry.backend("git:status") == ACME
    registry.unregister("git:status", ACME)
    assert registry.backend("git:status") == GITHUB


def test_the_backend_can_be_chosen_by_a_function_of_ones_own() -> None:
    def last(backends: Sequence[Backend]) -> Backend:
        return backends[-1]

    registry = ToolRegistry(choose=last)
    registry.register(tool(), Backend.local(run))
    registry.register(tool(), GITHUB)
    assert registry.backend("git:status") == GITHUB
    wrong = ToolRegistry(choose=lambda _: ACME)
    wrong.register(tool(), GITHUB)
    with pytest.raises(InvalidBackendError, match="choose returned"):
        wrong.backend("git:status")


def test_the_same_backend_is_replaced() -> None:
    registry = ToolRegistry()
    registry.register(tool(), Backend.local(run, name="status"))
    later = Backend.local(lambda: "later", name="status")
    registry.register(tool(), later)
    registry.register(tool(), Backend.mcp("github", tool="git_status"))
    registry.register(tool(), GITHUB)
    assert registry.get("git:status").backends == (later, GITHUB)


def test_a_registration_that_is_equal_changes_neither_version_nor_index() -> None:
    registry = ToolRegistry()
    registry.register(MCP, GITHUB)
    snapshot, events = registry.snapshot(), heard(registry)
    registry.register({**MCP, "inputSchema": {"type": "object"}}, Backend.mcp("mirror"))
    registry.register(MCP, GITHUB)
    assert [(event.kind, event.version) for event in events] == [("updated", 1), ("updated", 1)]
    assert registry.snapshot() is snapshot


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"description": "Other."}, "description"),
        ({"title": "Status"}, "title"),
        ({"inputSchema": {"type": "object", "required": []}}, "parameters"),
        ({"outputSchema": {"type": "object"}}, "output_schema"),
        ({"annotations": {"readOnlyHint": True}}, "annotations"),
        ({"icons": [{"src": "x.png"}]}, "icons or _meta"),
        ({"_meta": {"vendor": 1}}, "icons or _meta"),
        ({"_meta": {"category": "vcs"}}, "category"),
    ],
)
def test_a_registration_that_differs_is_refused_with_the_fields(
    changed: dict[str, Any], field: str
) -> None:
    registry = ToolRegistry()
    registry.register(MCP, GITHUB)
    with pytest.raises(InvalidToolError, match=rf"another definition: .*{field}.* differ"):
        registry.register({**MCP, **changed}, ACME)
    assert registry.get("status").backends == (GITHUB,)


def test_schemas_are_compared_as_json_values() -> None:
    registry = ToolRegistry()
    schema = {"type": "object", "properties": {"n": {"maximum": 1, "default": True}}}
    registry.register({**MCP, "inputSchema": schema}, GITHUB)
    same = {"properties": {"n": {"default": True, "maximum": 1.0}}, "type": "object"}
    registry.register({**MCP, "inputSchema": same}, ACME)
    unlike = {"properties": {"n": {"default": 1, "maximum": 1}}, "type": "object"}
    with pytest.raises(InvalidToolError, match="parameters differ"):
        registry.register({**MCP, "inputSchema": unlike}, ACME)


def test_tags_and_version_may_change_and_are_found_at_once() -> None:
    registry = ToolRegistry()
    registry.register(tool(tags=["old"]), GITHUB)
    registry.register(Tool(name="plain", version="1"), GITHUB)
    assert [found.id for found in registry.search("tag:old")] == ["git:status"]
    before = registry.version
    registry.register(tool(tags=["new"]), GITHUB)
    registry.register(Tool(name="plain", version="2"), GITHUB)
    assert registry.version == before + 2
    assert [found.id for found in registry.search("tag:new")] == ["git:status"]
    assert registry.search("tag:old") == ()
    assert registry.get("plain").tool.version == "2"


def test_namespaces_keep_tools_of_one_name_apart() -> None:
    registry = ToolRegistry()
    for space in ("git", "svn", None):
        registry.register(tool(namespace=space), Backend.mcp(space or "none"))
    registry.register(tool(version="2"), GITHUB)
    assert registry.namespaces() == ("git", "svn")
    ids = {"git:status", "git:status:2", "status", "svn:status"}
    assert {registry.tool_id(name) for name in registry.catalog} == ids
    assert registry.catalog.names == ("git__status__2", "status", "status_2", "svn__status")


def test_the_last_backend_takes_tool_and_namespace_with_it() -> None:
    registry = filled("status")
    registry.register(tool(), ACME)
    events = heard(registry)
    registry.unregister("git:status", GITHUB)
    assert registry.namespaces() == ("git",)
    registry.unregister("git:status", ACME)
    assert registry.namespaces() == ()
    assert registry.search("changes") == ()
    assert [(event.kind, event.backend, event.version) for event in events] == [
        ("backend_removed", GITHUB, 1),
        ("tool_removed", ACME, 2),
    ]
    with pytest.raises(ToolNotFoundError, match="tool not found: 'git:status'"):
        registry.unregister("git:status", ACME)


def test_a_name_does_not_become_another_tools() -> None:
    registry = ToolRegistry()
    registry.register(tool(), GITHUB)
    registry.register(tool(namespace="svn"), GITHUB)
    assert set(registry.catalog) == {"status", "svn__status"}
    registry.unregister("git:status", GITHUB)
    assert set(registry.catalog) == {"svn__status"}
    registry.register(tool(namespace="hg"), GITHUB)
    assert set(registry.catalog) == {"svn__status", "hg__status"}
    registry.register(tool(), GITHUB)
    assert registry.tool_id("status") == "git:status"


def test_a_batch_is_registered_whole_or_not_at_all() -> None:
    registry = ToolRegistry()
    events = heard(registry)
    good, other = tool("one"), tool("one", description="Other.")
    for items in (
        [(good, GITHUB), (other, GITHUB)],
        [(good, GITHUB), (tool("two"), "github")],
        [(good, GITHUB), ({"name": "a b", "inputSchema": {}}, GITHUB)],
    ):
        with pytest.raises(ToolSearchError):
            registry.register_all(items)  # type: ignore[arg-type]
    assert (registry.tools, registry.version, events) == ((), 0, [])
    ids = registry.register_all([(good, GITHUB), (tool("two"), GITHUB), (good, ACME)])
    assert ids == ("git:one", "git:two", "git:one")
    assert [(event.kind, event.version) for event in events] == [
        ("registered", 1), ("registered", 2), ("updated", 2),
    ]  # fmt: skip


def test_wrong_documentation_registers_nothing() -> None:
    registry = ToolRegistry()
    with pytest.raises(InvalidDocsError):
        registry.register(tool(), GITHUB, docs=ToolDocs(notes=7))  # type: ignore[arg-type]
    assert registry.tools == ()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Backend.mcp(""),
        lambda: Backend.mcp(7),  # type: ignore[arg-type]
        lambda: Backend.provider("", "x"),
        lambda: Backend.provider("acme", ""),
        lambda: Backend.local(None),
        lambda: Backend.local("status"),
        lambda: ToolRegistry().register(tool(), Backend("odd", "x")),  # type: ignore[arg-type]
        lambda: ToolRegistry().register(tool(), "github"),  # type: ignore[arg-type]
        lambda: filled("status").unregister("git:status", "github"),  # type: ignore[arg-type]
    ],
)
def test_an_incomplete_backend_is_refused(make: Any) -> None:
    with pytest.raises(InvalidBackendError):
        make()


def test_an_unknown_tool_or_backend_is_not_found() -> None:
    registry = filled("status")
    for call in (registry.get, registry.backend, registry.describe, registry.examples):
        with pytest.raises(ToolNotFoundError, match="tool not found: 'git:other'"):
            call("git:other")
    with pytest.raises(ToolNotFoundError, match="it has mcp 'github'"):
        registry.unregister("git:status", ACME)
    with pytest.raises(ToolNotFoundError):
        registry.get(7)  # type: ignore[arg-type]


def test_a_registry_error_is_one_of_the_library() -> None:
    assert issubclass(ToolNotFoundError, RegistryError)
    assert issubclass(RegistryError, ToolSearchError)
    assert not issubclass(RegistryError, CatalogError)


def test_listeners_hear_each_change_outside_the_lock_until_they_end() -> None:
    registry = ToolRegistry()
    events: list[RegistryEvent] = []

    def hear(event: RegistryEvent) -> None:
        assert registry.version == event.version  # the registry answers meanwhile
        events.append(event)

    end = registry.subscribe(hear)
    registry.subscribe(None)()
    registry.register(tool(), GITHUB)
    assert registry.refresh() == 2
    end()
    end()
    registry.register(tool("other"), GITHUB)
    assert events == [
        RegistryEvent("registered", "git:status", GITHUB, 1),
        RegistryEvent("refreshed", "", None, 2),
    ]


def test_a_listener_that_fails_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry()

    def fail(_: RegistryEvent) -> None:
        raise RuntimeError

    registry.subscribe(fail)
    events = heard(registry)
    registry.register(tool(), GITHUB)
    assert len(events) == 1
    assert "a listener failed on registered of 'git:status'" in caplog.text


def test_what_was_given_can_change_without_a_change_of_the_registry() -> None:
    registry = ToolRegistry()
    definition: dict[str, Any] = {**copy.deepcopy(MCP), "tags": ["a"]}
    registry.register(definition, GITHUB)
    definition["inputSchema"]["type"] = "string"
    definition["tags"].append("b")
    assert registry.get("status").tool.parameters == {"type": "object"}
    assert registry.get("status").tool.tags == ("a",)
    with pytest.raises(TypeError):
        registry.get("status").tool.parameters["type"] = "x"  # type: ignore[index]


_COMMANDS = st.lists(
    st.tuples(st.sampled_from("ru"), st.sampled_from("abc"), st.sampled_from([GITHUB, ACME]),
              st.sampled_from(["x", "y"])),
    max_size=20,
)  # fmt: skip


@given(_COMMANDS)
def test_versions_grow_with_what_is_listed_and_with_nothing_else(
    commands: list[tuple[str, str, Backend, str]],
) -> None:
    registry = ToolRegistry()
    for command, name, backend, tag in commands:
        before, listed = registry.version, {one.id: one for one in registry.page(limit=9).items}
        if command == "r":
            registry.register(tool(name, tags=[tag]), backend)
        elif f"git:{name}" in listed and backend in registry.get(f"git:{name}").backends:
            registry.unregister(f"git:{name}", backend)
        after = {one.id: one for one in registry.page(limit=9).items}
        assert registry.version == before + (after != listed)
        assert list(after) == sorted(after)
        assert all(registry.get(one).backends for one in after)
