"""Tool lists for requests, each made once for its content.

The one place that decides what stands in a list and in which order, so that
"a list only grows at its end" and "a catalog's bytes stay" are kept here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tool_search.messages import DeclaredTool, ToolList

if TYPE_CHECKING:
    from tool_search.strategies.plan_input import PlanInput

__all__ = ["ToolsAssembler", "bridged_names", "declared_names"]


class ToolsAssembler:
    """Makes tool lists, and keeps the last ones by their content.

    Args:
        capacity: How many lists are kept; the least recently used goes first.
    """

    def __init__(self, *, capacity: int = 256) -> None:
        self._capacity = capacity
        self._lists: OrderedDict[Hashable, ToolList] = OrderedDict()

    def full(self, conversation: PlanInput) -> ToolList:
        """Every tool, shown: the order of the whole catalog, no search tool."""
        return self._kept("full", conversation, all_names(conversation), self._shown)

    def filtered(self, conversation: PlanInput) -> ToolList:
        """The core, the search tool, and what was discovered, within the provider's limit."""
        names = declared_names(conversation)
        return self._kept("filtered", conversation, names, self._shown)

    def bridged(self, conversation: PlanInput) -> ToolList:
        """The core, the search tool and `call_tool`: what no discovery changes."""
        return self._kept("bridged", conversation, bridged_names(conversation), self._shown)

    def deferring(self, conversation: PlanInput) -> ToolList:
        """The whole catalog, a cache breakpoint on the last tool that is shown.

        In `tool_search` mode all but the core and the search tool is deferred.
        """
        return self._kept("deferring", conversation, conversation.catalog_order, self._deferring)

    def fixed(self, conversation: PlanInput) -> ToolList:
        """Return the core and the search tool, which no discovery changes."""
        return self._kept("searching", conversation, _fixed_names(conversation), self._shown)

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
        make = partial(self._searched, waiting=frozenset(waiting))
        return self._kept(f"searched/{len(plain)}", conversation, names, make)

    def light(self, conversation: PlanInput) -> ToolList:
        """Every tool by name and description, with an empty schema."""
        return self._kept("light", conversation, all_names(conversation), self._light)

    def chosen(self, conversation: PlanInput) -> ToolList:
        """The full definitions of the tools that a `skills_like` model picked."""
        return self._kept("chosen", conversation, conversation.selected, self._shown)

    def _kept(
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
        known = self._lists.get(key)
        if known is None:
            known = self._lists[key] = make(conversation, names)
            if len(self._lists) > self._capacity:
                self._lists.popitem(last=False)
        else:
            self._lists.move_to_end(key)
        return known

    @staticmethod
    def _shown(conversation: PlanInput, names: tuple[str, ...]) -> ToolList:
        return ToolList(DeclaredTool(tool) for tool in conversation.definitions(names))

    @staticmethod
    def _searched(
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
    def _deferring(conversation: PlanInput, names: tuple[str, ...]) -> ToolList:
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
    """Every name; where the provider takes fewer, the first ones and `call_tool`.

    Only core tools come to that: a catalog with deferred ones is searched instead.
    """
    names, most = conversation.catalog_order, conversation.profile.max_tools
    if most is None or len(names) <= most:
        return names
    known = tuple(tool.name for tool in conversation.definitions(names))
    return known if len(known) <= most else (*known[: most - 1], conversation.call_tool.name)


def declared_names(conversation: PlanInput) -> tuple[str, ...]:
    """The names in a filtered list, in order, within the provider's limit.

    Where discoveries may outgrow the list, its last place is `call_tool`'s from the
    moment only one is left, so that no list that was sent ever loses an entry. A
    model whose thinking is bound to the prefix has `call_tool` from the start.
    """
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
    """The core, the search tool and `call_tool`, within the provider's limit.

    A core tool that comes late stands at the end, where the list has room for it.
    """
    search, call = conversation.search_tool, conversation.call_tool.name
    if search is None:
        return conversation.declared_order
    fixed = [n for n in conversation.declared_order if n in conversation.core or n == search.name]
    return _with_call_tool(tuple(fixed), search.name, call, conversation.profile.max_tools)


def _with_call_tool(
    names: tuple[str, ...], search: str, call: str, most: int | None
) -> tuple[str, ...]:
    """The names with `call_tool` right behind the search tool, both within the limit."""
    place = names.index(search)
    if most is not None and place > most - 2:
        return (*names[: most - 2], search, call)
    return (*names[: place + 1], call, *names[place + 1 :])[:most]
