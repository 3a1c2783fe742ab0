"""The definition of one tool: its parameters, its size in tokens, and what it is known by.

A `Tool` is only a definition. The executor that runs it is kept apart, and looked up by
name when the tool is called.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields
from difflib import get_close_matches
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, Literal, get_args

from tool_search.core.catalog.naming import Source, tool_id
from tool_search.core.values.clean_text import clean_name, clean_schema, clean_text
from tool_search.core.values.json import (
    EMPTY,
    JSON,
    FrozenDict,
    compact_json,
    copy_and_json,
    encodable,
    frozen,
    frozen_items,
    plain_copy,
    shown,
)
from tool_search.errors import InvalidToolError

__all__ = [
    "COMBINATORS",
    "MAX_SCHEMA_BYTES",
    "TYPES",
    "Tool",
    "ToolKind",
    "estimate_tokens",
    "most_tokens",
    "normalized_parameters",
    "read_type",
    "schema_of",
]

# The parameters of a definition: what a tool may ask for, and how its types may be written.


MAX_SCHEMA_BYTES = 1 << 20
"""The most UTF-8 bytes of a schema as JSON."""

COMBINATORS = ("allOf", "anyOf", "oneOf")
"""Keywords of which a value fits one schema or several."""
TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
# Words of programming languages and of OpenAPI for a type, and the format they imply.
_WORDS: Mapping[str, tuple[str, str | None]] = {
    **dict.fromkeys(("int", "int32", "int64", "long", "short", "uint", "bigint"),
                    ("integer", None)),
    **dict.fromkeys(("float", "double", "decimal", "numeric", "float32", "float64"),
                    ("number", None)),
    **dict.fromkeys(("str", "text", "char", "varchar"), ("string", None)),
    **dict.fromkeys(("bool",), ("boolean", None)),
    **dict.fromkeys(("dict", "map", "hash", "struct", "record", "json"), ("object", None)),
    **dict.fromkeys(("list", "tuple", "set", "sequence"), ("array", None)),
    **dict.fromkeys(("none", "nil", "nonetype", "undefined", "void"), ("null", None)),
    **{word: ("string", word) for word in ("date", "time", "uuid", "uri", "email")},
    **dict.fromkeys(("datetime", "date-time", "timestamp"), ("string", "date-time")),
    "url": ("string", "uri"),
}  # fmt: skip
_ANYTHING = frozenset(("any", "mixed", "unknown", "*", ""))
_LIST_OF = "[]"
_SIMILARITY = 0.8
_BETWEEN_TYPES = re.compile(r"\s*(?:\||,|\bor\b)\s*")


def normalized_parameters(name: str, parameters: object) -> tuple[dict[str, Any], str]:
    """Return a private copy of a tool's schema, and the same as compact JSON.

    Args:
        name: The tool's name, for the error.
        parameters: `{}` or None for "no arguments", else an object schema.

    Raises:
        InvalidToolError: It is neither, it is not JSON, or it is too large.
    """
    if parameters is None:
        return {}, "{}"
    if not isinstance(parameters, Mapping):
        raise InvalidToolError(
            f"tool {name!r}: parameters must be an object schema, {{}} or null, "
            f"not {type(parameters).__name__} {shown(parameters)}"
        )
    try:
        copy, text = copy_and_json(dict(parameters))
    except (TypeError, ValueError) as exc:
        raise InvalidToolError(
            f"tool {name!r}: parameters cannot be written as JSON ({exc}); "
            "use plain dictionaries, lists, strings, numbers and booleans"
        ) from exc
    if len(text) > MAX_SCHEMA_BYTES // 4 and (size := len(text.encode())) > MAX_SCHEMA_BYTES:
        raise InvalidToolError(
            f"tool {name!r}: parameters take {size:,} bytes as JSON, and a schema may take "
            f"{MAX_SCHEMA_BYTES:,}; shorten it, or split the tool"
        )
    if copy and not _is_object_schema(copy):
        raise InvalidToolError(
            f'tool {name!r}: parameters must be an object schema ("type": "object") '
            f"or {{}}, not {shown(copy)}"
        )
    return copy, text


def _is_object_schema(schema: JSON) -> bool:
    kind = schema.get("type")
    if kind is None:
        return any(key in schema for key in ("properties", "$ref", *COMBINATORS))
    properties = schema.get("properties")
    # `dict` and `Object` clearly mean it; the declared schema has `object`.
    typed = read_type(kind)
    allowed = typed is not None and "object" in typed.get("type", "object")
    return allowed and (properties is None or isinstance(properties, Mapping))


def read_type(written: object) -> dict[str, Any] | None:
    """Return the meaning of a `type` as keywords of 2020-12, or None if it is not clear.

    No keywords mean that anything is allowed.

    >>> read_type("int"), read_type("string | null"), read_type("any"), read_type("gadget")
    ({'type': 'integer'}, {'type': ['string', 'null']}, {}, None)
    >>> read_type(["string", "string[]"])
    {'type': ['string', 'array'], 'items': {'type': 'string'}}
    """
    if written is None:
        return {}
    if isinstance(written, str):
        parts: list[object] = list(_BETWEEN_TYPES.split(written.strip()))
    elif isinstance(written, list):
        parts = written
    else:
        return None
    types: list[str] = []
    items: list[str | None] = []
    formats: list[str | None] = []
    for part in parts:
        word = "null" if part is None else part.strip().lower() if isinstance(part, str) else "?"
        if word in _ANYTHING:
            return {}
        found = _read_word(word.removesuffix(_LIST_OF))
        if found is None:
            return None
        types.append("array" if word.endswith(_LIST_OF) else found[0])
        (items if word.endswith(_LIST_OF) else formats).append(found[not word.endswith(_LIST_OF)])
    return _read_type(types, items, [each for each in formats if each])


def _read_type(types: list[Any], items: list[Any], formats: list[Any]) -> dict[str, Any]:
    def one_or_all(found: list[Any]) -> Any:
        several = list(dict.fromkeys(found))
        return several[0] if len(several) == 1 else several

    typed = {"type": one_or_all(types)} if types else {}
    typed |= {"items": {"type": one_or_all(items)}} if items else {}
    return typed | ({"format": formats[0]} if formats else {})


@lru_cache(maxsize=1024)
def _read_word(word: str) -> tuple[str, str | None] | None:
    if word in TYPES:
        return word, None
    if word in _WORDS:
        return _WORDS[word]
    near = get_close_matches(word[:16], sorted(TYPES), n=1, cutoff=_SIMILARITY)
    return (near[0], None) if near else None


# An offline estimate of the tokens that a model's tokenizer makes of a text.
#
# Thresholds and savings rest on this number, so it has to be quick, free of
# downloads and the same on every machine; it need not be exact. The text is cut
# about where byte-pair tokenizers cut it (a word, up to three digits, a run of
# punctuation), and every piece, or every character of a script that writes no
# spaces, is charged a rate that was fitted to OpenAI's ``o200k_base``. Its error by
# kind of text and by tokenizer is in ``benchmarks/tokens.md``.
#
# Source: OpenAI, tiktoken, the split pattern of ``o200k_base``.


_LETTERS = "A-Za-z\u00c0-\u024f\u1e00-\u1eff"
_LOWER = "a-z\u00c0-\u024f\u1e00-\u1eff"
_MARKS = r"!-/:-@\[-`{-~\x00-\x08\x0e-\x1f\x7f"


def _counter(pattern: str) -> re.Pattern[str]:
    # The empty group makes findall list one shared "" for each match, not a copy
    # of the match: less time and a tenth of the memory.
    return re.compile(f"(?:{pattern})()")


# Tokens for each match. A look-ahead that all branches share lets the engine skip
# other characters at once.
_PIECE_RATES = (
    (
        _counter(f"(?=[{_LETTERS}0-9])(?:[A-Z]?[{_LOWER}]{{1,13}}|[A-Z]{{1,3}}|[0-9]{{1,3}})"),
        1.02,
    ),
    (_counter(" (?=[0-9])"), 0.75),
    # One mark between two letters (snake_case, don't) joins the word after it.
    (_counter(f"[{_MARKS}](?:[{_MARKS}]{{1,3}}|(?![A-Za-z])|(?<![A-Za-z].))[\\r\\n]*"), 1.1),
    # White space other than the one blank that belongs to the next word.
    (_counter(r"[\t-\r ](?:(?<=[\t-\r])| )[\t-\r ]{0,62}"), 0.43),
)
_CYRILLIC = _counter("[\u0400-\u052f]{1,5}")
_CYRILLIC_RATE = 1.0

# Tokens for each character, by script.
_CHARACTERS = (
    ("\u00a0-\u00bf\u2010-\u203f\u3000-\u303f\uff00-\uffef", 1.13),  # punctuation, full width
    ("\u00c0-\u00ff", 0.41),  # accents: in addition to their word
    ("\u0100-\u024f", 1.31),
    ("\u1e00-\u1eff", 0.0),  # Vietnamese
    ("\u3400-\u9fff\uf900-\ufaff", 0.67),  # Han
    ("\u3040-\u30ff", 0.61),  # kana
    ("\uac00-\ud7af", 0.64),  # Hangul
    ("\u0370-\u03ff\u1f00-\u1fff", 0.39),  # Greek
    ("\u0590-\u06ff", 0.37),  # Hebrew, Arabic
    ("\u0900-\u0fff\u10a0-\u10ff", 0.36),  # Indic scripts, Thai, Georgian
    ("\u200b-\u200f\ufe00-\ufe0f", 0.8),  # joiners, variation selectors
    ("\u2190-\u2bff\U0001f000-\U0001faff", 1.6),  # symbols, emoji
)
_CHARACTER_RATES = (
    *((re.compile(f"[{characters}]+"), rate) for characters, rate in _CHARACTERS if rate),
    (
        re.compile(f"[^\x00-\x7f\u0400-\u052f{''.join(script for script, _ in _CHARACTERS)}]+"),
        2.0,
    ),
)
_NOT_ASCII = re.compile("[^\x00-\x7f]+")
_DIGITS = re.compile("[0-9]+")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]+")
# Measured: without it, 21 % are missing on Mistral.
_MORE_A_HAN = 0.18


def estimate_tokens(text: str) -> int:
    """Estimate the tokens that a current model's tokenizer makes of a text.

    Pure, deterministic, linear in the length of the text. Joining two texts adds
    at most 2 to the sum of their estimates.

    Args:
        text: Prose, or JSON as it is sent. Lone surrogates are allowed.

    Returns:
        Tokens: 0 for the empty text, at least 1 for any other.

    Example:
        >>> estimate_tokens("What is the weather in Paris?")
        7
        >>> estimate_tokens("")
        0
    """
    if not text:
        return 0
    tokens = sum(rate * len(pieces.findall(text)) for pieces, rate in _PIECE_RATES)
    if not text.isascii():
        tokens += _beyond_ascii(text)
    return max(1, round(tokens))


def most_tokens(text: str) -> int:
    r"""Estimate the tokens of a text by the tokenizers that make the most of it.

    For limits of a window: Qwen and Mistral make a token of each digit, and Mistral more of
    Chinese, so that `estimate_tokens` is 16 to 21 % too low on results full of them. At least
    `estimate_tokens`.

    Source: the split patterns of Qwen 2 and later and of Mistral's Tekken, which have `\p{N}`.
    """
    digits = [len(run) for run in _DIGITS.findall(text)]
    more = sum(digits) - sum(-(-length // 3) for length in digits)
    han = 0 if text.isascii() else len("".join(_HAN.findall(text)))
    return estimate_tokens(text) + more + round(_MORE_A_HAN * han)


def _beyond_ascii(text: str) -> float:
    runs = " ".join(_NOT_ASCII.findall(text))
    tokens = _CYRILLIC_RATE * len(_CYRILLIC.findall(runs))
    # Most texts hold one or two scripts: a look at the distinct characters saves
    # the other passes.
    present = "".join(set(runs))
    for script, rate in _CHARACTER_RATES:
        if script.search(present):
            tokens += rate * len("".join(script.findall(runs)))
    return tokens


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

    # Kept, as the next: a catalog and its indexes ask each of thousands of tools several times.
    @cached_property
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

    @cached_property
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
