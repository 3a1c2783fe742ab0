"""Tool definitions in OpenAI's Responses format, in a request's list and in its items.

Needs no SDK. Sources: OpenAI, "Tool search" (`defer_loading`, namespaces, search by the
service or by the client), "Function calling" (`strict`), its OpenAPI document.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping
from copy import copy
from typing import Any

from tool_search.adapters.openai_responses.parts import grouped
from tool_search.adapters.wire.requests import definitions_in, result_text
from tool_search.adapters.wire.schemas import is_strict, sent_description, sent_schema, sent_under
from tool_search.catalog.schema.declared import declared_schema
from tool_search.core.catalog.naming import wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import DeclaredTool, Message, ToolList
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import SearchResult
from tool_search.core.values.json import compact_json

__all__ = ["ToolNamespaces", "definitions", "encode_result", "encode_tools", "wire_tools"]

_MAX_DESCRIPTION_CHARS = 300


def encode_tools(tools: ToolList, profile: ProviderProfile) -> bytes:
    """Return the `tools` of a request as JSON in UTF-8; each list is written once."""
    key = f"openai_responses/{sent_under(profile)}/{profile.search_form}"
    return tools.encoded_whole(key, lambda: compact_json(wire_tools(tools, profile)))


def encode_result(
    result: SearchResult,
    profile: ProviderProfile,
    *,
    catalog: Mapping[str, Tool] | None = None,
    tools: ToolList | None = None,
) -> str | dict[str, Any]:
    """Return what answers a search: a `tool_search_output` item, or text.

    With the service's own kind of search, the item without its `call_id`; otherwise the
    `output` of a `function_call_output`, as JSON text.

    Args:
        result: The result.
        profile: The model that is asked.
        catalog: The definitions by name, as `ToolView.catalog`. Found tools that it lacks, and
            that bring no schema of their own, are left out.
        tools: The request's list, as `ToolView.tools` returned it for this profile.
    """
    if not profile.is_native or profile.search_form == "additional":
        return result_text(result, profile)
    known = catalog or {}
    own = {m.name: m for m in result.matches if m.parameters is not None}
    found = [
        known.get(name)
        or Tool(name=name, description=own[name].description, parameters=own[name].parameters or {})
        for name in dict.fromkeys(result.names)
        if name in known or name in own
    ]
    among = ToolList() if tools is None else tools
    return {
        "type": "tool_search_output",
        "execution": "client",
        "status": "completed",
        "tools": definitions(found, profile, deferred=True, among=among),
    }


def wire_tools(tools: ToolList, profile: ProviderProfile) -> list[dict[str, Any]]:
    """Return the `tools` of a request; deferred tools of one server share a namespace."""
    loaded = [entry for entry in tools if not entry.deferred]
    waiting = [entry.tool for entry in tools if entry.deferred]
    return [
        *(_list(entry, profile) for entry in loaded),
        *definitions(waiting, profile, deferred=True, among=tools),
    ]


def definitions(
    tools: Iterable[Tool], profile: ProviderProfile, *, deferred: bool, among: ToolList
) -> list[dict[str, Any]]:
    """Return definitions that a model does not see from the start.

    Args:
        tools: The tools, in order; a server comes at the place of its first tool.
        profile: The model that is asked.
        deferred: True if they have `defer_loading`, as everything that a search loads.
        among: The request's list; no namespace has one of its names.
    """
    entries: list[tuple[dict[str, Any] | None, dict[str, Any]]] = []
    for tool in tools:
        function = _function(tool, profile)
        if deferred:
            function["defer_loading"] = True
        name = _server_namespace(tool, profile, among)
        group = {"type": "namespace", "name": name, "description": ""}
        entries.append((None if name is None else group, function))
    wire = grouped(entries)
    for entry in wire:
        if entry["type"] == "namespace":
            entry["description"] = _listing(entry)
    return wire


def _list(entry: DeclaredTool, profile: ProviderProfile) -> dict[str, Any]:
    tool = entry.tool
    if not entry.is_search:
        return _function(tool, profile)
    if profile.search_form == "hosted":
        return {"type": "tool_search"}
    return {
        "type": "tool_search",
        "execution": "client",
        "description": tool.description,
        "parameters": dict(declared_schema(tool).schema),
    }


def _function(tool: Tool, profile: ProviderProfile) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": "function", "name": wire_name(tool.name, profile.name_rule)}
    if tool.description:
        wire["description"] = sent_description(tool, profile)
    wire["parameters"] = schema = sent_schema(tool, profile)
    # If it is left out, it may count as true; some endpoints know no such field.
    if profile.schema_rules != "plain":
        wire["strict"] = is_strict(schema)
    return wire


def _server_namespace(tool: Tool, profile: ProviderProfile, among: ToolList) -> str | None:
    """Return the namespace of a server's tools, if the catalog is declared with namespaces.

    A deferred function without a server is in a namespace of its own name, so no server may
    have that name.
    """
    if not tool.server or profile.search_form not in ("deferred", "hosted"):
        return None
    taken, name = among.by_wire_name(profile.name_rule), tool.server
    kept = profile.name_rule.kept
    while wire_name(name) in taken or wire_name(name) in kept:
        name = f"{name} server"
    return wire_name(name)


def _listing(namespace: dict[str, Any]) -> str:
    """Return the description of a namespace that is not loaded: the names in it."""
    names = ", ".join(function["name"] for function in namespace["tools"])
    if len(names) <= _MAX_DESCRIPTION_CHARS:
        return names
    return f"{names[: _MAX_DESCRIPTION_CHARS - 1].rpartition(', ')[0]}…"


class ToolNamespaces:
    """The namespaces of the tools that a request declares.

    A function that is declared without `defer_loading` is in the default namespace. Any other
    is in its server's or in one of its own name, wherever the request declares it: recorded
    calls have these.

    Args:
        tools: The request's list.
        profile: The model that is asked.

    Attributes:
        tools: The request's list.
    """

    def __init__(self, tools: ToolList, profile: ProviderProfile) -> None:
        self._profile = profile
        self.tools = tools
        self._plain = {wire_name(tool.name, profile.name_rule) for tool in tools.loaded}
        self._namespaces = self._by_name(entry.tool for entry in tools if entry.deferred)

    def is_plain(self, name: str) -> bool:
        """True if a tool, by its wire name, is in the default namespace."""
        return name in self._plain

    def namespace(self, name: str) -> str | None:
        """Return the namespace of a tool by its wire name; None for the default one."""
        return None if name in self._plain else self._namespaces.get(name)

    def extended(self, messages: Iterable[Message]) -> ToolNamespaces:
        """Return the namespaces with those of tools in messages; both share their data."""
        sent = self._by_name(tool for message in messages for tool in definitions_in(message))
        if not sent:
            return self
        more = copy(self)
        more._namespaces = ChainMap(sent, self._namespaces)  # noqa: SLF001  # its copy
        return more

    def agrees(self, before: ToolNamespaces, names: Iterable[str]) -> bool:
        """True if these names are in the same namespaces as before."""
        return self is before or all(self.namespace(n) == before.namespace(n) for n in names)

    def flat(self) -> ToolNamespaces:
        """Stop sharing data, so that repeated extensions stay quick; return itself."""
        if isinstance(self._namespaces, ChainMap):
            self._namespaces = dict(self._namespaces)
        return self

    def _by_name(self, tools: Iterable[Tool]) -> MutableMapping[str, str]:
        named = ((wire_name(tool.name, self._profile.name_rule), tool) for tool in tools)
        return {
            name: _server_namespace(tool, self._profile, self.tools) or name for name, tool in named
        }
