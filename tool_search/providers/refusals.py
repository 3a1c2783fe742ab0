"""The meanings of services' refusals: a row for each wording, with its source.

The rows are tables of the adapters, one for each dialect. They are named here by strings:
none is imported until a provider has refused something, and none needs an SDK.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal

from tool_search.catalog.schema.declared import declared_schema
from tool_search.core.catalog.naming import wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import DeclaredTool
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import Dialect, StrategyFacts

__all__ = [
    "STRATEGY_WORDS",
    "Answer",
    "Meaning",
    "SentTools",
    "answers_in",
    "named_limits",
    "read_answers",
    "refused_tools",
]

Meaning = Literal[
    "feature_unknown",
    "strategy_rejected",
    "reference_unknown",
    "references_unknown",
    "cache_marks_unknown",
    "replies_refused",
    "reasoning_missing",
    "reasoning_refused",
    "reasoning_excludes_tools",
    "encrypted_content_unknown",
    "signature_missing",
    "reply_malformed",
    "message_rules_broken",
    "turns_refused",
    "content_missing",
    "calls_refused",
    "system_refused",
    "result_name_missing",
    "schema_rules_broken",
    "schema_recursive",
    "schema_too_deep",
    "description_too_long",
    "stream_options_unknown",
    "tool_choice_refused",
    "tools_unknown",
    "tool_refused",
    "too_many_tools",
    "reply_limit_refused",
    "name_refused",
    "name_kept",
    "context_too_long",
    "request_too_large",
    "result_pictures_refused",
    "picture_refused",
    "too_many_pictures",
    "pictures_unknown",
    "content_refused",
]
"""`feature_unknown`: it does not know `defer_loading`, `tool_reference` or `tool_search`;
`strategy_rejected`: the strategy's own `rejected_by` matches; `reference_unknown`: one
reference or namespace is wrong, named by the group `name`; `references_unknown`: one is wrong,
without a name; `cache_marks_unknown`: it does not know `cache_control`; `replies_refused`:
blocks of earlier replies of its own are refused (signatures, encrypted items, kept replies);
`reasoning_missing`: it wants an earlier reply's reasoning; `reasoning_refused`: it does not
take reasoning back; `reasoning_excludes_tools`: the model reasons only without tools;
`encrypted_content_unknown`: it gives no encrypted reasoning; `signature_missing`: it wants a
signature with each call; `reply_malformed`: the model's own call could not be read;
`message_rules_broken`: ids, order or content of messages are not as Mistral's models take them;
`turns_refused`: messages of one role follow each other; `content_missing`: a reply with calls has
no `content`, or an empty one; `calls_refused`: a reply has more calls than one, or than `most`;
`system_refused`: there may be no message of the system's; `result_name_missing`: a result must name
its function;
`schema_rules_broken`: a schema is not in Moonshot's subset; `schema_recursive`: one refers back to
what it stands in; `schema_too_deep`: one has more levels than the group `most`;
`description_too_long`: one has more characters; `stream_options_unknown`: a stream may not be asked
for its usage;
`tool_choice_refused`: it takes no `tool_choice` but `auto`; `tools_unknown`: the model
takes no tools; `tool_refused`: one definition is
refused, by the group `name`, `index`, `inner`, `path` or `schema` (see `refused_tools`);
`too_many_tools`: the list is too long; `reply_limit_refused`: a reply may not be as long as the
request allows, but `most` tokens, or as many as the groups `limit` and `input` leave;
`name_refused`: a tool's name is refused; `name_kept`: the service keeps the name for itself, in
the group `name`; `context_too_long`: the request has more tokens than
the model's context, and the groups `limit`, `sent` and `reserved` may say how many;
`request_too_large`: it has too many bytes; `result_pictures_refused`: a call's result may have no
pictures; `picture_refused`: a picture or document cannot be read; `too_many_pictures`: there are
more than the group `most`, or than may be so large; `pictures_unknown`: the model takes none;
`content_refused`: a filter of the service refuses what a message says."""

_TABLES: Mapping[Dialect, str] = {
    "anthropic": "tool_search.providers.words.anthropic",
    "openai_chat": "tool_search.providers.words.openai_chat",
    "openai_responses": "tool_search.providers.words.openai_responses",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One wording of a refusal.

    Attributes:
        pattern: A regular expression, searched in "code message" in any case, across lines.
        meaning: The request's fault, and so the remedy.
        source: Where the wording is documented, recorded or quoted.
        service: Who says so.
        models: Names of models that refuse so, as the sources have them.
        words: The refusal as the service writes it: its message, or its whole body in JSON.
        rule: The rule that the request broke: a name in `tests/services/rules.py`, where
            `make truth` finds it.
        date: The newest source's day, month or year, as in `2026-08-25`; empty: not known.
        status: The HTTP status.
    """

    pattern: str
    meaning: Meaning
    source: str
    service: str = ""
    models: tuple[str, ...] = ()
    words: str = ""
    rule: str = ""
    date: str = ""
    status: int = 400

    def match(self, said: str) -> re.Match[str] | None:
        """Return the first place that has the wording, or None."""
        return _compile(self.pattern).search(said)


STRATEGY_WORDS = Answer(
    # Matches nothing itself.
    r"(?!)",
    "strategy_rejected",
    "`rejected_by` of the strategy that wrote the request",
)
"""The row of a table at whose place the words of the strategy in use are tried."""


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


def answers_in(dialect: Dialect) -> tuple[Answer, ...]:
    """Return the table of a dialect, in the order in which its rows are tried."""
    rows: tuple[Answer, ...] = import_module(_TABLES[dialect]).ANSWERS
    return rows


def read_answers(
    dialect: Dialect, said: str, rejected_by: re.Pattern[str] | None = None
) -> Iterator[tuple[Meaning, re.Match[str]]]:
    """Yield each meaning that a refusal's text may have, in the order of the table.

    Args:
        dialect: The dialect of the endpoint.
        said: The refusal as "code message".
        rejected_by: The words of the strategy that wrote the request.
    """
    for answer in answers_in(dialect):
        is_own = answer is STRATEGY_WORDS and rejected_by is not None
        found = rejected_by.search(said) if is_own and rejected_by else answer.match(said)
        if found is not None:
            yield answer.meaning, found


def named_limits(said: str) -> list[int]:
    """Return the numbers that a refusal names as its limit, in the order of the text."""
    pattern = _compile(import_module("tool_search.providers.words.shared").LIMIT)
    return [int(re.sub(r"\D", "", found["most"])) for found in pattern.finditer(said)]


# The tools whose definitions a service has refused, found by the words of its refusal.
#
# Some services name the function, some its place in the list, some a part of its schema.


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
