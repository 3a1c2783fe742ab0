"""A bot for these tests, which need AstrBot and are left out without it."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.astrbot.bot import AstrBot, BotSetup
from tool_search.testing import KeywordModel, StandInServer

collect_ignore_glob = [] if find_spec("astrbot") else ["test_*.py"]

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def plugin_zip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin as it is installed, the library inside."""
    build = runpy.run_path(str(ROOT / ".ci" / "astrbot_plugin.py"))["build"]
    target = tmp_path_factory.mktemp("zip") / "astrbot_plugin_tool_search.zip"
    build(target)
    return target


@pytest.fixture(scope="session")
def session_server() -> Iterator[StandInServer]:
    """The stand-in provider of all bots."""
    with StandInServer(model=KeywordModel()) as server:
        yield server


@pytest.fixture
def server(session_server: StandInServer) -> StandInServer:
    """The same, having forgotten all other tests."""
    session_server.reset(model=KeywordModel())
    session_server.faults.clear()
    return session_server


@pytest.fixture(scope="session")
def start_bot(
    session_server: StandInServer, plugin_zip: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., AstrBot]]:
    """Starts a bot on a root of its own; all end with the session."""
    started: list[AstrBot] = []

    def start(*, install: bool = True, **changes: object) -> AstrBot:
        archive = plugin_zip if install else None
        setup = BotSetup(server=session_server, plugin_zip=archive, **changes)  # type: ignore[arg-type]
        bot = AstrBot(tmp_path_factory.mktemp("astrbot"), setup)
        started.append(bot)
        bot.start()
        return bot

    yield start
    for bot in started:
        bot.stop()


@pytest.fixture(scope="session")
def generic_bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """120 tools, an OpenAI provider."""
    return start_bot(providers=("openai",))


@pytest.fixture(scope="session")
def small_bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """The same with 40 tools: AstrBot itself takes its time for each of them."""
    return start_bot(providers=("openai",), tools=40)


@pytest.fixture(scope="session")
def claude_bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """120 tools, a Claude provider with tool search, and an OpenAI provider after it."""
    return start_bot(providers=("claude", "openai"), settings={"native_claude": "on"})


@pytest.fixture(scope="session")
def responses_bot(start_bot: Callable[..., AstrBot]) -> AstrBot:
    """40 tools, OpenAI's Responses with tool search, and Claude's after it."""
    settings = {"native_openai": "on", "native_claude": "on"}
    return start_bot(providers=("responses", "claude"), tools=40, settings=settings)
