"""Any plan at all, for properties that hold of every request."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import (
    DeclaredTool,
    ImagePart,
    Message,
    ReferencePart,
    RequestPlan,
    TextPart,
    ToolCall,
    ToolList,
)

_TEXTS = st.text(max_size=20)
_WORDS = st.text(st.characters(categories=("L", "M", "N", "P", "S")), min_size=1, max_size=39)
# A name without a visible character is refused before a plan can have it.
_NAMES = (
    st.lists(_WORDS, min_size=1, max_size=2)
    .map(" ".join)
    .filter(lambda name: any(char.isalnum() for char in name))
)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXTS, inner, max_size=2),
    max_leaves=5,
)
_SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.dictionaries(_TEXTS, _VALUES, max_size=3).map(
        lambda extra: {"type": "object", "properties": {"x": extra}}
    ),
    st.just({"anyOf": [{"properties": {"a": {}}, "required": ["a"]}]}),
    st.just({"type": "object", "properties": {}, "required": [], "additionalProperties": False}),
)
_TOOLS = st.builds(
    Tool,
    name=_NAMES,
    description=_TEXTS,
    parameters=_SCHEMAS,
    server=st.none() | st.sampled_from(["mail", "погода"]),
)
_DECLARED = st.builds(
    DeclaredTool,
    tool=_TOOLS,
    deferred=st.booleans(),
    cache_breakpoint=st.booleans(),
    is_search=st.booleans(),
)
_CALLS = st.builds(
    ToolCall,
    id=_TEXTS,
    name=_TEXTS,
    arguments=_TEXTS | st.sampled_from(['{"a": "ü"}', '{"a": NaN}', "{", "[]"]),
)
_PARTS = st.one_of(
    st.builds(TextPart, _TEXTS),
    st.builds(ImagePart, st.sampled_from(["https://a/b.png", "data:image/png;base64,AA", "x"])),
    st.builds(ReferencePart, st.lists(_NAMES, max_size=2).map(tuple)),
    st.lists(_TOOLS, max_size=2).map(
        lambda tools: ReferencePart(tuple(tool.name for tool in tools), tuple(tools))
    ),
)
_MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "tool"]),
    content=_TEXTS | st.lists(_PARTS, max_size=3).map(tuple),
    tool_calls=st.lists(_CALLS, max_size=2).map(tuple),
    tool_call_id=st.none() | _TEXTS,
    name=st.none() | _NAMES,
    is_error=st.booleans(),
)


def plans(
    strategies: tuple[str, ...] = ("generic", "claude", "openai_responses"),
) -> st.SearchStrategy[RequestPlan]:
    """Plans of every shape, sensible or not."""
    return st.builds(
        RequestPlan,
        strategy=st.sampled_from(strategies),
        tools=st.lists(_DECLARED, max_size=4).map(ToolList),
        messages=st.lists(_MESSAGES, max_size=5).map(tuple),
        system=_TEXTS,
        tool_use=st.sampled_from(["auto", "none"]),
        cached_messages=st.lists(st.integers(0, 4), max_size=3, unique=True).map(tuple),
        cache_system=st.booleans(),
    )
