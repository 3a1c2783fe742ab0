"""Replay recorded conversations: the demo's, and those of a real AstrBot.

    PYTHONPATH=. python benchmarks/replay.py
    PYTHONPATH=. .venv-astrbot/bin/python benchmarks/replay.py record

The first prints the table of `replay.md` and draws the plot.

`record` boots a real AstrBot without the plugin, as the AstrBot tests do, with all tools in each
request. Eight users say the requests of `model/requests.jsonl`, and a stand-in model calls the
tools that a person has written beside each. What AstrBot saved is `replay.jsonl`, a conversation a
line.
The table comes from `tool-search replay`, as an operator runs it on a store.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from model.tasks import NO_SET, OWN_TASKS, TOOLBOX_SET
from typer.testing import CliRunner

from tool_search.adapters import build_provider
from tool_search.adapters.openai_chat import history_from_wire
from tool_search.cli.application import app
from tool_search.cli.demo.script import TURNS, script
from tool_search.config.bot import ProviderConfig
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.execution import executable_tools
from tool_search.runner.runner import ToolSearchRunner
from tool_search.runner.session.session import ToolSearchSession
from tool_search.sources.toolbox import TOOLBOX
from tool_search.stores import SQLiteStore
from tool_search.stores.record import ConversationRecord
from tool_search.testing import ModelCall, ModelReply, ModelView, StandInServer

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "replay.jsonl"
PICTURE = HERE.parent / "docs" / "pictures" / "replay.svg"
USERS = 8
# AstrBot's own two and a decorated one are among them.
ASTRBOT_TOOLS = 199


class Calling:
    """A model that calls the tools written beside each request, then answers."""

    def __init__(self, relevant: Mapping[str, Sequence[str]]) -> None:
        self._relevant = relevant

    def reply(self, view: ModelView) -> ModelReply:
        """Return the calls of a request, or its answer."""
        wanted = next(
            (tools for said, tools in self._relevant.items() if said in view.last_user_text), ()
        )
        if wanted and not view.calls:
            return ModelReply(calls=tuple(ModelCall(name=name, arguments={}) for name in wanted))
        return ModelReply(text="That is it.")


def requests() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each request with its tools."""
    for line in OWN_TASKS.read_text("utf-8").splitlines():
        task = json.loads(line)
        if task["set"] in (TOOLBOX_SET, NO_SET):
            yield task["request"], tuple(task["relevant"])


def record_astrbot() -> None:
    """Write the conversations that a real AstrBot saved."""
    from tests.astrbot.bot import AstrBot, BotSetup  # noqa: PLC0415 - needs AstrBot

    said = dict(requests())
    with (
        StandInServer(model=Calling(said)) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
    ):
        # Chat Completions takes no more than 128 tools.
        setup = BotSetup(
            server=server,
            plugin_zip=None,
            providers=("responses",),
            tools=ASTRBOT_TOOLS,
            mcp_share=0.0,
            # Searching for a message would find its date, too.
            config={"provider_settings": {"datetime_system_prompt": False}},
        )
        bot = AstrBot(Path(folder), setup)
        bot.start()
        try:
            bot.set_runner(provider="responses", fallbacks=[])
            for place, message in enumerate(said):
                bot.say(message, user=f"user{place % USERS}")
            kept = {f"user{n}": bot.ask("history", user=f"user{n}") for n in range(USERS)}
        finally:
            bot.stop()
    lines = [json.dumps({"key": key, "messages": kept[key]}, ensure_ascii=False) for key in kept]
    RECORDED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def recorded(catalog: ToolCatalog) -> dict[str, ConversationRecord]:
    """Return the recorded conversations of AstrBot as this library keeps them."""
    records = {}
    for line in RECORDED.read_text("utf-8").splitlines():
        kept = json.loads(line)
        messages = [m for m in kept["messages"] if m.get("role") != "_checkpoint"]
        session = ToolSearchSession(catalog, config=ToolSearchConfig(tool_schema_mode="full"))
        session.begin_turn("", profile=profile_for("openai-responses", "gpt-5.4"))
        record = session.record()
        records[kept["key"]] = replace(record, history=history_from_wire(messages))
    return records


async def keep(store: Path, records: Mapping[str, ConversationRecord]) -> None:
    """Write conversations into a store."""
    async with SQLiteStore(store) as opened:
        for key, record in records.items():
            await opened.save(key, record)


async def keep_demo(store: Path, mode: Any) -> None:
    """Write the conversation of the demo into a store, in one mode."""
    with StandInServer(model=script()) as server:
        provider = ProviderConfig(
            id="claude",
            type="anthropic",
            model="claude-sonnet-4-6",
            api_key_env=None,
            base_url=server.anthropic_base_url,
            strategy="claude",
        )
        async with SQLiteStore(store) as opened, build_provider(provider) as built:
            runner = ToolSearchRunner(
                providers={"claude": built},
                tools=TOOLBOX,
                config=ToolSearchConfig(tool_schema_mode=mode),
                store=opened,
            )
            for turn in TURNS:
                async for _ in runner.run(turn, conversation="demo"):
                    pass
            await runner.aclose()


def replayed(store: Path, tools: Sequence[Tool], plot: Path | None = None) -> Any:
    """Return what `tool-search replay` prints for a store."""
    catalog = store.with_suffix(".jsonl")
    catalog.write_text("\n".join(json.dumps(tool.to_dict()) for tool in tools), encoding="utf-8")
    options = ["replay", "--store", str(store), "--catalog", str(catalog), "--json"]
    more = [] if plot is None else ["--plot", str(plot)]
    result = CliRunner().invoke(app, [*options, *more], catch_exceptions=False)
    if result.exit_code:
        raise SystemExit(result.output)
    return json.loads(result.stdout)


def row(name: str, found: Mapping[str, Any]) -> str:
    """Return the row of one set of conversations."""
    share = found["search_tokens"] / found["full_tokens"]
    missed = sorted({tool for each in found["conversations"] for tool in each["missed"]})
    cells = (
        name,
        str(len(found["conversations"])),
        str(found["turns"]),
        str(found["called"]),
        f"{found['recall']:.2f}",
        f"{found['full_tokens']:,}",
        f"{found['search_tokens']:,} ({share:.0%})",
        f"${found['saved']:.3f}",
        ", ".join(f"`{tool}`" for tool in missed) or "none",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Record, or print the table and draw the plot."""
    if sys.argv[1:] == ["record"]:
        record_astrbot()
        return
    tools = [item.tool for item in executable_tools(TOOLBOX)]
    print(
        "| conversations | number | turns | calls | found | every tool | tool search | saved | "
        "missed |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for mode in ("auto", "shadow"):
            store = Path(folder) / f"demo-{mode}.db"
            asyncio.run(keep_demo(store, mode))
            print(row(f"the demo, mode `{mode}`", replayed(store, tools)))
        store = Path(folder) / "astrbot.db"
        asyncio.run(keep(store, recorded(ToolCatalog(tools))))
        print(row("AstrBot, every tool in each request", replayed(store, tools, PICTURE)))


if __name__ == "__main__":
    main()
