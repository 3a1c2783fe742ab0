"""The lessons of searches in a driven session."""

from __future__ import annotations

from tests.conversations import Chat, tool, toolbox
from tool_search import CallResult, Message, RunCall, Tool, ToolCall
from tool_search.conversation.search_trail import Lesson

TOOLS = [
    Tool(name="get_forecast", description="Weather forecast of a city.", kind="mcp"),
    Tool(name="send_mail", description="Send an e-mail to somebody.", kind="mcp"),
]


def chat() -> Chat:
    """A conversation that has begun."""
    made = Chat(TOOLS)
    made.begin()
    return made


def lessons(made: Chat) -> list[tuple[str, str, float]]:
    """Return the lessons since the last look."""
    return [(each.query, each.tool, each.strength) for each in made.session.drain_lessons()]


def test_a_search_that_led_to_a_call_is_a_lesson() -> None:
    made = chat()
    made.search("weather tomorrow")
    made.call("get_forecast")
    assert made.session.drain_lessons() == (Lesson(query="weather tomorrow", tool="get_forecast"),)
    assert lessons(made) == []


def test_a_second_call_is_not_a_second_lesson() -> None:
    made = chat()
    made.search("weather")
    made.call("get_forecast")
    made.call("get_forecast")
    assert lessons(made) == [("weather", "get_forecast", 1.0)]


def test_a_found_tool_that_was_callable_already_counts_too() -> None:
    made = chat()
    made.search("weather")
    made.call("get_forecast")
    made.search("forecast for Paris")
    made.call("get_forecast")
    assert [query for query, _, _ in lessons(made)] == ["weather", "forecast for Paris"]


def test_a_search_without_a_call_teaches_nothing() -> None:
    made = chat()
    made.search("weather")
    made.answer()
    assert lessons(made) == []


def test_a_call_without_a_search_teaches_nothing() -> None:
    made = chat()
    made.call("get_forecast")
    assert lessons(made) == []


def test_a_failed_call_teaches_nothing_but_a_later_success_does() -> None:
    made = chat()
    made.search("weather")
    (call,) = made.session.accept(
        Message(
            role="assistant", tool_calls=(ToolCall(id="x", name="get_forecast", arguments="{}"),)
        )
    )
    decision = made.session.decide(call)
    assert isinstance(decision, RunCall)
    made.session.commit([CallResult(decision=decision, content="no", is_error=True)])
    assert lessons(made) == []
    made.call("get_forecast")
    assert lessons(made) == [("weather", "get_forecast", 1.0)]


def test_a_cancelled_call_teaches_nothing() -> None:
    made = chat()
    made.search("weather")
    call = ToolCall(id="x", name="get_forecast", arguments="{}")
    made.session.accept(Message(role="assistant", tool_calls=(call,)))
    made.session.close_open_calls()
    assert lessons(made) == []


def test_a_denied_call_teaches_nothing() -> None:
    made = Chat(
        [*TOOLS, tool("vault", description="Open the vault.", kind="mcp", roles=("owner",))]
    )
    made.begin(roles=["owner"])
    made.search("vault")
    made.begin()
    made.call("vault", {"count": 1})
    assert lessons(made) == []


def test_the_next_turn_may_still_answer_a_search() -> None:
    made = chat()
    made.search("weather")
    made.turn(text="In Paris")
    made.begin()
    made.call("get_forecast")
    assert lessons(made) == []
    made.search("forecast")
    made.begin(text="In Rome")
    made.call("get_forecast")
    assert lessons(made) == [("forecast", "get_forecast", 1.0)]


def test_a_search_that_found_nothing_learns_from_the_one_that_did() -> None:
    made = chat()
    made.search("天气")
    made.search("weather")
    made.call("get_forecast")
    assert lessons(made) == [("weather", "get_forecast", 1.0), ("天气", "get_forecast", 0.5)]
    made.search("mail")
    made.call("send_mail")
    assert lessons(made) == [("mail", "send_mail", 1.0)]


def test_a_search_at_the_same_time_is_not_another_wording() -> None:
    """They were asked at once, for two things."""
    made = chat()
    made.calls(("tool_search", {"query": "天气"}), ("tool_search", {"query": "mail"}))
    made.call("send_mail")
    assert lessons(made) == [("mail", "send_mail", 1.0)]


def test_a_miss_of_an_earlier_turn_is_forgotten() -> None:
    """It was about something else."""
    made = chat()
    made.search("天气")
    made.turn(text="Never mind.")
    made.begin()
    made.search("mail")
    made.call("send_mail")
    assert lessons(made) == [("mail", "send_mail", 1.0)]


def test_names_and_operators_are_not_lessons() -> None:
    """They say nothing about what a tool is for."""
    made = chat()
    for query in ("get_forecast", "GET_FORECAST", "select:get_forecast", "weather -rain"):
        made.search(query)
    made.call("get_forecast")
    assert lessons(made) == []


def test_many_searches_for_one_tool_are_bounded() -> None:
    made = Chat(toolbox(30))
    made.begin()
    for number in range(9):
        made.search(f"common thing {number}", limit=5)
    made.call("tool_000", {"count": 1})
    assert len(lessons(made)) <= 4
