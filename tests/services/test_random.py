"""Random conversations over services that keep rules of the whole table, several at once."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.services.raw import JSON, RawService
from tests.services.rules import PICTURE, TOOLS, ServiceRule, refusal, tool_of
from tests.services.table import Row, all_rows, rule_named
from tool_search import ExecutableTool, ProviderConfig, ToolSearchConfig, ToolSearchRunner
from tool_search.adapters import build_provider
from tool_search.core.messages import ContentPart, TextPart
from tool_search.core.settings import Dialect
from tool_search.runner.events import Done

DIALECTS: tuple[Dialect, ...] = ("openai_chat", "anthropic", "openai_responses")
# Lists of hundreds of tools are tried alone.
ROWS: dict[Dialect, list[Row]] = {
    dialect: [
        row for row in all_rows()
        if row.words and row.rule and not row.rule.endswith(" tools at most")
        and dialect in rule_named(row.rule).dialects
    ]
    for dialect in DIALECTS
}  # fmt: skip


@dataclass(frozen=True)
class Service:
    """A service with the rules of some rows."""

    dialect: Dialect
    rows: Sequence[Row]

    @property
    def rules(self) -> list[ServiceRule]:
        """The rules."""
        return [rule_named(row.rule) for row in self.rows]

    def raw(self) -> RawService:
        """Return the server, which refuses in the words of the first rule that is broken."""
        refusing = [r.refusing(self.dialect, row.words)
                    for r, row in zip(self.rules, self.rows, strict=True)]  # fmt: skip

        def refuse(body: JSON) -> str | None:
            return next(filter(None, (rule(body) for rule in refusing)), None)

        reasoning = next((rule.reasoning for rule in self.rules if rule.reasoning), None)
        return RawService(rule=refuse, wrap=refusal, reasoning=reasoning)


@st.composite
def services(draw: st.DrawFn) -> Service:
    dialect = draw(st.sampled_from(DIALECTS))
    rows = draw(st.lists(st.sampled_from(ROWS[dialect]), min_size=1, max_size=3, unique=True))
    return Service(dialect, rows)


@dataclass(frozen=True)
class Turn:
    """A turn: the tool that is asked for, the provider, and a picture if there is one."""

    tool: int
    provider: int
    picture: bool


TURNS = st.builds(Turn, st.integers(0, 4), st.integers(0, 2), st.booleans())


async def converse(made: Sequence[Service], turns: Sequence[Turn]) -> int:
    """Hold a conversation, and return the number of refused requests."""
    rules = [rule for service in made for rule in service.rules]
    ran: list[str] = []
    raws = [service.raw() for service in made]
    async with AsyncExitStack() as stack:
        servers = stack.enter_context(ExitStack())
        providers = {}
        for number, (service, raw) in enumerate(zip(made, raws, strict=True)):
            servers.enter_context(raw.running())
            config = ProviderConfig(
                id=f"p{number}", type=service.dialect, model="house-model", api_key_env=None,
                base_url=raw.url if service.dialect == "anthropic" else f"{raw.url}/v1",
            )  # fmt: skip
            provider = await stack.enter_async_context(
                build_provider(config, api_key="k" * 20, fallbacks=True)
            )
            facts: dict[str, Any] = {}
            for rule in service.rules:
                strategy = rule.strategies.get(service.dialect, provider.profile.strategy)
                facts |= {**rule.facts, "strategy": strategy}
            provider.profile = replace(provider.profile, **facts)
            providers[config.id] = provider
        said = next((rule for rule in rules if rule.result), ServiceRule(**_PLAIN))
        named = dict.fromkeys(name for rule in rules for name in rule.tools)
        extra = {tool.name: tool for rule in rules for tool in rule.extra}
        runner = ToolSearchRunner(
            providers=providers,
            tools=[
                *(tool_of(name, ran, said) for name in named),
                *(ExecutableTool(tool=t, function=lambda: "nothing") for t in extra.values()),
            ],
            config=ToolSearchConfig(tool_schema_mode="tool_search"),
            cooldown_s=0,
        )
        stack.push_async_callback(runner.aclose)
        known: list[str] = []
        for turn in turns:
            runner.use(f"p{turn.provider % len(made)}", conversation="c")
            words = TextPart(f"Please use {TOOLS[turn.tool]}")
            message: list[ContentPart] = [PICTURE, words] if turn.picture else [words]
            ran.clear()
            events = [event async for event in runner.run(message, conversation="c")]
            done = events[-1]
            assert isinstance(done, Done), events
            assert done.answer.strip()
            assert max(Counter(ran).values(), default=0) <= 1, ran
            session = runner.session("c")
            assert session is not None
            found = [entry.name for entry in session.record().discoveries]
            assert found[: len(known)] == known
            known = found
    return sum(len(raw.refused) for raw in raws)


async def _no_talk(_: object) -> None:
    """Say nothing: the conversation is a random one."""


_PLAIN: dict[str, Any] = {"is_broken": lambda *_: False, "talk": _no_talk}


@pytest.mark.parametrize("count", [12, pytest.param(500, marks=pytest.mark.long)])
def test_no_random_conversation_is_without_an_answer(
    count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    refused: list[int] = []

    @settings(max_examples=count, deadline=None)
    @given(st.lists(services(), min_size=1, max_size=3), st.lists(TURNS, min_size=2, max_size=7))
    def talk(made: list[Service], turns: list[Turn]) -> None:
        for service in made:
            note(f"{service.dialect}: {[row.key for row in service.rows]}")
        refused.append(asyncio.run(converse(made, turns)))

    talk()
    mean, most = sum(refused) / len(refused), max(refused)
    with capsys.disabled():
        sys.stdout.write(f"\n{len(refused)} talks, {mean:.1f} refusals each, at most {most}\n")
