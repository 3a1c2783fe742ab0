"""What an operator, another plugin or the machine gets wrong: the bot answers all the same."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.astrbot.bot import AstrBot, new_user
from tool_search.testing import (
    KeywordModel,
    ModelCall,
    ModelReply,
    ModelView,
    ScriptedModel,
    StandInServer,
)

ASK = "convert a length from metres to feet"
PLUGIN = "astrbot_plugin_tool_search"
DATA = f"data/plugin_data/{PLUGIN}"
SETTINGS = f"data/config/{PLUGIN}_config.json"


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """One of its own: these tests change its files, in this order."""
    return start_bot(providers=("openai", "claude"), tools=40, settings={"native_claude": "on"})


def searches(bot: AstrBot, server: StandInServer) -> None:
    """Assert that a new conversation is searched and answered."""
    server.reset(model=KeywordModel())
    assert "mcp convert_length" in bot.say(ASK, user=new_user())
    assert len(server.requests[0].tool_names) == 3
    assert not server.violations


def english_status(bot: AstrBot) -> str:
    """Return the status in English."""
    bot.say("/tool_search set language en-US", user="boss")
    return bot.say("/tool_search status", user="boss")


def test_a_bot_without_a_provider_answers_its_commands(
    start_bot: Callable[..., AstrBot], server: StandInServer
) -> None:
    bot = start_bot(providers=("openai",), tools=40)
    bot.ask("run", code=WITHOUT_PROVIDER)
    said = bot.say("hello there", user="boss")
    assert not server.requests
    assert "Traceback" not in said
    status = english_status(bot)
    assert "hooks" in status.lower()
    assert "is_prime" in bot.say("/tool_search test is a number prime", user="boss")
    assert "tool search cannot start" not in bot.log
    bot.stop()


WITHOUT_PROVIDER = """
manager = bot.lifecycle.provider_manager
for each in list(manager.provider_insts):
    await manager.terminate_provider(each.meta().id)
"""

OTHER_PLUGIN = """
from astrbot.core.provider.sources.anthropic_source import ProviderAnthropic as owner
from astrbot.core.agent.runners.tool_loop_agent_runner import ToolLoopAgentRunner as runner
bot.others = {}
for cls, name in ((owner, "text_chat"), (runner, "reset")):
    def wrap(method, name=name):
        async def other(self, *args, **kwargs):
            bot.seen[name] = bot.seen.get(name, 0) + 1
            return await method(self, *args, **kwargs)
        return other
    bot.others[name] = cls, getattr(cls, name)
    setattr(cls, name, wrap(getattr(cls, name)))
bot.seen = {}
"""
OTHER_PLUGIN_GONE = """
for name, (cls, method) in bot.others.items():
    setattr(cls, name, method)
"""


def test_another_plugin_may_hook_the_same_methods(bot: AstrBot, server: StandInServer) -> None:
    """Whichever is loaded last, both are in force."""
    bot.ask("run", code=OTHER_PLUGIN)
    for _ in range(2):
        server.reset()
        assert "mcp convert_length" in bot.say(ASK, user=new_user(), provider="claude")
        assert any(tool.get("defer_loading") for tool in server.requests[0].body["tools"])
        seen = bot.ask("run", code="seen, bot.seen = bot.seen, {}\nreturn seen")
        assert seen == {"text_chat": len(server.requests), "reset": 1}
        assert not server.violations
        bot.ask("reload")  # then ours is outside
    bot.ask("run", code=OTHER_PLUGIN_GONE)
    bot.ask("reload")


# AstrBot refuses others itself: a description or schema of None, and an unknown type.
STRANGE = """
from astrbot.core.agent.tool import FunctionTool
class Strange(FunctionTool):
    async def call(self, context, **arguments):
        return f"strange {self.name}"
schemas = [
    {}, {"type": "object"}, {"type": "string"}, {"$ref": "#/$defs/nowhere"},
    {"type": "object", "required": ["gone"]},
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
]
made = [Strange(name=f"schema_{n}", description="", parameters=s) for n, s in enumerate(schemas)]
made += [
    Strange(name="tool_search", description="Searches the tools of a shed.",
            parameters={"type": "object", "properties": {"query": {"type": "string"}}}),
    Strange(name="call_tool", description="Calls for tools.",
            parameters={"type": "object", "properties": {}}),
]
manager = bot.lifecycle.provider_manager.llm_tools
for each in made:
    each.handler_module_path = "data.plugins.astrbot_plugin_toolbox.main"
bot.before = list(manager.func_list)
manager.func_list.extend(made)
"""


def test_tools_without_a_description_or_a_schema_take_no_other_away(
    bot: AstrBot, server: StandInServer
) -> None:
    """Nor do tools that are named as ours: these are found under their plugin's name."""
    bot.ask("run", code=STRANGE)
    try:
        searches(bot, server)
        seen: list[str] = []

        def end(view: ModelView) -> ModelReply:
            seen.extend(result.text for result in view.results)
            return ModelReply(text="done")

        search = ModelCall(name="tool_search", arguments={"query": "the tools of a shed"})
        server.reset(model=ScriptedModel([ModelReply(calls=(search,)), end]))
        assert bot.say("hm", user=new_user()) == "done"
        assert "astrbot_plugin_toolbox__tool_search" in seen[0]
        assert server.requests[0].tool_names.count("tool_search") == 1
        assert not server.violations
    finally:
        bot.ask("run", code="bot.lifecycle.provider_manager.llm_tools.func_list[:] = bot.before")


@pytest.mark.parametrize(
    "written",
    [
        {
            "threshold": "many",
            "engine": ["bm25"],
            "always_loaded_tools": "is_prime",
            "learning": "yes",
        },
        {"threshold": None, "max_results": [], "always_loaded_tools": {"a": 1}, "unknown": 1},
    ],
    ids=["other types", "nothing"],
)
def test_settings_edited_by_hand_keep_the_bot_searching(
    bot: AstrBot, server: StandInServer, written: dict[str, object]
) -> None:
    path = bot.root / SETTINGS
    bot.stop()
    before = path.read_text(encoding="utf-8")
    path.write_text(json.dumps({**json.loads(before.lstrip("\ufeff")), **written}), "utf-8")
    bot.start()
    try:
        searches(bot, server)
        status = english_status(bot)
        wrong = [key for key, value in written.items() if value is not None and key != "unknown"]
        assert [key for key in wrong if f"{key}: {written[key]!r} is not" in status] == wrong
    finally:
        bot.stop()
        path.write_text(before, encoding="utf-8")
        bot.start()


def put_folder(path: Path) -> None:
    """Take the place of a file: root may write what is read-only."""
    path.mkdir()


def test_a_data_folder_that_cannot_be_written_costs_only_what_is_kept(
    bot: AstrBot, server: StandInServer
) -> None:
    bot.stop()
    folder = bot.root / DATA
    for path in folder.glob("learned.sqlite*"):
        path.unlink()
    blocked = [folder / f"{name}.json" for name in ("conversations", "places", "settings")]
    for path in blocked:
        path.unlink(missing_ok=True)
        put_folder(path)
    put_folder(folder / "learned.sqlite")
    bot.start()
    try:
        searches(bot, server)
        bot.say("/tool_search set max_results 3", user="boss")
        for command in ("learned", "forget is_prime", "test is it prime", "reset", "set"):
            assert "Traceback" not in bot.say(f"/tool_search {command}", user="boss"), command
        assert "Is a directory" in english_status(bot)
        searches(bot, server)
    finally:
        bot.stop()
        for path in blocked:
            path.rmdir()
        (folder / "learned.sqlite").rmdir()
        bot.start()
    searches(bot, server)


def test_a_restart_in_the_middle_of_a_message_leaves_a_conversation_that_goes_on(
    bot: AstrBot, server: StandInServer
) -> None:
    user, asked, go_on = new_user(), threading.Event(), threading.Event()
    search = ModelCall(name="tool_search", arguments={"query": "convert a length"})

    def wait(_view: ModelView) -> ModelReply:
        asked.set()
        go_on.wait(30)
        return ModelReply(text="too late")

    bot.say("hello there", user=user)
    server.reset(model=ScriptedModel([ModelReply(calls=(search,)), wait]))
    speaking = threading.Thread(target=lambda: _say_and_die(bot, user))
    speaking.start()
    assert asked.wait(60)
    bot.kill()
    go_on.set()
    speaking.join()
    bot.start()
    server.reset(model=KeywordModel())
    assert "mcp convert_length" in bot.say(ASK, user=user)
    assert not server.violations


def _say_and_die(bot: AstrBot, user: str) -> None:
    with pytest.raises(AssertionError, match="the bot has ended"):
        bot.say("and now", user=user)


def test_a_downgrade_of_the_plugin_keeps_the_bot_searching(
    bot: AstrBot, server: StandInServer
) -> None:
    """The files and the settings of a newer release are left out, and told."""
    bot.stop()
    folder, settings = bot.root / DATA, bot.root / SETTINGS
    before = settings.read_text(encoding="utf-8")
    newer = {**json.loads(before.lstrip("\ufeff")), "engine": "quantum", "of_tomorrow": [1]}
    settings.write_text(json.dumps(newer), encoding="utf-8")
    kept = {"version": 99, "conversations": {"by": "another"}, "places": 7, "settings": []}
    for name in ("conversations", "places", "settings"):
        (folder / f"{name}.json").write_text(json.dumps(kept), encoding="utf-8")
    with closing(sqlite3.connect(folder / "learned.sqlite")) as learned:
        learned.execute("PRAGMA user_version = 99")
    bot.start()
    try:
        searches(bot, server)
        assert "engine: 'quantum' is not allowed" in english_status(bot)
        assert "written by a newer version" in bot.say("/tool_search learned", user="boss")
    finally:
        bot.stop()
        (folder / "learned.sqlite").unlink()
        settings.write_text(before, encoding="utf-8")
        bot.start()
