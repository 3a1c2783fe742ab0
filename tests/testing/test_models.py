"""The replies of the stand-in models to their views."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.testing import (
    KeywordModel,
    ModelCall,
    ModelReply,
    ModelView,
    ScriptedModel,
    ScriptExhaustedError,
    StandInServer,
    ViewCall,
    ViewMessage,
    ViewResult,
    VisibleTool,
)
from tool_search.testing.models.arguments import fill_arguments

if TYPE_CHECKING:
    from openai import AsyncOpenAI

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = VisibleTool(
    name="get_weather", description="The weather of a city. 查询城市天气", parameters=CITY
)
CONVERT = VisibleTool(
    name="convert_currency",
    description="Converts an amount of money. Конвертировать валюту",
    parameters={
        "type": "object",
        "properties": {
            "amount": {"type": "number"},
            "source": {"type": "string"},
            "target": {"type": "string"},
            "rounding": {"enum": ["up", "down"]},
            "note": {"type": "string"},
        },
        "required": ["amount", "source", "target"],
    },
)
SEARCH = VisibleTool(name="tool_search", description="Finds tools.")
CALL_TOOL = VisibleTool(name="call_tool", description="Calls a tool by its name.")
ALL = (WEATHER, CONVERT, SEARCH)


def view(
    text: str,
    *since: ViewMessage,
    tools: tuple[VisibleTool, ...] = ALL,
    choice: str = "auto",
) -> ModelView:
    """Return the view of a model after a user's message."""
    messages = (ViewMessage(role="user", text=text), *since)
    return ModelView(
        dialect="openai_chat", model="m", tools=tools, tool_choice=choice, messages=messages
    )


def exchange(name: str, text: str = "", references: tuple[str, ...] = ()) -> list[ViewMessage]:
    """Return a call and its result."""
    result = ViewResult(call_id="1", name=name, text=text, references=references)
    return [
        ViewMessage(role="assistant", calls=(ViewCall(id="1", name=name),)),
        ViewMessage(role="user", results=(result,)),
    ]


def called(reply: ModelReply) -> list[tuple[str, Any]]:
    """Return the names and arguments of a reply's calls."""
    return [(call.name, call.arguments) for call in reply.calls]


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("What is the weather in Paris?", "get_weather", {"city": "Paris"}),
        ("“北京”天气怎么样?", "get_weather", {"city": "北京"}),
        (
            "Please convert 12.5 USD to EUR, rounding up",
            "convert_currency",
            {"amount": 12.5, "source": "USD", "target": "EUR", "rounding": "up"},
        ),
        (
            "Конвертируй валюту: 100 из RUB в CNY",
            "convert_currency",
            {"amount": 100, "source": "RUB", "target": "CNY"},
        ),
        ("play some music", "tool_search", {"query": "play some music"}),
        ("播放音乐", "tool_search", {"query": "播放音乐"}),
    ],
)
def test_keyword_model_calls_what_shares_words_or_searches(
    text: str, name: str, arguments: Any
) -> None:
    assert called(KeywordModel().reply(view(text))) == [(name, arguments)]


@pytest.mark.parametrize(
    "found",
    [
        exchange("tool_search", references=("play_song",)),
        exchange("tool_search", json.dumps({"matches": [{"name": "play_song"}]})),
        exchange("tool_search", json.dumps({"matches": [], "loaded": ["play_song"]})),
    ],
    ids=["references", "matches", "loaded"],
)
def test_keyword_model_calls_what_a_search_revealed(found: list[ViewMessage]) -> None:
    tools = (*ALL, VisibleTool(name="play_song"))
    reply = KeywordModel().reply(view("music please", *found, tools=tools))
    assert called(reply) == [("play_song", {})]


def test_keyword_model_calls_through_call_tool_what_it_is_not_shown() -> None:
    text = json.dumps({"matches": [{"name": "play_song", "parameters": CITY}]})
    seen = view("music in 'Rome'", *exchange("tool_search", text), tools=(SEARCH, CALL_TOOL))
    arguments = {"name": "play_song", "arguments": {"city": "Rome"}}
    assert called(KeywordModel().reply(seen)) == [("call_tool", arguments)]


def test_keyword_model_answers_with_the_result() -> None:
    reply = KeywordModel().reply(view("weather", *exchange("get_weather", "Sunny, 21 °C")))
    assert (reply.text, reply.calls) == ("get_weather: Sunny, 21 °C", ())


@pytest.mark.parametrize(
    "text", ['{"matches": [], "hint": "no tool matches"}', "[]", "not JSON", ""]
)
def test_keyword_model_gives_up_when_a_search_found_nothing(text: str) -> None:
    reply = KeywordModel().reply(view("dance", *exchange("tool_search", text)))
    assert (reply.text, reply.calls) == ("No tool was found for: dance", ())


@pytest.mark.parametrize(("asked", "said"), [("跳舞", "没有找到"), ("Станцуй", "не найден")])
def test_keyword_model_answers_in_the_language_of_the_message(asked: str, said: str) -> None:
    reply = KeywordModel().reply(view(asked, *exchange("tool_search", "[]")))
    assert said in reply.text
    assert reply.text.endswith(asked)


def test_keyword_model_obeys_the_tool_choice() -> None:
    model = KeywordModel()
    assert model.reply(view("weather", choice="none")).calls == ()
    assert called(model.reply(view("weather", choice="tool:tool_search"))) == [("tool_search", {})]
    only = view("hello", tools=(WEATHER,), choice="any")
    assert called(model.reply(only)) == [("get_weather", {"city": "hello"})]


@given(
    st.recursive(
        st.sampled_from(
            [
                {"type": "string", "minLength": 3, "maxLength": 8},
                {"type": "integer", "minimum": 5, "maximum": 9},
                {"type": "number", "exclusiveMinimum": 0},
                {"type": ["null", "boolean"]},
                {"enum": ["a", "b", 3]},
                {"const": 7},
                {"type": "string", "format": "date"},
                {"anyOf": [{"type": "null"}, {"type": "integer"}]},
            ]
        ),
        lambda inner: (
            st.builds(
                lambda name, schema: {
                    "type": "object",
                    "properties": {name: schema},
                    "required": [name],
                    "additionalProperties": False,
                },
                st.sampled_from(["a", "b"]),
                inner,
            )
            | st.builds(lambda schema: {"type": "array", "items": schema, "minItems": 1}, inner)
        ),
        max_leaves=4,
    ),
    st.sampled_from(["use 12 and 'abcdefghijk'", "a b 3", "天气 -1.5", ""]),
)
def test_keyword_model_fills_arguments_that_fit_the_schema(schema: Any, text: str) -> None:
    parameters = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    tool = VisibleTool(name="lonely", parameters=parameters)
    reply = KeywordModel().reply(view(text, tools=(tool,), choice="tool:lonely"))
    assert jsonschema_rs.is_valid(parameters, reply.calls[0].arguments)


def test_scripted_model_takes_one_step_a_request() -> None:
    model = ScriptedModel([ModelReply(text="one"), lambda seen: ModelReply(text=seen.model)])
    assert [model.reply(view("x")).text for _ in range(2)] == ["one", "m"]
    assert model.remaining == 0
    with pytest.raises(ScriptExhaustedError, match="2 steps and this is request 3"):
        model.reply(view("x"))


def test_scripted_model_has_scripts_for_single_turns() -> None:
    model = ScriptedModel(
        [ModelReply(text="otherwise")], turns={"weather": [ModelReply(text="sunny")]}
    )
    assert model.remaining == 2
    assert model.reply(view("the weather?")).text == "sunny"
    assert model.reply(view("hello")).text == "otherwise"
    with pytest.raises(ScriptExhaustedError, match="the script for 'weather'"):
        model.reply(view("the weather again"))


async def test_script_exhausted_is_an_error_that_says_so(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.reset(model=ScriptedModel())
    with pytest.raises(openai.InternalServerError, match="exhausted: it has 0 steps"):
        await gpt.chat.completions.create(**gpt_body)


async def test_call_of_a_tool_that_is_not_shown_has_to_be_meant(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    meant = ModelCall(name="invented", arguments="{broken", hidden=True)
    slip = ModelReply(calls=(ModelCall(name="invented"),))
    server.reset(model=ScriptedModel([slip, ModelReply(calls=(meant,))]))
    with pytest.raises(openai.InternalServerError, match=r"not shown.*hidden=True"):
        await gpt.chat.completions.create(**gpt_body)
    completion = await gpt.chat.completions.create(**gpt_body)
    calls = completion.choices[0].message.tool_calls or ()
    assert [call.function.arguments for call in calls] == ["{broken"]


async def test_call_that_the_request_forbids_is_told(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.reset(model=ScriptedModel([ModelReply(calls=(ModelCall(name="get_weather"),))]))
    with pytest.raises(openai.InternalServerError, match="lets it call no tool"):
        await gpt.chat.completions.create(**gpt_body, tool_choice="none")


async def test_error_of_a_step_is_told(
    server: StandInServer, gpt: AsyncOpenAI, gpt_body: Any
) -> None:
    server.reset(model=ScriptedModel([lambda seen: ModelReply(text=seen.results[0].text)]))
    with pytest.raises(openai.InternalServerError, match="IndexError"):
        await gpt.chat.completions.create(**gpt_body)


def test_text_beside_a_result_starts_no_turn() -> None:
    result = ViewResult(call_id="1", name="tool_search", references=("x",))
    loaded = ViewMessage(role="user", text="Tool loaded.", results=(result,))
    seen = view("the question", ViewMessage(role="assistant"), loaded)
    assert seen.last_user_text == "the question"
    assert seen.results == (result,)


@pytest.mark.parametrize(
    "text",
    ["How many miles are 42.195 km?", "Convert 42.195 km to miles", "42.195km in miles, please"],
)
def test_the_unit_after_a_number_is_the_one_it_is_in(text: str) -> None:
    units = {"enum": ["mm", "m", "km", "mile", "nautical_mile"]}
    schema = {
        "properties": {"value": {"type": "number"}, "from_unit": units, "to_unit": units},
        "required": ["value", "from_unit", "to_unit"],
    }
    assert fill_arguments(schema, text) == {
        "value": 42.195, "from_unit": "km", "to_unit": "mile",
    }  # fmt: skip
