"""The language of the first message stays, and the instructions come exactly once."""

from __future__ import annotations

import json

import pytest

from tests.runner.bench import (
    SEARCHING,
    Bench,
    call,
    calling,
    named,
    say,
    search,
    some_tools,
    turn,
)
from tool_search import ToolFinished, ToolSearchConfig
from tool_search.i18n import LANGUAGES as ALL_LANGUAGES
from tool_search.i18n import Language, text
from tool_search.testing import CapturedRequest, ScriptedModel

BOTH = pytest.mark.parametrize("name", ["claude", "gpt"])
LANGUAGES = pytest.mark.parametrize(
    ("first", "language"),
    [
        ("What is the weather?", "en-US"),
        ("天气怎么样？", "zh-CN"),
        ("Какая погода?", "ru-RU"),
        ("Qué tiempo hace?", "en-US"),
        ("帮我看看 weather in Paris", "zh-CN"),
    ],
    ids=["en", "zh", "ru", "es", "mixed"],
)


_HEADS = tuple(
    text(key, language) for key in ("listing.tools", "listing.groups") for language in ALL_LANGUAGES
)


def _system(request: CapturedRequest) -> str:
    """The system text of a request, without the listing of tools."""
    whole = _whole_system(request)
    heads = [whole.find(head) for head in _HEADS if head in whole]
    return whole[: min(heads)].rstrip() if heads else whole


def _whole_system(request: CapturedRequest) -> str:
    if request.dialect == "anthropic":
        system = request.body.get("system", "")
        return system if isinstance(system, str) else "".join(part["text"] for part in system)
    first = request.body["messages"][0]
    return first["content"] if first["role"] in ("system", "developer") else ""


def _instructions(language: Language) -> str:
    return text("system.instructions", language, search_tool="tool_search")


@LANGUAGES
@BOTH
async def test_language_of_the_first_message_stays(
    bench: Bench, name: str, first: str, language: Language
) -> None:
    bench.server.reset(model=ScriptedModel([say("1"), say("2"), search("qwzx"), say("3")]))
    runner = await bench.runner(name)
    for said in (first, "And now in English, 中文, по-русски"):
        await turn(runner, said)
    finished = named(await turn(runner, "?"), ToolFinished)[0]
    assert json.loads(finished.content)["hint"] == text("search.no_match", language)
    assert {_system(request) for request in bench.requests} == {_instructions(language)}
    assert len({request.tools_bytes for request in bench.requests}) == 1


@LANGUAGES
async def test_language_can_be_settled_by_the_owner(
    bench: Bench, first: str, language: Language
) -> None:
    bench.server.reset(model=ScriptedModel([say("1")]))
    config = SEARCHING.model_copy(update={"language": "ru-RU"})
    await turn(await bench.runner("gpt", config=config), first)
    assert _system(bench.requests[0]) == _instructions("ru-RU")


@LANGUAGES
async def test_errors_of_calls_speak_the_language(
    bench: Bench, first: str, language: Language
) -> None:
    bench.server.reset(model=ScriptedModel([calling(call("qqq")), say("1")]))
    finished = named(await turn(await bench.runner("gpt"), first), ToolFinished)[0]
    said = text("call.unknown_search", language, name="qqq", search_tool="tool_search")
    assert finished.content == said


@BOTH
async def test_instructions_follow_the_owners_prompt_once(bench: Bench, name: str) -> None:
    bench.server.reset(model=ScriptedModel([search("weather"), say("1"), say("2")]))
    runner = await bench.runner(name, system_prompt="You are Lena.\n")
    await turn(runner)
    await turn(runner)
    assert {_system(r) for r in bench.requests} == {f"You are Lena.\n\n{_instructions('en-US')}"}


@BOTH
async def test_instructions_that_the_prompt_has_are_not_repeated(bench: Bench, name: str) -> None:
    prompt = f"Before.\n{_instructions('en-US')}\nAfter."
    bench.server.reset(model=ScriptedModel([say("1")]))
    await turn(await bench.runner(name, system_prompt=prompt))
    assert _system(bench.requests[0]) == prompt


@pytest.mark.parametrize("mode", ["full", "skills_like", "auto"])
@BOTH
async def test_no_instructions_outside_tool_search(bench: Bench, name: str, mode: str) -> None:
    """There is nothing to search for; `auto` is `full` with four tools."""
    bench.server.reset(model=ScriptedModel([say("1")]))
    config = ToolSearchConfig.model_validate({"tool_schema_mode": mode})
    await turn(await bench.runner(name, config=config, system_prompt="You are Lena."))
    assert _system(bench.requests[0]) == "You are Lena."
    assert "tool_search" not in bench.requests[0].tool_names


async def test_instructions_name_the_search_tool_as_it_is_called(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("1")]))
    config = SEARCHING.model_copy(update={"search_tool_name": "find_tools"})
    await turn(await bench.runner("gpt", config=config))
    assert "`find_tools`" in _system(bench.requests[0])
    assert "find_tools" in bench.requests[0].tool_names


async def test_instructions_are_the_same_on_every_provider(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("1")] * 3))
    runner = await bench.runner("claude", "gpt", "glm", tools=some_tools())
    for provider in ("claude", "gpt", "glm"):
        runner.use(provider)
        await turn(runner, "你好")
    assert {_system(request) for request in bench.requests} == {_instructions("zh-CN")}
