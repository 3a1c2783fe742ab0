"""Anthropic's rules for `tools`.

Source: Anthropic, Tool use; Tool search tool (limits, models, deferred tools);
`ToolUnionParam` of the anthropic SDK. The limit of 10,000 deferred tools and
4 MiB of tool text is documented with the error code and without a text.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tool_search.testing.services.schemas import schema_faults
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.server.endpoint import Endpoint
    from tool_search.testing.violations import Violation

__all__ = ["NAME", "SEARCH_TOOL_NAMES", "supports_tool_search", "tool_set_violations"]
__all__ += ["tool_violations"]

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
SEARCH_TOOL_NAMES = ("tool_search_tool_regex", "tool_search_tool_bm25")

_SEARCH_TYPE = re.compile(r"(tool_search_tool_(?:regex|bm25))(?:_20251119)?")
_SERVER_TYPE = re.compile(
    r"(?:advisor|bash|browser_toolset|code_execution|computer|computer_toolset|memory|text_editor"
    r"|web_fetch|web_search)_\d{8}|mcp_toolset"
)
_CUSTOM_FIELDS = frozenset(
    {
        "allowed_callers",
        "cache_control",
        "defer_loading",
        "description",
        "eager_input_streaming",
        "input_examples",
        "input_schema",
        "name",
        "strict",
        "type",
    }
)
_SEARCH_FIELDS = frozenset(
    {
        "allowed_callers",
        "cache_control",
        "defer_loading",
        "name",
        "strict",
        "type",
    }
)
_COMBINATORS = ("oneOf", "allOf", "anyOf")
_MAX_DEFERRED = 10_000
_MAX_TEXT_BYTES = 4 * 1024 * 1024

# "Opus 4.1 and earlier don't support" it: every 1, 2 and 3, and 4 up to 4.1.
_OLD_MODEL = re.compile(
    r"claude-(?:instant|[123](?!\d)|(?:sonnet|opus|haiku)-4(?:-[01](?!\d)|-20\d{6}|@|$))"
)


def supports_tool_search(model: str) -> bool:
    """True if a model supports deferred tools; unknown names count as supporting them."""
    return _OLD_MODEL.search(model) is None


def tool_violations(tools: list[Any], endpoint: Endpoint) -> Iterator[Violation]:
    """Yield the violations of the shape of single tools."""
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            yield invalid(f"tools.{index}: Input should be a valid dictionary")
            continue
        kind = tool.get("type") or "custom"
        where = f"tools.{index}.{kind}"
        if "defer_loading" in tool and not endpoint.supports_tool_search:
            yield invalid(f"{where}.defer_loading: Extra inputs are not permitted")
        search = _SEARCH_TYPE.fullmatch(str(kind))
        if kind == "custom":
            yield from _custom(where, tool)
            if tool.get("name") in endpoint.refused_tools:
                yield _not_2020_12(f"{where}.input_schema")
        elif search and endpoint.supports_tool_search:
            yield from _extra(where, tool, _SEARCH_FIELDS)
            if tool.get("name") != search.group(1):
                yield invalid(f"{where}.name: Input should be '{search.group(1)}'")
        elif not _SERVER_TYPE.fullmatch(str(kind)):
            yield invalid(
                f"tools.{index}: Input tag '{kind}' found using 'type' does not match any of the "
                "expected tags: 'bash_20250124', 'custom', 'text_editor_20250728', ..."
            )
        elif not isinstance(tool.get("name", ""), str):
            yield invalid(f"{where}.name: Input should be a valid string")


def _custom(where: str, tool: Mapping[str, Any]) -> Iterator[Violation]:
    name, schema, description = (tool.get(key) for key in ("name", "input_schema", "description"))
    if name is None:
        yield invalid(f"{where}.name: Field required")
    elif not isinstance(name, str):
        yield invalid(f"{where}.name: Input should be a valid string")
    elif not NAME.fullmatch(name):
        yield from bad_name(f"{where}.name", name)
    if description is not None and not isinstance(description, str):
        yield invalid(f"{where}.description: Input should be a valid string")
    if schema is None:
        yield invalid(f"{where}.input_schema: Field required")
    elif not isinstance(schema, dict):
        yield invalid(f"{where}.input_schema: Input should be a valid dictionary")
    elif schema.get("type") is None:
        yield invalid(f"{where}.input_schema.type: Field required")
    elif schema["type"] != "object":
        yield invalid(f"{where}.input_schema.type: Input should be 'object'")
    elif any(key in schema for key in _COMBINATORS):
        yield invalid(
            f"{where}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the "
            "top level"
        )
    else:
        yield from _schema(f"{where}.input_schema", schema)
    yield from _extra(where, tool, _CUSTOM_FIELDS)


def _schema(where: str, schema: Mapping[str, Any]) -> Iterator[Violation]:
    faults = schema_faults(schema)
    if faults.keys is not None:
        at = ".".join([where, *faults.keys, "properties"])
        yield invalid(f"{at}: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'")
    elif faults.invalid is not None:
        yield _not_2020_12(where)


def _not_2020_12(where: str) -> Violation:
    return invalid(
        f"{where}: JSON schema is invalid. It must match JSON Schema draft 2020-12 "
        "(https://json-schema.org/draft/2020-12). Learn more about tool use at "
        "https://docs.claude.com/en/docs/tool-use."
    )


def bad_name(where: str, name: str) -> Iterator[Violation]:
    """Yield a violation if a name does not match the pattern."""
    if len(name) > 128:
        yield invalid(f"{where}: String should have at most 128 characters")
    else:
        yield invalid(f"{where}: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")


def _extra(where: str, tool: Mapping[str, Any], known: frozenset[str]) -> Iterator[Violation]:
    for key in tool:
        if key not in known:
            yield invalid(f"{where}.{key}: Extra inputs are not permitted")


def tool_set_violations(tools: list[Mapping[str, Any]], model: str) -> Iterator[Violation]:
    """Yield the violations of a list of well-shaped tools."""
    names = [tool["name"] for tool in tools if "name" in tool]
    if len(set(names)) < len(names):
        yield invalid("tools: Tool names must be unique.")
    deferred = [tool for tool in tools if tool.get("defer_loading")]
    yield from _unsupported_type(tools, deferred, model)
    if deferred and len(deferred) == len(tools):
        yield invalid(
            "At least one tool must have defer_loading=false. All tools cannot be deferred."
        )
    for tool in deferred:
        if tool.get("cache_control") is not None:
            yield invalid(
                f"Tool '{tool['name']}' cannot have both defer_loading=true and cache_control "
                "set. Tools with defer_loading cannot use prompt caching."
            )
    yield from _limits(tools, len(deferred))


def _unsupported_type(
    tools: list[Mapping[str, Any]], deferred: list[Mapping[str, Any]], model: str
) -> Iterator[Violation]:
    if supports_tool_search(model):
        return
    for tool in tools:
        if _SEARCH_TYPE.fullmatch(tool.get("type") or ""):
            yield invalid(f"'{model}' does not support tool types: {tool['type']}.")
    if deferred:
        yield invalid(f"'{model}' does not support tools with defer_loading=true.")


def _limits(tools: list[Mapping[str, Any]], deferred: int) -> Iterator[Violation]:
    code = "available_tools_limit_exceeded"
    if deferred > _MAX_DEFERRED:
        yield invalid(
            f"tools: {deferred} tools have defer_loading=true; at most {_MAX_DEFERRED} may be "
            "deferred.",
            code=code,
        )
    size = sum(_size(tool) for tool in tools)
    if size > _MAX_TEXT_BYTES:
        yield invalid(
            f"tools: the definitions take {size} bytes; at most {_MAX_TEXT_BYTES} are allowed.",
            code=code,
        )


def _size(tool: Mapping[str, Any]) -> int:
    return len(json.dumps(tool, ensure_ascii=False).encode("utf-8", "replace"))
