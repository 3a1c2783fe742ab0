"""Documentation of tools: levels, limits, copies, and a store without a registry."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.registry.samples import GITHUB, tool
from tool_search import Tool
from tool_search.sources.registry import (
    DocumentationStore,
    InvalidDocsError,
    SchemaInfo,
    ToolDocs,
    ToolExample,
    ToolNotFoundError,
    ToolRegistry,
    schema_info,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "depth": {"type": ["integer", "null"], "default": 3},
        "odd": True,
    },
    "required": ["path"],
}
FULL = tool(
    parameters=SCHEMA,
    annotations={
        "read_only": True,
        "destructiveHint": False,
        "input_modes": ["text/plain"],
        "output_modes": ["application/json"],
        "security_schemes": {"oauth": {}, "key": {}},
    },
)


def documented(docs: ToolDocs | None = None, **options: Any) -> ToolRegistry:
    """A registry of one tool with documentation."""
    registry = ToolRegistry(**options)
    registry.register(FULL, GITHUB, docs=docs)
    return registry


def examples(count: int) -> tuple[ToolExample, ...]:
    """Numbered examples."""
    return tuple(ToolExample(title=f"{n}", args={"path": f"{n}"}) for n in range(count))


def test_each_level_says_more_than_the_one_before() -> None:
    docs = ToolDocs(
        summary="Short.", notes="Slow.", examples=examples(1), external_refs=["https://x.y"]
    )
    registry = documented(docs)
    summary, schema, full = (registry.describe("git:status", one) for one in LEVELS)
    assert (summary.summary, summary.tool, summary.notes) == ("Short.", None, "")
    assert schema.tool == full.tool == FULL
    info = SchemaInfo(
        required=("path",),
        types={"path": ("string",), "depth": ("integer", "null")},
        defaults={"depth": 3},
    )
    assert schema.schema_info == full.schema_info == info
    assert (schema.notes, schema.examples, schema.external_refs) == ("", (), ())
    assert (full.notes, full.examples, full.external_refs) == (
        "Slow.", examples(1), ("https://x.y",)
    )  # fmt: skip
    for level in (summary, schema, full):
        assert level.input_modes == ("text/plain",)
        assert level.output_modes == ("application/json",)
        assert level.security_summary == "key,oauth"
        assert level.hints == {"readOnlyHint": True, "destructiveHint": False}
    assert set(full.to_dict()) == {
        "id", "summary", "inputModes", "outputModes", "securitySummary", "annotations", "tool",
        "schemaInfo", "notes", "examples", "externalRefs",
    }  # fmt: skip


LEVELS: tuple[Any, ...] = ("summary", "schema", "full")


def test_without_documentation_the_description_is_cut_to_200_characters() -> None:
    registry = ToolRegistry()
    registry.register(tool(description="查" * 300), GITHUB)
    for level in LEVELS:
        assert registry.describe("git:status", level).summary == "查" * 200
    assert registry.describe("git:status", "full").schema_info is None
    assert registry.examples("git:status") == ()


@pytest.mark.parametrize("level", ["", "SUMMARY", "all", None, 7])
def test_an_unknown_level_is_an_error(level: Any) -> None:
    with pytest.raises(InvalidDocsError, match="invalid detail level"):
        documented().describe("git:status", level)


def test_documentation_alone_is_enough_for_the_summary() -> None:
    registry = ToolRegistry()
    registry.document("git:later", ToolDocs(summary="Later."))
    assert registry.describe("git:later").summary == "Later."
    assert registry.examples("git:later") == ()
    for level in LEVELS[1:]:
        with pytest.raises(InvalidDocsError, match="tool required for schema/full level"):
            registry.describe("git:later", level)
    registry.register(tool("later"), GITHUB)
    assert registry.describe("git:later", "full").tool == tool("later")


def test_texts_are_cut_when_they_are_registered() -> None:
    example = ToolExample(title="t" * 500, description="d" * 400, result_hint="r" * 300)
    docs = ToolDocs(summary="查" * 300, notes="n" * 3000, examples=[example])
    full = documented(docs).describe("git:status", "full")
    assert (full.summary, full.notes) == ("查" * 200, "n" * 2000)
    (kept,) = full.examples
    assert (kept.title, kept.description, kept.result_hint) == ("t" * 500, "d" * 300, "r" * 200)


@pytest.mark.parametrize(
    ("args", "figures"),
    [
        ({"a": {"b": {"c": {"d": {"e": {}}}}}}, r"depth=6 \(max 5\), keys=5 \(max 50\)"),
        ({"a": [[[[[1]]]]]}, r"depth=6 \(max 5\), keys=6 \(max 50\)"),
        ({"a": list(range(50))}, r"depth=2 \(max 5\), keys=51 \(max 50\)"),
        ({f"k{n}": 0 for n in range(51)}, r"depth=1 \(max 5\), keys=51 \(max 50\)"),
    ],
)
def test_a_large_example_is_refused_with_the_figures(args: dict[str, Any], figures: str) -> None:
    with pytest.raises(InvalidDocsError, match=rf"example 0 \(big\) has {figures}"):
        documented(ToolDocs(examples=[ToolExample(title="big", args=args)]))


@pytest.mark.parametrize(
    "args",
    [{"a": {"b": {"c": {"d": {}}}}}, {"a": list(range(49))}, {f"k{n}": 0 for n in range(50)}],
)
def test_an_example_at_the_limit_is_kept(args: dict[str, Any]) -> None:
    registry = documented(ToolDocs(examples=[ToolExample(args=args)]))
    assert registry.examples("git:status")[0].args == args


@pytest.mark.parametrize(
    "docs",
    [
        "text",
        ToolDocs(summary=7),  # type: ignore[arg-type]
        ToolDocs(external_refs=[7]),  # type: ignore[list-item]
        ToolDocs(examples=["x"]),  # type: ignore[list-item]
        ToolDocs(examples=[ToolExample(title=7)]),  # type: ignore[arg-type]
        ToolDocs(examples=[ToolExample(args=[1])]),  # type: ignore[arg-type]
        ToolDocs(examples=[ToolExample(args={"a": object()})]),
        ToolDocs(examples=[ToolExample(args={"a": float("nan")})]),
    ],
)
def test_wrong_documentation_is_refused(docs: Any) -> None:
    with pytest.raises(InvalidDocsError, match="must be"):
        ToolRegistry().document("git:status", docs)


def test_the_number_of_examples_is_the_least_of_what_is_asked_and_given() -> None:
    registry = documented(ToolDocs(examples=examples(12)))
    assert len(registry.examples("git:status")) == 10
    assert registry.examples("git:status", limit=3) == examples(3)
    assert len(registry.examples("git:status", limit=11)) == 10
    assert len(registry.describe("git:status", "full").examples) == 10
    unlimited = documented(ToolDocs(examples=examples(12)), max_examples=0)
    assert len(unlimited.examples("git:status")) == 12
    assert len(unlimited.examples("git:status", limit=-1)) == 12


def test_arguments_are_copied_in_and_out() -> None:
    args: dict[str, Any] = {"deep": [{"a": 1}], "pair": (1, 2)}
    registry = documented(ToolDocs(examples=[ToolExample(args=args)]))
    args["deep"][0]["a"] = 2
    first: Any = registry.examples("git:status")[0].args
    assert first == {"deep": [{"a": 1}], "pair": [1, 2]}
    first["deep"].append("x")
    (again,) = registry.describe("git:status", "full").examples
    assert again.args == {"deep": [{"a": 1}], "pair": [1, 2]}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), _JSON, max_size=4))
def test_what_comes_out_is_equal_and_never_the_same_object(args: dict[str, Any]) -> None:
    store = DocumentationStore()
    try:
        store.document("x", ToolDocs(examples=[ToolExample(args=args)]))
    except InvalidDocsError as exc:
        assert "exceeds caps" in str(exc)  # noqa: PT017  # most of what is generated is small
        return
    (one,), (two,) = store.examples("x"), store.examples("x")
    assert one.args == two.args == args
    assert one.args is not two.args
    assert not {id(part) for part in parts(one.args)} & {id(part) for part in parts(two.args)}


def parts(value: Any) -> list[Any]:
    """The objects and lists in a value, itself included."""
    if not isinstance(value, (dict, list)):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(part for one in inner for part in parts(one))]


def test_a_store_needs_no_registry() -> None:
    store = DocumentationStore({"x": Tool(name="x", description="X.")}.get, max_examples=2)
    assert store.describe("x", "schema").tool == Tool(name="x", description="X.")
    with pytest.raises(ToolNotFoundError):
        store.describe("y")
    with pytest.raises(ToolNotFoundError):
        store.examples("y")
    store.document_examples("y", examples(3))
    assert store.examples("y") == examples(2)
    store.document("y", ToolDocs(notes="N."))
    assert store.examples("y") == ()
    with pytest.raises(ToolNotFoundError):
        DocumentationStore().describe("x")


def test_an_error_of_the_resolver_passes_through_unless_documentation_is_enough() -> None:
    def resolve(_: str) -> Tool | None:
        raise OSError("no registry")

    store = DocumentationStore(resolve)
    store.document("x", ToolDocs(summary="X."))
    assert store.describe("x").summary == "X."
    with pytest.raises(OSError, match="no registry"):
        store.describe("x", "full")
    with pytest.raises(OSError, match="no registry"):
        store.describe("y")
    with pytest.raises(OSError, match="no registry"):
        store.examples("y")


@pytest.mark.parametrize(
    "schema", [None, {}, [], "x", {"type": "object"}, {"required": [7], "properties": []}]
)
def test_a_schema_that_states_nothing_has_no_facts(schema: Any) -> None:
    assert schema_info(schema) is None


def test_a_default_of_null_is_a_default() -> None:
    info = schema_info({"properties": {"a": {"default": None}}})
    assert info == SchemaInfo(defaults={"a": None})
