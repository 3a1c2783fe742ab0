"""Names of tools: their ids, one canonical name each, and their names on the wire."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from typing import Literal, NamedTuple, Protocol, get_args

from tool_search.core.values.clean_text import clean_name, look_alike_keys, loose_key
from tool_search.core.values.json import shown
from tool_search.errors import InvalidToolError

__all__ = [
    "COMMON",
    "NAME_RULES",
    "RESERVED_NAMES",
    "NameBook",
    "NameRule",
    "NameShape",
    "Named",
    "Naming",
    "Source",
    "ToolId",
    "name_tools",
    "normal_tags",
    "parse_tool_id",
    "reserved_keys",
    "tool_id",
    "unique_id",
    "wire_id",
    "wire_name",
]

# A tool's name in a dialect: a function of the canonical name and of names that a service keeps.
#
# So a name never changes when the catalog does.
# Sources: Anthropic, "Tool use", `tools[].name`, and 64 characters for a
# `tool_reference`; OpenAI, "Function calling", `function.name`.


NameShape = Literal["common", "identifier"]
"""`common`: `[a-zA-Z0-9_-]{1,64}`; `identifier`: the same, not starting with `-` or a digit, and of
at least three characters (Moonshot AI, Tool Use: `^[a-zA-Z_][a-zA-Z0-9-_]{2,63}$`)."""


class NameRule(NamedTuple):
    """The names that a service takes.

    Attributes:
        shape: Their characters and length.
        kept: Names that the service keeps for itself, sorted.
    """

    shape: NameShape = "common"
    kept: tuple[str, ...] = ()

    def keeping(self, *names: str) -> NameRule:
        """Return the rule of a service that keeps these names too."""
        return self._replace(kept=tuple(sorted({*self.kept, *names})))


COMMON = NameRule()
NAME_RULES = tuple(NameRule(shape) for shape in get_args(NameShape))
"""The rule of each shape, without kept names."""

_SEARCH = "tool_search"
_OTHER_SEARCH = "find_tools"

_MAX_CHARS = 64
_INVALID = re.compile(r"[^a-zA-Z0-9_-]")
_SHORTENED = re.compile(r"_[0-9a-f]{8}\Z")
_IDENTIFIER = re.compile(r"[a-zA-Z_].{2}")
_MAX_ID_CHARS = 40


@lru_cache(maxsize=65_536)
def wire_name(name: str, rule: NameRule = COMMON) -> str:
    """Return the name as a provider takes it.

    Invalid characters become `_`. If anything was replaced or cut, eight hexadecimal
    digits of the canonical name's SHA-256 are appended. A name that ends as if they were
    appended already is treated alike: it could be another tool's wire name. So is a name that
    the service keeps, but for `tool_search`, which is `find_tools` there.

    >>> wire_name("get_weather"), wire_name("files.read")
    ('get_weather', 'files_read_601e4eb6')
    >>> wire_name("tool_search", COMMON.keeping("tool_search"))
    'find_tools'
    """
    plain = _INVALID.sub("_", name)
    if rule.shape == "identifier" and not _IDENTIFIER.match(plain):
        plain = f"t_{plain}"
    if plain == name and 0 < len(name) <= _MAX_CHARS and not _SHORTENED.search(name):
        if not rule.kept:
            return name
        is_other = _SEARCH in rule.kept and _OTHER_SEARCH not in rule.kept
        if is_other and name == _SEARCH:
            return _OTHER_SEARCH
        if name not in rule.kept and not (is_other and name == _OTHER_SEARCH):
            return name
    return f"{plain[: _MAX_CHARS - 9]}_{_digest(name)}"


@lru_cache(maxsize=65_536)
def wire_id(call_id: str) -> str:
    """Return a call's id as every provider takes it: `[a-zA-Z0-9_-]{1,40}`.

    Anthropic refuses other characters, OpenAI Chat more than 40 of them, and
    some compatible providers write ids such as `functions.get_weather:0`.
    """
    plain = _INVALID.sub("_", call_id)
    if plain == call_id and 0 < len(call_id) <= _MAX_ID_CHARS:
        return call_id
    return f"{plain[: _MAX_ID_CHARS - 9]}_{_digest(call_id)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def unique_id(
    call_id: str, taken: Container[str], numbers: MutableMapping[str, int] | None = None
) -> str:
    """Return the id, with a number appended if it is empty or already taken.

    Providers require ids to be unique in a whole request; some models repeat `call_0`.

    Args:
        call_id: The id as the model gave it.
        taken: The ids of other calls.
        numbers: The last number of each id that repeats, kept from call to call: without
            it, thousands of calls under one id would each count from 2 again.
    """
    if call_id and call_id not in taken:
        return call_id
    start = 2 if numbers is None else numbers.get(call_id, 1) + 1
    for number in count(start):
        numbered = f"{call_id or 'call'}_{number}"
        if numbered not in taken:
            break
    if numbers is not None:
        numbers[call_id] = number
    return numbered


# The canonical name of each tool, and the owner of each name.
#
# A plain name belongs to the tool that was listed first under it. A later tool of that
# name becomes `server__tool`, then `server__tool_2`, and so does one whose name looks like
# another's, is another's wire name, or claims another server. A name that a book has given
# is never given to another tool, so that a call runs the tool that was shown.


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


# Ids of tools in a registry, and the form of their tags.
#
# An id is `name`, `namespace:name` or `namespace:name:version`; a version without a namespace
# is not a part of it. A colon or percent sign inside a part is written as in a URL, so that
# each id has one reading.
#
# Source: tooldiscovery and toolfoundation, https://github.com/jonwraymond/toolfoundation,
# package `model`.


_MAX_PARTS = 3
_MAX_TAGS = 20
_MAX_TAG_CHARS = 64
_UNFIT_IN_TAG = re.compile(r"[^a-z0-9_.-]")


class ToolId(NamedTuple):
    """The parts of a tool's id.

    Attributes:
        namespace: The namespace, or None.
        name: The tool's name.
        version: The version, or None; only an id with a namespace has one.
    """

    namespace: str | None
    name: str
    version: str | None = None

    def __str__(self) -> str:
        return tool_id(*self)


def tool_id(namespace: str | None, name: str, version: str | None = None) -> str:
    """Return the id of a tool.

    >>> tool_id("git", "status"), tool_id("git", "status", "2.0"), tool_id(None, "status", "2.0")
    ('git:status', 'git:status:2.0', 'status')
    """
    parts = (namespace, name, version) if namespace else (name,)
    return ":".join(_escape(part) for part in parts if part)


def parse_tool_id(text: str) -> ToolId:
    """Return the parts of an id.

    Raises:
        InvalidToolError: It has more than two colons, or an empty part.

    >>> parse_tool_id("git:status:2.0")
    ToolId(namespace='git', name='status', version='2.0')
    """
    if not isinstance(text, str):
        raise InvalidToolError(f"a tool's id must be a string, not {shown(text)}")
    parts = text.split(":")
    if len(parts) > _MAX_PARTS or not all(parts):
        raise InvalidToolError(
            f"invalid tool id {shown(text)}: an id is name, namespace:name or "
            "namespace:name:version, without empty parts"
        )
    first, *rest = map(_unescape, parts)
    return ToolId(first, *rest) if rest else ToolId(None, first)


def normal_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags in the form in which a registry compares and lists them.

    Lower case, spaces as `-`, of `a-z0-9-_.` only, at most 64 characters each; at most 20,
    without empty or repeated ones.

    >>> normal_tags(["  Source Control ", "git", "GIT", "a/b", "!"])
    ('source-control', 'git', 'ab')
    """
    found: dict[str, None] = {}
    for tag in tags:
        joined = "-".join(tag.lower().split())
        written = _UNFIT_IN_TAG.sub("", joined)[:_MAX_TAG_CHARS]
        if written:
            found.setdefault(written)
        if len(found) == _MAX_TAGS:
            break
    return tuple(found)


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace(":", "%3A")


def _unescape(part: str) -> str:
    return part.replace("%3A", ":").replace("%25", "%")
