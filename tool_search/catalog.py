"""Tool definitions and the immutable catalog of them.

A `Tool` is only a definition. What runs it, its executor, is kept apart and
looked up by name when the tool is called.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cached_property
from operator import itemgetter
from typing import Any, Literal, get_args

from tool_search.errors import DuplicateToolError, InvalidToolError
from tool_search.names import NameRule, wire_name
from tool_search.schema import (
    JSON,
    compact_json,
    encodable,
    is_plain_object,
    normalized_parameters,
    object_schema,
    plain_copy,
    shown,
)

__all__ = ["CorePolicy", "Tool", "ToolCatalog", "ToolKind"]

ToolKind = Literal["builtin", "plugin", "mcp", "handoff"]

_KINDS = get_args(ToolKind)
_LONGEST_NAME = 256
_NAMES = f"names have 1 to {_LONGEST_NAME} characters, none of them a control character"
# Control characters, lone surrogates, separators of lines and paragraphs.
_UNFIT = frozenset(("Cc", "Cs", "Zl", "Zp"))
_SELDOM = ("title", "summary", "category", "namespace", "version")
_TEXTS = ("server", *_SELDOM)
_LISTS = ("tags", "aliases", "roles")
_seldom = itemgetter(*_SELDOM, *_LISTS, "output_schema", "annotations", "examples", "always_load")
# Bytes around a definition's values: keys, quotes, `defer_loading`; about the same in each dialect.
_DEFINITION_KEYS = len('{"name":,"description":,"input_schema":,"defer_loading":true},')


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """One tool's definition.

    Two tools are equal when their fingerprints are: content counts, not identity.

    Attributes:
        name: The canonical name, unique in a catalog: 1 to 256 characters of any
            script, no control characters, no space at either end. Each dialect
            derives its own name from it.
        description: What the tool is for, as the model reads it.
        parameters: JSON Schema of the arguments; `{}` or None: no arguments.
            The tool keeps a private copy: treat it as read-only.
        kind: Where the tool comes from; decides whether it is deferred.
        server: The MCP server it belongs to.
        title: A name for people.
        summary: A shorter description, for lists.
        tags: Free words to search by.
        aliases: Other names to search by.
        category: A group for people.
        namespace: A group in a registry.
        version: The definition's version in a registry.
        output_schema: JSON Schema of the result.
        annotations: Facts such as `read_only`, `destructive`, `concurrency_safe`.
        examples: Example calls, as arguments.
        roles: Who may call it; empty: everybody.
        active: Inactive tools are in no list.
        always_load: Makes the tool core.

    >>> Tool(name="add", description="Add two numbers.").parameters
    {}
    """

    name: str
    description: str = ""
    parameters: JSON = field(default_factory=dict)
    kind: ToolKind = "plugin"
    server: str | None = None
    title: str | None = None
    summary: str | None = None
    tags: Sequence[str] = ()
    aliases: Sequence[str] = ()
    category: str | None = None
    namespace: str | None = None
    version: str | None = None
    output_schema: JSON | None = None
    annotations: JSON = field(default_factory=dict)
    examples: Sequence[JSON] = ()
    roles: Sequence[str] = ()
    active: bool = True
    always_load: bool = False

    def __post_init__(self) -> None:
        name = _checked_name(self.name)
        _check_texts(self)
        parameters, parameters_json = normalized_parameters(name, self.parameters)
        own = self.__dict__
        own.update(parameters=parameters, parameters_json=parameters_json)
        own["description"] = encodable(self.description or "")
        for key in _TEXTS:
            own[key] = encodable(own[key]) if own[key] else None
        for key in _LISTS:
            own[key] = tuple(map(encodable, own[key])) if own[key] else ()
        own["annotations"] = _json_copy(self, "annotations") or {}
        own["examples"] = tuple(_json_copy(self, "examples") or ())
        own["output_schema"] = _json_copy(self, "output_schema")

    # Not a field: the schema's compact JSON, kept so that no request encodes it again.
    parameters_json: str = field(init=False, repr=False, default="{}")

    @cached_property
    def schema_json(self) -> str:
        """The schema as every provider takes it (`object_schema`), as compact JSON."""
        if is_plain_object(self.parameters):
            return self.parameters_json
        return compact_json(object_schema(self.parameters))

    @property
    def shown(self) -> tuple[str, str, str]:
        """All that a model is shown of the tool: name, description, schema as JSON."""
        return self.name, self.description, self.parameters_json

    @cached_property
    def shown_fingerprint(self) -> str:
        """16 hexadecimal digits over what a model is shown: the rest changes no request."""
        content = "\0".join(self.shown).encode("utf-8", "replace")
        return hashlib.sha256(content).hexdigest()[:16]

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of SHA-256 over the definition's content, told apart by lengths."""
        server, rest = self.server or "", _seldom(self.__dict__)
        head = f"{self.name}\0{self.kind} {self.active} {len(server)} {len(self.description)} "
        seldom = compact_json(rest) if any(rest) else ""
        content = f"{head}{server}{self.description}{seldom}{self.parameters_json}"
        return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:32]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tool):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def to_dict(self) -> dict[str, Any]:
        """The definition as a JSON object, without what has its default value."""
        content: dict[str, Any] = {"name": self.name, "kind": self.kind}
        for name in _BESIDE_PARAMETERS:
            value = getattr(self, name)
            if value and name not in (*content, "active"):
                content[name] = list(value) if isinstance(value, tuple) else value
        if not self.active:
            content["active"] = False
        return {**content, "parameters": self.parameters}

    @classmethod
    def from_dict(cls, definition: Mapping[str, Any]) -> Tool:
        """The tool that `to_dict` wrote; keys it does not know are passed over."""
        known = {*_BESIDE_PARAMETERS, "parameters"}
        return cls(**{key: value for key, value in definition.items() if key in known})


_BESIDE_PARAMETERS = tuple(each.name for each in fields(Tool) if each.name[:10] != "parameters")


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidToolError(f"a tool's name must be a string, not {shown(name)}")
    if not name or name != name.strip():
        raise InvalidToolError(f"tool {name!r}: its name is empty or ends in a space; {_NAMES}")
    if len(name) > _LONGEST_NAME:
        raise InvalidToolError(f"tool {name[:60]!r}...: has {len(name)} characters; {_NAMES}")
    is_plain = name.isascii() and name.isprintable()
    if not is_plain and not _UNFIT.isdisjoint(map(unicodedata.category, name)):
        raise InvalidToolError(f"tool {name!r}: the name has a control character; {_NAMES}")
    return name


def _check_texts(tool: Tool) -> None:
    own = tool.__dict__
    for key in ("description", *_TEXTS):
        value = own[key]
        if value is not None and not isinstance(value, str):
            problem = f"{key} must be a string, not {shown(value)}"
            raise InvalidToolError(f"tool {tool.name!r}: {problem}")
    for key in _LISTS:
        value = own[key]
        listed = value is None or isinstance(value, (list, tuple))
        if value != () and not (listed and all(isinstance(word, str) for word in value or ())):
            problem = f"{key} must be a list of strings, not {shown(value)}"
            raise InvalidToolError(f"tool {tool.name!r}: {problem}")
    if tool.kind not in _KINDS:
        problem = f"kind must be one of {', '.join(_KINDS)}, not {shown(tool.kind)}"
        raise InvalidToolError(f"tool {tool.name!r}: {problem}")


def _json_copy(tool: Tool, key: str) -> Any:
    """A private copy of what must be JSON: a catalog never changes."""
    value, shape = getattr(tool, key), Mapping if key != "examples" else (list, tuple)
    if value is None or (not value and isinstance(value, (dict, list, tuple))):
        return value
    try:
        if isinstance(value, shape):
            plain = list(value) if key == "examples" else dict(value)
            return plain_copy(plain)
        problem = f"not {type(value).__name__}"
    except (TypeError, ValueError) as exc:
        problem = str(exc)
    kind = "a list of JSON values" if key == "examples" else "a JSON object"
    raise InvalidToolError(f"tool {tool.name!r}: {key} must be {kind}: {problem}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CorePolicy:
    """Which tools of a catalog are core, that is always sent.

    Attributes:
        always_loaded_tools: Names, `server:*` for a server's tools, or globs.
        auto_always_load_builtin: Whether every built-in tool is core.
        max_core: The most core tools, where a provider's list is limited: hand-off
            tools come first, then those marked or named, then built-in ones, each
            by name; what is left over is deferred.
    """

    always_loaded_tools: tuple[str, ...] = ()
    auto_always_load_builtin: bool = True
    max_core: int | None = None

    def is_core(self, tool: Tool) -> bool:
        """Whether the tool is sent always; hand-off tools always are."""
        return (
            tool.kind == "handoff"
            or tool.always_load
            or (tool.kind == "builtin" and self.auto_always_load_builtin)
            or any(_names(pattern, tool) for pattern in self.always_loaded_tools)
        )

    def core_of(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """The core tools among these, within `max_core`, in name order."""
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
    return pattern.startswith(prefix) and fnmatchcase(tool.name, pattern.removeprefix(prefix))


class ToolCatalog(Mapping[str, Tool]):
    """An immutable snapshot of the tools a conversation may use, by name.

    Iteration is in name order. New tools mean a new catalog.

    Args:
        tools: The definitions, in any order.
        policy: Which of them are core.
        restricted: Names that not everybody may call, beside those with roles.

    Raises:
        DuplicateToolError: Two tools have the same name.

    >>> catalog = ToolCatalog([Tool(name="b"), Tool(name="a", always_load=True)])
    >>> [tool.name for tool in catalog.core], [tool.name for tool in catalog.deferred]
    (['a'], ['b'])
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        policy: CorePolicy | None = None,
        restricted: Iterable[str] = (),
    ) -> None:
        self.policy = policy or CorePolicy()
        self._restricted = frozenset(restricted)
        listed = list(tools)
        self._tools = {tool.name: tool for tool in sorted(listed, key=lambda tool: tool.name)}
        if len(self._tools) != len(listed):
            counts = Counter(tool.name for tool in listed)
            twice = sorted(name for name, count in counts.items() if count > 1)
            raise DuplicateToolError(
                f"two tools have the same name: {', '.join(map(repr, twice[:5]))}; "
                "rename one, or give its server a prefix"
            )

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"ToolCatalog({len(self.core)} core, {len(self.deferred)} deferred)"

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
        digest.update(compact_json([tool.name for tool in self.core]).encode("utf-8", "replace"))
        return digest.hexdigest()[:32]

    @cached_property
    def by_wire_name(self) -> dict[str, Tool]:
        """The active tools whose name in a dialect is not their own, by that name."""
        rules = get_args(NameRule)
        names = ((wire_name(tool.name, rule), tool) for tool in self.active for rule in rules)
        return {name: tool for name, tool in names if name not in self._tools}

    @cached_property
    def text_bytes(self) -> int:
        """UTF-8 bytes of the active tools' definitions as JSON, keys and all."""
        heads = (compact_json([tool.name, tool.description]) for tool in self.active)
        texts = sum(len(head.encode("utf-8", "replace")) for head in heads)
        schemas = sum(len(tool.schema_json.encode()) for tool in self.active)
        return texts + schemas + _DEFINITION_KEYS * len(self.active)

    @cached_property
    def servers(self) -> dict[str, int]:
        """How many deferred tools each server has, for what everybody may call.

        Largest first, equal counts by name; tools without a server are not counted.
        """
        counts = Counter(
            tool.server for tool in self.deferred if tool.server and self.is_open(tool)
        )
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def is_open(self, tool: Tool) -> bool:
        """Whether everybody may call a tool: only such are counted and described."""
        return not tool.roles and tool.name not in self._restricted

    def restricting(self, names: Iterable[str]) -> ToolCatalog:
        """The same definitions, of which some users may not call these."""
        return self._with(self._tools.values(), restricted=names)

    def with_policy(self, policy: CorePolicy) -> ToolCatalog:
        """The same definitions under another policy; this catalog where it is equal."""
        return self if policy == self.policy else self._with(self._tools.values(), policy=policy)

    def updated(self, *, added: Iterable[Tool] = (), removed: Iterable[str] = ()) -> ToolCatalog:
        """A catalog with tools added or replaced, and others gone."""
        gone = set(removed)
        kept = {name: tool for name, tool in self._tools.items() if name not in gone}
        kept.update((tool.name, tool) for tool in added)
        return self._with(kept.values())

    def deactivated(self, names: Iterable[str]) -> ToolCatalog:
        """A catalog in which these tools are switched off."""
        chosen = set(names)
        return self._with(
            replace(t, active=False) if t.name in chosen else t for t in self._tools.values()
        )

    def _with(self, tools: Iterable[Tool], **changed: Any) -> ToolCatalog:
        kept = {"policy": self.policy, "restricted": self._restricted}
        return ToolCatalog(tools, **{**kept, **changed})
