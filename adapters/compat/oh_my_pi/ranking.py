"""oh-my-pi's ranking for `search_tool_bm25`: its words, fields, weights and order.

A tool is a bag of words with weights: 6 for words of its name, 4 for those of its label
and of its name on its MCP server, 2 for those of its server's name and its summary, 1 for
those of each argument's name. BM25+ with k1 1.2, b 0.75 and delta 1 ranks the bags; ties
by name, in the order of JavaScript's `localeCompare`.

Source: oh-my-pi, `docs/tools/search_tool_bm25.md`, https://github.com/can1357/oh-my-pi.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from tool_search.adapters.compat.weighted_bm25 import Bm25Recipe, WeightedBm25Index
from tool_search.catalog.schema.declared import declared_schema, object_schema
from tool_search.core.catalog.tool import Tool, schema_of

if TYPE_CHECKING:
    from tool_search.config.search import SearchSettings

__all__ = [
    "DiscoverableTool",
    "ToolSource",
    "build",
    "discoverable",
    "locale_key",
    "oh_my_pi_recipe",
    "oh_my_pi_tokens",
]


_SIGNS = {sign: place for place, sign in enumerate("\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$")}
_SIGN, _DIGIT, _LETTER = range(3)
# A letter of its own in the standard, not an и with an accent.
_SHORT_I = "и\u0306"

LocaleKey = tuple[tuple[tuple[int, int, str], ...], tuple[str, ...], tuple[bool, ...]]


def locale_key(name: str) -> LocaleKey:
    """Return a sort key of a name, in the order of JavaScript's `localeCompare`.

    White space, `_`, `-` and other signs come before digits and these before letters. Accents
    count only between names that are equal without them, then case, lower first. Exact for
    ASCII names; other scripts follow the order of their letters in Unicode, which is close to
    the standard's.

    Source: Unicode Technical Standard 10, root collation of CLDR, as ICU's default.

    >>> sorted(["a2", "b", "aB", "A1", "ab", "a-b", "a_b"], key=locale_key)
    ['a_b', 'a-b', 'A1', 'a2', 'ab', 'aB', 'b']
    """
    letters: list[tuple[int, int, str]] = []
    accents: list[str] = []
    capitals: list[bool] = []
    for char in unicodedata.normalize("NFD", name):
        category = unicodedata.category(char)
        if category.startswith("M"):
            if letters and letters[-1][2] + char == _SHORT_I:
                letters[-1] = (_LETTER, 0, "й")
            elif letters:
                accents[-1] += char
        elif char in _SIGNS or not category.startswith("C"):
            letters.append(_primary(char, category))
            accents.append("")
            capitals.append(category == "Lu")
    return tuple(letters), tuple(accents), tuple(capitals)


def _primary(char: str, category: str) -> tuple[int, int, str]:
    if char in _SIGNS:
        return _SIGN, _SIGNS[char], ""
    if category == "Nd":
        return _DIGIT, unicodedata.decimal(char), ""
    if category.startswith(("L", "N")):
        return _LETTER, 0, char.lower()
    return _SIGN, len(_SIGNS), char


ToolSource = Literal["builtin", "mcp", "extension", "custom"]

_NAME, _LABEL, _MCP_NAME, _SERVER, _SUMMARY, _SCHEMA_KEY = 6, 4, 4, 2, 2, 1
_SUMMARY_UNITS = 200
_MAX_VALUES = 8
_MAX_FIELD_CHARS = 20_000
_MAX_KEYS = 2_000
_SOURCES: Mapping[str, ToolSource] = {
    "builtin": "builtin",
    "mcp": "mcp",
    "plugin": "extension",
    "handoff": "custom",
}
_KINDS_OF_CATEGORY = {"Lu": "U", "Ll": "l", "L": "L", "N": "n", "M": "M"}
# An upper-case run ends before its last letter if a lower-case one follows that, and
# a word ends before an upper-case letter that follows a lower-case one or a number.
_TOKEN = re.compile(r"[^ ](?:(?!(?<=U)Ul|(?<=[ln])U)[^ ])*")


class _Kinds(dict[int, str]):
    """The kind of each character to the tokenizer, as one letter, computed on demand."""

    def __missing__(self, code: int) -> str:
        category = unicodedata.category(chr(code))
        kind = _KINDS_OF_CATEGORY.get(category) or _KINDS_OF_CATEGORY.get(category[0], " ")
        self[code] = kind
        return kind


_kinds = _Kinds()


def oh_my_pi_tokens(text: str) -> list[str]:
    """Return the words of a text, in order.

    NFKD without marks, cut at MCP|Tool, foo|Bar and v2|Beta and at every character that is
    neither letter nor number, in lower case. No stemming, no stop words; Chinese is not cut.

    >>> oh_my_pi_tokens("createGitHubIssue for userIDs, it's 查找图片")
    ['create', 'git', 'hub', 'issue', 'for', 'user', 'i', 'ds', 'it', 's', '查找图片']
    """
    plain = unicodedata.normalize("NFKD", text)
    kinds = plain.translate(_kinds)
    if "M" in kinds:
        plain = "".join(char for char, kind in zip(plain, kinds, strict=True) if kind != "M")
        kinds = kinds.replace("M", "")
    return [plain[found.start() : found.end()].lower() for found in _TOKEN.finditer(kinds)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverableTool:
    """A tool as oh-my-pi describes one that can be found.

    Attributes:
        name: Its name.
        label: Its name for people.
        summary: A short description.
        source: Its origin.
        server_name: Its MCP server.
        mcp_tool_name: Its name on that server.
        schema_keys: The names of its arguments, sorted.
        signature: The same as `key`, `key?` if it is optional, with the values of a list of
            strings: `key(a|b)`; at most 8 values, then `|…`.
    """

    name: str
    label: str
    summary: str
    source: ToolSource
    server_name: str | None = None
    mcp_tool_name: str | None = None
    schema_keys: tuple[str, ...] = ()
    signature: tuple[str, ...] = ()


def discoverable(tool: Tool, *, summary: str | None = None) -> DiscoverableTool:
    """Return oh-my-pi's description of a tool.

    The name on the MCP server is `annotations["mcp_tool_name"]`, or else the name without the
    prefix `mcp__<server>_`.

    Args:
        tool: The tool.
        summary: Replaces its own summary, even if empty; None for its own, or else the
            first 200 characters (UTF-16 units) of its description.
    """
    is_mcp = tool.kind == "mcp" or tool.name.startswith("mcp__")
    properties, required = _arguments(tool)
    keys = sorted(properties, key=_utf16)[:_MAX_KEYS]
    if summary is None:
        summary = tool.summary or _first_units(tool.description)
    return DiscoverableTool(
        name=tool.name,
        label=tool.title or tool.name,
        summary=summary,
        source="mcp" if is_mcp else _SOURCES[tool.kind],
        server_name=tool.server,
        mcp_tool_name=_mcp_tool_name(tool) if is_mcp else None,
        schema_keys=tuple(keys),
        signature=tuple(_signature(key, properties[key], key in required) for key in keys),
    )


def oh_my_pi_recipe(summaries: Mapping[str, str] | None = None) -> Bm25Recipe:
    """Return the ranking as a recipe.

    Args:
        summaries: Summaries by tool name, which replace the tools' own.
    """
    given = dict(summaries or {})

    def weights(tool: Tool) -> Mapping[str, int]:
        return _weights(discoverable(tool, summary=given.get(tool.name)), _own_keys(tool))

    return Bm25Recipe(
        tokens=oh_my_pi_tokens, weights=weights, order=locale_key, k1=1.2, b=0.75, delta=1.0
    )


def _weights(tool: DiscoverableTool, keys: Iterable[str]) -> dict[str, int]:
    fields = (
        (_NAME, tool.name),
        (_LABEL, tool.label),
        (_SERVER, tool.server_name),
        (_MCP_NAME, tool.mcp_tool_name),
        (_SUMMARY, tool.summary),
        *((_SCHEMA_KEY, key) for key in keys),
    )
    weights: dict[str, int] = {}
    for weight, text in fields:
        for token in oh_my_pi_tokens((text or "")[:_MAX_FIELD_CHARS]):
            weights[token] = weights.get(token, 0) + weight
    return weights


def _own_keys(tool: Tool) -> list[str]:
    """Return the names of a tool's arguments as its author wrote them."""
    properties = object_schema(schema_of(tool))["properties"]
    return sorted(properties, key=_utf16)[:_MAX_KEYS]


def _mcp_tool_name(tool: Tool) -> str:
    annotated = tool.annotations.get("mcp_tool_name")
    if isinstance(annotated, str):
        return annotated
    if tool.name.startswith("mcp__"):
        rest = tool.name.removeprefix("mcp__")
        if tool.server and rest.startswith(f"{tool.server}_"):
            return rest.removeprefix(tool.server).lstrip("_")
        return rest.partition("__")[2] or rest
    return tool.name


def _arguments(tool: Tool) -> tuple[Mapping[str, Any], frozenset[str]]:
    """Return the properties of the declared schema, and the names of the required ones."""
    schema = declared_schema(tool).schema
    required = schema.get("required", [])
    return schema["properties"], frozenset(key for key in required if isinstance(key, str))


def _signature(key: str, definition: object, is_required: bool) -> str:
    listed = definition.get("enum") if isinstance(definition, Mapping) else None
    values = [v for v in listed if isinstance(v, str)] if isinstance(listed, list) else []
    shown = "|".join(islice(values, _MAX_VALUES))
    more = "|…" if len(values) > _MAX_VALUES else ""
    return f"{key}{'' if is_required else '?'}{f'({shown}{more})' if values else ''}"


def _utf16(text: str) -> bytes:
    """Return a sort key of a text, in the order of JavaScript."""
    return text.encode("utf-16-be", "surrogatepass")


def _first_units(text: str) -> str:
    units = text[:_SUMMARY_UNITS].encode("utf-16-le", "surrogatepass")[: 2 * _SUMMARY_UNITS]
    return units.decode("utf-16-le", "ignore")


def build(tools: Iterable[Tool], settings: SearchSettings) -> WeightedBm25Index:
    """Build the index of the preset `oh-my-pi`.

    Args:
        tools: The tools to search, in any order.
        settings: The `search` section.
    """
    return WeightedBm25Index(tools, oh_my_pi_recipe(), min_relevance=settings.min_relevance)
