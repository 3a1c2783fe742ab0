"""The facts about a tool that a registry shows without its schema.

Source: tooldiscovery, package `index`, `Summary`; Model Context Protocol, `ToolAnnotations`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tool_search.core.catalog.naming import normal_tags
from tool_search.core.catalog.tool import Tool

__all__ = ["ToolFacts", "ToolSummary", "facts_of", "meta_facts", "summary_of"]

_MAX_SUMMARY_CHARS = 120
# A server may claim any number of modes and schemes, of any length.
_MAX_NAMES = 20
_MAX_NAME_CHARS = 100
_MODES = {"input_modes": "inputModes", "output_modes": "outputModes"}
_SCHEMES = "security_schemes"
_HINTS = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
_HINT_NAMES = frozenset(_HINTS.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFacts:
    """The forms that a tool takes and gives, its security, and the hints of its author.

    Hints are claims: nothing is permitted because of them.

    Attributes:
        input_modes: The forms of input, such as `text/plain`.
        output_modes: The forms of output.
        security_summary: The names of the security schemes, sorted, joined by commas.
        hints: `readOnlyHint`, `destructiveHint`, `idempotentHint`, `openWorldHint`, as far as
            the tool has them.
    """

    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    security_summary: str = ""
    hints: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as a JSON object, without empty ones."""
        content = {
            "inputModes": list(self.input_modes),
            "outputModes": list(self.output_modes),
            "securitySummary": self.security_summary,
            "annotations": dict(self.hints),
        }
        return {key: value for key, value in content.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSummary:
    """A registered tool in a list: never its schema.

    Attributes:
        id: The tool's id.
        name: The tool's name.
        namespace: Its namespace, or None.
        summary: The tool's summary or description, at most 120 characters.
        category: Its category, or None.
        input_modes: The forms of input.
        output_modes: The forms of output.
        security_summary: The names of the security schemes, sorted, joined by commas.
        tags: The tags, normalized.
        score: The relevance, from 0 to 1; 0 without a query.
        score_type: What made the score: `bm25`, `embedding`, `hybrid`, `lexical`, another
            engine's name, or "" for an engine of one's own and without a query.
    """

    id: str
    name: str
    namespace: str | None = None
    summary: str = ""
    category: str | None = None
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    security_summary: str = ""
    tags: tuple[str, ...] = ()
    score: float = field(default=0.0, compare=False)
    score_type: str = field(default="", compare=False)

    @property
    def short_description(self) -> str:
        """The summary under tooldiscovery's other name for it."""
        return self.summary

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as a JSON object, keys as tooldiscovery has them."""
        content = {
            "id": self.id,
            "name": self.name,
            "namespace": self.namespace,
            "shortDescription": self.summary,
            "category": self.category,
            "inputModes": list(self.input_modes),
            "outputModes": list(self.output_modes),
            "securitySummary": self.security_summary,
            "tags": list(self.tags),
        }
        return {key: value for key, value in content.items() if value}


def facts_of(tool: Tool) -> ToolFacts:
    """Return a tool's facts, which its `annotations` hold.

    Keys: `input_modes`, `output_modes` and `security_schemes` as lists of names, the last
    one also as an object by name; and the hints, under MCP's names or ours.
    """
    facts = tool.annotations
    hints = {
        _HINTS.get(key, key): value
        for key, value in facts.items()
        if (key in _HINTS or key in _HINT_NAMES) and isinstance(value, bool)
    }
    return ToolFacts(
        input_modes=_names(facts.get("input_modes")),
        output_modes=_names(facts.get("output_modes")),
        security_summary=",".join(sorted(_names(facts.get(_SCHEMES)))),
        hints=hints,
    )


def summary_of(tool: Tool) -> ToolSummary:
    """Return a tool as lists show it."""
    facts = facts_of(tool)
    return ToolSummary(
        id=tool.id,
        name=tool.name,
        namespace=tool.namespace,
        summary=(tool.summary or tool.description)[:_MAX_SUMMARY_CHARS],
        category=tool.category[:_MAX_NAME_CHARS] if tool.category else None,
        input_modes=facts.input_modes,
        output_modes=facts.output_modes,
        security_summary=facts.security_summary,
        tags=normal_tags(tool.tags),
    )


def meta_facts(meta: object) -> dict[str, Any]:
    """Return what the `_meta` of a definition says, as fields of a `Tool`.

    `summary`, `category`, `inputModes`, `outputModes`, `securityRequirements` or else
    `securitySchemes`; all else is passed over.
    """
    if not isinstance(meta, Mapping):
        return {}
    found: dict[str, Any] = {
        key: meta[key]
        for key in ("summary", "category")
        if isinstance(meta.get(key), str) and meta[key]
    }
    facts = {ours: list(_names(meta.get(theirs))) for ours, theirs in _MODES.items()}
    required = meta.get("securityRequirements")
    requirements = required if isinstance(required, Sequence) else ()
    schemes = [
        name for one in requirements if isinstance(one, Mapping) for name in _names(one)
    ] or _names(meta.get("securitySchemes"))
    facts[_SCHEMES] = sorted(dict.fromkeys(schemes))
    found["annotations"] = {key: value for key, value in facts.items() if value}
    return found


def _names(value: object) -> tuple[str, ...]:
    """Return the texts of a list, or the keys of an object."""
    if isinstance(value, str) or not isinstance(value, (Mapping, Sequence)):
        return ()
    names = [one[:_MAX_NAME_CHARS] for one in value if isinstance(one, str)]
    return tuple(names[:_MAX_NAMES])
