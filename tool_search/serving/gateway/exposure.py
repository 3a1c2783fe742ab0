"""The tools that one client of a gateway is shown, before and after its searches.

Pure: names in, names out. A gateway has one `ExposedTools` for each session; what is listed
changes by a search of that session, and when servers come or go.

Source: MCProxy's document, "Tool search": `maxToolsLimit`, `toolSelectionOrder`, and the list
that a search replaces.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, get_args

__all__ = ["ExposedTools", "ExposureMode", "ExposureSettings", "OfferedTool"]

ExposureMode = Literal["add", "replace", "keep"]
"""What a search with hits does to the list. `add`: tools that only filled it make way, and found
ones stay in their order; `replace`: the hits of the last search; `keep`: the list only grows."""

_Strategy = Literal["server_priority", "alphabetical", "random"]
_STRATEGIES: tuple[_Strategy, ...] = get_args(_Strategy)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureSettings:
    """The settings of what clients are shown.

    Attributes:
        enabled: False for every tool and no search.
        max_tools_limit: More tools than this are searched; 0: every tool and no search.
        order: The choice of the tools that fill the list: `server_priority` (the servers' order
            in the file, then names), `alphabetical`, `random` (drawn once a session); an
            unknown one is passed over. A later one orders what the earlier ones leave equal.
        mode: The change of the list by a search with hits.
        max_results: The most hits of a search; never more than `max_tools_limit`.
        always_loaded: Tools that are always shown: names, `server:*`, or globs.
        fill: True if the list is filled up to `max_tools_limit` before a search.
    """

    enabled: bool = True
    max_tools_limit: int = 50
    order: Sequence[str] = ("server_priority",)
    mode: ExposureMode = "add"
    max_results: int = 10
    always_loaded: Sequence[str] = ()
    fill: bool = True

    def __post_init__(self) -> None:
        """Log the strategies that are unknown, once for each gateway."""
        unknown = [name for name in self.order if name not in _STRATEGIES]
        if unknown:
            _log.warning(
                "toolSelectionOrder: %s unknown and passed over; there are %s",
                ", ".join(map(repr, unknown)),
                ", ".join(_STRATEGIES),
            )

    @property
    def hits(self) -> int:
        """The most hits of a search."""
        return min(self.max_results, self.max_tools_limit)

    @property
    def searches(self) -> bool:
        """True if there is a search at all, however many tools there are."""
        return self.enabled and self.max_tools_limit > 0


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that a gateway could show.

    Attributes:
        name: The name that clients are shown.
        server: Its server; None for the gateway's own.
        listed: The server's own name for it.
    """

    name: str
    server: str | None = None
    listed: str = ""


class ExposedTools:
    """The list of one client's session.

    Args:
        settings: The settings.
        tools: Every tool that this client may call; servers in the order of the file.
        can_follow: False for a client whose list cannot change: it has `call_tool`.
        draw: Returns a random number from 0 to 1, for the order `random`.
    """

    def __init__(
        self,
        settings: ExposureSettings,
        tools: Iterable[OfferedTool],
        *,
        can_follow: bool = True,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings
        self._can_follow = can_follow
        self._draw = draw
        self._drawn: dict[str, float] = {}
        self._found: dict[str, None] = {}
        self._has_found = False
        self._order = _known_order(settings.order)
        self._take(tools)

    def fresh(self) -> ExposedTools:
        """Return the list of a new session; this one must not have taken hits.

        Sessions share the order of the tools, which takes 10 ms for thousands of them.
        """
        if "random" in self._order:
            return ExposedTools(
                self._settings, self._tools.values(), can_follow=self._can_follow, draw=self._draw
            )
        other = copy(self)
        other._found = {}  # noqa: SLF001  # of this class
        return other

    @property
    def listed(self) -> tuple[str, ...]:
        """The names in the list, without the search tool and `call_tool`, which follow them."""
        return self._listed

    @property
    def hidden(self) -> int:
        """The number of tools that are not in the list: N of the search tool's description."""
        return len(self._tools) - len(self._listed)

    @property
    def has_search(self) -> bool:
        """True if the list ends with the search tool."""
        return self._searches

    @property
    def has_call_tool(self) -> bool:
        """True if hidden tools can be called by `call_tool` too."""
        return self._searches and not (self._settings.fill and self._can_follow)

    def replace(self, tools: Iterable[OfferedTool]) -> bool:
        """Take over the current tools, as servers come or go; return True if the list changed.

        What was found and is away is listed again when its server is back.
        """
        before = self._state
        self._take(tools)
        return self._state != before

    def take_hits(self, names: Iterable[str]) -> bool:
        """Take over the hits of a search, best first; return True if the list changed.

        Names that this client may not call are passed over. Without a hit nothing changes, and
        nothing does in a list that cannot follow.
        """
        hits = [name for name in dict.fromkeys(names) if name in self._tools]
        hits = hits[: self._settings.hits]
        if not hits or not self._searches or not self._can_follow:
            return False
        before = self._state
        if self._settings.mode == "replace":
            self._found = {}
        self._found.update(dict.fromkeys(hits))
        self._has_found = True
        self._listed = self._list()
        return self._state != before

    @property
    def _state(self) -> tuple[object, ...]:
        # The number of hidden tools is in a description, so it belongs to the list.
        return self._listed, self._searches, self.hidden

    def _take(self, tools: Iterable[OfferedTool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._servers = {
            server: place
            for place, server in enumerate(dict.fromkeys(t.server for t in self._tools.values()))
        }
        limit = self._settings.max_tools_limit
        self._searches = self._settings.enabled and 0 < limit < len(self._tools)
        self._in_order = sorted(self._tools.values(), key=self._rank)
        self._listed = self._list()

    def _list(self) -> tuple[str, ...]:
        in_order = self._in_order
        if not self._searches:
            return tuple(tool.name for tool in in_order)
        core = (tool.name for tool in in_order if self._is_core(tool))
        shown = dict.fromkeys(core if self._settings.always_loaded else ())
        if self._settings.fill and (not self._has_found or self._settings.mode == "keep"):
            for tool in in_order:
                if len(shown) >= self._settings.max_tools_limit:
                    break
                shown.setdefault(tool.name)
        shown.update(dict.fromkeys(name for name in self._found if name in self._tools))
        return tuple(shown)

    def _is_core(self, tool: OfferedTool) -> bool:
        return any(
            fnmatchcase(name, pattern)
            for pattern in self._settings.always_loaded
            for name in (tool.name, f"{tool.server or ''}:{tool.listed}", tool.listed)
            if name
        )

    def _rank(self, tool: OfferedTool) -> tuple[object, ...]:
        return (*(self._key(strategy, tool) for strategy in self._order), tool.name)

    def _key(self, strategy: _Strategy, tool: OfferedTool) -> float | str:
        if strategy == "server_priority":
            return self._servers[tool.server]
        if strategy == "alphabetical":
            return tool.name
        if tool.name not in self._drawn:
            self._drawn[tool.name] = self._draw()
        return self._drawn[tool.name]


def _known_order(order: Collection[str]) -> tuple[_Strategy, ...]:
    """Return the known strategies; the file's order without any."""
    known = tuple(name for name in _STRATEGIES if name in order)
    return tuple(sorted(known, key=list(order).index)) or ("server_priority",)
