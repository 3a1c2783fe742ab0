"""The plugin is saved, reloaded, updated and switched while a message is being answered."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Barrier, Event

import pytest

from tests.astrbot.bot import AstrBot, definitions, lists, new_user
from tool_search.testing import (
    KeywordModel,
    ModelCall,
    ModelReply,
    ModelView,
    ScriptedModel,
    StandInServer,
)

ASK = "convert a length from metres to feet"
ROOT = Path(__file__).resolve().parents[2]


class SlowModel(KeywordModel):
    """A model that answers, from one moment of a message on, only when it is let go.

    Args:
        calls: The calls of a message before that moment.
        messages: The number of messages that are waited for.
    """

    def __init__(self, calls: int = 0, messages: int = 1) -> None:
        super().__init__()
        self._calls = calls
        self._asked, self.go = Barrier(messages + 1), Event()

    def reply(self, view: ModelView) -> ModelReply:
        """Return the reply of a model that matches words."""
        if len(view.calls) == self._calls:
            self._asked.wait(60)
            assert self.go.wait(60)
        return super().reply(view)

    def wait(self) -> None:
        """Wait until it was asked by each message."""
        self._asked.wait(60)


@pytest.fixture(scope="module")
def update(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another release of the plugin: each file of its library differs."""
    program = runpy.run_path(str(ROOT / ".ci" / "astrbot_plugin.py"))
    changed = {
        place: f"{source.read_text(encoding='utf-8')}\n# Another release.\n"
        for source, place in program["library_files"]()
        if source.suffix == ".py"
    }
    target = tmp_path_factory.mktemp("update") / "astrbot_plugin_tool_search.zip"
    program["build"](target, changed)
    return target


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """One of its own: these tests change it."""
    return start_bot(providers=("openai",), tools=60)


@contextmanager
def slow_answers(
    bot: AstrBot, server: StandInServer, *, messages: int = 1, calls: int = 0
) -> Iterator[None]:
    """Messages are answered to their end only after the block."""
    model = SlowModel(calls, messages)
    server.reset(model=model)
    bot.ask("begin", messages=[{"text": ASK, "user": new_user()} for _ in range(messages)])
    model.wait()
    try:
        yield
    finally:
        model.go.set()


def operate(bot: AstrBot, operation: str, archive: Path) -> None:
    """Do what an operator does in the WebUI."""
    for step in operation.split(" and "):
        if step == "save":
            bot.ask("settings", changes={"max_results": 4})
        elif step == "update":
            bot.ask("install", archive=str(archive))
        else:
            bot.ask(step)


def test_the_plugin_is_switched_off_and_on_again(bot: AstrBot, server: StandInServer) -> None:
    for _ in range(2):
        bot.ask("off")
        assert bot.ask("state")["untouched"]
        bot.ask("on")
        assert bot.ask("state")["wrapped"] == 1
        server.reset(model=KeywordModel())
        assert "mcp convert_length" in bot.say(ASK, user=new_user())
        assert "tool_search" in server.requests[0].tool_names


OPERATIONS = ("save", "reload", "update", "off", "off and on", "uninstall")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_slow_answer_keeps_its_tools(
    bot: AstrBot, server: StandInServer, update: Path, plugin_zip: Path, operation: str
) -> None:
    before = len(bot.log)
    with slow_answers(bot, server):
        operate(bot, operation, update)
    ((*_, said),) = bot.ask("answers")
    assert "mcp convert_length" in said
    first, *others = lists(server.requests)
    assert all(each[: len(first)] == first for each in others)
    assert "convert_length" in others[-1]
    assert all(len(each) < 20 for each in others)
    assert server.violations == ()
    assert "Traceback" not in bot.log[before:]
    if operation == "off":
        bot.ask("on")
    elif operation in ("update", "uninstall"):
        bot.ask("install", archive=str(plugin_zip))
    server.reset(model=KeywordModel())
    assert "mcp convert_length" in bot.say(ASK, user=new_user())
    assert "tool_search" in server.requests[0].tool_names


# AstrBot waits for pip in between, for instance.
UNLOADED = """
import asyncio
manager = bot.lifecycle.plugin_manager
unloaded, bot.go = asyncio.Event(), asyncio.Event()
async def load(*args, **kwargs):
    del manager.load
    unloaded.set()
    await bot.go.wait()
    return await manager.load(*args, **kwargs)
manager.load = load
bot.loading = asyncio.ensure_future(bot.{operation})
await unloaded.wait()
return bot._handlers()
"""
LOADED = """
bot.go.set()
await bot.loading
"""


@pytest.mark.parametrize("operation", ["reload()", "install({archive!r})"])
def test_a_message_between_two_loads_is_searched(
    bot: AstrBot, server: StandInServer, update: Path, operation: str
) -> None:
    """What it finds is known after the load."""
    user, last = new_user(), new_user()
    bot.say("hello there", user=user)
    first = operation.format(archive=str(update))
    assert bot.ask("run", code=UNLOADED.format(operation=first)) == 0
    try:
        for each in (user, last):
            server.reset(model=KeywordModel())
            assert "mcp convert_length" in bot.say(ASK, user=each)
            assert "tool_search" in server.requests[0].tool_names
            assert all(len(names) < 20 for names in lists(server.requests))
    finally:
        bot.ask("run", code=LOADED)
    server.reset(model=KeywordModel())
    assert "mcp convert_length" in bot.say(ASK, user=user)
    assert "convert_length" in server.requests[0].tool_names


def test_no_copy_stays_longer_than_its_messages(bot: AstrBot, server: StandInServer) -> None:
    """Tasks of AstrBot's own, begun in a message, keep its event for ever."""
    for _ in range(3):
        with slow_answers(bot, server):
            bot.ask("reload")
        bot.ask("answers")
    code = """
import asyncio, gc, sys
for _ in range(2):
    gc.collect()
    await asyncio.sleep(0.2)
return [name for name in sys.modules if "_library_" in name and "." not in name]
"""
    assert len(bot.ask("run", code=code)) == 1


NOTE = "note_8c6ff505"  # how `$note` is written to providers
BROKEN = """
run = bot.library("adapters.astrbot.run").AstrBotRun
schemas = bot.library("catalog.schema.declared")
plan, declare = bot.mended = run.plan, schemas.declare
def break_plan(*_):
    raise ZeroDivisionError("a mistake on purpose")
def break_plan_later(run, profile):
    return break_plan() if run.session.discoveries else plan(run, profile)
def break_schemas(schema, written):
    return break_plan() if "$note" in written else declare(schema, written)
"""
MENDED = """
run = bot.library("adapters.astrbot.run").AstrBotRun
schemas = bot.library("catalog.schema.declared")
run.plan, schemas.declare = bot.mended
"""


@pytest.fixture(scope="module")
def large_bot(start_bot: Callable[..., AstrBot]) -> Iterator[AstrBot]:
    """As many tools as no OpenAI model takes, some with keys that no Claude model takes."""
    bot = start_bot(providers=("openai", "claude"), tools=609)
    yield bot
    bot.stop()


@contextmanager
def broken(bot: AstrBot, code: str) -> Iterator[None]:
    """A part of the library makes a mistake; nothing is kept of what it had made before."""
    bot.ask("reload")
    bot.ask("run", code=f"{BROKEN}\n{code}")
    try:
        yield
    finally:
        bot.ask("run", code=MENDED)


@pytest.mark.parametrize(
    ("provider", "code"),
    [
        ("openai", "run.plan = break_plan"),
        ("claude", "run.plan = break_plan"),
        ("claude", "schemas.declare = break_schemas"),
    ],
)
def test_a_mistake_of_ours_sends_what_a_provider_takes(
    large_bot: AstrBot, server: StandInServer, provider: str, code: str
) -> None:
    before = len(large_bot.log)
    with broken(large_bot, code):
        assert large_bot.say(ASK, user=new_user(), provider=provider)
    assert server.violations == ()
    assert "RecursionError" not in large_bot.log[before:]
    assert 120 < len(lists(server.requests)[0]) <= 128
    assert b'"$note":' not in server.requests[0].raw_body


def test_a_mistake_in_the_middle_of_a_run_sends_what_a_provider_takes(
    large_bot: AstrBot, server: StandInServer
) -> None:
    """Of a tool that was found since the last list, too."""
    search = ModelCall(name="tool_search", arguments={"query": "convert an angle"})
    angle = {"value": 1, "from_unit": "degree", "to_unit": "radian", NOTE: "own"}
    found = ModelCall(name="convert_angle", arguments=angle)
    replies = (ModelReply(calls=(search,)), ModelReply(calls=(found,)), ModelReply(text="done"))
    server.reset(model=ScriptedModel(replies))
    with broken(large_bot, "run.plan = break_plan_later"):
        assert large_bot.say(ASK, user=new_user(), provider="claude") == "done"
    assert server.violations == ()
    assert len(lists(server.requests)[-1]) < 20
    assert b'mcp convert_angle {\\"value\\": 1' in server.requests[-1].raw_body
    assert b'\\"$note\\": \\"own\\"' in server.requests[-1].raw_body


STEPS: tuple[tuple[str, dict[str, object]], ...] = (
    ("settings", {"changes": {"max_results": 6}}),
    ("reload", {}),
    ("install", {}),
    ("off", {}),
)


@pytest.fixture
def storm_bot(large_bot: AstrBot) -> Iterator[AstrBot]:
    """Without the tools that Claude does not take: AstrBot sends all while the plugin is off."""
    refused = [tool["name"] for tool in definitions(609) if "$note" in str(tool["parameters"])]
    for name in refused:
        large_bot.ask("switch", tool=name, active=False)
    yield large_bot
    for name in refused:
        large_bot.ask("switch", tool=name, active=True)


# Half of the messages go to a service that takes 128 tools. While the plugin is off, AstrBot
# itself sends all: only the other service is asked then.
@pytest.mark.parametrize("count", [10, pytest.param(150, marks=pytest.mark.long)])
@pytest.mark.parametrize("provider", ["openai", "claude"])
def test_messages_at_any_moment_are_answered(
    storm_bot: AstrBot, server: StandInServer, update: Path, count: int, provider: str
) -> None:
    chance, steps = Random(count), STEPS if provider == "claude" else STEPS[:-1]
    named = [step for _ in range(count // (2 * len(steps))) for step in steps]
    named = chance.sample(named, len(named))
    moments = sorted(chance.uniform(0, count) for _ in named)
    operations: list[tuple[str, dict[str, object], float]] = []
    for (name, arguments), moment in zip(named, moments, strict=True):
        given = {**arguments, "archive": str(update)} if name == "install" else arguments
        operations.append((name, given, moment))
        if name == "off":
            operations.append(("on", {}, moment + chance.random()))
    messages = [{"text": ASK, "user": new_user(), "provider": provider} for _ in range(count)]
    answers = storm_bot.ask("storm", messages=messages, operations=operations)
    assert len(answers) == count
    ran = re.compile(r"(mcp|plugin) convert_length")
    assert [each for each in answers if not each or not ran.search(each[-1])] == []
    assert server.violations == ()
