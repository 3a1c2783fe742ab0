"""Tool definitions in OpenAI's Responses format, in a request's list and in its items.

Needs no SDK. Sources: OpenAI, "Tool search" (`defer_loading`, namespaces, search by the
service or by the client), "Function calling" (`strict`), its OpenAPI document.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, MutableMapping
from copy import copy
from typing import Any

from tool_search.adapters.wire.definitions import definitions_in, is_strict
from tool_search.catalog.names import wire_name
from tool_search.catalog.tool import Tool
from tool_search.messages import DeclaredTool, Message, ToolList
from tool_search.providers.profiles import ProviderProfile
from tool_search.values.json import compact_json

__all__ = ["ToolNamespaces", "definitions", "encode_tools", "wire_tools"]

_MAX_DESCRIPTION_CHARS = 300


def encode_tools(tools: ToolList, profile: ProviderProfile) -> bytes:
    """The `tools` of a request as JSON in UTF-8, made once for each list."""
    key = f"openai_responses/{profile.name_rule}/{profile.search_form}"
    return tools.encoded_whole(key, lambda: compact_json(wire_tools(tools, profile)))


def wire_tools(tools: ToolList, profile: ProviderProfile) -> list[dict[str, Any]]:
    """The `tools` of a request; deferred tools of one server share a namespace."""
    shown = [entry for entry in tools if not entry.deferred]
    waiting = [entry.tool for entry in tools if entry.deferred]
    return [
        *(_shown(entry, profile) for entry in shown),
        *definitions(waiting, profile, deferred=True, among=tools),
    ]


def definitions(
    tools: Iterable[Tool], profile: ProviderProfile, *, deferred: bool, among: ToolList
) -> list[dict[str, Any]]:
    """Definitions that a model is not shown from the start, as a list or an item holds them.

    Args:
        tools: What to define, in order; a server stands where its first tool does.
        profile: Who is asked.
        deferred: Whether they carry `defer_loading`, as all that a search loads.
        among: The request's list, whose names no namespace has.
    """
    wire: list[dict[str, Any]] = []
    namespaces: dict[str, dict[str, Any]] = {}
    for tool in tools:
        function = _function(tool, profile)
        if deferred:
            function["defer_loading"] = True
        namespace = _server_namespace(tool, profile, among)
        if namespace is None:
            wire.append(function)
        elif namespace in namespaces:
            namespaces[namespace]["tools"].append(function)
        else:
            namespaces[namespace] = {
                "type": "namespace", "name": namespace, "description": "", "tools": [function],
            }  # fmt: skip
            wire.append(namespaces[namespace])
    for whole in namespaces.values():
        whole["description"] = _listing(whole)
    return wire


def _shown(entry: DeclaredTool, profile: ProviderProfile) -> dict[str, Any]:
    tool = entry.tool
    if not entry.is_search:
        return _function(tool, profile)
    if profile.search_form == "hosted":
        return {"type": "tool_search"}
    return {
        "type": "tool_search",
        "execution": "client",
        "description": tool.description,
        "parameters": dict(tool.declared_schema.schema),
    }


def _function(tool: Tool, profile: ProviderProfile) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": "function", "name": wire_name(tool.name, profile.name_rule)}
    if tool.description:
        wire["description"] = tool.description
    wire["parameters"] = schema = dict(tool.declared_schema.schema)
    # Left out, it may count as true.
    wire["strict"] = is_strict(schema)
    return wire


def _server_namespace(tool: Tool, profile: ProviderProfile, among: ToolList) -> str | None:
    """The namespace that a server's tools share, where the catalog is declared with them.

    A deferred function without a server is in a namespace of its own name: no server's
    may have it.
    """
    if not tool.server or profile.search_form not in ("deferred", "hosted"):
        return None
    taken, name = among.by_wire_name(profile.name_rule), tool.server
    while wire_name(name) in taken:
        name = f"{name} server"
    return wire_name(name)


def _listing(namespace: dict[str, Any]) -> str:
    """What a model reads of a namespace before it is loaded: the names within it."""
    names = ", ".join(function["name"] for function in namespace["tools"])
    if len(names) <= _MAX_DESCRIPTION_CHARS:
        return names
    return f"{names[: _MAX_DESCRIPTION_CHARS - 1].rpartition(', ')[0]}…"


class ToolNamespaces:
    """In which namespace a call finds each tool that a request brings.

    A function that is declared plainly is in the default one; what comes late is in its
    server's or in one of its own name (recorded calls say so), wherever the request
    brings it.

    Args:
        tools: The request's list.
        profile: Who is asked.

    Attributes:
        tools: The request's list.
    """

    def __init__(self, tools: ToolList, profile: ProviderProfile) -> None:
        self._profile = profile
        self.tools = tools
        self._plain = {wire_name(tool.name, profile.name_rule) for tool in tools.loaded}
        self._namespaces = self._by_name(entry.tool for entry in tools if entry.deferred)

    def is_plain(self, name: str) -> bool:
        """Whether a tool, by its name on the wire, is in the default namespace."""
        return name in self._plain

    def namespace(self, name: str) -> str | None:
        """The namespace of a call of a tool by its name on the wire; None: it names none."""
        return None if name in self._plain else self._namespaces.get(name)

    def extended(self, messages: Iterable[Message]) -> ToolNamespaces:
        """The same with what messages bring; it shares what is there."""
        sent = self._by_name(tool for message in messages for tool in definitions_in(message))
        if not sent:
            return self
        more = copy(self)
        more._namespaces = ChainMap(sent, self._namespaces)  # noqa: SLF001  # its copy
        return more

    def agrees(self, before: ToolNamespaces, names: Iterable[str]) -> bool:
        """True if these names are where they were before."""
        return self is before or all(self.namespace(n) == before.namespace(n) for n in names)

    def flat(self) -> ToolNamespaces:
        """The same, sharing nothing: what is extended again and again stays quick."""
        if isinstance(self._namespaces, ChainMap):
            self._namespaces = dict(self._namespaces)
        return self

    def _by_name(self, tools: Iterable[Tool]) -> MutableMapping[str, str]:
        named = ((wire_name(tool.name, self._profile.name_rule), tool) for tool in tools)
        return {
            name: _server_namespace(tool, self._profile, self.tools) or name for name, tool in named
        }
