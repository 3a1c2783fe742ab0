"""The rows of the tables of refusals and of known facts, each with the server that tries it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, get_args

from tests.services.request_rules import ALL_RULES, at_most_tools, replies_of
from tests.services.rules import TOOLS, Bot, ServiceRule, bot_of, keeps
from tool_search.core.settings import Dialect
from tool_search.errors import AllProvidersFailedError
from tool_search.providers.known import KNOWN_PROVIDERS, KnownProvider
from tool_search.providers.profile_choice import profile_for
from tool_search.providers.refusals import Answer, answers_in
from tool_search.runner.events import Done

__all__ = ["Row", "all_rows", "outcome_of", "rule_named", "served"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row, as a person reads it.

    Attributes:
        service: Who refuses.
        models: Its models.
        words: Its words, or its whole body in JSON; empty: they are not stored.
        rule: The rule's name; empty: the row is of no refusal, or its words are not stored.
        remedy: What is done about it: the meaning of a refusal, or the fact that is known.
        source: Where that is documented, recorded or quoted.
        date: The newest source's day, month or year; empty: not known.
        dialect: The dialect in which the row is tried.
        status: The HTTP status.
        host: The host, of a fact that is known before.
    """

    service: str
    models: tuple[str, ...]
    words: str
    rule: str
    remedy: str
    source: str
    date: str
    dialect: Dialect
    status: int = 400
    host: str = ""

    @property
    def key(self) -> str:
        """What tells the row from others."""
        known = f"{self.remedy} ({', '.join(self.models)})"
        return f"{self.service}: {self.words or known}"


def all_rows() -> Iterator[Row]:
    """Yield every row of a refusal, and each fact of a known provider that avoids one."""
    seen: set[int] = set()
    for dialect in get_args(Dialect):
        for answer in answers_in(dialect):
            is_here = not answer.rule or dialect in rule_named(answer.rule).dialects
            if answer.service and is_here and id(answer) not in seen:
                seen.add(id(answer))
                yield _row_of(answer, dialect)
    for known in KNOWN_PROVIDERS:
        for fact, value in known.facts.items():
            rule = _rule_of_fact(fact, value)
            for dialect in known.types or get_args(Dialect):
                if rule and dialect in rule_named(rule).dialects:
                    yield _row_of_fact(known, f"{fact}: {value}", rule, dialect)
                    break


def _row_of(answer: Answer, dialect: Dialect) -> Row:
    return Row(
        service=answer.service, models=answer.models, words=answer.words, rule=answer.rule,
        remedy=answer.meaning, source=answer.source, date=answer.date, dialect=dialect,
        status=answer.status,
    )  # fmt: skip


def _row_of_fact(known: KnownProvider, fact: str, rule: str, dialect: Dialect) -> Row:
    hosts = [name for name in known.hosts if name != "*"]
    return Row(
        service=", ".join(hosts[:2]) or "any host", models=known.models, words="", rule=rule,
        remedy=fact, source=known.source, date=known.date, dialect=dialect,
        host=_example(*hosts[:1]) or "llm.example.com",
    )  # fmt: skip


def _example(pattern: str = "") -> str:
    """Return a name that a glob matches."""
    return re.sub(r"\[(.)[^]]*\]", r"\1", pattern).replace("*", "")


_RULES_OF_SCHEMAS: Mapping[str, str] = {
    "moonshot": "no type beside anyOf",
    "acyclic": "no schema is recursive",
}
_RULES_OF_FACTS: Mapping[str, Callable[[Any], str]] = {
    "kept_names": lambda names: f"no function is named {names[0]}",
    "max_output_tokens": "replies of {:,} tokens at most".format,
    "max_tools": "{} tools at most".format,
    "missing_reasoning": lambda _: "reasoning comes back",
    "missing_signature": lambda _: "each call has a signature",
    "message_rules": lambda kind: {"mistral": "ids of nine characters"}.get(kind, ""),
    "name_rule": lambda _: "names begin with a letter",
    "schema_rules": lambda kind: _RULES_OF_SCHEMAS.get(kind, ""),
    "max_schema_levels": lambda _: "no schema has more than 10 levels",
    "returns_reasoning": lambda _: "no reasoning comes back",
    "takes_stream_options": lambda _: "no stream_options",
    "takes_tool_choice_none": lambda _: "tool_choice is auto or left out",
    "takes_pictures": lambda _: "no pictures",
    "reasoning_in_answers": lambda _: "every reply has reasoning",
    "empty_content": lambda _: "replies with calls have content that is a string",
    "max_calls": "a reply has at most {} calls".format,
    "reasons_with_tools": lambda does: "" if does else "functions have reasoning_effort none",
    "max_description": "no description has more than {} characters".format,
    "takes_tools": lambda _: "no tools",
}


def _rule_of_fact(fact: str, value: object) -> str:
    """Return the rule that a request keeps because of a fact; empty if it is of no refusal."""
    return _RULES_OF_FACTS[fact](value) if fact in _RULES_OF_FACTS and value is not None else ""


def rule_named(name: str) -> ServiceRule:
    """Return a rule by its name.

    Raises:
        KeyError: There is none: write it in `tests/services/rules.py`.
    """
    if found := re.fullmatch(r"replies of ([\d,]+) tokens at most", name):
        return replies_of(int(found[1].replace(",", "")))
    if found := re.fullmatch(r"(\d+) tools at most", name):
        return at_most_tools(int(found[1]))
    if found := re.fullmatch(r"no function is named (\w+)", name):
        return keeps(found[1], TOOLS if found[1] == "tool_search" else (*TOOLS[:2], found[1]))
    return ALL_RULES[name]


@asynccontextmanager
async def served(row: Row) -> AsyncIterator[Bot]:
    """Yield a bot whose service has the row's rule, and refuses in its words."""
    # A name that no row of the table of facts knows, unless the row is one: words alone must do.
    rule = rule_named(row.rule)
    models = [_example(name) for name in row.models if row.host and name != "*"]
    model = next(iter(models), rule.model)
    profile = None
    if row.host:
        profile = profile_for(row.dialect, model, base_url=f"https://{row.host}/v1")
    words = row.words or f"Refused by the rule: {row.rule}."
    async with bot_of(
        rule, row.dialect, model, words=words, status=row.status, profile=profile
    ) as bot:
        yield bot


async def outcome_of(row: Row) -> str:
    """Return what becomes of a bot at the row's service: `a`, `b` with a number, or `c`.

    `a`: no request is refused; `b`: so many are, and each turn has its answer; `c`: a turn ends
    without one; `-`: the row names no rule.
    """
    if not row.rule:
        return "-"
    async with served(row) as bot:
        try:
            await rule_named(row.rule).talk(bot)
        except AllProvidersFailedError:
            return "c"
        answers = [event.answer for turn in bot.events for event in turn if isinstance(event, Done)]
        if len(answers) < len(bot.asked) or not all(map(str.strip, answers)):
            return "c"
        refused = len(bot.service.refused)
        return f"b ({refused})" if refused else "a"
