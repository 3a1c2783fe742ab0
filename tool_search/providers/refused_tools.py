"""The tools whose definitions a service has refused, found by the words of its refusal.

Some services name the function, some its place in the list, some a part of its schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tool_search.catalog.schema.declared import declared_schema
from tool_search.core.catalog.naming import wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import DeclaredTool
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import StrategyFacts

__all__ = ["SentTools", "refused_tools"]

# Enough of a schema to tell it from others; services and our own errors cut what they repeat.
_SCHEMA_CHARS = 200
_STEP = re.compile(r"[^.\[\]]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentTools:
    """The tools of one request.

    Attributes:
        listed: Its list.
        loaded: The definitions in its messages.
        own: Names of the library's own tools, which no request does without.
        facts: The facts of the strategy that wrote the request; None: those of the strategy
            that is registered under the profile's name for it.
    """

    listed: Sequence[DeclaredTool] = ()
    loaded: Iterable[Tool] = ()
    own: Collection[str] = ()
    facts: StrategyFacts | None = None


def refused_tools(
    found: re.Match[str], sent: SentTools, profile: ProviderProfile
) -> tuple[Tool, ...]:
    """Return the tools that a refusal is about, each once; the library's own are left out.

    Args:
        found: The first place of a wording, with one of the groups `name` (as the dialect
            writes it), `index` and `inner` (a place in the list, or in Google's list
            within a list), `path` (a place in some tool's schema) or `schema` (as Python
            writes it). Other places of the same wording count as well.
        sent: What was sent.
        profile: Who refused it.
    """
    tools = [*(entry.tool for entry in sent.listed), *sent.loaded]
    refused: dict[str, Tool] = {}
    for match in found.re.finditer(found.string):
        groups = {name: said for name, said in match.groupdict().items() if said is not None}
        for tool in _meant(groups, tools, sent, profile):
            if tool.name not in sent.own and not profile.sets_aside(tool):
                refused.setdefault(tool.name, tool)
    return tuple(refused.values())


def _meant(
    groups: Mapping[str, str], tools: Sequence[Tool], sent: SentTools, profile: ProviderProfile
) -> Iterator[Tool]:
    facts = sent.facts or profile.facts
    if "name" in groups:
        name = groups["name"]
        rule = profile.name_rule
        yield from (tool for tool in tools if name in (wire_name(tool.name, rule), tool.name))
    elif "path" in groups:
        yield from _first(tools, lambda schema: _has(schema, groups["path"]))
    elif "schema" in groups:
        said = groups["schema"][:_SCHEMA_CHARS]
        yield from _first(tools, lambda schema: said.startswith(repr(schema)[:_SCHEMA_CHARS]))
    # A search of Responses gathers deferred tools in namespaces: their places are not ours.
    elif facts.dialect != "openai_responses":
        yield from _at(groups, tools[: len(sent.listed)])


def _at(groups: Mapping[str, str], tools: Sequence[Tool]) -> Iterator[Tool]:
    """Yield the tool at a place; Google has one list of all functions, or one for each."""
    outer, inner = int(groups.get("index", 0)), int(groups.get("inner", 0))
    place = max(outer, inner)
    if not (outer and inner) and place < len(tools):
        yield tools[place]


def _first(tools: Sequence[Tool], fits: Callable[[dict[str, Any]], bool]) -> Iterator[Tool]:
    """Yield the first tool whose declared schema fits: services stop at the first, too."""
    fitting = (tool for tool in tools if fits(dict(declared_schema(tool).schema)))
    yield from [tool for tool in [next(fitting, None)] if tool is not None]


def _has(schema: Mapping[str, Any], path: str) -> bool:
    """True if a schema has a part at a path such as `properties.rows.items.anyOf[0]`."""
    part: Any = schema
    for step in _STEP.findall(path):
        if isinstance(part, list) and step.isdecimal():
            part = part[int(step)] if int(step) < len(part) else None
        else:
            part = part.get(step) if isinstance(part, Mapping) else None
    return part is not None and part is not schema
