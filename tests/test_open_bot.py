"""The front door: strings of providers, one block, one question, and wrong use of them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tool_search import (
    Bot,
    BotConfig,
    ConfigurationError,
    Done,
    InvalidToolError,
    NoAnswerError,
    ProviderConfig,
    SessionError,
    ToolSearchRunner,
    build_provider,
    load_config,
    open_bot,
    profile_for,
    tool_from_function,
)
from tool_search import bot as bot_module
from tool_search.bot import tools_from_modules
from tool_search.config.bot import provider_from_string
from tool_search.core.settings import KINDS
from tool_search.runner.execution import CallOptions, ToolFunction
from tool_search.testing import Fault, ModelCall, ModelReply, ScriptedModel, StandInServer

PACKAGE = "tool_search"

NO_KEYS: dict[str, str] = {}


def local(server: StandInServer, name: str = "local", **settings: Any) -> ProviderConfig:
    """A provider that needs no key."""
    return ProviderConfig(
        id=name,
        type="openai_chat",
        model="m",
        base_url=server.openai_base_url,
        api_key_env=None,
        **settings,
    )


def say(*texts: str) -> StandInServer:
    return StandInServer(model=ScriptedModel([ModelReply(text=text) for text in texts]))


# Strings.


@pytest.mark.parametrize("spelled", [*KINDS, *(kind.replace("-", "_") for kind in KINDS)])
def test_a_kind_means_the_same_everywhere(spelled: str, tmp_path: Path) -> None:
    dialect = KINDS[spelled.replace("_", "-")]
    path = tmp_path / "bot.yaml"
    path.write_text(f"providers: [{{id: a, type: {spelled}, model: m}}]\n")
    entry = load_config(path).providers[0]
    named = provider_from_string(f"{spelled}:m")
    assert entry.type == named.type == profile_for(spelled, "m").dialect == dialect
    assert entry.api_key_env == named.api_key_env
    assert entry.api_key_env is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("claude-sonnet-4-6", ("form kind:model", "'anthropic:claude-sonnet-4-6'?")),
        ("gpt-5.4", ("form kind:model", "did you mean 'openai:gpt-5.4'?")),
        ("antropic:m", ("form kind:model", "anthropic, openai-responses (or openai), openai-chat",
                        "did you mean 'anthropic:m'?")),
        ("openai_chatt:m", ("did you mean 'openai-chat:m'?",)),
        ("zzz:m", ("form kind:model", "openai-chat")),
        ("", ("form kind:model",)),
        ("anthropic:", ("names no model",)),
        ("openai:  ", ("names no model",)),
    ],
)  # fmt: skip
def test_a_string_of_another_form_says_the_form_and_the_nearest_kind(
    text: str, said: tuple[str, ...]
) -> None:
    for make in (provider_from_string, build_provider):
        with pytest.raises(ConfigurationError) as caught:
            make(text)
        assert repr(text) in str(caught.value)
        assert all(part in str(caught.value) for part in said)


def test_an_unknown_kind_of_a_profile_says_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'anthropic'"):
        profile_for("antropic", "m")


def test_missing_keys_of_strings_are_all_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError) as caught:
        ToolSearchRunner(providers=["anthropic:m", "openai:m"])
    assert "ANTHROPIC_API_KEY is not set" in str(caught.value)
    assert "OPENAI_API_KEY is not set" in str(caught.value)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY is not set"):
        build_provider("openai:m")


def test_a_configured_id_is_a_provider_and_the_settings_of_other_models() -> None:
    entry = ProviderConfig(
        id="local:8b", type="openai_chat", model="qwen3", base_url="http://a/v1", api_key_env=None
    )
    assert provider_from_string("local:8b", [entry]) is entry
    other = provider_from_string("local:8b:qwen3:32b", [entry])
    assert (other.id, other.model, other.base_url) == (
        "local:8b:qwen3:32b", "qwen3:32b", "http://a/v1",
    )  # fmt: skip
    with pytest.raises(ConfigurationError, match="configured ids are 'local:8b'"):
        provider_from_string("nothing", [entry])


@pytest.mark.parametrize(
    ("providers", "problem"),
    [
        ([], "at least one provider"),
        ((), "at least one provider"),
        ({}, "at least one provider"),
        (["openai:m", "openai:m"], "two providers have the id 'openai:m'"),
        ([5], "not 5"),
    ],
)
def test_a_runner_refuses_wrong_lists_of_providers(providers: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        ToolSearchRunner(providers=providers)


@pytest.mark.parametrize("providers", [[], (), {}, None])
def test_a_bot_needs_a_provider(providers: Any) -> None:
    with pytest.raises(ConfigurationError, match="at least one provider, such as 'anthropic:"):
        Bot(providers)


async def test_a_mapping_gives_providers_their_ids() -> None:
    with say("Hello.") as server:
        named = {"mine": local(server), "other": "openai:m"}
        bot = Bot(named, environment={"OPENAI_API_KEY": "sk-of-a-test"})
        async with bot:
            assert await bot.ask("Hi") == "Hello."
            bot.runner.use("mine")
            with pytest.raises(ConfigurationError, match="there are: mine, other"):
                bot.runner.use("local")


async def test_a_runner_closes_the_providers_that_it_built_and_no_others() -> None:
    with say("Hi.", "Hi.", "Hi.") as server:
        given = build_provider(local(server, "given"))
        runner = ToolSearchRunner(providers=[local(server, "built"), given])
        assert [event async for event in runner.run("Hi")]
        runner.use("given")
        assert [event async for event in runner.run("Hi")]
        await runner.aclose()
        again = ToolSearchRunner(providers=[given])
        events = [event async for event in again.run("Hi")]
        await given.aclose()
    assert isinstance(events[-1], Done)


# Questions.


async def test_each_bot_has_one_conversation_of_its_own() -> None:
    with say("One.", "Two.", "Three.") as server:
        config = BotConfig(providers=(local(server),))
        async with open_bot(config) as first, open_bot(config) as second:
            assert [await first.ask("a"), await first.ask("b")] == ["One.", "Two."]
            assert await second.ask("c") == "Three."
            assert first.conversation != second.conversation
        asked = [request.body["messages"] for request in server.requests]
    assert [len(messages) for messages in asked] == [1, 3, 1]


async def test_two_questions_in_one_conversation_wait_for_each_other() -> None:
    with say("One.", "Two.") as server:
        async with Bot([local(server)]) as bot:
            answers = await asyncio.gather(
                bot.ask("a", conversation="me"), bot.ask("b", conversation="me")
            )
        lengths = [len(request.body["messages"]) for request in server.requests]
    assert list(answers) == ["One.", "Two."]
    assert lengths == [1, 3]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ModelReply(text=""), "answer"),
        (ModelReply(text="", stop_reason="refusal"), "refusal"),
    ],
    ids=["empty", "refused"],
)
async def test_a_question_without_an_answer_is_an_error_and_the_conversation_goes_on(
    reply: ModelReply, reason: str
) -> None:
    with StandInServer(model=ScriptedModel([reply, ModelReply(text="Yes.")])) as server:
        async with Bot([local(server)]) as bot:
            with pytest.raises(NoAnswerError, match="the conversation is kept") as caught:
                await bot.ask("Really?")
            assert caught.value.reason == reason
            assert caught.value.text
            assert await bot.ask("Well?") == "Yes."


async def test_a_question_that_takes_too_long_is_an_error() -> None:
    with say("Late.") as server:
        server.faults.add(Fault(delay_s=5.0))
        config = BotConfig(providers=(local(server),), turn_timeout_s=0.2)
        async with open_bot(config) as bot:
            with pytest.raises(NoAnswerError, match="turn_timeout_s") as caught:
                await bot.ask("Hi")
    assert caught.value.reason == "timeout"


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_bot_that_is_not_open_says_how_to_open_it(moment: str) -> None:
    bot = Bot(["openai:m"], environment={"OPENAI_API_KEY": "sk-of-a-test"})
    if moment == "after":
        async with bot:
            pass
    with pytest.raises(SessionError, match="inside `async with bot:`"):
        await bot.ask("Hi")
    with pytest.raises(SessionError, match="inside `async with bot:`"):
        bot.run("Hi")


async def test_a_bot_is_opened_once_at_a_time_and_may_be_opened_again() -> None:
    with say("One.", "Two.") as server:
        bot = Bot([local(server)])
        async with bot:
            with pytest.raises(SessionError, match="open already"):
                await bot.__aenter__()
            assert await bot.ask("a") == "One."
        async with bot:
            assert await bot.ask("b") == "Two."


async def test_a_bot_that_cannot_be_opened_can_be_tried_again() -> None:
    environment = dict(NO_KEYS)
    bot = Bot(["openai:m"], environment=environment)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY is not set"):
        await bot.__aenter__()
    environment["OPENAI_API_KEY"] = "sk-of-a-test"
    async with bot:
        assert bot.runner.catalog is not None


# Configurations.


async def test_a_mapping_is_read_as_a_file_is(tmp_path: Path) -> None:
    with say("Hello.") as server:
        content = {
            "providers": [local(server).model_dump(include={"id", "type", "model", "base_url",
                                                            "api_key_env"})],
            "tool_schema_mode": "full",
            "store": {"path": "kept.db"},
        }  # fmt: skip
        async with open_bot(content, source=tmp_path / "bot.yaml") as bot:
            assert await bot.ask("Hi") == "Hello."
    assert (tmp_path / "kept.db").is_file()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "at least one provider"),
        ({"provider": []}, "provider is unknown"),
        ({"providers": [{"id": "a", "type": "antropic", "model": "m"}]}, "did you mean 'anth"),
        ({"providers": [{"id": "a", "type": "openai"}]}, r"providers\[0\].model is missing"),
        ({"provider_settings": {"x": 1}}, "provider_settings.x is unknown"),
        (5, "a path"),
        (None, "a path"),
    ],
)
def test_what_is_no_configuration_is_refused(content: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem.replace("a path", "takes the path")):
        open_bot(content)


def test_a_folder_and_files_that_are_no_bot_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"is a folder; name the YAML file.*bot\.yaml"):
        open_bot(tmp_path)
    with pytest.raises(ConfigurationError, match=re.escape(str(tmp_path / "bot.yaml"))):
        open_bot("~/bot.yaml")
    for content, problem in (
        (b"", "at least one provider"),
        (b"- {name: add}\n", "must hold keys and values"),
        (b"def add(a: int) -> int: ...\n", "must hold keys and values|is not YAML"),
        (b"\xff\xfe\x00\x01", "cannot be read"),
        (b'{"name": "add", "description": "Add."}', "name is unknown"),
    ):
        (tmp_path / "bot.yaml").write_bytes(content)
        with pytest.raises(ConfigurationError, match=problem) as caught:
            open_bot("~/bot.yaml")
        assert str(tmp_path / "bot.yaml") in str(caught.value)


async def test_modules_beside_the_file_are_found(tmp_path: Path) -> None:
    (tmp_path / "tools_of_an_open_bot.py").write_text(
        'def add(a: int, b: int) -> int:\n    "Add two numbers."\n    return a + b\n'
    )
    (tmp_path / "bot.yaml").write_text(
        "providers: [{id: a, type: openai, model: m, api_key_env: null}]\n"
        "tools: [tools_of_an_open_bot]\nstore: {type: memory}\n"
    )
    async with open_bot(str(tmp_path / "bot.yaml")) as bot:
        assert list(bot.runner.catalog) == ["add"]


@pytest.mark.parametrize(
    ("former", "current"),
    [
        ("demo.workspace_tools.configured", "sources.workspace.configured"),
        ("workspace.configured", "sources.workspace.configured"),
        ("demo.toolbox", "sources.toolbox"),
    ],
)
def test_a_former_module_of_tools_is_found_with_a_notice(
    former: str,
    current: str,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOL_SEARCH_WORKSPACE", str(tmp_path))
    found = tools_from_modules([f"{PACKAGE}.{former}"])
    assert f"{PACKAGE}.{current}" in caplog.text
    caplog.clear()
    listed = tools_from_modules([f"{PACKAGE}.{current}"])
    assert [item.tool.name for item in found] == [item.tool.name for item in listed]
    assert not caplog.text


def test_the_former_name_of_open_bot_says_the_new_one() -> None:
    with pytest.raises(AttributeError, match=r"it is now tool_search\.bot\.open_bot"):
        getattr(bot_module, "open_runner")  # noqa: B009 - no attribute


# Tools.


def documented(*values: int) -> int:
    """Add numbers."""
    return sum(values)


def undocumented(a: int) -> int:
    return a


class Strange:
    """A type that is not JSON."""


def strange(value: Strange) -> str:
    """Use it."""
    return str(value)


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (documented, "parameter \\*values: 'int' cannot be given by name; use named parameters"),
        (strange, "parameter 'value' of type 'Strange' cannot be described as JSON; use str"),
    ],
)
async def test_a_function_that_cannot_be_a_tool_says_why(
    function: ToolFunction, problem: str
) -> None:
    with pytest.raises(InvalidToolError, match=problem):
        tool_from_function(function)
    bot = Bot(["openai:m"], tools=[function], environment={"OPENAI_API_KEY": "sk-of-a-test"})
    with pytest.raises(InvalidToolError, match=problem):
        async with bot:
            pass


def test_a_tool_of_a_function_takes_defer_loading() -> None:
    core = tool_from_function(undocumented, description="Return it.", defer_loading=False)
    assert core.tool.always_load
    with pytest.raises(InvalidToolError, match="leave one out"):
        tool_from_function(
            undocumented, description="Return it.", defer_loading=True, always_load=True
        )


async def test_tools_of_the_configuration_and_of_the_call_are_both_there() -> None:
    script = [
        ModelReply(calls=(ModelCall(name="one", hidden=True),)),
        ModelReply(text="Done."),
    ]

    def one() -> str:
        """Return one."""
        return "1"

    with StandInServer(model=ScriptedModel(script)) as server:
        box = "tool_search.sources.toolbox.quantities"
        config = BotConfig(providers=(local(server),), tools=(box,))
        async with open_bot(config, tools=[one], calls=CallOptions()) as bot:
            assert await bot.ask("One?") == "Done."
            names = list(bot.runner.catalog)
    assert {"one", "hex_to_rgb"} <= set(names)
