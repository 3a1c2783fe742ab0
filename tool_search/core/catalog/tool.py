"""The definition of one tool.

A `Tool` is only a definition. The executor that runs it is kept apart, and looked up by
name when the tool is called.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields
from functools import cached_property
from operator import itemgetter
from typing import Any, Literal, get_args

from tool_search.core.catalog.ids import tool_id
from tool_search.core.catalog.naming import Source
from tool_search.core.catalog.parameters import normalized_parameters
from tool_search.core.catalog.tokens import estimate_tokens
from tool_search.core.values.clean_text import clean_name, clean_schema, clean_text
from tool_search.core.values.frozen import EMPTY, FrozenDict, frozen, frozen_items
from tool_search.core.values.json import JSON, compact_json, encodable, plain_copy, shown
from tool_search.errors import InvalidToolError

__all__ = ["Tool", "ToolKind", "schema_of"]

ToolKind = Literal["builtin", "plugin", "mcp", "handoff"]

_KINDS = get_args(ToolKind)
_MAX_NAME_CHARS = 256
_NAMES = f"names have 1 to {_MAX_NAME_CHARS} characters, none of them a control character"
# Control characters, lone surrogates, separators of lines and paragraphs.
_UNFIT = frozenset(("Cc", "Cs", "Zl", "Zp"))
_SELDOM = ("title", "summary", "category", "namespace", "version")
# Names that identify a tool to its server: never cleaned, or two servers could look alike.
_IDENTITIES = ("server", "listed_name")
_TEXTS = (*_IDENTITIES, *_SELDOM)
_LISTS = ("tags", "aliases", "roles")
_seldom = itemgetter(
    *_SELDOM, *_LISTS, "output_schema", "annotations", "examples", "always_load", "listed_name"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """One tool's definition.

    Two tools are equal if their fingerprints are: content counts, not identity.

    Attributes:
        name: The canonical name, unique in a catalog: 1 to 256 characters of any
            script, no control characters, no space at either end; invisible
            characters are taken out. Each dialect derives its own name from it.
        description: The purpose of the tool, as the model reads it.
        parameters: JSON Schema of the arguments; `{}` or None: no arguments.
            The tool keeps a private copy that cannot be changed, as of its other JSON.
        kind: The kind of source; it decides whether the tool is deferred.
        server: The MCP server that lists the tool.
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
        roles: Roles that may call it; empty: everybody may.
        active: False for a tool that is in no list.
        always_load: True for a core tool.
        defer_loading: The inverse of `always_load`, under the name that Claude's API has;
            an argument only.
        listed_name: The name under which its source lists and runs it, if that is not
            `name`: a catalog renames a tool that has another tool's name.

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
    listed_name: str | None = None
    defer_loading: InitVar[bool | None] = None

    def __post_init__(self, defer_loading: bool | None) -> None:
        name = _checked_name(self.name)
        _check_texts(self)
        own = self.__dict__
        if defer_loading is not None:
            own["always_load"] = _loads_always(self, defer_loading)
        if name != self.name:
            own.update(name=name, listed_name=self.listed_name or self.name)
        schema, parameters_json = _plain_schema(name, own.pop("parameters"))
        own.update(_schema=schema, parameters_json=parameters_json)
        own["description"] = clean_text(encodable(self.description or ""))
        for key in _IDENTITIES:
            own[key] = encodable(own[key]) if own[key] else None
        for key in _SELDOM:
            own[key] = clean_text(encodable(own[key])) or None if own[key] else None
        for key in _LISTS:
            texts = own[key] or ()
            own[key] = tuple(clean_text(encodable(text)) for text in texts) if texts else ()
        own["annotations"] = _json_copy(self, "annotations") or EMPTY
        own["examples"] = tuple(_json_copy(self, "examples") or ())
        own["output_schema"] = _json_copy(self, "output_schema")

    # Not a field: the schema's compact JSON, kept so that no request encodes it again.
    parameters_json: str = field(init=False, repr=False, default="{}")

    @property
    def source(self) -> Source:
        """The tool's server, and the name under which that lists it.

        The server is None for the operator's own tools alone; a server without a name is "".
        """
        server = "" if self.server is None and self.kind == "mcp" else self.server
        return server, self.listed_name or self.name

    @property
    def id(self) -> str:
        """The tool's id in a registry: `namespace:name:version`, or as much of it as there is.

        The name alone for a tool without a namespace.
        """
        return tool_id(self.namespace, self.name, self.version)

    @property
    def is_third_party(self) -> bool:
        """True if a server listed the tool, and so wrote its name and its texts."""
        return self.server is not None or self.kind == "mcp"

    @property
    def shown(self) -> tuple[str, str, str]:
        """The parts that a model is shown: name, description, schema as JSON."""
        return self.name, self.description, self.parameters_json

    @cached_property
    def shown_fingerprint(self) -> str:
        """16 hexadecimal digits over the parts that a model is shown."""
        content = "\0".join(self.shown).encode("utf-8", "replace")
        return hashlib.sha256(content).hexdigest()[:16]

    @cached_property
    def estimated_tokens(self) -> int:
        """The tokens of the definition as a model is shown it, by `estimate_tokens`."""
        head = compact_json({"name": self.name, "description": self.description})
        return estimate_tokens(f'{head[:-1]},"parameters":{self.parameters_json}}}')

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits of SHA-256 over the definition's content and its lengths."""
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

    def __copy__(self) -> Tool:
        return self

    def __deepcopy__(self, _memo: object) -> Tool:
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the definition as a JSON object, without default values."""
        content: dict[str, Any] = {"name": self.name, "kind": self.kind}
        for name in _BESIDE_PARAMETERS:
            value = getattr(self, name)
            if value and name not in (*content, "active"):
                content[name] = plain_copy(value) if isinstance(value, (dict, tuple)) else value
        if not self.active:
            content["active"] = False
        return {**content, "parameters": json.loads(self.parameters_json)}

    @classmethod
    def from_dict(cls, definition: Mapping[str, Any]) -> Tool:
        """Return the tool that `to_dict` wrote; unknown keys are passed over."""
        known = {*_BESIDE_PARAMETERS, "parameters", "defer_loading"}
        return cls(**{key: value for key, value in definition.items() if key in known})


_BESIDE_PARAMETERS = tuple(each.name for each in fields(Tool) if each.name[:10] != "parameters")


def _checked_name(given: object) -> str:
    """Return the name without its invisible characters."""
    if not isinstance(given, str):
        raise InvalidToolError(f"a tool's name must be a string, not {shown(given)}")
    if not given or given != given.strip():
        raise InvalidToolError(
            f"tool {given[:60]!r}: its name is empty or ends in a space; {_NAMES}"
        )
    if len(given) > _MAX_NAME_CHARS:
        raise InvalidToolError(f"tool {given[:60]!r}...: has {len(given)} characters; {_NAMES}")
    name = clean_name(given)
    if not name:
        raise InvalidToolError(f"tool {given!r}: its name has no visible character; {_NAMES}")
    is_plain = name.isascii() and name.isprintable()
    if not is_plain and not _UNFIT.isdisjoint(map(unicodedata.category, name)):
        raise InvalidToolError(f"tool {given!r}: the name has a control character; {_NAMES}")
    return name


class _OwnSchema(FrozenDict):
    """The schema of a tool as its users see it; another tool that takes it over shares it."""

    __slots__ = ("plain", "written")
    plain: dict[str, Any]
    written: str


class _Parameters:
    """The attribute `Tool.parameters`, made when it is first read.

    A catalog of 10,000 tools is built in 0.37 s; freezing each schema would add 0.06 s.
    """

    def __get__(self, tool: Tool | None, _: type[Tool]) -> Any:
        if tool is None:
            return self
        own = tool.__dict__
        schema = _OwnSchema(frozen_items(own["_schema"]))
        schema.plain, schema.written = own["_schema"], own["parameters_json"]
        # This is not a data descriptor: from now on the attribute is found without it.
        return own.setdefault("parameters", schema)


# Not in the class body, where it would be the default of the field.
Tool.parameters = _Parameters()  # type: ignore[assignment]


def schema_of(tool: Tool) -> dict[str, Any]:
    """Return a tool's schema for readers in this package, which must not change it.

    Unlike `Tool.parameters` it is a plain dictionary: the validator takes no other, and an
    index reads the schemas of all tools.
    """
    schema: dict[str, Any] = tool.__dict__["_schema"]
    return schema


def _plain_schema(name: str, given: object) -> tuple[dict[str, Any], str]:
    """Return a schema of the tool's own, and the same as compact JSON."""
    if type(given) is _OwnSchema and hasattr(given, "plain"):
        return given.plain, given.written
    schema, written = normalized_parameters(name, given)
    if clean_schema(schema, written):
        written = compact_json(schema)
    return schema, written


def _loads_always(tool: Tool, defer_loading: object) -> bool:
    """Return `always_load` as `defer_loading` states it."""
    if not isinstance(defer_loading, bool):
        raise InvalidToolError(
            f"tool {tool.name!r}: defer_loading must be true or false, not {shown(defer_loading)}"
        )
    if defer_loading and tool.always_load:
        raise InvalidToolError(
            f"tool {tool.name!r}: always_load and defer_loading are both true, and one is the "
            "inverse of the other; leave one out"
        )
    return not defer_loading


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
    """Return a private copy of a value that must be JSON: a catalog never changes."""
    value, shape = getattr(tool, key), Mapping if key != "examples" else (list, tuple)
    if value is None or (not value and isinstance(value, (dict, list, tuple))):
        return EMPTY if isinstance(value, dict) else value
    try:
        if isinstance(value, shape):
            plain = list(value) if key == "examples" else dict(value)
            return frozen(plain_copy(plain))
        problem = f"not {type(value).__name__}"
    except (TypeError, ValueError) as exc:
        problem = str(exc)
    kind = "a list of JSON values" if key == "examples" else "a JSON object"
    raise InvalidToolError(f"tool {tool.name!r}: {key} must be {kind}: {problem}")
