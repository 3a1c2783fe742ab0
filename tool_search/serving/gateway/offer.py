"""The tools that a gateway offers at one moment, as its clients see them."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import NameBook, Source
from tool_search.core.catalog.schemas import TextLimits
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.clean_text import cut_schema, cut_text
from tool_search.core.values.json import compact_json, plain_copy
from tool_search.serving.gateway.config import GatewayConfig
from tool_search.serving.gateway.exposure import OfferedTool
from tool_search.serving.gateway.middleware import Enricher, ToolFilter
from tool_search.serving.gateway.names import GatewayNames, gateway_name

__all__ = ["HeldTools", "Offer", "OfferBuilder", "definition_of"]

_LIMITS = TextLimits()
_MAX_TITLE_CHARS = 200
_HOLD_S = 2.0
# The protocol's names of the hints that a `Tool` keeps under its own.
_HINTS = {"read_only": "readOnlyHint", "destructive": "destructiveHint"}
_PROTOCOL_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The tools of one moment.

    Attributes:
        catalog: The tools by canonical name; what nobody may call is not in it.
        whole: The same with what the permissions deny to everybody.
        listed: The tools as their source lists them, by canonical name.
        names: The tools by the names that clients are shown.
        offered: The same tools for lists, in the order of the servers.
        shown: The names that clients are shown, by canonical name.
        descriptions: Descriptions that middleware changed, by the name that clients are shown.
    """

    catalog: ToolCatalog
    whole: ToolCatalog
    listed: Mapping[str, Tool]
    names: GatewayNames
    offered: tuple[OfferedTool, ...]
    shown: Mapping[str, str]
    descriptions: Mapping[str, str]
    with_output: bool = True
    _definitions: dict[str, dict[str, Any]] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)

    def size(self, name: str) -> int:
        """Return the bytes of the entry of a shown name."""
        known = self._sizes.get(name)
        if known is None:
            known = self._sizes[name] = len(compact_json(self.definition(name)).encode())
        return known

    def definition(self, name: str) -> dict[str, Any]:
        """Return the entry of `tools/list` of a shown name."""
        known = self._definitions.get(name)
        if known is None:
            known = definition_of(
                self.names.shown[name],
                name=name,
                description=self.descriptions.get(name),
                with_output=self.with_output,
            )
            self._definitions[name] = known
        return known


def definition_of(
    tool: Tool, *, name: str = "", description: str | None = None, with_output: bool = True
) -> dict[str, Any]:
    """Return a tool as `tools/list` has it; a server's texts are cut.

    Args:
        tool: The tool.
        name: The name that clients are shown; empty: the tool's own.
        description: The description that clients read; None: the tool's own.
        with_output: False without the schema of results.
    """
    cut = _LIMITS.cut(tool)
    content: dict[str, Any] = {
        "name": name or tool.name,
        "description": cut.description if description is None else description,
        "inputSchema": {"type": "object", **json.loads(cut.parameters_json)},
    }
    if tool.title:
        content["title"] = cut_text(tool.title, _MAX_TITLE_CHARS)
    if tool.output_schema is not None and with_output:
        content["outputSchema"] = plain_copy(tool.output_schema)
        cut_schema(content["outputSchema"], _LIMITS.schema_text)
    hints = {_HINTS.get(key, key): value for key, value in tool.annotations.items()}
    hints = {key: hints[key] for key in _PROTOCOL_HINTS if isinstance(hints.get(key), bool)}
    if hints:
        content["annotations"] = hints
    return content


class OfferBuilder:
    """Builds offers, one after the other; a name stays with its tool.

    Args:
        config: The settings, whose middleware filters tools and describes them.
        permitted: Returns the catalog without the tools that nobody may call.
        with_output: True if results keep their structure, so that its schema is shown.
    """

    def __init__(
        self,
        config: GatewayConfig,
        *,
        permitted: Callable[[ToolCatalog], ToolCatalog],
        with_output: bool,
    ) -> None:
        self._filters = {name: _filters(config, name) for name in config.mcp_servers}
        self._others = _filters(config, "")
        of_all = config.middleware.of_all
        self._of_all = tuple(step for step in of_all if isinstance(step, ToolFilter))
        self._enrichers = tuple(step for step in of_all if isinstance(step, Enricher))
        self._permitted = permitted
        self._with_output = with_output
        self._book = NameBook()
        self._doubtful: frozenset[str] = frozenset()

    def build(self, tools: Iterable[Tool]) -> Offer:
        """Return the offer of some tools; from any thread, one call at a time.

        Raises:
            DuplicateToolError: Two tools without a server have the same name.
        """
        given = {tool.source: tool for tool in tools if self.admits(tool)}
        whole = ToolCatalog(given.values(), names=self._book)
        self._book = whole.book
        catalog = self._permitted(whole)
        names = GatewayNames.of(tool for tool in catalog.values() if tool.active)
        self._warn(names.doubtful)
        kept = {tool.source: name for name, tool in names.shown.items()}
        # A tool whose name another one has could be found, and not be called.
        callable_tools = [tool for tool in catalog.values() if tool.source in kept]
        if len(callable_tools) < len(catalog):
            catalog = ToolCatalog(callable_tools, names=self._book)
        shown = {tool.name: kept[tool.source] for tool in catalog.values()}
        return Offer(
            catalog=catalog,
            whole=whole,
            listed={tool.name: given[tool.source] for tool in catalog.values()},
            names=names,
            offered=_in_order(given, kept),
            shown=shown,
            descriptions=self._describe(names),
            with_output=self._with_output,
        )

    def admits(self, tool: Tool) -> bool:
        """True if no filter of the middleware leaves a tool out."""
        server, listed = tool.source
        own = self._filters.get(server or "", self._others)
        if not all(step.admits(listed) for step in own):
            return False
        return all(step.admits(gateway_name(server, listed)) for step in self._of_all)

    def _describe(self, names: GatewayNames) -> dict[str, str]:
        if not self._enrichers:
            return {}
        found = {}
        for name, tool in names.shown.items():
            server, listed = tool.source
            text = _LIMITS.cut(tool).description
            for step in self._enrichers:
                text = step.description(gateway_name(server, listed), listed, text)
            found[name] = text
        return found

    def _warn(self, doubtful: Iterable[str]) -> None:
        for name in sorted(frozenset(doubtful) - self._doubtful):
            _log.warning("two tools have the full name %r; the first one keeps it", name)
        self._doubtful = frozenset(doubtful)


def _filters(config: GatewayConfig, server: str) -> tuple[ToolFilter, ...]:
    steps = config.middleware.of_server(server)
    return tuple(step for step in steps if isinstance(step, ToolFilter))


def _in_order(given: Mapping[Source, Tool], kept: Mapping[Source, str]) -> tuple[OfferedTool, ...]:
    return tuple(
        OfferedTool(kept[source], source[0], source[1]) for source in given if source in kept
    )


class HeldTools:
    """Holds back servers that change their tools too often: one change in two seconds each.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._current: dict[str | None, tuple[Tool, ...]] = {}
        self._changed: dict[str | None, float] = {}

    def take(self, tools: Iterable[Tool]) -> tuple[tuple[Tool, ...], float | None]:
        """Return the tools to offer, and the seconds after which to look again, or None.

        Args:
            tools: The tools that the source lists now.
        """
        now = self._clock()
        listed: dict[str | None, list[Tool]] = {}
        for tool in tools:
            listed.setdefault(tool.server, []).append(tool)
        wait: float | None = None
        # New servers come where the source has them; a server that is gone, at the end.
        for server in dict.fromkeys((*listed, *self._current)):
            wanted, before = tuple(listed.get(server, ())), self._current.get(server)
            if wanted == before:
                continue
            left = self._changed.get(server, now - _HOLD_S) + _HOLD_S - now
            if before is not None and left > 0:
                wait = left if wait is None else min(wait, left)
                continue
            if before is not None:
                self._changed[server] = now
            self._current[server] = wanted
        order = dict.fromkeys((*listed, *self._current))
        self._current = {server: self._current[server] for server in order}
        return tuple(tool for server in order for tool in self._current[server]), wait
