"""The immutable catalog of the tools that a conversation may use."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, TypedDict, TypeVar

from tool_search.core.catalog.naming import (
    NAME_RULES,
    NameBook,
    Source,
    name_tools,
    reserved_keys,
    wire_name,
)
from tool_search.core.catalog.schemas import TextLimits
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.json import json_bytes
from tool_search.errors import DuplicateToolError, InvalidToolError

__all__ = ["CatalogChanges", "CorePolicy", "ToolCatalog", "catalog_changes"]

_T = TypeVar("_T")
# Views of a catalog that are kept: conversations of one bot nearly always share one.
_MAX_VIEWS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CorePolicy:
    """The choice of a catalog's core tools, which are always sent.

    Attributes:
        always_loaded_tools: Names, `server:*` for a server's tools, or globs.
        auto_always_load_builtin: True if every built-in tool is core.
        max_core: The largest number of core tools, if a provider's list is limited:
            hand-off tools come first, then those marked or named, then built-in ones, each
            by name; the others are deferred.
    """

    always_loaded_tools: tuple[str, ...] = ()
    auto_always_load_builtin: bool = True
    max_core: int | None = None

    def is_core(self, tool: Tool) -> bool:
        """True if the tool is always sent, as hand-off tools are."""
        return (
            tool.kind == "handoff"
            or tool.always_load
            or (tool.kind == "builtin" and self.auto_always_load_builtin)
            or any(_names(pattern, tool) for pattern in self.always_loaded_tools)
        )

    def core_of(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """Return the core tools among these, within `max_core`, in name order."""
        core = [tool for tool in tools if self.is_core(tool)]
        if self.max_core is not None and len(core) > self.max_core:
            core = sorted(core, key=_core_rank)[: self.max_core]
        return tuple(sorted(core, key=lambda tool: tool.name))


def _core_rank(tool: Tool) -> tuple[int, str]:
    rank = 0 if tool.kind == "handoff" else 2 if tool.kind == "builtin" else 1
    return rank, tool.name


def _names(pattern: str, tool: Tool) -> bool:
    if pattern == tool.name or fnmatchcase(tool.name, pattern):
        return True
    prefix = f"{tool.server or ''}:"
    if not pattern.startswith(prefix):
        return False
    inner = pattern.removeprefix(prefix)
    return fnmatchcase(tool.name, inner) or fnmatchcase(tool.source[1], inner)


class ToolCatalog(Mapping[str, Tool]):
    """An immutable snapshot of the tools that a conversation may use, by name.

    Iteration is in name order. New tools mean a new catalog.

    Each tool has a name of its own, under every rule of every dialect. A plain name
    belongs to the tool that was listed first under it; tools without a server are named
    before the others. A server's tool whose name is taken, looks like another one,
    claims another server (`server__tool`) or is reserved becomes `server__tool`, then
    `server__tool_2`: `Tool.source` keeps the server's own name for it.

    Args:
        tools: The definitions, the oldest first.
        policy: The choice of core tools.
        restricted: Names that not everybody may call, in addition to tools with roles.
        names: Names that belong to tools already: the `book` of the catalog before.
        reserved: More names that no server's tool may have, such as `search_tool_name`.

    Raises:
        DuplicateToolError: Two tools without a server have the same name.

    >>> catalog = ToolCatalog([Tool(name="b"), Tool(name="a", always_load=True)])
    >>> [tool.name for tool in catalog.core], [tool.name for tool in catalog.deferred]
    (['a'], ['b'])
    >>> list(ToolCatalog(Tool(name="get", server=server) for server in ("mail", "chat")))
    ['chat__get', 'get']
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        policy: CorePolicy | None = None,
        restricted: Iterable[str] = (),
        names: NameBook | None = None,
        reserved: Iterable[str] = (),
    ) -> None:
        self._policy = policy or CorePolicy()
        self._reserved = frozenset(reserved)
        self._restricted = frozenset(restricted)
        listed = _check(tools)
        naming = name_tools(listed, names or NameBook(), reserved_keys(self._reserved))
        self._book = naming.book
        self._repeated = naming.repeated
        _check_repeated(listed, naming.repeated)
        named: dict[str, Tool] = {}
        for tool in listed:
            name = naming.names[tool.source]
            named.setdefault(name, tool if tool.name == name else _rename(tool, name))
        self._tools = dict(sorted(named.items()))
        self._given: ToolCatalog | None = None
        self._views: dict[Hashable, ToolCatalog] = {}
        self._computed: dict[Callable[[ToolCatalog], Any], Any] = {}

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def values(self) -> ValuesView[Tool]:
        """Return the tools, in order."""
        return self._tools.values()

    def __repr__(self) -> str:
        return f"ToolCatalog({len(self.core)} core, {len(self.deferred)} deferred)"

    # Properties, because a fingerprint and cached lists depend on them.
    @property
    def policy(self) -> CorePolicy:
        """The choice of core tools; `with_policy` makes a catalog with another one."""
        return self._policy

    @property
    def book(self) -> NameBook:
        """The owner of each name, tools that are gone included."""
        return self._book

    @property
    def reserved(self) -> frozenset[str]:
        """Names that no server's tool may have, in addition to the usual ones."""
        return self._reserved

    @property
    def repeated(self) -> tuple[Source, ...]:
        """Tools that a server listed more than once, of which the first counts."""
        return self._repeated

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every name, inactive tools too, sorted."""
        return tuple(self._tools)

    @cached_property
    def active(self) -> tuple[Tool, ...]:
        """The tools that are switched on, in name order."""
        return tuple(tool for tool in self._tools.values() if tool.active)

    @cached_property
    def core(self) -> tuple[Tool, ...]:
        """The active tools that are always sent, in name order."""
        return self.policy.core_of(self.active)

    @cached_property
    def deferred(self) -> tuple[Tool, ...]:
        """The active tools that wait to be discovered, in name order."""
        core = {tool.name for tool in self.core}
        return tuple(tool for tool in self.active if tool.name not in core)

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of SHA-256 over the definitions and the core's names."""
        digest = hashlib.sha256()
        for tool in self._tools.values():
            digest.update(tool.fingerprint.encode())
        digest.update(json_bytes([tool.name for tool in self.core]))
        return digest.hexdigest()[:32]

    def once(self, make: Callable[[ToolCatalog], _T]) -> _T:
        """Return the result of a pure function of this catalog, computed at the first call."""
        if make not in self._computed:
            self._computed[make] = make(self)
        made: _T = self._computed[make]
        return made

    def has_computed(self, make: Callable[[ToolCatalog], object]) -> bool:
        """Return True if `once` has the result of this function already."""
        return make in self._computed

    @property
    def given(self) -> ToolCatalog:
        """The catalog of which this is a view, whose names an executor knows; else this one."""
        return self if self._given is None else self._given

    def executable(self, tool: Tool) -> Tool:
        """Return the tool as `given` has it, under the name that its executor knows."""
        return tool if self._given is None else self._given.by_source.get(tool.source, tool)

    @cached_property
    def by_source(self) -> dict[Source, Tool]:
        """Every tool by its source."""
        return {tool.source: tool for tool in self._tools.values()}

    @cached_property
    def by_wire_name(self) -> dict[str, Tool]:
        """The active tools that have another name in some dialect, by that name."""
        names = ((wire_name(tool.name, r), tool) for tool in self.active for r in NAME_RULES)
        return {name: tool for name, tool in names if name not in self._tools}

    @cached_property
    def servers(self) -> dict[str, int]:
        """The number of deferred tools of each server that everybody may call.

        Largest first, equal numbers by name; tools without a server are not counted.
        """
        counts = Counter(
            tool.server for tool in self.deferred if tool.server and self.is_open(tool)
        )
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def is_active(self, name: str) -> bool:
        """True if a tool of this name is switched on."""
        return name in self and self[name].active

    def is_open(self, tool: Tool) -> bool:
        """True if everybody may call a tool: only such tools are counted and described."""
        return not tool.roles and tool.name not in self._restricted

    def restricting(self, names: Iterable[str]) -> ToolCatalog:
        """Return the same definitions, of which some users may not call these."""
        return self._with(self._tools.values(), restricted=names)

    def with_policy(self, policy: CorePolicy) -> ToolCatalog:
        """Return the same definitions under another policy; this catalog if the policy is equal."""
        return self if policy == self.policy else self._with(self._tools.values(), policy=policy)

    def view(
        self,
        *,
        policy: CorePolicy,
        limits: TextLimits | None = None,
        exceptions: Mapping[Source, str] | None = None,
        reserved: Iterable[str] = (),
    ) -> ToolCatalog:
        """Return the same tools as one conversation knows them; equal views are one object.

        Args:
            policy: The choice of core tools.
            limits: The limits of the texts that a model is sent; None: no limits.
            exceptions: Names that belong to other tools in the conversation, by source.
            reserved: Names that no server's tool may have in the conversation.
        """
        exceptions = exceptions or {}
        reserved = self.reserved.union(reserved)
        key = policy, limits, reserved, frozenset(exceptions.items())
        known = self._views.get(key)
        if known is None:
            known = self._build_view(policy, limits, exceptions, reserved)
            if len(self._views) >= _MAX_VIEWS:
                self._views.pop(next(iter(self._views)), None)
            self._views[key] = known
        return known

    def _build_view(
        self,
        policy: CorePolicy,
        limits: TextLimits | None,
        exceptions: Mapping[Source, str],
        reserved: frozenset[str],
    ) -> ToolCatalog:
        sources = (source for source in self.book.held if source in self.by_source)
        oldest_first = [self.by_source[source] for source in sources]
        tools = oldest_first if limits is None else list(map(limits.cut, oldest_first))
        is_same = not exceptions and reserved_keys(reserved) == reserved_keys(self.reserved)
        if is_same and policy == self.policy and tools == oldest_first:
            return self
        naming = name_tools(tools, self.book.with_(exceptions), reserved_keys(reserved))
        made = ToolCatalog(
            tools,
            policy=policy,
            restricted=(naming.names[self[n].source] for n in self._restricted if n in self),
            names=naming.book,
            reserved=reserved,
        )
        made._given = self.given
        return made

    def updated(self, *, added: Iterable[Tool] = (), removed: Iterable[str] = ()) -> ToolCatalog:
        """Return a catalog with tools added or replaced, and others removed.

        An added tool replaces the tool of the same source, whatever their names.
        """
        gone = set(removed)
        kept = {tool.source: tool for name, tool in self._tools.items() if name not in gone}
        kept.update((tool.source, tool) for tool in added)
        return self._with(kept.values())

    def deactivated(self, names: Iterable[str]) -> ToolCatalog:
        """Return a catalog in which these tools are switched off."""
        chosen = set(names)
        return self._with(
            replace(t, active=False) if t.name in chosen else t for t in self._tools.values()
        )

    def _with(self, tools: Iterable[Tool], **changed: Any) -> ToolCatalog:
        kept = {
            "policy": self.policy,
            "restricted": self._restricted,
            "names": self.book,
            "reserved": self.reserved,
        }
        made = ToolCatalog(tools, **{**kept, **changed})
        made._given = self._given
        return made


def _rename(tool: Tool, name: str) -> Tool:
    return replace(tool, name=name, listed_name=tool.source[1])


def _check(tools: Any) -> list[Tool]:
    """Return the definitions as a list.

    Raises:
        InvalidToolError: An item is not a definition; the message says how to make one.
    """
    listed = [tools] if isinstance(tools, str | Mapping) or callable(tools) else list(tools)
    for item in listed:
        if not isinstance(item, Tool):
            # A tool with its function shows its whole definition.
            shown = f"an {type(item).__name__}" if hasattr(item, "tool") else repr(item)
            raise InvalidToolError(f"a catalog holds Tool objects, not {shown}; {_remedy(item)}")
    return listed


def _remedy(wrong: object) -> str:
    """Return how to make a definition of something that is not one."""
    if isinstance(getattr(wrong, "tool", None), Tool):
        return "write item.tool for item in tools, or give the tools to Bot(tools=...)"
    if callable(wrong):
        return (
            "write tool_from_function(function).tool, or give the function to Bot(tools=[...]) "
            "or ToolSearchSession(tools=[...])"
        )
    if isinstance(wrong, Mapping):
        return (
            "write tool_from_definition(definition), which reads the formats of OpenAI, Anthropic "
            "and MCP"
        )
    if isinstance(wrong, str):
        return "write parse_tools(text), of tool_search.catalog.formats, for the text of a file"
    return "write Tool(name=..., description=..., parameters=...)"


def _check_repeated(tools: Iterable[Tool], repeated: Iterable[Source]) -> None:
    """Raise if two of the operator's own tools have one name: a call could mean either."""
    twice = set(repeated)
    own = {t.name for t in tools if t.source in twice and not t.is_third_party} if twice else ()
    if own:
        raise DuplicateToolError(
            f"two tools have the same name: {', '.join(map(repr, sorted(own)[:5]))}; "
            "rename one, or give its server a prefix"
        )


class CatalogChanges(TypedDict):
    """Changes to the deferred tools of a catalog, as an index takes them."""

    added: Sequence[Tool]
    removed: Sequence[str]


def catalog_changes(before: ToolCatalog, after: ToolCatalog) -> CatalogChanges:
    """Return the changes that make one catalog's deferred tools into another's."""
    old = {tool.name: tool for tool in before.deferred}
    new = {tool.name: tool for tool in after.deferred}
    return {
        "added": [tool for name, tool in new.items() if old.get(name) != tool],
        "removed": [name for name in old if name not in new],
    }
