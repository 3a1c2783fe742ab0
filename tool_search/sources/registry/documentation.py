"""Documentation of tools in three levels of detail, with or without the tools.

Texts are cut when they are registered, and examples that are too large are refused, so that
no documentation fills a model's context.

Source: tooldiscovery, package `tooldoc`, https://github.com/jonwraymond/tooldiscovery.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from threading import Lock
from typing import Any, Literal, get_args

from tool_search.core.catalog.tool import Tool, schema_of
from tool_search.core.values.json import JSON, plain_copy, shown
from tool_search.core.values.redaction import log_failure
from tool_search.errors import InvalidDocsError, ToolNotFoundError
from tool_search.sources.registry.facts import ToolFacts, facts_of

__all__ = [
    "DescriptionLevel",
    "DocumentationStore",
    "SchemaInfo",
    "ToolDescription",
    "ToolDocs",
    "ToolExample",
    "schema_info",
]

DescriptionLevel = Literal["summary", "schema", "full"]
"""`summary`: one or two lines; `schema`: the definition too; `full`: everything."""

_LEVELS = get_args(DescriptionLevel)
_MAX_SUMMARY_CHARS = 200
_MAX_NOTES_CHARS = 2_000
_MAX_EXAMPLE_CHARS = 300
_MAX_RESULT_CHARS = 200
_MAX_ARGS_DEPTH = 5
_MAX_ARGS_KEYS = 50

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExample:
    """An example call of a tool.

    Attributes:
        title: A short label.
        description: What it shows; 300 characters are kept.
        args: The arguments, as JSON: at most 5 levels deep, and 50 keys and items in all.
        result_hint: The form or meaning of the result; 200 characters are kept.
        id: An id of its own, if it has one.
    """

    title: str = ""
    description: str = ""
    args: JSON = field(default_factory=dict)
    result_hint: str = ""
    id: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the example as a JSON object, keys as tooldiscovery has them."""
        content = {"id": self.id, "title": self.title, "description": self.description}
        found: dict[str, Any] = {key: value for key, value in content.items() if value}
        found["args"] = plain_copy(dict(self.args))
        if self.result_hint:
            found["resultHint"] = self.result_hint
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDocs:
    """Documentation of a tool, in addition to its definition.

    Attributes:
        summary: One or two lines; 200 characters are kept. Empty: the tool's description.
        notes: How to use it, its limits and errors; 2,000 characters are kept.
        examples: Example calls.
        external_refs: Addresses of more documentation.
    """

    summary: str = ""
    notes: str = ""
    examples: Sequence[ToolExample] = ()
    external_refs: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaInfo:
    """The facts about a tool's arguments that its schema states.

    Attributes:
        required: The required arguments, in the schema's order.
        types: The types of each argument that states some.
        defaults: The default of each argument that has one.
    """

    required: tuple[str, ...] = ()
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as a JSON object, without empty ones."""
        content = {
            "required": list(self.required),
            "types": {name: list(types) for name, types in self.types.items()},
            "defaults": plain_copy(dict(self.defaults)),
        }
        return {key: value for key, value in content.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDescription:
    """A tool at one level of detail.

    Attributes:
        id: The tool's id.
        level: The level.
        summary: One or two lines.
        facts: Modes, security and hints; at every level.
        tool: The definition; None at level `summary`.
        schema_info: Facts about the arguments; None at level `summary`, or if there are none.
        notes: How to use it; at level `full`.
        examples: Example calls; at level `full`.
        external_refs: Addresses of more documentation; at level `full`.
    """

    id: str
    level: DescriptionLevel
    summary: str
    facts: ToolFacts = field(default_factory=ToolFacts)
    tool: Tool | None = None
    schema_info: SchemaInfo | None = None
    notes: str = ""
    examples: tuple[ToolExample, ...] = ()
    external_refs: tuple[str, ...] = ()

    @property
    def input_modes(self) -> tuple[str, ...]:
        """The forms of input that the tool takes."""
        return self.facts.input_modes

    @property
    def output_modes(self) -> tuple[str, ...]:
        """The forms of output that the tool gives."""
        return self.facts.output_modes

    @property
    def security_summary(self) -> str:
        """The names of the security schemes, sorted, joined by commas."""
        return self.facts.security_summary

    @property
    def hints(self) -> dict[str, Any]:
        """The hints in the tool's annotations, under MCP's names."""
        return dict(self.facts.hints)

    def to_dict(self) -> dict[str, Any]:
        """Return the description as a JSON object, without empty parts."""
        content: dict[str, Any] = {"id": self.id, "summary": self.summary, **self.facts.to_dict()}
        if self.tool is not None:
            content["tool"] = self.tool.to_dict()
        if self.schema_info is not None:
            content["schemaInfo"] = self.schema_info.to_dict()
        if self.notes:
            content["notes"] = self.notes
        if self.examples:
            content["examples"] = [example.to_dict() for example in self.examples]
        if self.external_refs:
            content["externalRefs"] = list(self.external_refs)
        return content


def schema_info(schema: object) -> SchemaInfo | None:
    """Return the facts that a JSON Schema of arguments states, or None if it states none.

    >>> schema_info({"properties": {"n": {"type": "integer", "default": 3}}, "required": ["n"]})
    SchemaInfo(required=('n',), types={'n': ('integer',)}, defaults={'n': 3})
    """
    if not isinstance(schema, Mapping):
        return None
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    parts = {name: part for name, part in known.items() if isinstance(part, Mapping)}
    types = {name: _texts(part.get("type")) for name, part in parts.items()}
    info = SchemaInfo(
        required=_texts(schema.get("required")),
        types={name: found for name, found in types.items() if found},
        defaults={
            name: plain_copy(part["default"]) for name, part in parts.items() if "default" in part
        },
    )
    return info if info.required or info.types or info.defaults else None


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    listed = value if isinstance(value, (list, tuple)) else ()
    return tuple(text for text in listed if isinstance(text, str))


class DocumentationStore:
    """Documentation by tool id; the tools themselves may be elsewhere, or nowhere.

    Safe to share between threads. What goes in and out is copied.

    Args:
        resolve: Returns the tool of an id, or None; an error of it is raised to the caller
            unless the documentation alone is enough.
        max_examples: The most examples that are given for a tool; 0 for all.
    """

    def __init__(
        self, resolve: Callable[[str], Tool | None] | None = None, *, max_examples: int = 0
    ) -> None:
        self._resolve = resolve
        self._max_examples = max_examples
        self._lock = Lock()
        self._docs: dict[str, ToolDocs] = {}

    def document(self, tool_id: str, docs: ToolDocs) -> None:
        """Keep documentation of a tool; it replaces what was kept.

        Raises:
            InvalidDocsError: An example is too large or is not JSON, or a part has a wrong type.
        """
        checked = checked_docs(docs)
        with self._lock:
            self._docs[tool_id] = checked

    def document_examples(self, tool_id: str, examples: Iterable[ToolExample]) -> None:
        """Keep examples of a tool, up to `max_examples`; they replace those that were kept.

        Raises:
            InvalidDocsError: As for `document`.
        """
        kept = tuple(examples)
        if self._max_examples > 0:
            kept = kept[: self._max_examples]
        checked = checked_docs(ToolDocs(examples=kept)).examples
        with self._lock:
            self._docs[tool_id] = replace(self._docs.get(tool_id, ToolDocs()), examples=checked)

    def describe(self, tool_id: str, level: DescriptionLevel = "summary") -> ToolDescription:
        """Return a tool at a level of detail.

        Raises:
            InvalidDocsError: The level is unknown, or only documentation of the tool is known.
            ToolNotFoundError: There is neither a tool nor documentation.
        """
        if level not in _LEVELS:
            known = ", ".join(_LEVELS)
            raise InvalidDocsError(f"invalid detail level {shown(level)}; there are {known}")
        docs = self._find(tool_id)
        tool = self._tool(tool_id, raises=docs is None or level != "summary")
        if tool is None and docs is None:
            raise not_found(tool_id)
        summary = docs.summary if docs else ""
        if tool is not None:
            summary = summary or tool.description[:_MAX_SUMMARY_CHARS]
        facts = ToolFacts() if tool is None else facts_of(tool)
        if level == "summary":
            return ToolDescription(id=tool_id, level=level, summary=summary, facts=facts)
        if tool is None:
            raise InvalidDocsError(
                f"tool required for schema/full level: {shown(tool_id)} is documented and not "
                "registered; ask for level 'summary'"
            )
        found = ToolDescription(
            id=tool_id,
            level=level,
            summary=summary,
            facts=facts,
            tool=tool,
            schema_info=schema_info(schema_of(tool)),
        )
        if level == "schema" or docs is None:
            return found
        return replace(
            found,
            notes=docs.notes,
            examples=self._cap(docs.examples, 0),
            external_refs=tuple(docs.external_refs),
        )

    def examples(self, tool_id: str, *, limit: int = 0) -> tuple[ToolExample, ...]:
        """Return example calls of a tool.

        Args:
            tool_id: The tool's id.
            limit: The most examples; 0 for as many as the store gives.

        Raises:
            ToolNotFoundError: There is neither a tool nor documentation.
        """
        docs = self._find(tool_id)
        if docs is None and self._tool(tool_id, raises=True) is None:
            raise not_found(tool_id)
        return self._cap(docs.examples if docs else (), limit)

    def _find(self, tool_id: str) -> ToolDocs | None:
        with self._lock:
            return self._docs.get(tool_id)

    def _tool(self, tool_id: str, *, raises: bool) -> Tool | None:
        if self._resolve is None:
            return None
        try:
            return self._resolve(tool_id)
        except Exception:
            if raises:
                raise
            # The documentation answers by itself; the resolver's owner has to know.
            log_failure(_log, "the tool of the documented id %r cannot be read", tool_id)
            return None

    def _cap(self, examples: Sequence[ToolExample], limit: int) -> tuple[ToolExample, ...]:
        caps = [cap for cap in (limit, self._max_examples) if cap > 0]
        shown_ones = examples[: min(caps)] if caps else examples
        return tuple(replace(one, args=plain_copy(dict(one.args))) for one in shown_ones)


def not_found(tool_id: object) -> ToolNotFoundError:
    """Return the error for an id that no tool has."""
    return ToolNotFoundError(
        f"tool not found: {shown(tool_id)}; an id is name, namespace:name or "
        "namespace:name:version, as search and page return it"
    )


def checked_docs(docs: ToolDocs) -> ToolDocs:
    """Return documentation with texts cut to what is kept, and copies of all arguments.

    Raises:
        InvalidDocsError: As for `DocumentationStore.document`.
    """
    if not isinstance(docs, ToolDocs):
        raise InvalidDocsError(f"documentation must be ToolDocs(...), not {shown(docs)}")
    for name in ("summary", "notes"):
        _check_text(name, getattr(docs, name))
    for reference in docs.external_refs:
        _check_text("external_refs", reference)
    return ToolDocs(
        summary=docs.summary[:_MAX_SUMMARY_CHARS],
        notes=docs.notes[:_MAX_NOTES_CHARS],
        examples=tuple(_checked_example(*each) for each in enumerate(docs.examples)),
        external_refs=tuple(docs.external_refs),
    )


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidDocsError(f"{name} of a documentation must be text, not {shown(value)}")


def _checked_example(place: int, example: ToolExample) -> ToolExample:
    if not isinstance(example, ToolExample):
        raise InvalidDocsError(f"example {place} must be ToolExample(...), not {shown(example)}")
    for name in ("title", "description", "result_hint", "id"):
        _check_text(f"{name} of example {place}", getattr(example, name))
    label = f"example {place} ({example.title[:60]})"
    if not isinstance(example.args, Mapping):
        raise InvalidDocsError(f"{label}: args must be a JSON object, not {shown(example.args)}")
    try:
        args = plain_copy(dict(example.args))
    except (TypeError, ValueError) as exc:
        raise InvalidDocsError(f"{label}: args must be JSON: {exc}") from exc
    depth, keys = _size(args)
    if depth > _MAX_ARGS_DEPTH or keys > _MAX_ARGS_KEYS:
        raise InvalidDocsError(
            f"args exceeds caps: {label} has depth={depth} (max {_MAX_ARGS_DEPTH}), "
            f"keys={keys} (max {_MAX_ARGS_KEYS}); shorten it"
        )
    return replace(
        example,
        description=example.description[:_MAX_EXAMPLE_CHARS],
        args=args,
        result_hint=example.result_hint[:_MAX_RESULT_CHARS],
    )


def _size(args: object) -> tuple[int, int]:
    """Return the levels of a value, and the number of its keys and items at all levels."""
    depth = keys = 0
    level: list[Any] = [args]
    while parts := [list(v.values()) if isinstance(v, dict) else v for v in level if _has_parts(v)]:
        depth += 1
        keys += sum(map(len, parts))
        level = list(chain.from_iterable(parts))
    return depth, keys


def _has_parts(value: object) -> bool:
    return isinstance(value, (dict, list))
