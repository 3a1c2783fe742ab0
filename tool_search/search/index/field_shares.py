"""Which fields of a definition make a term worth what it is worth.

Asked of the engine's own reading of a definition: a term's frequencies add up over
the fields, so what a field gives is what a tool of that field alone would have.
"""

from __future__ import annotations

from collections.abc import Mapping

from tool_search.catalog.catalog import Tool
from tool_search.search.text.documents import FIELDS, FieldName, field_texts
from tool_search.search.text.terms import tool_terms
from tool_search.search.text.tokenizer import Segmenter

__all__ = ["field_shares"]

# A name without a word, as every tool must have one.
_NAMELESS = "_"
_VALUES = 40
_ROUNDING = 1e-9


def field_shares(
    tool: Tool, segmenter: Segmenter | None = None
) -> dict[str, dict[FieldName, float]]:
    """For each term of a tool the share that each field has in it; they add up to 1."""
    found = {field: _frequencies(part, segmenter) for field, part in _parts(tool).items()}
    texts = found["parameter_texts"]
    # A schema cannot have the names of its parameters alone.
    names = {term: value - texts.get(term, 0.0) for term, value in found["parameters"].items()}
    found["parameters"] = {term: value for term, value in names.items() if value > _ROUNDING}
    shares: dict[str, dict[FieldName, float]] = {}
    for field in FIELDS:
        for term, value in found[field].items():
            shares.setdefault(term, {})[field] = value
    for own in shares.values():
        whole = sum(own.values())
        own.update((field, value / whole) for field, value in own.items())
    return shares


def _parts(tool: Tool) -> dict[FieldName, Tool]:
    """For each field a tool that has nothing else; under `parameters` both fields of a schema."""
    texts = field_texts(tool).get("parameter_texts", [])
    schema = {
        "type": "object",
        "properties": {
            _NAMELESS * (place + 1): {"enum": texts[start : start + _VALUES]}
            for place, start in enumerate(range(0, len(texts), _VALUES))
        },
    }
    return {
        "name": Tool(name=tool.name),
        "aliases": Tool(name=_NAMELESS, aliases=tool.aliases, title=tool.title),
        "server": Tool(name=_NAMELESS, server=tool.server),
        "tags": Tool(
            name=_NAMELESS, tags=tool.tags, category=tool.category, namespace=tool.namespace
        ),
        "description": Tool(name=_NAMELESS, description=tool.description, summary=tool.summary),
        "parameters": Tool(name=_NAMELESS, parameters=tool.parameters),
        "parameter_texts": Tool(name=_NAMELESS, parameters=schema),
    }


def _frequencies(part: Tool, segmenter: Segmenter | None) -> Mapping[str, float]:
    """Each term's frequency as the engine weighs it, in units of its own."""
    impacts = tool_terms(part, segmenter).impacts
    return {term: impact / (1.0 - impact) for term, impact in impacts.items()}
