"""oh-my-pi's tool discovery for any agent loop.

>>> from tool_search import Tool
>>> discovery = ToolDiscovery(
...     [
...         Tool(name="read", kind="builtin"),
...         Tool(name="mcp__github_create_issue", kind="mcp", server="github"),
...     ],
...     settings=DiscoverySettings(mode="mcp-only"),
... )
>>> [tool.name for tool in discovery.active_tools()]
['read', 'search_tool_bm25']
>>> discovery.call({"query": "issue"}).details.activated_tools
('mcp__github_create_issue',)
>>> [tool.name for tool in discovery.active_tools()]
['read', 'search_tool_bm25', 'mcp__github_create_issue']

A bot on `ToolSearchSession` or `ToolSearchRunner` does not need this module: it uses
`DiscoverySettings.session_config` and `session_catalog`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tool_search.adapters.compat.oh_my_pi.answer import (
    DISABLED,
    DiscoveryAnswer,
    DiscoveryDetails,
    DiscoveryMatch,
    denied,
)
from tool_search.adapters.compat.oh_my_pi.ranking import discoverable, locale_key, oh_my_pi_recipe
from tool_search.adapters.compat.oh_my_pi.settings import (
    SEARCH_TOOL_NAME,
    DiscoveryMode,
    DiscoverySettings,
)
from tool_search.adapters.compat.oh_my_pi.tool import SearchToolBm25
from tool_search.adapters.compat.weighted_bm25 import WeightedBm25Index
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.discoveries import DiscoveryState, ToolOrder
from tool_search.core.values.clean_text import named
from tool_search.errors import InvalidToolError
from tool_search.i18n import Language, text

__all__ = [
    "SEARCH_TOOL_NAME",
    "DiscoveryAnswer",
    "DiscoveryDetails",
    "DiscoveryMatch",
    "DiscoveryMode",
    "DiscoverySettings",
    "SearchToolBm25",
    "ToolDiscovery",
]


class ToolDiscovery:
    """The tools that one session's model is shown, and its search among the others.

    A loop declares `active_tools()` in each request, adds `system_notice()` to the system
    prompt, and answers calls of `search_tool_bm25` with `call`.

    Args:
        tools: The definitions of all tools; the search tool is left out of them.
        settings: oh-my-pi's settings.
        requested: Names that are visible from the start.
        summaries: Summaries by tool name, which replace the tools' own.
        permits: A capability profile: a tool that it forbids is neither found nor
            activated. Without one, tools that only some callers may call are forbidden.
        frozen_description: Keeps the first description of the search tool, so that no
            activation changes the prefix of the requests.
        language: The language of description and notice.
        saved: A saved session to continue, as `to_dict` returned it.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        settings: DiscoverySettings | None = None,
        requested: Iterable[str] = (),
        summaries: Mapping[str, str] | None = None,
        permits: Callable[[Tool], bool] | None = None,
        frozen_description: bool = False,
        language: Language = "en-US",
        saved: Mapping[str, Any] | None = None,
    ) -> None:
        self._settings = settings or DiscoverySettings()
        self._requested = tuple(requested)
        self._summaries = dict(summaries or {})
        self._recipe = oh_my_pi_recipe(self._summaries)
        self._permits = permits or _is_for_everybody
        self._is_frozen = frozen_description
        self._language = language
        self._tools = _without_search(tools)
        self._mode: DiscoveryMode
        self._catalog: ToolCatalog
        self._tool_order: ToolOrder
        self._index: WeightedBm25Index
        self._described: tuple[WeightedBm25Index, Tool] | None
        self._selections: DiscoveryState
        self._start(saved or {})

    @property
    def mode(self) -> DiscoveryMode:
        """The resolved mode; `auto` goes from `off` to `mcp-only` at most once."""
        return self._mode

    @property
    def catalog(self) -> ToolCatalog:
        """The current tools: visible ones are core, hidden and selected ones deferred."""
        return self._catalog

    @property
    def selected(self) -> tuple[str, ...]:
        """The tools that searches have activated, oldest first.

        Tools of absent MCP servers count; other tools count only while they are present.
        """
        return tuple(
            entry.name
            for entry in self._selections
            if entry.name in self._tools or discoverable(entry.tool, summary="").source == "mcp"
        )

    @property
    def hidden(self) -> tuple[Tool, ...]:
        """The tools that can be found, in name order."""
        return tuple(tool for tool in self._catalog.deferred if tool.name not in self._selections)

    def active_tools(self, *, forced: Iterable[str] = ()) -> tuple[Tool, ...]:
        """Return the tools of the next request, in an order that only grows at its end.

        Args:
            forced: Names that the request's tool choice forces. They are activated: providers
                reject a request that forces a tool it does not declare.
        """
        self.activate(forced)
        own = {} if self._mode == "off" else {SEARCH_TOOL_NAME: self.search_tool()}
        core = {tool.name: self._tools[tool.name] for tool in self._catalog.core}
        found = {
            tool.name: self._tools[tool.name]
            for tool in self._catalog.deferred
            if tool.name in self._selections and self._may(tool.name)
        }
        declared = {**core, **found, **own}
        return tuple(declared[name] for name in self._tool_order.declared_order if name in declared)

    def search_tool(self) -> Tool:
        """Return the definition of the search tool."""
        index = self._index
        if self._described is None or (self._described[0] is not index and not self._is_frozen):
            definition = self._search().definition(hidden=self._permit())
            self._described = (index, definition)
        return self._described[1]

    def system_notice(self) -> str:
        """Return the text for the system prompt; empty if nothing is hidden.

        It covers every deferred tool, so that no activation changes it.
        """
        if self._mode == "off" or not self._catalog.deferred:
            return ""
        notice = text("oh_my_pi.notice", self._language, search_tool=SEARCH_TOOL_NAME)
        servers = sorted(self._catalog.servers, key=locale_key)
        if not servers:
            return notice
        listed = ", ".join(map(named, servers))
        return f"{notice} " + text("oh_my_pi.notice_servers", self._language, servers=listed)

    def call(self, arguments: Mapping[str, Any]) -> DiscoveryAnswer:
        """Answer one call of the search tool, and activate the tools that it found.

        No text of a model raises. An activated tool can be called from the next request on, as
        `active_tools` then has it.
        """
        if self._mode == "off":
            return DiscoveryAnswer.error(DISABLED)
        searching = self._search()
        found = searching.find(arguments, selected=self._selections, allowed=self._may)
        if isinstance(found, str):
            return DiscoveryAnswer.error(found)
        names = [tool.name for tool, _ in found.ranked]
        forbidden = [name for name in names if not self._may(name)]
        if forbidden:
            return DiscoveryAnswer.error(denied(forbidden))
        found = found._replace(total_tools=len(self._permit()))
        details = searching.details(found, activated=self.activate(names), selected=self.selected)
        return DiscoveryAnswer(content=details.to_json(self._settings.answer), details=details)

    def activate(self, names: Iterable[str]) -> tuple[str, ...]:
        """Make hidden tools visible; return those that were hidden, in order.

        Unknown names and names that a capability profile forbids are ignored.
        """
        hidden = {tool.name: tool for tool in self.hidden}
        chosen = [hidden[name] for name in names if name in hidden and self._may(name)]
        new = self._selections.commit(chosen, via="search")
        if new:
            self._tool_order.append(new)
            self._index = self._index.updated(added=(), removed=new)
        return new

    def set_tools(self, tools: Iterable[Tool]) -> bool:
        """Replace the tools: a server came late, went, or listed its tools again.

        Returns True if anything changed; an equal list changes no byte of any request.
        """
        listed = _without_search(tools)
        if listed.fingerprint == self._tools.fingerprint:
            return False
        self._tools = listed
        if self._mode == "off" and self._settings.resolved(listed.values()) != "off":
            self._begin()
            return True
        before = {tool.name: tool for tool in self.hidden}
        self._catalog = self._made_catalog()
        self._tool_order.apply_catalog(
            self._catalog, self._selections, mode="tool_search", own=(SEARCH_TOOL_NAME,)
        )
        after = {tool.name: tool for tool in self.hidden}
        added = [tool for name, tool in after.items() if before.get(name) != tool]
        removed = [name for name in before if name not in after]
        if added or removed:
            self._index = self._index.updated(added=added, removed=removed)
        return True

    def new_session(self) -> None:
        """Forget the selected tools, and begin with the defaults."""
        self._start({})

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue a saved session: after a restart, on a branch, in another session."""
        self._start(saved)

    def to_dict(self) -> dict[str, Any]:
        """Return the session as plain JSON."""
        content: dict[str, Any] = {"mode": self._mode, "selected_tools": list(self.selected)}
        if self._is_frozen and self._described is not None:
            content["description"] = self._described[1].description
        return content

    def _start(self, saved: Mapping[str, Any]) -> None:
        names = saved.get("selected_tools")
        listed = [n for n in names if isinstance(n, str)] if isinstance(names, list) else []
        # An absent tool keeps its place, and gets its definition when it comes.
        self._selections = DiscoveryState()
        for name in dict.fromkeys(filter(_is_name, listed)):
            tool = self._tools.get(name) or Tool(name=name, kind="mcp")
            self._selections.commit((tool,), via="search")
        self._begin(was_on=saved.get("mode") in ("mcp-only", "all"))
        description = saved.get("description")
        if self._is_frozen and isinstance(description, str):
            self._described = (self._index, self._search_tool_saying(description))

    def _begin(self, *, was_on: bool = False) -> None:
        """Resolve the mode, and build list and index anew."""
        self._mode = self._settings.resolved(self._tools.values())
        if self._mode == "off" and was_on and self._settings.mode == "auto":
            self._mode = "mcp-only"
        self._described = None
        self._catalog = self._made_catalog()
        self._tool_order = ToolOrder.start(self._catalog, search_tool_name=SEARCH_TOOL_NAME)
        self._tool_order.append(self._selections.names)
        self._index = WeightedBm25Index(self.hidden, self._recipe)

    def _made_catalog(self) -> ToolCatalog:
        return self._settings.catalog(
            self._tools.values(), mode=self._mode, requested=self._requested
        )

    def _permit(self) -> list[Tool]:
        """Return the tools that this session can find."""
        return [tool for tool in self.hidden if self._may(tool.name)]

    def _search(self) -> SearchToolBm25:
        return SearchToolBm25(
            self._index, self._catalog, language=self._language, summaries=self._summaries
        )

    def _search_tool_saying(self, description: str) -> Tool:
        definition = self._search().definition().to_dict()
        return Tool.from_dict({**definition, "description": description})

    def _may(self, name: str) -> bool:
        return self._permits(self._tools[name])


def _without_search(tools: Iterable[Tool]) -> ToolCatalog:
    return ToolCatalog(tool for tool in tools if tool.name != SEARCH_TOOL_NAME)


def _is_for_everybody(tool: Tool) -> bool:
    return not tool.roles


def _is_name(name: str) -> bool:
    try:
        Tool(name=name)
    except InvalidToolError:
        return False
    return True
