"""A bot from its configuration: tools of modules, keys, providers that are closed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tool_search.bot import open_bot, tools_from_modules
from tool_search.config.bot import BotConfig, ProviderConfig
from tool_search.config.conversation import HistorySettings, ToolSearchConfig
from tool_search.config.providers import ProfileSettings
from tool_search.config.search import SearchSettings
from tool_search.config.stores import StoreSettings
from tool_search.errors import (
    ConfigurationError,
    DuplicateToolError,
    InvalidToolError,
    StoreError,
)
from tool_search.runner.events import Done, ToolFinished
from tool_search.runner.execution import (
    CallLimits,
    CallOptions,
    PermissionAnswer,
    PermissionRequest,
)
from tool_search.stores import SQLiteStore
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

Module = Callable[[str], str]
ADD = 'def add(a: int, b: int) -> int:\n    "Add two numbers."\n    return a + b\n'
_numbers = itertools.count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    """Writes a Python module; gives its name."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(source: str) -> str:
        name = f"tools_of_a_test_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        return name

    return write


def names(*modules: str) -> list[str]:
    """The names of the tools of these modules."""
    return [item.tool.name for item in tools_from_modules(modules)]


def test_public_functions_of_a_module_are_its_tools(module: Module) -> None:
    source = (
        "from json import dumps\nfrom pathlib import Path\n"
        f"async def zero() -> int:\n    'Give zero.'\n    return 0\n{ADD}"
        "def _hidden() -> None: ...\nLIMIT = 5\nclass Thing: ...\n"
    )
    assert names(module(source)) == ["zero", "add"]


def test_tools_of_a_module_are_what_it_lists(module: Module) -> None:
    source = (
        "from tool_search import tool_from_function\n"
        f"{ADD}def left_out() -> None: ...\n"
        "TOOLS = [tool_from_function(add, name='plus'), len]\n"
    )
    assert names(module(source.replace(", len", ", add"))) == ["plus", "add"]


def test_empty_list_of_tools_is_meant(module: Module) -> None:
    """A module may have none for the moment."""
    assert names(module(f"{ADD}TOOLS = ()\n")) == []


def test_module_named_twice_is_read_once(module: Module) -> None:
    name = module(ADD)
    assert names(name, name) == ["add"]


def test_two_tools_of_one_name_name_both_modules(module: Module) -> None:
    first, second = module(ADD), module(ADD)
    with pytest.raises(DuplicateToolError) as caught:
        tools_from_modules([first, second])
    assert "'add'" in str(caught.value)
    assert repr(first) in str(caught.value)
    assert repr(second) in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nothing_of_this_name\n", "No module named 'nothing_of_this_name'"),
        ("x = 1\ny = 1 / 0\n", "line 2)"),
        ("def broken(:\n", "SyntaxError"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("x = 1\n", "has no tools"),
        ("TOOLS = 5\n", "must be a list of functions, not 5"),
        ("TOOLS = 'add'\n", "must be a list of functions, not 'add'"),
    ],
    ids=["import", "division", "syntax", "exit", "nothing", "number", "text"],
)
def test_module_that_cannot_be_used_is_named(module: Module, source: str, message: str) -> None:
    name = module(source)
    with pytest.raises(ConfigurationError) as caught:
        tools_from_modules([name])
    assert repr(name) in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["nothing_of_this_name", "", ".relative", "json.nothing"])
def test_module_that_does_not_exist_is_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be imported") as caught:
        tools_from_modules([name])
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("source", ["TOOLS = [5]\n", "def f(*args: int) -> None: ...\n"])
def test_function_that_cannot_be_a_tool_names_its_module(module: Module, source: str) -> None:
    name = module(source)
    with pytest.raises(InvalidToolError, match=name):
        tools_from_modules([name])


def provider(name: str = "p", **settings: Any) -> ProviderConfig:
    """An entry of `providers` that needs no key."""
    values = {"type": "openai_chat", "model": "m", "api_key_env": None, **settings}
    return ProviderConfig(id=name, **values)


async def test_runner_knows_its_providers_as_the_profiles_say(module: Module) -> None:
    mine = ProfileSettings.model_validate({"match": {"host": "127.0.0.1"}, "strategy": "bridge"})
    with StandInServer(model=ScriptedModel([ModelReply(text="Hello.")])) as server:
        config = BotConfig(
            tool_search=ToolSearchConfig(tool_schema_mode="tool_search"),
            providers=(provider(base_url=server.openai_base_url),),
            tools=(module(ADD),),
            profiles={"mine": mine},
            store=StoreSettings(type="memory"),
        )
        async with open_bot(config) as bot:
            assert [event async for event in bot.run("Hi")]
        assert server.requests[0].tool_names == ("tool_search", "call_tool")


async def test_runner_of_a_configuration_answers(module: Module) -> None:
    with StandInServer(model=ScriptedModel([ModelReply(text="Hello.")])) as server:
        config = BotConfig(
            providers=(provider(base_url=server.openai_base_url),),
            tools=(module(ADD),),
            system_prompt="Be kind.",
        )
        async with open_bot(config) as bot:
            events = [event async for event in bot.run("Hi")]
        body = server.requests[0].body
    assert isinstance(events[-1], Done)
    assert events[-1].answer == "Hello."
    assert [tool["function"]["name"] for tool in body["tools"]] == ["add"]
    assert body["messages"][0]["content"] == "Be kind."


@pytest.mark.parametrize(
    ("calls", "kept"),
    [
        (None, 1_000),
        (CallOptions(), 1_000),
        (CallOptions(limits=CallLimits(longest_result=5_000)), 5_000),
    ],
)
async def test_longest_result_of_the_configuration_holds_unless_code_says_otherwise(
    module: Module, calls: CallOptions | None, kept: int
) -> None:
    source = 'def much() -> str:\n    "Give much."\n    return "x" * 9_000\n'
    script = [ModelReply(calls=(ModelCall(name="much"),)), ModelReply(text="So much.")]
    with StandInServer(model=ScriptedModel(script)) as server:
        config = BotConfig(
            providers=(provider(base_url=server.openai_base_url),),
            tools=(module(source),),
            store=StoreSettings(type="memory"),
            history=HistorySettings(longest_result=1_000),
        )
        async with open_bot(config, calls=calls) as bot:
            assert [event async for event in bot.run("Hi")]
        read = server.requests[1].body["messages"][-1]["content"]
    assert read.count("x") == kept
    assert f"[{9_000 - kept} characters left out]" in read


@pytest.mark.parametrize("embedder", ["word_embedder:WordEmbedder", "no_such:Embedder"])
async def test_bot_that_searches_by_meaning_has_its_vectors_before_its_first_turn(
    module: Module, tmp_path: Path, embedder: str
) -> None:
    """No conversation waits for them; where they cannot be made, the bot starts all the same."""
    kept = tmp_path / "vectors.sqlite"
    search = SearchSettings(
        engine="semantic", embedder=f"tests.search.{embedder}", vector_cache=str(kept)
    )
    config = BotConfig(
        providers=(provider(),),
        tools=(module(ADD),),
        store=StoreSettings(type="memory"),
        tool_search=ToolSearchConfig(auto_always_load_builtin=False, search=search),
    )
    async with open_bot(config):
        assert kept.exists() == embedder.startswith("word_embedder")


async def test_missing_keys_are_all_named_at_once() -> None:
    config = BotConfig(
        providers=(provider("a", api_key_env="KEY_OF_A"), provider("b", api_key_env="KEY_OF_B"))
    )
    with pytest.raises(ConfigurationError) as caught:
        async with open_bot(config, environment={"KEY_OF_A": " "}):
            pass
    assert "KEY_OF_A is not set" in str(caught.value)
    assert "KEY_OF_B is not set" in str(caught.value)


async def test_bot_without_providers_is_refused() -> None:
    """There is nobody to ask."""
    with pytest.raises(ConfigurationError, match="at least one provider"):
        async with open_bot(BotConfig()):
            pass


async def test_strategy_that_the_model_cannot_honour_names_the_provider() -> None:
    config = BotConfig(providers=(provider("old", strategy="claude"),))
    with pytest.raises(ConfigurationError, match="provider 'old'"):
        async with open_bot(config):
            pass


async def test_bot_keeps_its_conversations_in_the_file_it_names(tmp_path: Path) -> None:
    config = BotConfig(providers=(provider(),), store=StoreSettings(path="kept/bot.db"))
    async with open_bot(config, source=tmp_path / "bot.yaml"):
        assert (tmp_path / "kept" / "bot.db").is_file()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["bot.db"]


def test_bot_that_keeps_nothing_makes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    config = BotConfig(providers=(provider(),), store=StoreSettings(type="memory"))

    async def run() -> None:
        async with open_bot(config):
            pass

    asyncio.run(run())
    assert list(tmp_path.iterdir()) == []


async def test_store_that_cannot_be_opened_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "bot.db").write_bytes(b"no database" * 100)
    config = BotConfig(providers=(provider(),), store=StoreSettings(path=str(tmp_path / "bot.db")))
    with pytest.raises(StoreError, match="damaged or is not a store"):
        async with open_bot(config):
            pass


async def test_bot_starts_with_a_store_that_may_be_mended(
    module: Module, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is damaged: a warning says so, and the conversation goes on from memory."""
    path = tmp_path / "bot.db"
    async with SQLiteStore(path):
        pass
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    answer = await _calls_add(module, {}, store=StoreSettings(path=str(path)))
    assert answer.content == "3"
    assert "conversations are in memory for now" in caplog.text
    assert ".recover" in caplog.text
    path.unlink()
    await _calls_add(module, {}, store=StoreSettings(path=str(path)))
    async with SQLiteStore(path) as store:
        assert await store.conversations() == ("default",)


async def _calls_add(
    module: Module,
    permissions: dict[str, Any],
    *,
    store: StoreSettings = StoreSettings(type="memory"),  # noqa: B008  # frozen
    user: str | None = None,
    **settings: Any,
) -> ToolFinished:
    """How the call of a bot's tool ends."""
    call = ModelCall(name="add", arguments={"a": 1, "b": 2}, hidden=True)
    script = [ModelReply(calls=(call,)), ModelReply(text="Done.")]
    with StandInServer(model=ScriptedModel(script)) as server:
        config = BotConfig.model_validate(
            {
                "providers": [provider(base_url=server.openai_base_url)],
                "tools": [module(ADD)],
                "store": store,
                "permissions": permissions,
            }
        )
        async with open_bot(config, **settings) as bot:
            events = [event async for event in bot.run("Add", conversation="default", user=user)]
    return next(event for event in events if isinstance(event, ToolFinished))


async def test_permissions_of_a_configuration_hold(module: Module) -> None:
    assert (await _calls_add(module, {})).content == "3"
    assert (await _calls_add(module, {"ask": ["add"]})).outcome == "denied"
    assert "no tool named add" in (await _calls_add(module, {"deny": ["a*"]})).content


async def test_grants_are_kept_in_the_bots_store(module: Module, tmp_path: Path) -> None:
    async def always(request: PermissionRequest) -> PermissionAnswer:
        return PermissionAnswer(allow=True, scope="always")

    kept: dict[str, Any] = {
        "source": tmp_path / "bot.yaml",
        "store": StoreSettings(path="kept/bot.db"),
    }
    first = await _calls_add(module, {"ask": ["add"]}, ask_user=always, **kept)
    again = await _calls_add(module, {"ask": ["add"]}, **kept)
    assert (first.outcome, again.outcome) == ("finished", "finished")
    assert (tmp_path / "kept" / "bot.db").is_file()


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        ("{", "denied"),
        ('[{"rule": "add", "user": "ann"}]', "finished"),
        ('[{"rule": "add", "user": null}]', "denied"),  # anybody's, and so nobody's
    ],
)
async def test_a_bot_with_an_older_file_of_grants_starts(
    module: Module, tmp_path: Path, content: str, outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What the file has holds from now on by the store; what is wrong with it is said."""
    (tmp_path / "grants.json").write_text(content)
    permissions = {"ask": ["add"], "grants": "grants.json"}
    first = await _calls_add(module, permissions, source=tmp_path / "bot.yaml", user="ann")
    assert first.outcome == outcome
    assert "grants.json" in caplog.text
