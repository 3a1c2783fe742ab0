"""Entries of a registry, and the checks before a tool becomes one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tool_search.catalog.formats import tool_from_definition
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.json import plain_copy, shown
from tool_search.errors import InvalidToolError
from tool_search.sources.registry.backends import Backend
from tool_search.sources.registry.facts import ToolSummary, meta_facts, summary_of

__all__ = ["Entry", "Registration", "read_tool", "with_registration"]

_MAX_NAME_CHARS = 128
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]")
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
# These may differ between two registrations of a tool: they say how to find it, and who lists it.
_MAY_DIFFER = frozenset(("kind", "server", "listed_name", "tags", "namespace", "version"))


@dataclass(frozen=True, slots=True)
class Registration:
    """A registered tool.

    Attributes:
        tool: The definition.
        backends: The places that can run it, in the order of their registration.
    """

    tool: Tool
    backends: tuple[Backend, ...]


@dataclass(frozen=True)
class Entry:
    """A registered tool with what is derived from it; it never changes.

    Attributes:
        tool: The definition.
        backends: The places that can run it.
        extras: The icons and `_meta` of the definition, as canonical JSON; None: unknown.
        listed: The tool as catalogs have it; see `SourceBook`.
    """

    tool: Tool
    backends: tuple[Backend, ...]
    extras: str | None
    listed: Tool

    def offered_as(self, listed: Tool) -> Entry:
        """Return the entry with the tool as catalogs have it."""
        return replace(self, listed=listed)

    @cached_property
    def summary(self) -> ToolSummary:
        """The tool as lists show it."""
        return summary_of(self.tool)

    def has_text_of(self, other: Entry) -> bool:
        """True if both are found and listed alike."""
        return self.tool == other.tool

    def backend(self, key: tuple[object, ...]) -> Backend | None:
        """Return the backend of an identity, or None."""
        return next((one for one in self.backends if one.key == key), None)

    def without(self, key: tuple[object, ...]) -> Entry:
        """Return the entry without a backend."""
        return replace(self, backends=tuple(one for one in self.backends if one.key != key))


def read_tool(given: object, backend: Backend, *, strict: bool) -> tuple[Tool, str | None]:
    """Return a tool, and its icons and `_meta` as canonical JSON if it is a definition.

    Raises:
        InvalidToolError: It is not a tool, or `strict` refuses its name or its schema.
    """
    if isinstance(given, Tool):
        tool, extras = given, None
    elif isinstance(given, Mapping):
        tool, extras = _from_definition(given, backend, strict=strict)
    else:
        raise InvalidToolError(f"a tool must be a Tool or a definition of one, not {shown(given)}")
    if strict:
        _check_name(tool.name)
    return tool, extras


def _from_definition(
    definition: Mapping[str, Any], backend: Backend, *, strict: bool
) -> tuple[Tool, str]:
    server = backend.name if backend.kind == "mcp" else None
    tool = tool_from_definition(definition, server=server)
    if tool is None:
        raise InvalidToolError(f"{shown(definition)} is a provider's own tool and has no backend")
    inner = definition.get("function")
    parts = (definition, inner) if isinstance(inner, Mapping) else (definition,)
    if strict and all(part.get(key) is None for part in parts for key in _SCHEMA_KEYS):
        raise InvalidToolError(
            f"tool {tool.name!r}: inputSchema is required; write {{'type': 'object'}} for a tool "
            "without arguments, or make the registry with strict=False"
        )
    meta = definition.get("_meta", definition.get("meta"))
    facts = meta_facts(meta)
    annotations = {**facts.pop("annotations", {}), **tool.annotations}
    missing = {key: value for key, value in facts.items() if not getattr(tool, key)}
    extras = _canonical([definition.get("icons") or None, meta or None])
    return replace(tool, annotations=annotations, **missing), extras


def _check_name(name: str) -> None:
    if len(name) > _MAX_NAME_CHARS:
        raise InvalidToolError(
            f"tool {name[:60]!r}...: name exceeds {_MAX_NAME_CHARS} characters: it has {len(name)}"
        )
    unfit = dict.fromkeys(_UNFIT.findall(name))
    if unfit:
        raise InvalidToolError(
            f"tool {name!r}: name contains invalid characters: "
            f"{', '.join(map(repr, unfit))}; A-Z, a-z, 0-9, '_', '.' and '-' are valid, and "
            "strict=False takes any name"
        )


def with_registration(
    known: Entry | None, tool: Tool, extras: str | None, backend: Backend
) -> Entry:
    """Return the entry of a tool after one more registration of it.

    Raises:
        InvalidToolError: The definition differs from the registered one.
    """
    if known is None:
        return Entry(tool, (backend,), extras, tool)
    differing = _find_differing(known, tool, extras)
    if differing:
        raise InvalidToolError(
            f"tool {tool.id!r} is registered with another definition: {', '.join(differing)} "
            "differ; unregister it first, or give the new one another version or namespace"
        )
    # What decides about trust and names stays as it was registered first.
    kept = replace(tool, kind=known.tool.kind, server=known.tool.server)
    if known.backend(backend.key) is None:
        backends = (*known.backends, backend)
    else:
        backends = tuple(backend if one.key == backend.key else one for one in known.backends)
    return Entry(kept, backends, known.extras or extras, kept)


def _find_differing(known: Entry, tool: Tool, extras: str | None) -> list[str]:
    """Return the names of the fields in which a definition differs from the registered one."""
    found = []
    if known.tool != tool:
        old, new = known.tool.to_dict(), tool.to_dict()
        keys = dict.fromkeys((*old, *new))
        found = [
            key
            for key in keys
            if key not in _MAY_DIFFER and _canonical(old.get(key)) != _canonical(new.get(key))
        ]
    if known.extras is not None and extras is not None and known.extras != extras:
        found.append("icons or _meta")
    return found


def _canonical(value: object) -> str:
    """Return equal texts for equal JSON values: 1 and 1.0 are equal, true and 1 are not."""
    try:
        text = json.dumps(plain_copy(value), sort_keys=True)
    except (TypeError, ValueError) as exc:
        raise InvalidToolError(f"a part of a definition must be JSON: {exc}") from exc
    return json.dumps(json.loads(text, parse_float=_number), sort_keys=True)


def _number(written: str) -> float | int:
    value = float(written)
    return int(value) if value.is_integer() else value
