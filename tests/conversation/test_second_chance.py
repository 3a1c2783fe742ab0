"""The search after an answer that says there is no tool: when, what it loads, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conversation.test_preloading import KIMI, RESPONSES, SAID, TOOLS, roles
from tests.conversations import BOUND, CLAUDE, COMPATIBLE, OPENAI, Chat, toolbox
from tool_search import Message, Tool, ToolCall, ToolSearchConfig
from tool_search.core.messages import NativeReply
from tool_search.runner.session.session import says_tool_is_missing

NONE = Message(role="assistant", content="Sorry, I don't have a tool for the weather.")
PROFILES = pytest.mark.parametrize("profile", [CLAUDE, COMPATIBLE, OPENAI, BOUND, RESPONSES, KIMI])


def chat(tools: Any = TOOLS, **settings: Any) -> Chat:
    """A conversation with second chances."""
    return Chat(tools, {"second_chance": True, "preload_score": 0.5, **settings})


@pytest.mark.parametrize(
    "answer",
    [
        "I have no tool for that.",
        "I’m sorry, but I don’t currently have a tool that books flights.",
        "I do not have access to your calendar.",
        "Unfortunately I can't directly access real-time data.",
        "抱歉，我没有可以发送邮件的工具。",
        "我无法直接访问您的日历。",
        "我目前不具备查询天气的能力。",
        "У меня нет подходящего инструмента для этого.",
        "К сожалению, у меня нет доступа к вашей почте.",
        "Я не имею прямого доступа к почте.",
        "I HAVE NO TOOL FOR THAT",
        f"{'A long story. ' * 10_000}I have no tool for the rest.",
    ],
)
def test_an_answer_that_says_there_is_no_tool_is_known(answer: str) -> None:
    assert says_tool_is_missing(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "It is sunny in Paris.",
        "A hammer is a tool for nails. Bring it.",
        "I can do that: shall I?",
        "今天北京晴，最高 25 度。",
        "这个工具很好用。",
        "Завтра в Париже солнечно.",
        "Инструмент ответил: готово.",
        "Мой интернет доступа к почте не теряет.",
        "I did not. You have a tool?",
    ],
)
def test_another_answer_is_not(answer: str) -> None:
    assert not says_tool_is_missing(answer)


@PROFILES
def test_a_tool_is_shown_after_everything_that_was_sent(profile: Any) -> None:
    talk = chat()
    before = talk.begin(profile, SAID)
    new = talk.session.second_chance(NONE)
    assert [(entry.name, entry.via) for entry in new] == [("get_weather_forecast", "second_chance")]
    after = talk.session.plan(profile)
    assert roles(after.messages) == ["user", "assistant", "tool"]
    assert after.messages[:1] == before.messages
    assert after.tools.names[: len(before.tools.names)] == before.tools.names
    talk.call("get_weather_forecast")
    assert talk.session.last_message.text == "ok"


def test_there_is_none_by_default() -> None:
    talk = Chat(TOOLS)
    talk.begin(OPENAI, SAID)
    assert talk.session.second_chance(NONE) == ()
    assert roles(talk.session.history) == ["user"]


def test_there_is_one_in_a_turn() -> None:
    talk = chat([*TOOLS, Tool(name="weather_forecast_tomorrow", description=SAID)])
    talk.begin(OPENAI, SAID)
    assert talk.session.second_chance(NONE)
    assert talk.session.second_chance(NONE) == ()
    talk.answer()
    talk.begin(OPENAI, "Send a mail to somebody")
    (new,) = talk.session.second_chance(NONE)
    assert new.name == "send_mail"


@pytest.mark.parametrize(
    "reply",
    [
        Message(role="assistant", content="It is sunny."),
        Message(role="assistant", content=""),
        Message(
            role="assistant",
            content=NONE.content,
            tool_calls=(ToolCall(id="c", name="tool_search", arguments="{}"),),
        ),
        Message(
            role="assistant",
            content=NONE.content,
            native=NativeReply(origin="o", blocks=(), found=("send_mail",)),
        ),
    ],
)
def test_another_reply_has_none(reply: Message) -> None:
    talk = chat()
    talk.begin(OPENAI, SAID)
    assert talk.session.second_chance(reply) == ()


@pytest.mark.parametrize(
    "said", ["hello", "", "select:get_weather_forecast", "+weather forecast tomorrow"]
)
def test_an_unsure_search_or_an_operator_loads_nothing(said: str) -> None:
    talk = chat()
    talk.begin(OPENAI, said)
    assert talk.session.second_chance(NONE) == ()
    assert roles(talk.session.history) == ["user"]


def test_a_forbidden_tool_or_one_that_may_ask_is_not_loaded() -> None:
    talk = chat()
    talk.session.begin_turn(SAID, profile=OPENAI, denial_reason=lambda _: "")
    assert talk.session.second_chance(NONE) == ()
    talk.answer()
    talk.session.begin_turn(SAID, profile=OPENAI, may_ask=lambda _: True)
    assert talk.session.second_chance(NONE) == ()


def test_a_tool_for_other_roles_is_not_loaded() -> None:
    talk = chat([Tool(name="weather_forecast", description=SAID, roles=("admin",)), *toolbox(20)])
    talk.begin(OPENAI, SAID, roles=("user",))
    assert talk.session.second_chance(NONE) == ()
    talk.answer()
    talk.begin(OPENAI, SAID, roles=("admin",))
    assert talk.session.second_chance(NONE)


@pytest.mark.parametrize("tools", [(), toolbox(3, core=3)[3:]])
def test_nothing_is_loaded_where_nothing_is_deferred(tools: Any) -> None:
    talk = chat(tools, tool_schema_mode="auto")
    talk.begin(OPENAI, "Common core_001")
    assert talk.session.second_chance(NONE) == ()


def test_a_callable_tool_is_not_loaded_again() -> None:
    talk = chat(preload=1)
    talk.begin(OPENAI, SAID)
    assert talk.session.second_chance(NONE) == ()


def test_a_turn_with_calls_has_one_too() -> None:
    talk = chat()
    talk.begin(OPENAI, SAID)
    talk.find("send_mail")
    before = talk.session.history
    assert talk.session.second_chance(NONE)
    assert talk.session.history[: len(before)] == before
    assert roles(talk.session.history) == ["user", *("assistant", "tool") * 2]
    assert talk.session.record().insertion_points == ()


def test_open_calls_come_first() -> None:
    talk = chat()
    talk.begin(OPENAI, SAID)
    calls = (ToolCall(id="c", name="send_mail", arguments="{}"),)
    talk.session.accept(Message(role="assistant", tool_calls=calls))
    assert talk.session.second_chance(NONE) == ()


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("preload", [0, 1])
def test_a_history_of_the_bots_own_gets_its_searches_back(restarts: bool, preload: int) -> None:
    talk = chat([*TOOLS, Tool(name="weather_tomorrow", description=SAID)], preload=preload)
    talk.turn(OPENAI, "hello")
    talk.begin(OPENAI, SAID)
    assert talk.session.second_chance(NONE)
    talk.answer()
    whole = talk.session.history
    assert len(talk.session.record().insertion_points) == 1
    own = [said for said in whole if not said.tool_calls and said.role != "tool"]
    again = talk.restarted() if restarts else talk
    again.session.adopt_history(own)
    assert again.session.history == whole


@pytest.mark.parametrize("preload", [0, 1])
def test_a_dropped_turn_takes_its_search_with_it(preload: int) -> None:
    talk = chat([*TOOLS, Tool(name="weather_tomorrow", description=SAID)], preload=preload)
    talk.turn(OPENAI, "hello")
    before = talk.session.history
    talk.begin(OPENAI, SAID)
    assert talk.session.second_chance(NONE)
    talk.session.drop_last_turn()
    assert talk.session.history == before
    assert talk.session.record().insertion_points == ()


def test_a_search_after_calls_is_shown_anew_in_a_history_without_them() -> None:
    talk = chat()
    talk.begin(OPENAI, SAID)
    talk.find("send_mail")
    talk.session.second_chance(NONE)
    talk.answer()
    own = [said for said in talk.session.history if not said.tool_calls and said.role != "tool"]
    talk.session.adopt_history(own)
    plan = talk.begin(CLAUDE, "thanks")
    shown = "".join(said.text for said in plan.messages if said.role == "tool")
    assert "get_weather_forecast" in talk.session.plan(OPENAI).tools.names
    assert len([said for said in plan.messages if said.role == "tool"]) == 1, shown


def test_it_teaches_nothing() -> None:
    talk = chat()
    talk.begin(OPENAI, SAID)
    talk.session.second_chance(NONE)
    talk.call("get_weather_forecast")
    talk.answer()
    assert talk.session.drain_lessons() == ()


@pytest.mark.parametrize("wrong", ["yes", 1, "on", None])
def test_the_setting_is_true_or_false(wrong: object) -> None:
    with pytest.raises(ValueError, match="second_chance"):
        ToolSearchConfig.model_validate({"second_chance": wrong})
