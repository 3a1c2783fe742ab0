"""A client's tools as a catalog, made once for each list."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock

from tool_search.catalog.formats import tool_from_definition
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import Source
from tool_search.core.catalog.tool import Tool, estimate_tokens
from tool_search.core.values.json import compact_json
from tool_search.errors import DuplicateToolError, InvalidToolError
from tool_search.serving.proxy.clients import is_core, server_of
from tool_search.serving.proxy.dialects.base import JSON, WireDialect, WireTool
from tool_search.serving.proxy.settings import ClientRule

__all__ = ["ClientTools", "ToolLists"]

_MAX_LISTS = 64


@dataclass(frozen=True)
class ClientTools:
    """The tools of a request.

    Attributes:
        catalog: The tools that can be searched or are always declared.
        wire: The client's definitions, by the tool's source.
        others: Entries that are always declared as they came: tools that the provider runs,
            and definitions that no catalog takes.
        plain: The namespaces and names of functions and tools in `others`.
        count: The number of functions.
    """

    catalog: ToolCatalog
    wire: dict[Source, WireTool]
    others: list[JSON]
    plain: frozenset[tuple[str | None, str]]
    count: int

    @cached_property
    def sources(self) -> dict[tuple[str | None, str], Source]:
        """The sources by namespace and name, as a call has them."""
        return {(tool.namespace, tool.name): source for source, tool in self.wire.items()}

    @cached_property
    def tokens(self) -> dict[Source, int]:
        """The estimated tokens of each definition."""
        return {
            source: estimate_tokens(compact_json(tool.definition))
            for source, tool in self.wire.items()
        }

    @cached_property
    def other_tokens(self) -> int:
        """The estimated tokens of the entries that are always declared."""
        return sum(estimate_tokens(compact_json(entry)) for entry in self.others)

    def name_of(self, namespace: str | None, name: str) -> str:
        """Return the canonical name of a call's tool; an unknown one stays as it is."""
        source = self.sources.get((namespace, name))
        tool = self.catalog.by_source.get(source) if source else None
        return tool.name if tool else name


class ToolLists:
    """The lists of clients, each read once; threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[str, ClientTools] = OrderedDict()

    def read(self, dialect: WireDialect, body: JSON, rule: ClientRule) -> ClientTools:
        """Return the tools of a request."""
        content = compact_json([dialect.name, rule.name, rule.core, rule.deferred, body["tools"]])
        key = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        made = _client_tools(dialect, body, rule)
        with self._lock:
            self._known[key] = made
            while len(self._known) > _MAX_LISTS:
                self._known.popitem(last=False)
        return made


def _client_tools(dialect: WireDialect, body: JSON, rule: ClientRule) -> ClientTools:
    functions, others = dialect.tools(body)
    read, refused = _read_tools(functions, rule)
    catalog = ToolCatalog(tool for tool, _ in read)
    # References and results name tools as the catalog does. A tool that it gave another name
    # than the client's is therefore not searched.
    renamed = {
        tool.source
        for tool, wire in read
        if wire.namespace is None and catalog.by_source[tool.source].name != wire.name
    }
    if renamed:
        refused += [wire for tool, wire in read if tool.source in renamed]
        read = [pair for pair in read if pair[0].source not in renamed]
        catalog = ToolCatalog(tool for tool, _ in read)
    return ClientTools(
        catalog=catalog,
        wire={tool.source: wire for tool, wire in read},
        others=[*others, *dialect.write_plain(refused)],
        plain=frozenset(
            [*((None, _entry_name(entry)) for entry in others)]
            + [(wire.namespace, wire.name) for wire in refused]
        ),
        count=len(functions),
    )


def _entry_name(entry: JSON) -> str:
    """Return the name of a tool that is not a function, such as a custom tool."""
    custom = entry.get("custom")
    inner = custom if isinstance(custom, dict) else {}
    return str(entry.get("name") or inner.get("name") or entry.get("type"))


def _read_tools(
    functions: Sequence[WireTool], rule: ClientRule
) -> tuple[list[tuple[Tool, WireTool]], list[WireTool]]:
    """Return the tools with their definitions, and the definitions that no catalog takes."""
    read: dict[Source, tuple[Tool, WireTool]] = {}
    refused: list[WireTool] = []
    # The marks of a client that defers by itself say which tools wait.
    defers = any(wire.definition.get("defer_loading") for wire in functions)
    for wire in functions:
        tool = _tool(wire)
        if tool is None or tool.source in read:
            refused.append(wire)
        else:
            core = not wire.definition.get("defer_loading") if defers else is_core(wire, rule)
            read[tool.source] = replace(tool, always_load=core), wire
    return list(read.values()), refused


def _tool(wire: WireTool) -> Tool | None:
    definition = {k: v for k, v in wire.definition.items() if k not in _NOT_OURS}
    try:
        tool = tool_from_definition(definition)
    except (InvalidToolError, DuplicateToolError):
        return None
    if tool is None:
        return None
    server = server_of(wire)
    return replace(tool, kind="mcp" if server else "plugin", server=wire.namespace or server)


# Fields of a client's definition that are about its request, not about the tool.
_NOT_OURS: Sequence[str] = ("defer_loading", "cache_control", "strict", "allowed_callers")
