"""Catalogs with hostile names, and what a request shows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

from tool_search import InvalidToolError, Tool
from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.adapters.openai_responses import wire as openai_responses_wire
from tool_search.core.catalog.naming import NameRule, wire_name
from tool_search.core.messages import RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.profile_choice import profile_for

KIMI = "https://api.moonshot.ai/v1"
PROFILES: Mapping[str, ProviderProfile] = {
    "claude": profile_for("anthropic", "claude-sonnet-4-6"),
    "bound": profile_for("anthropic", "claude-opus-5-5"),
    "compatible": profile_for("anthropic", "glm-5", base_url="https://api.z.ai/api/anthropic"),
    "chat": profile_for("openai_chat", "gpt-5.4"),
    "gemini": profile_for(
        "openai_chat",
        "gemini-3-pro",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
    ),
    "bridge": profile_for("openai_chat", "deepseek-chat", strategy="bridge"),
    "late": profile_for("openai_chat", "kimi-k3", base_url=KIMI, strategy="tools_in_messages"),
    "responses": profile_for("openai_responses", "gpt-5.5"),
    "deferred": profile_for("openai_responses", "gpt-5.5", search_form="deferred"),
    "additional": profile_for("openai_responses", "gpt-5.2"),
}
OWN = ("tool_search", "call_tool")
_SERVERS = st.sampled_from(
    [None, None, "a", "b", "mail", "evil", "a__b", "", 'q"\n', "my.server", "my_server", "send"]
)
_PLAIN = [
    "send", "send_mail", "get", "files.read", "b__c", "c", "2fa", "查询", "отправить", "tool_l",
    "tool_search", "call_tool", "tool_search_tool_bm25", "...", "-x", "שלח", "x" * 64, "x" * 65,
    "y" * 250,
]  # fmt: skip
_LOOKS = str.maketrans({"a": "а", "e": "е", "c": "с", "o": "ο", "i": "і", "l": "1"})


def _zero_width(name: str) -> str:
    return f"{name[:1]}\u200b{name[1:]}\U000e0041"


_FORGERIES = [
    str, str, str.upper, str.title, wire_name, lambda name: wire_name(name, NameRule("identifier")),
    lambda name: wire_name(wire_name(name)), lambda name: name.translate(_LOOKS), _zero_width,
    lambda name: f"mail__{name}", lambda name: f"a__b__{name}", lambda name: f"a__{name}",
    lambda name: f"{name}_2", lambda name: f"evil__{name}_2", lambda _name: "\u200b\u2060",
    lambda name: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in name),
]  # fmt: skip
_NAMES = st.builds(
    lambda forge, name: forge(name), st.sampled_from(_FORGERIES), st.sampled_from(_PLAIN)
)
LISTINGS = st.lists(
    st.tuples(_SERVERS, _NAMES, st.booleans()),
    min_size=1,
    max_size=14,
    # The operator's own tools differ, as those of one program do.
    unique_by=lambda item: item[:2] if item[0] is None else object(),
)
Listing = list[tuple[str | None, str, bool]]


def tools_of(listing: Listing, version: int) -> list[Tool]:
    """The tools of a listing, each described by where it comes from; refused ones left out."""
    made = []
    for server, name, core in listing:
        try:
            tool = Tool(
                name=name,
                server=server,
                kind="plugin" if server is None else "mcp",
                always_load=core,
                parameters={"type": "object", "properties": {"n": {"type": "integer"}}},
            )
        except InvalidToolError:
            continue
        if tool.name in OWN and not tool.is_third_party:
            continue  # the operator's own mistake, which is an error
        made.append(Tool.from_dict({**tool.to_dict(), "description": mark(tool, version)}))
    own = {tool.name: tool for tool in made if tool.server is None and tool.kind == "plugin"}
    return [tool for tool in made if own.get(tool.name, tool) is tool or tool.is_third_party]


def mark(tool: Tool, version: int) -> str:
    """Return the identity of a tool, independent of its name."""
    server, name = tool.source
    return f"{server!a} {name!a} v{version}"


def body_of(plan: RequestPlan, profile: ProviderProfile) -> dict[str, Any]:
    """The request in the profile's dialect."""
    writers: Mapping[str, Callable[..., dict[str, Any]]] = {
        "anthropic": anthropic_wire.to_wire,
        "openai_chat": openai_chat_wire.to_wire,
        "openai_responses": openai_responses_wire.to_wire,
    }
    return writers[profile.dialect](plan, profile)


def declared(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and descriptions in a request's tool list; a namespace's name is one too."""
    return [*_definitions(body.get("tools", ()))]


def brought(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The same of what its messages or items bring."""
    places = (*body.get("messages", ()), *body.get("input", ()))
    listed = (place.get("tools", ()) for place in places if isinstance(place, Mapping))
    return [pair for tools in listed for pair in _definitions(tools)]


def _definitions(tools: Any) -> Iterator[tuple[str, str]]:
    for tool in tools:
        inner = tool.get("function", tool)
        if tool.get("type") == "namespace":
            yield from _definitions(tool["tools"])
        elif "name" in inner:
            yield inner["name"], inner.get("description", "")


def namespaces(body: Mapping[str, Any]) -> list[str]:
    """The names of the namespaces that a request declares."""
    return [tool["name"] for tool in body.get("tools", ()) if tool.get("type") == "namespace"]
