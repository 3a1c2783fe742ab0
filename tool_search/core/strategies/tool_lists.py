"""Tool lists for requests, each built once for its content.

No other module decides the entries of a list and their order. Two promises are kept here: a
list only grows at its end, and the bytes of a catalog stay.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from tool_search.core.messages import DeclaredTool, ToolList

if TYPE_CHECKING:
    from tool_search.core.strategies.history import PlanInput

__all__ = ["ToolsAssembler", "bridged_names", "declared_names"]


class ToolsAssembler:
    """Builds tool lists, and caches them by their content; threads may share it.

    Args:
        capacity: The number of cached lists; the least recently used goes first.
    """

    def __init__(self, *, capacity: int = 256) -> None:
        self._capacity = capacity
        self._lists: OrderedDict[Hashable, ToolList] = OrderedDict()
        self._lock = Lock()

    def full(self, conversation: PlanInput) -> ToolList:
        """Return every tool, not deferred, in the order of the whole catalog, without a search."""
        return self._cache("full", conversation, all_names(conversation), self._declare)

    def filtered(self, conversation: PlanInput) -> ToolList:
        """Return the core, the search tool and discoveries, within the provider's limit."""
        names = declared_names(conversation)
        return self._cache("filtered", conversation, names, self._declare)

    def bridged(self, conversation: PlanInput) -> ToolList:
        """Return the core, the search tool and `call_tool`, which no discovery changes."""
        return self._cache("bridged", conversation, bridged_names(conversation), self._declare)

    def deferring(self, conversation: PlanInput) -> ToolList:
        """Return the whole catalog, with a cache breakpoint on the last tool that is not deferred.

        In `tool_search` mode all but the core and the search tool are deferred.
        """
        return self._cache("deferring", conversation, conversation.catalog_order, self._defer)

    def fixed(self, conversation: PlanInput) -> ToolList:
        """Return the core and the search tool, which no discovery changes."""
        return self._cache("searching", conversation, _fixed_names(conversation), self._declare)

    def natively_searched(self, conversation: PlanInput) -> ToolList:
        """Return the provider's own kind of search tool, the core, and what its form wants.

        Definitions come in messages, so no discovery changes the list. Tools that the
        provider refused in messages are declared after the core.
        """
        form, search = conversation.profile.search_form, conversation.search_tool
        if form == "additional":
            return self.fixed(conversation)
        hidden = conversation.hidden
        own = search.name if search else ""
        shown = _fixed_names(conversation)
        plain = [name for name in shown if name != own]
        rest = (
            [] if form == "client" else [n for n in conversation.catalog_order if n not in hidden]
        )
        waiting = [name for name in rest if name not in plain and name != own]
        names = (own, *plain, *waiting) if waiting or form != "hosted" else tuple(plain)
        make = partial(self._search, waiting=frozenset(waiting))
        return self._cache(f"searched/{len(plain)}", conversation, names, make)

    def light(self, conversation: PlanInput) -> ToolList:
        """Return every tool with its name and description, and an empty schema."""
        return self._cache("light", conversation, all_names(conversation), self._light)

    def chosen(self, conversation: PlanInput) -> ToolList:
        """Return the full definitions of the tools that a `skills_like` model picked."""
        return self._cache("chosen", conversation, conversation.selected, self._declare)

    def _cache(
        self,
        kind: str,
        conversation: PlanInput,
        names: tuple[str, ...],
        make: Callable[[PlanInput, tuple[str, ...]], ToolList],
    ) -> ToolList:
        if conversation.hidden:
            names = tuple(name for name in names if name not in conversation.hidden)
        key = (
            kind,
            conversation.mode,
            conversation.catalog.fingerprint,
            names,
            conversation.core if kind == "deferring" else None,
            conversation.search_tool and conversation.search_tool.shown,
            conversation.call_tool.shown,
            tuple(tool.shown for tool in conversation.retained.values()),
            conversation.profile.set_aside,
        )
        with self._lock:
            known = self._lists.get(key)
            if known is None:
                known = self._lists[key] = make(conversation, names)
                if len(self._lists) > self._capacity:
                    self._lists.popitem(last=False)
            else:
                self._lists.move_to_end(key)
        return known

    @staticmethod
    def _declare(conversation: PlanInput, names: tuple[str, ...]) -> ToolList:
        return ToolList(DeclaredTool(tool) for tool in conversation.definitions(names))

    @staticmethod
    def _search(
        conversation: PlanInput, names: tuple[str, ...], *, waiting: frozenset[str]
    ) -> ToolList:
        search = conversation.search_tool
        return ToolList(
            DeclaredTool(tool, deferred=tool.name in waiting, is_search=tool is search)
            for tool in conversation.definitions(names)
        )

    @staticmethod
    def _light(conversation: PlanInput, names: tuple[str, ...]) -> ToolList:
        tools = conversation.definitions(names)
        return ToolList(DeclaredTool(replace(tool, parameters={})) for tool in tools)

    @staticmethod
    def _defer(conversation: PlanInput, names: tuple[str, ...]) -> ToolList:
        search, tools = conversation.search_tool, list(conversation.definitions(names))
        searching = conversation.mode == "tool_search"
        waiting = [searching and t is not search and t.name not in conversation.core for t in tools]
        last = max((index for index, waits in enumerate(waiting) if not waits), default=-1)
        return ToolList(
            DeclaredTool(tool, deferred=waits, cache_breakpoint=index == last)
            for index, (tool, waits) in enumerate(zip(tools, waiting, strict=True))
        )


def _fixed_names(conversation: PlanInput) -> tuple[str, ...]:
    """Return the names that no discovery changes: the core, the search tool, the refused."""
    search = conversation.search_tool
    own = search.name if search else ""
    shown = [n for n in conversation.declared_order if n in conversation.core or n == own]
    shown += sorted(conversation.refused.difference(shown))
    return tuple(name for name in shown if name not in conversation.hidden)


def all_names(conversation: PlanInput) -> tuple[str, ...]:
    """Return every name; if the provider takes fewer, the first ones and `call_tool`."""
    # Only core tools exceed a limit here: a catalog with deferred tools is searched instead.
    names, most = conversation.catalog_order, conversation.profile.max_tools
    if most is None or len(names) <= most:
        return names
    known = tuple(tool.name for tool in conversation.definitions(names))
    return known if len(known) <= most else (*known[: most - 1], conversation.call_tool.name)


def declared_names(conversation: PlanInput) -> tuple[str, ...]:
    """Return the names of a filtered list, in order, within the provider's limit.

    If discoveries outgrow the list, `call_tool` takes its last place. A model whose
    thinking is bound to the prefix has `call_tool` from the start.
    """
    # `call_tool` takes the place when only one is left: no list that was sent loses an entry.
    search, call = conversation.search_tool, conversation.call_tool.name
    declared, most = conversation.declared_order, conversation.profile.max_tools
    if search is None:
        return declared
    if conversation.profile.thinking_bound_to_prefix:
        return _with_call_tool(declared, search.name, call, most)
    if most is None or len(declared) < most:
        return declared
    if declared.index(search.name) < most - 1:
        return (*declared[: most - 1], call)
    return (*declared[: most - 2], search.name, call)


def bridged_names(conversation: PlanInput) -> tuple[str, ...]:
    """Return the core, the search tool and `call_tool`, within the provider's limit.

    A later core tool is at the end, if the list has room for it.
    """
    search, call = conversation.search_tool, conversation.call_tool.name
    if search is None:
        return conversation.declared_order
    fixed = [n for n in conversation.declared_order if n in conversation.core or n == search.name]
    return _with_call_tool(tuple(fixed), search.name, call, conversation.profile.max_tools)


def _with_call_tool(
    names: tuple[str, ...], search: str, call: str, most: int | None
) -> tuple[str, ...]:
    """Return the names with `call_tool` right after the search tool, both within the limit."""
    place = names.index(search)
    if most is not None and place > most - 2:
        return (*names[: most - 2], search, call)
    return (*names[: place + 1], call, *names[place + 1 :])[:most]
