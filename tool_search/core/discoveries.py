"""The mode of a conversation, what it has discovered, and the order in which tools are declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import Source
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import DiscoveryWay, Notice
from tool_search.core.settings import SchemaMode

__all__ = [
    "OWN_TOOLS",
    "Discovery",
    "DiscoveryState",
    "DiscoveryWay",
    "Mode",
    "ModeDecision",
    "ModeReason",
    "ToolOrder",
    "ToolOrderRecord",
    "core_room",
    "resolve_mode",
    "tool_tokens",
]

# The mode of a conversation, and the reason for it.


Mode = Literal["full", "skills_like", "tool_search"]
ModeReason = Literal[
    "configured",
    "nothing_deferred",
    "above_threshold",
    "above_threshold_tokens",
    "below_threshold",
    "above_provider_limit",
    "search_unavailable",
    "not_offered",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeDecision:
    """The mode of a conversation.

    Attributes:
        mode: The mode.
        reason: The rule that decided it.
    """

    mode: Mode
    reason: ModeReason


def tool_tokens(tool: Tool) -> int:
    """Return the estimated tokens of a definition as a model is shown it."""
    return tool.estimated_tokens


def resolve_mode(
    configured: SchemaMode,
    catalog: ToolCatalog,
    *,
    threshold: int = 25,
    threshold_tokens: int | None = None,
    max_tools: int | None = None,
) -> ModeDecision:
    """Return the mode for a catalog, by the first rule that applies.

    Args:
        configured: `tool_schema_mode`.
        catalog: The tools.
        threshold: `auto` searches above this number of active tools.
        threshold_tokens: `auto` searches also above this number of tokens; None: no such limit.
        max_tools: The longest list that the provider takes.
    """
    if not catalog.deferred:
        mode: Mode = "skills_like" if configured == "skills_like" else "full"
        return ModeDecision(mode=mode, reason="nothing_deferred")
    count = len(catalog.active)
    if configured != "tool_search" and max_tools is not None and count > max_tools:
        return ModeDecision(mode="tool_search", reason="above_provider_limit")
    if configured == "shadow":
        return ModeDecision(mode="full", reason="configured")
    if configured != "auto":
        return ModeDecision(mode=configured, reason="configured")
    if count > threshold:
        return ModeDecision(mode="tool_search", reason="above_threshold")
    if threshold_tokens is not None and sum(map(tool_tokens, catalog.active)) > threshold_tokens:
        return ModeDecision(mode="tool_search", reason="above_threshold_tokens")
    return ModeDecision(mode="full", reason="below_threshold")


# The discoveries of a conversation: ordered, append-only, never reordered.


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """One deferred tool that became callable in a conversation.

    Attributes:
        tool: Its last known definition, kept for when its server goes away.
        via: A search returned it, the model called it by name, it was preloaded, or it was
            found after an answer that said there is no tool.
    """

    tool: Tool
    via: DiscoveryWay = "search"

    @property
    def name(self) -> str:
        """The tool's canonical name."""
        return self.tool.name


class DiscoveryState:
    """The discoveries of one conversation, in the order they were made.

    They are kept outside the message history, so that no compaction and no change of
    provider loses one.

    >>> state = DiscoveryState()
    >>> state.commit([Tool(name="b"), Tool(name="a"), Tool(name="b")], via="search")
    ('b', 'a')
    >>> state.names
    ('b', 'a')

    Attributes:
        version: A number that grows with each addition and each refreshed definition.
    """

    def __init__(self, entries: Iterable[Discovery] = ()) -> None:
        self.version = 0
        self._entries: dict[str, Discovery] = {}
        for entry in entries:
            self._entries.setdefault(entry.name, entry)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[Discovery]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def names(self) -> tuple[str, ...]:
        """The discovered tools' names, oldest first."""
        return tuple(self._entries)

    @property
    def entries(self) -> tuple[Discovery, ...]:
        """The discoveries, oldest first."""
        return tuple(self._entries.values())

    def __getitem__(self, name: str) -> Discovery:
        return self._entries[name]

    def commit(self, tools: Iterable[Tool], *, via: DiscoveryWay) -> tuple[str, ...]:
        """Append the tools that are not discovered yet, and return their names in order."""
        new = []
        for tool in tools:
            if tool.name not in self._entries:
                self._entries[tool.name] = Discovery(tool=tool, via=via)
                self.version += 1
                new.append(tool.name)
        return tuple(new)

    def refresh(self, tool: Tool) -> None:
        """Replace the definition of a tool in its old place, if the tool is discovered."""
        entry = self._entries.get(tool.name)
        if entry is not None and entry.tool != tool:
            self._entries[tool.name] = Discovery(tool=tool, via=entry.via)
            self.version += 1


# The order in which a conversation declares tools; both lists are append-only.
#
# Both kinds of list are kept, because the provider may change at any request:
# `catalog_order` is for the whole catalog (Claude, `full`), `declared_order` for a filtered
# list.


_MAX_LEFT = 1_000
# Places of a provider's tool list that core tools leave free.
_ROOM_FOR_DISCOVERIES = 16
OWN_TOOLS = 2
"""The places of `tool_search` and `call_tool`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOrderRecord:
    """The tool order as a store keeps it.

    Attributes:
        catalog_order: Declared names in the order of the whole catalog.
        declared_order: Declared names of the filtered list.
        core: Names that are never deferred, sorted.
        catalog: The fingerprint of the catalog.
        shown: Fingerprints of the definitions that the model was shown, by name.
        sources: The source of each declared tool, by name; None: an earlier version did not
            keep it.
        former: The sources of tools that were declared and are gone: no other tool gets their
            names in this conversation.
    """

    catalog_order: tuple[str, ...]
    declared_order: tuple[str, ...]
    core: tuple[str, ...]
    catalog: str
    shown: Mapping[str, str]
    sources: Mapping[str, Source] | None = None
    former: Mapping[str, Source] = field(default_factory=dict)


class ToolOrder:
    """The declared names of one conversation.

    Args:
        catalog: The current tools.
        catalog_order: Names in the whole list: core, search tool, deferred, added ones.
        declared_order: Names in the filtered list: core, search tool, then as they came.
        core: Names that are never deferred.

    Attributes:
        left: The last names of tools that were declared and are gone.
    """

    def __init__(
        self,
        catalog: ToolCatalog,
        *,
        catalog_order: Iterable[str],
        declared_order: Iterable[str],
        core: Iterable[str],
    ) -> None:
        self.catalog = catalog
        self.catalog_order = tuple(catalog_order)
        self.declared_order = tuple(declared_order)
        self.core = frozenset(core)
        self.left: tuple[str, ...] = ()
        self._recorded: ToolOrderRecord | None = None
        # The inputs and the result of the last call: most turns change neither.
        self._last_record: tuple[ToolCatalog, object, ToolOrderRecord] | None = None
        self._last_retained: tuple[ToolCatalog, object, dict[str, Tool]] | None = None

    @classmethod
    def start(cls, catalog: ToolCatalog, *, search_tool_name: str) -> ToolOrder:
        """Return the order of a new conversation: the core, the search tool, the deferred tools.

        The core and the deferred tools are sorted by name.
        """
        core = [tool.name for tool in catalog.core]
        deferred = [tool.name for tool in catalog.deferred]
        head = dict.fromkeys((*core, search_tool_name))
        return cls(
            catalog, catalog_order=dict.fromkeys((*head, *deferred)), declared_order=head, core=core
        )

    def rename(self, before: str, after: str) -> None:
        """Give the search tool another name, in its old place of both lists.

        A tool that has the old name too, as it may outside `tool_search`, keeps its place.
        """
        self.catalog_order = _rename(self.catalog_order, before, after, keep=before in self.catalog)
        self.declared_order = _rename(self.declared_order, before, after, keep=before in self.core)

    def append(self, names: Iterable[str]) -> None:
        """Add discoveries to the filtered list, in order."""
        self.declared_order = tuple(dict.fromkeys((*self.declared_order, *names)))

    def append_unlisted(self, discoveries: DiscoveryState) -> None:
        """Add discoveries of another process of the bot, which are in no list yet."""
        self.append(discoveries.names)
        self.catalog_order = tuple(dict.fromkeys((*self.catalog_order, *discoveries.names)))

    def defer(self, catalog: ToolCatalog, discoveries: DiscoveryState) -> None:
        """Follow a catalog of the same tools, fewer of which are core."""
        core = frozenset(tool.name for tool in catalog.core)
        waiting = self.core - core
        self.catalog = catalog
        self.core = core
        self.declared_order = tuple(
            n for n in self.declared_order if n not in waiting or n in discoveries
        )

    @classmethod
    def restored(cls, record: ToolOrderRecord) -> ToolOrder:
        """Return the order of a recorded conversation; the next step is `apply_catalog`."""
        restored = cls(
            ToolCatalog(),
            catalog_order=record.catalog_order,
            declared_order=record.declared_order,
            core=record.core,
        )
        restored.left = tuple(record.former)
        restored._recorded = record
        return restored

    def record(self, mode: Mode) -> ToolOrderRecord:
        """Return the order as a store keeps it; the mode decides which tools the model saw."""
        state = (mode, self.catalog_order, self.declared_order, self.core, self.left)
        last = self._last_record
        if last is None or last[0] is not self.catalog or last[1] != state:
            last = self._last_record = (self.catalog, state, self._record(mode))
        return last[2]

    def _record(self, mode: Mode) -> ToolOrderRecord:
        shown = self.declared_order if mode == "tool_search" else self.catalog_order
        held = {name: source for source, name in self.catalog.book.held.items()}
        return ToolOrderRecord(
            catalog_order=self.catalog_order,
            declared_order=self.declared_order,
            core=tuple(sorted(self.core)),
            catalog=self.catalog.fingerprint,
            shown={n: self.catalog[n].shown_fingerprint for n in shown if n in self.catalog},
            sources={name: held[name] for name in self.catalog_order if name in held},
            former={name: held[name] for name in self.left if name in held},
        )

    def retained(self, discoveries: DiscoveryState) -> Mapping[str, Tool]:
        """Return the last definitions of discovered tools that left the catalog, by name."""
        last = self._last_retained
        if last is None or last[0] is not self.catalog or last[1] != discoveries.version:
            retained = {
                entry.name: entry.tool
                for entry in discoveries
                if (tool := self.catalog.get(entry.name)) is None or not tool.active
            }
            last = self._last_retained = (self.catalog, discoveries.version, retained)
        return last[2]

    def apply_catalog(
        self, catalog: ToolCatalog, discoveries: DiscoveryState, *, mode: Mode, own: Iterable[str]
    ) -> tuple[Notice, ...]:
        """Apply a new catalog, and return notices of the changes to lists already sent.

        Args:
            catalog: The new tools.
            discoveries: The discoveries of the conversation, whose definitions are refreshed.
            mode: Decides which lists the notices are about.
            own: Names of the library's own tools, which belong to no catalog.
        """
        recorded, self._recorded = self._recorded, None
        if catalog.fingerprint == (recorded.catalog if recorded else self.catalog.fingerprint):
            self.catalog = catalog
            return ()
        known = recorded.shown if recorded else _fingerprints(self.catalog)
        old_order, old_core = self.catalog_order, self.core
        present = {tool.name for tool in catalog.active}
        kept = present.union(discoveries.names, own)
        core = frozenset(tool.name for tool in catalog.core)
        shown = (
            frozenset(self.declared_order)
            if mode == "tool_search"
            else frozenset(self.catalog_order)
        )
        fresh = sorted(
            present.difference(self.catalog_order), key=lambda name: (name not in core, name)
        )

        self.catalog = catalog
        self.core = (self.core & kept) | core
        self.catalog_order = (*(name for name in self.catalog_order if name in kept), *fresh)
        left = dict.fromkeys((*self.left, *(name for name in old_order if name not in kept)))
        self.left = tuple(name for name in left if name not in kept)[-_MAX_LEFT:]
        late_core = sorted(core.difference(self.declared_order))
        self.declared_order = (*(name for name in self.declared_order if name in kept), *late_core)

        changed = [tool for tool in catalog.active if _differs(tool, known, discoveries)]
        for tool in catalog.active:
            discoveries.refresh(tool)
        notices = list(self._notices(shown - kept, changed, shown))
        if recorded or changed or (old_order, old_core) != (self.catalog_order, self.core):
            notices.append(_catalog_changed(old_order, self.catalog_order, changed))
        return tuple(notices)

    @staticmethod
    def _notices(
        gone: frozenset[str], changed: Iterable[Tool], shown: frozenset[str]
    ) -> Iterator[Notice]:
        for name in sorted(gone):
            yield Notice("core_tool_gone", f"tool {name!r}, which was always sent, is gone")
        for tool in changed:
            if tool.name in shown:
                yield Notice("schema_changed", f"the definition of tool {tool.name!r} has changed")


def _rename(names: Iterable[str], before: str, after: str, *, keep: bool) -> tuple[str, ...]:
    new = (before, after) if keep else (after,)
    places = (new if name == before else (name,) for name in names)
    return tuple(dict.fromkeys(name for place in places for name in place))


def _fingerprints(catalog: ToolCatalog) -> dict[str, str]:
    return {tool.name: tool.shown_fingerprint for tool in catalog.active}


def _differs(tool: Tool, known: Mapping[str, str], discoveries: DiscoveryState) -> bool:
    """True if a definition that may have been sent has changed."""
    if tool.name in discoveries:
        return discoveries[tool.name].tool.shown != tool.shown
    return known.get(tool.name, tool.shown_fingerprint) != tool.shown_fingerprint


def _catalog_changed(
    before: tuple[str, ...], after: tuple[str, ...], changed: Iterable[Tool]
) -> Notice:
    old, new = set(before), set(after)
    parts = (
        ("added", sorted(new - old)),
        ("gone", sorted(old - new)),
        ("changed", [tool.name for tool in changed]),
    )
    listed = "; ".join(
        f"{len(names)} {what} ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})"
        for what, names in parts
        if names
    )
    return Notice(
        "catalog_changed", f"the catalog has changed: {listed or 'definitions or the core differ'}"
    )


def core_room(max_tools: int) -> int:
    """Return how many core tools a list of this length takes, with room to discover others."""
    return max(1, max_tools - min(_ROOM_FOR_DISCOVERIES, max(OWN_TOOLS, max_tools // 2)))
