"""Tool search for pydantic-ai's agents, as a capability.

::

    tools = [Tool(function, defer_loading=True) for function in FUNCTIONS]
    agent = Agent(model, tools=tools, capabilities=[RankedToolSearch()])

pydantic-ai hides the tools, keeps what was found in its message history, and uses the native
search of Claude and of OpenAI's Responses, whose calls are answered here. The ranking is this
library's, and so is what is learned of it.

pydantic-ai 2.0 or later. Source: pydantic-ai, "Capabilities" (`ToolSearch`, `for_run`,
`after_tool_execute`).
"""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from sys import maxsize
from typing import Any

try:
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import ToolSearch as ToolSearchCapability
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset
except ImportError as exc:
    raise ImportError(
        "tool_search.adapters.pydantic_ai needs pydantic-ai 2.0 or later: "
        "pip install 'tool-search-middleware[pydantic-ai]'; in a clone: "
        "pip install '.[pydantic-ai]'"
    ) from exc

from tool_search.adapters.hosts.tool_search import ToolSearch
from tool_search.adapters.hosts.view import ToolView
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.services import SearchResult

__all__ = ["RankedToolSearch"]

# The name that pydantic-ai gives the search tool.
_SEARCH_TOOL_NAME = "search_tools"
_NEEDED = "for_run", "get_wrapper_toolset", "after_tool_execute"
if not all(hasattr(ToolSearchCapability, name) for name in _NEEDED):
    raise ImportError(
        "tool_search.adapters.pydantic_ai was tested with pydantic-ai 2.0 to 2.68; in this version "
        f"its ToolSearch has not all of {', '.join(_NEEDED)}"
    )


@dataclass(init=False)
class RankedToolSearch(ToolSearchCapability[Any]):
    """pydantic-ai's tool search with this library's ranking, and learning after each tool.

    Tools are marked with `defer_loading=True`, as for pydantic-ai's own search; those in
    `always_loaded_tools` are shown all the same, and with `tool_schema_mode="full"` all are.

    Args:
        config: The settings; `load_config("bot.yaml").tool_search` fits.
        search: A `ToolSearch` that several agents share, instead of `config`.

    Raises:
        ConfigurationError: The settings cannot be used.
    """

    search: ToolSearch = field(default_factory=ToolSearch, repr=False)
    _run: _Run = field(init=False, repr=False, compare=False)

    def __init__(
        self, config: ToolSearchConfig | None = None, *, search: ToolSearch | None = None
    ) -> None:
        if search is None:
            given = ToolSearch((), config).config
            named = given.model_copy(update={"search_tool_name": _SEARCH_TOOL_NAME})
            search = ToolSearch((), named)
        search.view(tools=())  # refuses a mode that needs a loop of its own
        self.search = search
        # pydantic-ai cuts what a strategy returns. The ranking has cut it already, and if the
        # engine fails, every tool is returned.
        super().__init__(max_results=maxsize)

    def __post_init__(self) -> None:
        """Begin without searches."""
        self._run = _Run(self.search)
        self.strategy = self._run.strategy
        super().__post_init__()

    async def for_run(self, ctx: RunContext[Any]) -> RankedToolSearch:  # noqa: ARG002  # pydantic-ai's
        """Return a copy for one run, whose searches no other run sees."""
        run = copy.copy(self)
        run.__post_init__()
        return run

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Hide the tools that are marked, except those that the settings always load."""
        config = self.search.config
        if config.tool_schema_mode in ("full", "shadow") or config.always_loaded_tools:
            toolset = toolset.prepared(self._prepare)
        return super().get_wrapper_toolset(toolset)

    async def after_tool_execute(
        self,
        ctx: RunContext[Any],  # noqa: ARG002  # pydantic-ai's
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,  # noqa: ARG002
        args: dict[str, Any],  # noqa: ARG002
        result: Any,
    ) -> Any:
        """Learn from the search that led to a tool which has answered."""
        view = self._run.view
        if view is not None and call.tool_name != _SEARCH_TOOL_NAME:
            view.returned(call.tool_name)
            await self.search.learn(view)
        return result

    async def _prepare(
        self,
        ctx: RunContext[Any],  # noqa: ARG002  # pydantic-ai's
        definitions: list[ToolDefinition],
    ) -> list[ToolDefinition]:
        if self.search.config.tool_schema_mode in ("full", "shadow"):
            return [replace(each, defer_loading=False) for each in definitions]
        listed = _definitions(definitions)
        view = await asyncio.to_thread(self.search.view, tools=listed)
        core = {tool.name for tool in view.catalog.core}
        return [
            replace(each, defer_loading=False) if each.name in core else each
            for each in definitions
        ]


class _Run:
    """The searches of one run of an agent; parallel ones share it.

    Args:
        search: Makes the view.

    Attributes:
        view: The tools of the run, with the searches that may teach; None before the first.
    """

    def __init__(self, search: ToolSearch) -> None:
        self.view: ToolView | None = None
        self._search = search
        self._lock = threading.Lock()
        self._tools: list[dict[str, Any]] = []
        self._results: list[SearchResult] = []

    async def strategy(
        self, ctx: RunContext[Any], queries: Sequence[str], tools: Sequence[ToolDefinition]
    ) -> Sequence[str]:
        """Return the names that a search finds, best first; if the engine fails, every name."""
        found = sorted(ctx.discovered_tool_names)
        return await asyncio.to_thread(self._find, queries, _definitions(tools), found)

    def _find(
        self, queries: Sequence[str], tools: list[dict[str, Any]], found: Sequence[str]
    ) -> Sequence[str]:
        with self._lock:
            if self.view is None or tools != self._tools:
                self.view = self._search.view(found, tools=tools)
                self.view.read(self._results)
                self._tools = tools
            view = self.view
        result = view.search({"queries": list(queries)})
        self._results.append(result)
        return result.names if result.error is None else view.names


def _definitions(tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    return [
        {
            "name": tool.name,
            "description": tool.description or "",
            "parameters": tool.parameters_json_schema,
        }
        for tool in tools
    ]
