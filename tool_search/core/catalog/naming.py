"""The canonical name of each tool, and the owner of each name.

A plain name belongs to the tool that was listed first under it. A later tool of that
name becomes `server__tool`, then `server__tool_2`, and so does one whose name looks like
another's, is another's wire name, or claims another server. A name that a book has given
is never given to another tool, so that a call runs the tool that was shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

from tool_search.core.catalog.names import NAME_RULES, wire_name
from tool_search.core.values.clean_text import clean_name
from tool_search.core.values.look_alikes import look_alike_keys, loose_key

__all__ = ["RESERVED_NAMES", "NameBook", "Named", "Naming", "Source", "name_tools", "reserved_keys"]

Source = tuple[str | None, str]
"""A tool's server, and the name under which that lists it: this never changes.

None for the operator's own tools; an MCP server without a name is "".
"""

RESERVED_NAMES = ("tool_search", "call_tool", "tool_search_tool_bm25", "tool_search_tool_regex")
"""Names of the library's own tools and of those that Anthropic runs: no server's tool has one."""

# Names that every rule leaves unchanged, as nearly all names are.
_PLAIN_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{2,63}")
_SHORTENED_END = re.compile(r"_[0-9a-f]{8}\Z")
_MAX_LABEL_CHARS = 100
_MAX_BASE_CHARS = 240
# Names of tools that are gone and stay reserved, for each server: a server may list ever new ones.
_MAX_GONE = 1_000
_UNNAMED_SERVER = "mcp"


class Named(Protocol):
    """A tool's definition, as far as naming needs it."""

    @property
    def name(self) -> str:
        """The name that the tool would have."""
        ...

    @property
    def source(self) -> Source:
        """The server, and the name under which it lists the tool."""
        ...

    @property
    def is_third_party(self) -> bool:
        """True if a server listed it."""
        ...


class NameBook:
    """The canonical names that were given, by source, oldest first. It never changes.

    Args:
        held: The names.
        lineage: An object that is the same in books that were made from each other.

    Attributes:
        held: The names.
        lineage: The same object for a book and for those that were made from it.
    """

    def __init__(
        self, held: Mapping[Source, str] | None = None, lineage: object | None = None
    ) -> None:
        self.held: Mapping[Source, str] = dict(held or {})
        self.lineage = object() if lineage is None else lineage

    @cached_property
    def owners(self) -> dict[str, Source]:
        """The sources of names, by look-alike key."""
        found: dict[str, Source] = {}
        for source, name in self.held.items():
            for key in name_keys(name):
                found.setdefault(key, source)
        return found

    @cached_property
    def loose_owners(self) -> dict[str, Source]:
        """The first source to have a name of each loose key."""
        found: dict[str, Source] = {}
        for source, name in self.held.items():
            found.setdefault(loose_key(name), source)
        return found

    def unlike(self, other: NameBook) -> dict[Source, str]:
        """Return the names that belong to other tools, or to none, in another book."""
        if self.lineage is other.lineage:
            return {}
        return {
            source: name for source, name in self.held.items() if other.held.get(source) != name
        }

    def with_(self, exceptions: Mapping[Source, str]) -> NameBook:
        """Return a book in which these tools have these names, before all others."""
        if not exceptions:
            return self
        taken = {key for name in exceptions.values() for key in name_keys(name)}
        rest = {
            source: name
            for source, name in self.held.items()
            if source not in exceptions and taken.isdisjoint(name_keys(name))
        }
        return NameBook({**exceptions, **rest})

    def extended(self, given: Mapping[Source, str], present: Iterable[Source]) -> NameBook:
        """Return a book with more names; of those that are gone, each server keeps the last."""
        held = {**self.held, **given}
        keeps_all = all(self.held.get(source, name) == name for source, name in given.items())
        there = set(present)
        gone = [source for source in held if source not in there]
        counts = Counter(server for server, _ in gone)
        for source in gone:
            if counts[source[0]] > _MAX_GONE:
                counts[source[0]] -= 1
                del held[source]
                keeps_all = False
        return NameBook(held, self.lineage if keeps_all else None)


@dataclass(frozen=True, slots=True)
class Naming:
    """The result of naming some tools.

    Attributes:
        names: The name of each present tool, by source.
        book: The book with these names.
        repeated: Sources that were listed more than once; the first tool counts.
    """

    names: Mapping[Source, str]
    book: NameBook
    repeated: tuple[Source, ...]


def name_keys(name: str) -> tuple[str, ...]:
    """Return the look-alike keys of a name and of its wire names under every rule."""
    if _PLAIN_NAME.fullmatch(name) and not _SHORTENED_END.search(name):
        return (name.lower(),)
    return _keys_of_forms(name)


@lru_cache(maxsize=65_536)
def _keys_of_forms(name: str) -> tuple[str, ...]:
    forms = dict.fromkeys((name, *(wire_name(name, rule) for rule in NAME_RULES)))
    return tuple(dict.fromkeys(key for form in forms for key in look_alike_keys(form)))


def reserved_keys(names: Iterable[str]) -> frozenset[str]:
    """Return the look-alike keys of names that no server's tool may have."""
    return frozenset(key for name in (*RESERVED_NAMES, *names) for key in name_keys(name))


def name_tools(tools: Sequence[Named], book: NameBook, reserved: frozenset[str]) -> Naming:
    """Give every tool a name of its own; the names of the book do not change.

    Among new tools, those without a server are named first, then the others in their
    order. Takes time linear in the tools and the names of the book.

    Args:
        tools: The definitions, the oldest first.
        book: The names that are given already.
        reserved: Look-alike keys of names that only tools without a server may have.
    """
    present: dict[Source, Named] = {}
    repeated = []
    for tool in tools:
        source = tool.source
        if source in present:
            repeated.append(source)
        else:
            present[source] = tool
    fresh = [t for s, t in present.items() if _must_be_named(t, book.held.get(s), reserved)]
    given: dict[Source, str] = {}
    if fresh:
        writer = _NameWriter(book, reserved, (server for server, _ in present))
        for tool in sorted(fresh, key=lambda tool: tool.is_third_party):
            given[tool.source] = writer.name(tool)
    names = {source: given.get(source) or book.held[source] for source in present}
    return Naming(names, book.extended(given, present) if given else book, tuple(repeated))


def _must_be_named(tool: Named, held: str | None, reserved: frozenset[str]) -> bool:
    return held is None or (tool.is_third_party and not reserved.isdisjoint(name_keys(held)))


class _NameWriter:
    """Gives names to new tools, one after the other.

    Args:
        book: The names that are given already.
        reserved: Look-alike keys of names that only tools without a server may have.
        servers: Servers whose tools are there.
    """

    def __init__(
        self, book: NameBook, reserved: frozenset[str], servers: Iterable[str | None]
    ) -> None:
        self._owners = dict(book.owners)
        self._loose = dict(book.loose_owners)
        self._reserved = reserved
        known = {*servers, *(server for server, _ in book.held)} - {None}
        self._prefixes = {
            key: server for server in known if server for key in look_alike_keys(f"{server}__")
        }
        self._next: dict[str, int] = {}

    def name(self, tool: Named) -> str:
        """Return a name that nobody else has, and keep it for this tool."""
        chosen = next(name for name in self._candidates(tool) if self._is_free(name, tool))
        for key in name_keys(chosen):
            self._owners.setdefault(key, tool.source)
        self._loose.setdefault(loose_key(chosen), tool.source)
        return chosen

    def _candidates(self, tool: Named) -> Iterator[str]:
        if not tool.is_third_party:
            yield tool.name
            base = tool.name[:_MAX_BASE_CHARS].rstrip()
        else:
            label = f"{_label(tool.source[0])}__"
            if tool.name.startswith(label) or self._may_be_plain(tool):
                yield tool.name
            plain = tool.name.removeprefix(label)
            base = f"{label}{plain}"[:_MAX_BASE_CHARS].rstrip()
            yield base
        key = look_alike_keys(base)[0]
        while True:
            self._next[key] = number = self._next.get(key, 1) + 1
            yield f"{base}_{number}"

    def _may_be_plain(self, tool: Named) -> bool:
        """True if a server's tool may have its own name, as far as that claims nothing."""
        name = tool.name
        if not self._reserved.isdisjoint(name_keys(name)):
            return False
        end = name.find("__", 1)
        while end > 0:
            for key in look_alike_keys(name[: end + 2]):
                if self._prefixes.get(key, tool.source[0]) != tool.source[0]:
                    return False
            end = name.find("__", end + 1)
        return True

    def _is_free(self, name: str, tool: Named) -> bool:
        source = tool.source
        if any(self._owners.get(key, source) != source for key in name_keys(name)):
            return False
        # Names of one server, or of the operator's own tools, cannot deceive each other.
        return self._loose.get(loose_key(name), source)[0] == source[0]


@lru_cache(maxsize=1024)
def _label(server: str | None) -> str:
    """Return a server's name as the beginning of a tool's."""
    visible = "".join(char if char.isprintable() else " " for char in clean_name(server or ""))
    return " ".join(visible.split())[:_MAX_LABEL_CHARS] or _UNNAMED_SERVER
