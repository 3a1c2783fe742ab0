"""The plugin is saved, reloaded, updated and switched while a message is being answered."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Event

import pytest

from tests.astrbot.bot import AstrBot, lists, new_user
from tool_search.testing import KeywordModel, ModelReply, ModelView, StandInServer

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
