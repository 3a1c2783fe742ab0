"""Restart, reload, mistakes of ours, and the end."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.astrbot.bot import HAS_RESPONSES, AstrBot, lists
from tool_search.adapters.astrbot.surface import HOOKED, READ
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

ASK = "convert a length from metres to feet"
NEW = pytest.mark.skipif(not HAS_RESPONSES, reason="this AstrBot has no such provider")


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """One of its own: these tests change it, in this order."""
    return start_bot(providers=("openai",), tools=40)


def test_a_restart_keeps_what_was_found(bot: AstrBot, server: StandInServer) -> None:
    """The saved history shows it; and what was set for one conversation."""
    bot.say(ASK)
    before = server.requests[-1].tool_names
    bot.say("/tool_search mode full", user="boss")
    bot.stop()
    bot.start()
    server.reset()
    bot.say("hello there")
    bot.say("hello there", user="boss")
    assert lists(server.requests)[0] == before
    assert len(server.requests[-1].tool_names) == 40


def test_a_reload_wraps_nothing_twice(bot: AstrBot, server: StandInServer) -> None:
    bot.ask("reload")
    bot.ask("reload")
    assert bot.ask("state")["wrapped"] == 1
    assert "convert_length" in bot.say(ASK, user="after")


def test_a_mistake_of_ours_leaves_the_bot_its_tools(bot: AstrBot, server: StandInServer) -> None:
    bot.ask(
        "run",
        code="""
async def broken(*_):
    raise ZeroDivisionError("a mistake on purpose")
bot._star().star_cls.tool_search._prepare = broken
""",
    )
    assert "mcp convert_length" in bot.say(ASK, user="unlucky")
    assert len(server.requests[0].tool_names) == 40
    assert "tool_search" not in server.requests[0].tool_names
    assert "a mistake on purpose" in bot.log
    bot.ask("reload")


RUN = "AstrBotRun = bot.library('adapters.astrbot.run').AstrBotRun"
SOURCES = "astrbot.core.provider.sources"
CLAUDE = f"{SOURCES}.anthropic_source", "ProviderAnthropic"
RESPONSES = f"{SOURCES}.openai_responses_source", "ProviderOpenAIResponses"
RUNNER = "astrbot.core.agent.runners.tool_loop_agent_runner", "ToolLoopAgentRunner"


@pytest.mark.parametrize(
    ("place", "method"),
    [
        (CLAUDE, ""),
        (CLAUDE, "text_chat"),
        (CLAUDE, "text_chat_stream"),
        pytest.param(RESPONSES, "", marks=NEW),
        pytest.param(RESPONSES, "_query", marks=NEW),
        pytest.param(RESPONSES, "_query_stream", marks=NEW),
        pytest.param(RESPONSES, "_parse_response", marks=NEW),
        (RUNNER, ""),
        (RUNNER, "reset"),
    ],
)
def test_without_what_is_hooked_the_bot_searches_all_the_same(
    bot: AstrBot, server: StandInServer, place: tuple[str, str], method: str
) -> None:
    module, name = place
    bot.ask("run", code=WITHOUT.format(module=module, name=name, method=method))
    before = len(bot.log)
    try:
        bot.ask("reload")
        assert "mcp convert_length" in bot.say(ASK, user=f"{name} {method}")
    finally:
        bot.ask("run", code=f"import {module}\n{module}.{name} = bot.kept")
    said = bot.log[before:]
    assert "this AstrBot is not as expected" in said
    assert f"attribute '{method or name}'" in said
    assert len(server.requests[0].tool_names) < 10


WITHOUT = """
import {module}
bot.kept = {module}.{name}
if "{method}":
    kept = {{key: value for key, value in vars(bot.kept).items() if not key.startswith("__")}}
    kept.pop("{method}")
    {module}.{name} = type("{name}", (), kept)
else:
    del {module}.{name}
"""


def status(bot: AstrBot) -> str:
    """Return the status in English."""
    bot.say("/tool_search set language en-US", user="boss")
    return bot.say("/tool_search status", user="boss")


def test_status_says_which_hooks_are_in_force(bot: AstrBot, server: StandInServer) -> None:
    bot.ask("reload")
    said = status(bot)
    assert "ProviderAnthropic: in force (text_chat, text_chat_stream)" in said
    assert "ToolLoopAgentRunner: in force (reset)" in said
    assert "not found" not in said


@pytest.mark.parametrize(
    ("module", "name", "loss"),
    [
        ("astrbot.core.agent.mcp_client", "MCPTool", "always sent"),
        ("astrbot.core.cron.events", "CronMessageEvent", "cover_subagents decides"),
    ],
)
def test_a_part_of_astrbot_that_has_moved_is_named_with_the_loss(
    bot: AstrBot, server: StandInServer, module: str, name: str, loss: str
) -> None:
    bot.ask("run", code=f"import {module}\nbot.kept = {module}.{name}\ndel {module}.{name}")
    try:
        bot.ask("run", code="bot._star().star_cls.tool_search.install()")
        said = status(bot)
    finally:
        bot.ask("run", code=f"import {module}\n{module}.{name} = bot.kept")
    bot.ask("reload")
    (line,) = [line for line in said.splitlines() if f"- {name}: not found" in line]
    assert loss in line
    assert f"this AstrBot lacks {name}, read in 4.29.3" in bot.log


OWN = """
from astrbot.core.provider.func_tool_manager import FunctionToolManager as manager
bot.kept = manager.is_builtin_tool
manager.is_builtin_tool = lambda self, name: name == "tool_search" or bot.kept(self, name)
bot._star().star_cls.tool_search.install()
manager.is_builtin_tool = bot.kept
"""


def test_a_tool_search_of_astrbots_own_is_named(bot: AstrBot, server: StandInServer) -> None:
    bot.ask("run", code=OWN)
    assert "has a tool_search of its own; to use it" in status(bot)


COPY = """
import sys, types
bot.copy = sys.modules["tool_search"] = types.ModuleType("tool_search")
"""


def test_another_plugins_copy_of_the_library_is_not_taken(
    bot: AstrBot, server: StandInServer
) -> None:
    """Nor is it lost; and ours is in no path of the process."""
    bot.ask("run", code=COPY)
    bot.ask("reload")
    assert "mcp convert_length" in bot.say(ASK, user="with a copy")
    assert "astrbot_plugin_tool_search/library" in bot.ask("state")["library"]
    assert bot.ask("state")["paths"] == []
    assert bot.ask("run", code="import sys; return sys.modules['tool_search'] is bot.copy")
    bot.ask("run", code="import sys; del sys.modules['tool_search']")
    bot.ask("reload")


@pytest.mark.parametrize("method", ["plan", "declared"])
def test_a_set_that_cannot_be_made_leaves_the_request_as_it_was(
    bot: AstrBot, server: StandInServer, method: str
) -> None:
    bot.ask(
        "run",
        code=f"{RUN}\nbot.kept = AstrBotRun.{method}\nAstrBotRun.{method} = lambda *_: 1 / 0",
    )
    before = len(bot.log)
    try:
        assert "mcp convert_length" in bot.say(ASK, user=f"no {method}")
    finally:
        bot.ask("run", code=f"{RUN}\nAstrBotRun.{method} = bot.kept")
    assert "tool search cannot start: this message has AstrBot's own list" in bot.log[before:]
    assert len(server.requests[0].tool_names) == 40
    assert b"tool_search" not in server.requests[0].raw_body


def test_a_mistake_in_the_middle_of_a_run_leaves_the_last_good_list(
    bot: AstrBot, server: StandInServer
) -> None:
    arguments = {"value": 1, "from_unit": "m", "to_unit": "ft"}
    search = ModelCall(name="tool_search", arguments={"query": "convert a length"})
    found = ModelCall(name="convert_length", arguments=arguments)
    replies = (ModelReply(calls=(search,)), ModelReply(calls=(found,)), ModelReply(text="done"))
    server.reset(model=ScriptedModel(replies))
    bot.ask("reload")
    bot.ask(
        "run",
        code=f"{RUN}\n"
        """bot.plan = AstrBotRun.plan
def plan(run, profile):
    if run.session.discoveries:
        raise ZeroDivisionError("a mistake in the middle")
    return bot.plan(run, profile)
AstrBotRun.plan = plan
""",
    )
    try:
        assert bot.say(ASK, user="halfway") == "done"
    finally:
        bot.ask("run", code=f"{RUN}\nAstrBotRun.plan = bot.plan")
    first, *_, last = lists(server.requests)
    assert "tool_search" in first
    assert last[: len(first)] == first
    assert "convert_length" in last
    assert len(last) < 20
    assert b"mcp convert_length" in server.requests[-1].raw_body
    assert "a mistake in the middle" in bot.log


LEFT = """
from astrbot.core import sp
from pathlib import Path
scopes = ("umo", "global", "plugin")
kept = [each.key for scope in scopes for each in await sp.range_get_async(scope)]
files = [str(each) for each in Path("data").rglob("*tool_search*")]
return [each for each in (*kept, *files) if "tool_search" in each]
"""
# The attributes of each class and module that the plugin hooks or reads, by identity.
ATTRIBUTES = """
from importlib import import_module
found = {{}}
for module, name in {parts!r}:
    try:
        place = import_module(module)
    except ModuleNotFoundError:  # as in older releases
        continue
    owner = getattr(place, name.partition(".")[0], None)
    for where in (place, owner) if isinstance(owner, type) else (place,):
        for key, value in vars(where).items():
            if not key.startswith("__"):
                found[f"{{where.__name__}}.{{key}}"] = id(value)
return found
"""
LEAVES = """
import asyncio, gc
while any("_leave" in str(task.get_coro()) for task in asyncio.all_tasks()):
    await asyncio.sleep(0.05)
# The first collection ends AstrBot's runners, and what they let go of is for the second.
for _ in range(2):
    gc.collect()
    await asyncio.sleep(0)
"""
TRACES = """
import asyncio, logging, sys
ours = "astrbot_plugin_tool_search"
loggers = [logging.getLogger(name) for name in ("", "tool_search", "astrbot")]
manager = bot.lifecycle.provider_manager.llm_tools
return {
    "log handlers": [str(each) for log in loggers for each in log.handlers
                     if "tool_search" in str(type(each))],
    "modules": [name for name, module in list(sys.modules.items())
                if ours in str(getattr(module, "__file__", ""))],
    "tasks": [str(task) for task in asyncio.all_tasks() if ours in str(task.get_coro())],
    "tools": [tool.name for tool in manager.func_list if tool.name in ("tool_search", "call_tool")],
    "plugins": [star.name for star in bot.lifecycle.star_context.get_all_stars()
                if star.name == ours],
}
"""


def attributes(bot: AstrBot) -> dict[str, int]:
    """Return what AstrBot's classes and modules have that the plugin hooks or reads."""
    parts = [(part.module, part.name) for part in (*HOOKED, *READ)]
    found: dict[str, int] = bot.ask("run", code=ATTRIBUTES.format(parts=parts))
    return found


def test_uninstalling_leaves_astrbot_as_it_was(
    start_bot: Callable[..., AstrBot], plugin_zip: Path, server: StandInServer
) -> None:
    """No hook, no patched attribute, no preference, no file, no task and no logger."""
    bot = start_bot(providers=("openai", "claude"), tools=40, install=False)
    before = attributes(bot)
    bot.ask("install", archive=str(plugin_zip))
    assert attributes(bot) != before
    for place in ({"user": "boss"}, {"user": "boss", "group": "friends"}):
        bot.say("/tool_search set max_results 3", **place)
        bot.say("/tool_search mode tool_search", **place)
        assert "convert_length" in bot.say(ASK, **place)
    bot.say(ASK, user="boss", provider="claude")
    assert bot.ask("run", code=LEFT)
    bot.ask("uninstall")
    # The plugin looks a moment later whether it stays away; runs end with their last reference.
    bot.ask("run", code=LEAVES)
    assert bot.ask("run", code=LEFT) == []
    changed = {key for key, value in attributes(bot).items() if before.get(key) != value}
    assert changed == set()
    assert {key: left for key, left in bot.ask("run", code=TRACES).items() if left} == {}
    state = bot.ask("state")
    assert state["untouched"]
    assert "astrbot_plugin_tool_search" not in state["library"]
    assert (state["paths"], state["handlers"], state["routes"]) == ([], 0, [])
    server.reset()
    bot.say(ASK, user="alone")
    assert len(server.requests[0].tool_names) == 40
    bot.stop()


def test_a_plugin_for_another_astrbot_is_not_installed(
    bot: AstrBot, server: StandInServer, plugin_zip: Path, tmp_path: Path
) -> None:
    bot.ask("uninstall")
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(plugin_zip) as given, zipfile.ZipFile(other, "w") as made:
        for entry in given.infolist():
            content = given.read(entry)
            if entry.filename.endswith("metadata.yaml"):
                content = content.replace(b">=4.25.0,<4.30", b">=99")
            made.writestr(entry, content)
    said = bot.ask(
        "run",
        code=f"""
try:
    await bot.lifecycle.plugin_manager.install_plugin_from_file({str(other)!r})
except Exception as exc:
    return str(exc)
""",
    )
    assert ">=99" in said
    assert "mcp convert_length" in bot.say(ASK, user="still there")
    assert len(server.requests[0].tool_names) == 40
