"""The mode `shadow`, and the replay of kept conversations."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from tool_search import (
    SQLiteStore,
    Tool,
    ToolCatalog,
    ToolSearchConfig,
    ToolSearchRunner,
    ToolSearchSession,
    profile_for,
)
from tool_search.adapters import build_provider
from tool_search.adapters.anthropic.wire import encode_tools
from tool_search.adapters.openai_chat import history_from_wire
from tool_search.cli.application import app
from tool_search.cli.demo.script import TURNS, script
from tool_search.cli.doctor.replay import Prices, replayed
from tool_search.config.bot import BotConfig, ProviderConfig
from tool_search.core.messages import Message, ToolCall
from tool_search.runner.execution import executable_tools
from tool_search.sources.toolbox import TOOLBOX
from tool_search.stores.record import ConversationRecord
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

PROFILE = profile_for("anthropic", "claude-sonnet-4-6")
RECORDED = Path(__file__).resolve().parents[2] / "benchmarks" / "replay.jsonl"
"""Conversations that a real AstrBot saved; benchmarks/replay.py has made it."""
TOOLS = [item.tool for item in executable_tools(TOOLBOX)]


def replay(*arguments: object) -> Any:
    result = CliRunner().invoke(app, ["replay", *map(str, arguments), "--json"])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    path = tmp_path / "tools.jsonl"
    path.write_text("\n".join(json.dumps(tool.to_dict()) for tool in TOOLS), encoding="utf-8")
    return path


async def converse(
    store: SQLiteStore, model: ScriptedModel, turns: tuple[str, ...], config: ToolSearchConfig
) -> None:
    with StandInServer(model=model) as server:
        provider = ProviderConfig(
            id="claude",
            type="anthropic",
            model="claude-sonnet-4-6",
            api_key_env=None,
            base_url=server.anthropic_base_url,
            strategy="claude",
        )
        async with build_provider(provider) as built:
            runner = ToolSearchRunner(
                providers={"claude": built}, tools=TOOLBOX, config=config, store=store
            )
            for turn in turns:
                async for _ in runner.run(turn, conversation="one"):
                    pass
            await runner.aclose()
            sent = [request.body["tools"] for request in server.requests]
    assert all(len(tools) >= len(TOOLS) for tools in sent)


def test_shadow_sends_what_full_mode_sends() -> None:
    plans = {}
    for mode in ("full", "shadow"):
        session = ToolSearchSession(
            ToolCatalog(TOOLS), config=ToolSearchConfig(tool_schema_mode=mode)
        )
        session.begin_turn("How many miles are 42 km?", profile=PROFILE)
        plan = session.plan(PROFILE)
        plans[mode] = encode_tools(plan.tools, PROFILE), plan.system, plan.messages
    assert plans["shadow"] == plans["full"]


def test_shadow_keeps_what_a_search_would_have_offered() -> None:
    session = ToolSearchSession(
        ToolCatalog(TOOLS), config=ToolSearchConfig(tool_schema_mode="shadow")
    )
    session.begin_turn("convert the length of a marathon to miles", profile=PROFILE)
    (turn,) = session.record().shadow
    assert "convert_length" in turn.offered
    assert len(turn.offered) <= 8
    again = ConversationRecord.from_dict(json.loads(json.dumps(session.record().to_dict())))
    assert again.shadow == (turn,)
    resumed = ToolSearchSession(
        ToolCatalog(TOOLS), config=ToolSearchConfig(tool_schema_mode="shadow"), record=again
    )
    resumed.begin_turn("monthly payment of a loan", profile=PROFILE)
    assert resumed.record().shadow[0] == turn
    assert "loan_payment" in resumed.record().shadow[1].offered


def test_other_modes_keep_no_shadow() -> None:
    session = ToolSearchSession(
        ToolCatalog(TOOLS), config=ToolSearchConfig(tool_schema_mode="full")
    )
    session.begin_turn("convert length", profile=PROFILE)
    assert "shadow" not in session.record().to_dict()


def test_shadow_offers_nothing_that_the_user_may_not_call() -> None:
    tools = [
        Tool(name="convert_length", description="Convert a length to miles.", roles=("admin",)),
        Tool(name="convert_area", description="Convert an area."),
    ]
    session = ToolSearchSession(
        ToolCatalog(tools), config=ToolSearchConfig(tool_schema_mode="shadow")
    )
    session.begin_turn("convert a length to miles", profile=PROFILE)
    (turn,) = session.record().shadow
    assert "convert_length" not in turn.offered


async def test_a_bot_in_shadow_mode_is_replayed(tmp_path: Path, catalog: Path) -> None:
    turns = ("convert length of a marathon to miles", "something without any tool's words: zzz")
    model = ScriptedModel(
        turns={
            turns[0]: (
                ModelReply(
                    calls=(
                        ModelCall(
                            name="convert_length",
                            arguments={"value": 42.195, "from_unit": "km", "to_unit": "mile"},
                        ),
                    )
                ),
                ModelReply(text="26 miles."),
            ),
            turns[1]: (
                ModelReply(calls=(ModelCall(name="loan_payment", arguments={}),)),
                ModelReply(text="I cannot."),
            ),
        }
    )
    file = tmp_path / "chats.db"
    async with SQLiteStore(file) as store:
        await converse(store, model, turns, ToolSearchConfig(tool_schema_mode="shadow"))
    found = await asyncio.to_thread(replay, "--store", file, "--catalog", catalog)
    (one,) = found["conversations"]
    assert (one["turns"], one["called"], one["found"], one["recorded"]) == (2, 2, 1, 2)
    assert one["missed"] == ["loan_payment"]
    assert found["recall"] == 0.5
    assert found["search_tokens"] < found["full_tokens"] / 2
    assert found["saved"] > 0


def test_a_search_that_finds_nothing_adds_a_request_too() -> None:
    session = ToolSearchSession(ToolCatalog(TOOLS))
    session.begin_turn("zzz", profile=PROFILE)
    call = ToolCall(id="1", name="loan_payment")
    replies = {
        "quiet": (Message(role="assistant", content="You are welcome."),),
        "missed": (
            Message(role="assistant", tool_calls=(call,)),
            Message(role="tool", content="ok", tool_call_id="1", name="loan_payment"),
            Message(role="assistant", content="Done."),
        ),
    }
    before = session.record()
    found = replayed(
        {key: replace(before, history=(*before.history, *new)) for key, new in replies.items()},
        ToolCatalog(TOOLS),
        PROFILE,
        config=BotConfig(),
        prices=Prices(fresh=3.0, cached=0.3),
    )
    missed, quiet = found.conversations
    assert missed.full_tokens == 2 * quiet.full_tokens
    assert missed.search_tokens == 3 * quiet.search_tokens


async def test_a_conversation_of_the_demo_is_replayed(tmp_path: Path, catalog: Path) -> None:
    file = tmp_path / "chats.db"
    async with SQLiteStore(file) as store:
        await converse(store, script(), TURNS, ToolSearchConfig(tool_schema_mode="auto"))
    plot = tmp_path / "plot.svg"
    found = await asyncio.to_thread(replay, "--store", file, "--catalog", catalog, "--plot", plot)
    (one,) = found["conversations"]
    assert one["turns"] == len(TURNS)
    assert one["called"] >= 4
    assert one["recorded"] == 0
    assert found["recall"] >= 0.75
    assert found["search_tokens"] < found["full_tokens"] / 2
    drawing = ET.fromstring(plot.read_text(encoding="utf-8"))  # noqa: S314 - our own
    bars = [each for each in drawing.iter() if each.tag.endswith("rect")]
    assert len(bars) == 1 + 2 + 2 * len(found["conversations"])


async def test_conversations_that_astrbot_saved_are_replayed(tmp_path: Path, catalog: Path) -> None:
    session = ToolSearchSession(
        ToolCatalog(TOOLS), config=ToolSearchConfig(tool_schema_mode="full")
    )
    session.begin_turn("", profile=PROFILE)
    file = tmp_path / "chats.db"
    async with SQLiteStore(file) as store:
        for line in RECORDED.read_text("utf-8").splitlines():
            kept = json.loads(line)
            messages = [each for each in kept["messages"] if each.get("role") != "_checkpoint"]
            record = replace(session.record(), history=history_from_wire(messages))
            await store.save(kept["key"], record)
    found = await asyncio.to_thread(replay, "--store", file, "--catalog", catalog)
    assert [each["turns"] for each in found["conversations"]] == [3, 3, 3, 3, 3, 3, 2, 2]
    assert found["called"] == 21
    assert found["recall"] >= 0.8
    assert found["search_tokens"] < found["full_tokens"] / 5


async def test_only_conversations_of_the_last_days_are_replayed(
    tmp_path: Path, catalog: Path
) -> None:
    file = tmp_path / "chats.db"
    session = ToolSearchSession(ToolCatalog(TOOLS))
    session.begin_turn("convert length", profile=PROFILE)
    async with SQLiteStore(file, clock=lambda: 1_000.0) as store:
        await store.save("old", session.record())
    async with SQLiteStore(file) as store:
        await store.save("new", session.record())
    found = await asyncio.to_thread(replay, "--store", file, "--catalog", catalog)
    assert [each["key"] for each in found["conversations"]] == ["new"]


def test_a_store_that_is_not_there_is_an_error(tmp_path: Path, catalog: Path) -> None:
    result = CliRunner().invoke(
        app, ["replay", "--store", str(tmp_path / "no.db"), "--catalog", str(catalog)]
    )
    assert result.exit_code == 2
    assert "does not exist" in result.stderr
