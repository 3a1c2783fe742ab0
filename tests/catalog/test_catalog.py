"""Behaviour of tool definitions and catalogs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tool_search import DuplicateToolError, InvalidToolError, Tool, ToolCatalog
from tool_search.catalog import CorePolicy
from tool_search.catalog.schema.declared import text_bytes

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NAMES = st.text("abcдб天 .-", min_size=1, max_size=4).filter(lambda name: name == name.strip())
TOOLS = st.builds(
    Tool,
    name=NAMES,
    description=st.text(st.characters(codec=None), max_size=10),
    parameters=st.sampled_from([{}, SCHEMA]),
    kind=st.sampled_from(["builtin", "plugin", "mcp", "handoff"]),
    server=st.sampled_from([None, "weather", "mail"]),
    title=st.none() | st.text(max_size=4),
    tags=st.lists(st.text(max_size=4), max_size=2),
    roles=st.lists(st.sampled_from(["admin"]), max_size=1),
    annotations=st.sampled_from([{}, {"read_only": True}]),
    examples=st.sampled_from([(), ({"city": "Oslo"},)]),
    output_schema=st.none() | st.just(SCHEMA),
    active=st.booleans(),
    always_load=st.booleans(),
)
CATALOGS = st.lists(TOOLS, unique_by=lambda tool: tool.name, max_size=5)


def names(tools: tuple[Tool, ...]) -> list[str]:
    """The tools' names, in their order."""
    return [tool.name for tool in tools]


@pytest.mark.parametrize("name", ["a", "get_weather", "files.read", "天气 查询", "x" * 256, "9"])
def test_a_name_of_any_script_is_taken(name: str) -> None:
    assert Tool(name=name).name == name


@pytest.mark.parametrize(
    "name", ["", " a", "a\n", "a\x00b", "a\u2028b", "a\ud800", "x" * 257, None, 5]
)
def test_an_invalid_name_is_an_error_that_shows_it(name: Any) -> None:
    with pytest.raises(InvalidToolError, match=re.escape(repr(name)[:60].removesuffix("'"))):
        Tool(name=name)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("parameters", {"type": "array"}), ("description", 5), ("kind", "magic"),
        ("tags", "weather"), ("tags", [1]), ("roles", 5), ("server", 5), ("annotations", ["x"]),
        ("annotations", {"a": object()}), ("output_schema", "x"), ("output_schema", {"a": {1}}),
        ("examples", {"a": 1}), ("examples", [{"a": float("nan")}]),
    ],
)  # fmt: skip
def test_a_wrong_field_is_an_error_that_names_tool_and_field(field: str, value: Any) -> None:
    with pytest.raises(InvalidToolError, match=rf"'get_time'.*{field}"):
        Tool(**{"name": "get_time", field: value})


@pytest.mark.parametrize(
    "field",
    ["description", "parameters", "tags", "aliases", "roles", "annotations", "examples", "title"],
)
def test_null_means_nothing_said(field: str) -> None:
    """JSON sources write null for what they leave out."""
    given_null: Any = {field: None}
    assert Tool(name="t", **given_null) == Tool(name="t")


@pytest.mark.parametrize(
    ("field", "value"),
    [("parameters", {"type": "object", "properties": {"a": {}}}), ("annotations", {"a": {}}),
     ("output_schema", {"a": {}}), ("examples", [{"a": {}}])],
)  # fmt: skip
def test_a_definition_does_not_change_with_what_it_was_made_of(field: str, value: Any) -> None:
    """A catalog never changes, whatever its source does with its own objects."""
    tool = Tool(**{"name": "t", field: value})
    same = Tool(**{"name": "t", field: value})
    (value[0] if isinstance(value, list) else value)["later"] = True
    assert getattr(tool, field) != value
    assert tool == same


def test_no_text_of_a_tool_has_a_lone_surrogate() -> None:
    tool = Tool(name="t", description="a\ud800", server="s\udfff", tags=["\ud800"], title="\ud800")
    assert (tool.description, tool.server, tool.tags, tool.title) == ("a?", "s?", ("?",), "?")


@given(TOOLS)
def test_a_definition_survives_its_json_form(tool: Tool) -> None:
    again = Tool.from_dict(tool.to_dict())
    assert again == tool
    assert again.to_dict() == tool.to_dict()


def test_unknown_keys_of_a_stored_definition_are_passed_over() -> None:
    assert Tool.from_dict({"name": "t", "colour": "red", "parameters_json": "{"}) == Tool(name="t")


@pytest.mark.parametrize(
    ("field", "value"),
    [("description", "x"), ("parameters", SCHEMA), ("active", False), ("tags", ["x"]),
     ("always_load", True), ("annotations", {"read_only": True}), ("server", "s"),
     ("kind", "mcp"), ("title", "x"), ("summary", "x"), ("aliases", ["x"]), ("category", "x"),
     ("namespace", "x"), ("version", "1"), ("output_schema", SCHEMA), ("examples", [{"x": 1}]),
     ("roles", ["x"])],
)  # fmt: skip
def test_tools_of_different_content_differ(field: str, value: Any) -> None:
    assert Tool(name="t") != Tool(**{"name": "t", field: value})


def test_what_one_field_ends_with_is_not_what_the_next_begins_with() -> None:
    """Neither by chance nor by a definition that is made for it."""
    assert Tool(name="t", server="ab", description="c") != Tool(
        name="t", server="a", description="bc"
    )
    assert Tool(name="t", title="x") != Tool(name="t", summary="x")


@pytest.mark.parametrize(
    ("tool", "is_core"),
    [
        (Tool(name="t", kind="handoff"), True),
        (Tool(name="t", kind="builtin"), True),
        (Tool(name="t", kind="mcp", server="s"), False),
        (Tool(name="t", kind="plugin"), False),
        (Tool(name="t", kind="mcp", always_load=True), True),
    ],
)
def test_core_tools_are_chosen_by_kind_and_mark(tool: Tool, *, is_core: bool) -> None:
    assert CorePolicy().is_core(tool) is is_core


@pytest.mark.parametrize("kind", ["builtin", "handoff"])
def test_only_handoffs_stay_core_if_builtin_tools_are_not(kind: Any) -> None:
    policy = CorePolicy(auto_always_load_builtin=False)
    assert policy.is_core(Tool(name="t", kind=kind)) is (kind == "handoff")


@pytest.mark.parametrize(
    ("pattern", "name", "server", "is_core"),
    [
        ("get_time", "get_time", None, True),
        ("get_time", "get_times", None, False),
        ("get_*", "get_time", "clock", True),
        ("clock:*", "get_time", "clock", True),
        ("clock:get_*", "get_time", "clock", True),
        ("clock:*", "get_time", None, False),
        ("clock:*", "get_time", "other", False),
        ("npm:clock:*", "get_time", "npm:clock", True),
        ("None:*", "get_time", None, False),
        ("list[0]", "list[0]", None, True),
        ("GET_TIME", "get_time", None, False),
    ],
)
def test_always_loaded_tools_are_names_servers_or_globs(
    pattern: str, name: str, server: str | None, *, is_core: bool
) -> None:
    policy = CorePolicy(always_loaded_tools=(pattern,))
    assert policy.is_core(Tool(name=name, kind="mcp", server=server)) is is_core


def test_a_limited_core_keeps_handoffs_then_named_then_builtin_tools() -> None:
    tools = [
        Tool(name="a", kind="builtin"),
        Tool(name="b", kind="builtin"),
        Tool(name="y", always_load=True),
        Tool(name="z", kind="handoff"),
    ]
    catalog = ToolCatalog(tools, policy=CorePolicy(max_core=3))
    assert (names(catalog.core), names(catalog.deferred)) == (["a", "y", "z"], ["b"])


@settings(max_examples=30)
@given(CATALOGS)
def test_core_and_deferred_are_the_active_tools_each_sorted_by_name(tools: list[Tool]) -> None:
    catalog = ToolCatalog(tools)
    both = [*names(catalog.core), *names(catalog.deferred)]
    assert sorted(both) == sorted(tool.name for tool in tools if tool.active)
    assert names(catalog.core) == sorted(names(catalog.core))
    assert names(catalog.deferred) == sorted(names(catalog.deferred))


@settings(max_examples=30)
@given(CATALOGS, st.randoms())
def test_an_equal_relisting_has_the_same_fingerprint(tools: list[Tool], random: Any) -> None:
    again = [Tool.from_dict(tool.to_dict()) for tool in tools]
    random.shuffle(again)
    assert ToolCatalog(tools).fingerprint == ToolCatalog(again).fingerprint


@settings(max_examples=30)
@given(CATALOGS, TOOLS)
def test_another_content_has_another_fingerprint(tools: list[Tool], tool: Tool) -> None:
    catalog = ToolCatalog(tools)
    changed = catalog.updated(added=[tool])
    assert (catalog.fingerprint == changed.fingerprint) is (catalog.get(tool.name) == tool)


def test_another_core_is_another_fingerprint() -> None:
    """The same definitions under another policy are sent otherwise."""
    catalog = ToolCatalog([Tool(name="a")])
    other = catalog.with_policy(CorePolicy(always_loaded_tools=("a",)))
    assert catalog.fingerprint != other.fingerprint
    assert catalog.with_policy(CorePolicy()) is catalog


def test_two_own_tools_of_one_name_are_an_error_that_names_it() -> None:
    """A call could mean either, and the operator can rename both."""
    with pytest.raises(DuplicateToolError, match="'get_time'"):
        ToolCatalog([Tool(name="get_time"), Tool(name="b"), Tool(name="get_time")])


def test_an_update_leaves_the_old_catalog_as_it_was() -> None:
    before = ToolCatalog([Tool(name="a"), Tool(name="b")])
    after = before.updated(added=[Tool(name="c"), Tool(name="a", title="A")], removed=["b"])
    assert (before.names, after.names) == (("a", "b"), ("a", "c"))
    assert after["a"].title == "A"


def test_a_deactivated_tool_is_in_no_list() -> None:
    catalog = ToolCatalog([Tool(name="a"), Tool(name="b", kind="builtin")]).deactivated(["a", "b"])
    assert (catalog.names, catalog.active) == (("a", "b"), ())
    assert not catalog.core
    assert not catalog.deferred


def test_servers_are_counted_largest_first_without_restricted_tools() -> None:
    tools = [Tool(name=f"m{i}", kind="mcp", server="mail") for i in range(3)]
    tools += [Tool(name=f"b{i}", kind="mcp", server="bank", roles=["boss"]) for i in range(9)]
    tools += [Tool(name="w", kind="mcp", server="weather"), Tool(name="c", server="clock")]
    servers = ToolCatalog(tools).servers
    assert list(servers.items()) == [("mail", 3), ("clock", 1), ("weather", 1)]


def test_a_tool_is_found_by_what_a_dialect_calls_it() -> None:
    catalog = ToolCatalog([Tool(name="files.read"), Tool(name="plain")])
    assert {name: tool.name for name, tool in catalog.by_wire_name.items()} == {
        "files_read_601e4eb6": "files.read"
    }


def test_a_catalog_weighs_the_bytes_of_its_active_tools() -> None:
    """Claude's limit counts definitions as they are sent, in UTF-8."""
    sent = (
        '{"name":"a","description":"天","input_schema":{"type":"object","properties":{}},'
        '"defer_loading":true},'
    )
    catalog = ToolCatalog([Tool(name="a", description="天"), Tool(name="b", active=False)])
    assert 0 <= text_bytes(catalog) - len(sent.encode()) <= 4


@pytest.mark.parametrize(
    ("stated", "always_load"),
    [
        ({"defer_loading": True}, False),
        ({"defer_loading": False}, True),
        ({"defer_loading": None, "always_load": True}, True),
        ({"defer_loading": False, "always_load": True}, True),
    ],
)
def test_defer_loading_is_the_inverse_of_always_load(
    stated: dict[str, bool | None], always_load: bool
) -> None:
    tool = Tool.from_dict({"name": "a", **stated})
    assert tool.always_load is always_load
    assert tool == Tool(name="a", always_load=always_load)
    assert replace(tool, description="b").always_load is always_load


@pytest.mark.parametrize(
    ("stated", "problem"),
    [
        ({"defer_loading": True, "always_load": True}, "leave one out"),
        ({"defer_loading": "yes"}, "must be true or false, not 'yes'"),
    ],
)
def test_defer_loading_that_contradicts_is_refused(stated: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidToolError, match=problem):
        Tool.from_dict({"name": "a", **stated})
