"""The lessons of searches in a driven session."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conversations import Chat, tool, toolbox
from tool_search import CallResult, Message, RunCall, Tool, ToolCall
from tool_search.core.services import Lesson, SearchMatch, SearchResult
from tool_search.search.discovery.search_services import SearchTrail, can_teach

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
    (lesson,) = made.session.drain_lessons()
    assert replace(lesson, definition="") == Lesson(query="weather tomorrow", tool="get_forecast")
    assert lesson.definition
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


def test_a_call_in_the_next_turn_teaches_little_and_later_ones_nothing() -> None:
    made = chat()
    made.search("weather")
    made.turn(text="In Paris")
    made.begin()
    made.call("get_forecast")
    assert lessons(made) == []
    made.search("forecast")
    made.begin(text="In Rome")
    made.call("get_forecast")
    assert lessons(made) == [("forecast", "get_forecast", 0.25)]


def test_a_later_call_teaches_nothing_to_a_search_that_was_answered() -> None:
    """ "Issue a bill", then "oh no, remove it": the first words do not mean deleting."""
    made = Chat(
        [
            tool("create_invoice", description="Issue an invoice, a bill.", kind="mcp"),
            tool("delete_invoice", description="Delete an invoice, a bill.", kind="mcp"),
        ]
    )
    made.begin()
    made.search("issue a bill")
    made.call("create_invoice", {"count": 1})
    made.begin(text="Oh no, remove it")
    made.call("delete_invoice", {"count": 1})
    assert lessons(made) == [("issue a bill", "create_invoice", 1.0)]


def test_one_search_may_lead_to_several_calls_of_its_turn() -> None:
    made = chat()
    made.search("mail the weather forecast to somebody")
    made.call("get_forecast")
    made.call("send_mail")
    assert [(name, strength) for _, name, strength in lessons(made)] == [
        ("get_forecast", 1.0),
        ("send_mail", 1.0),
    ]


@pytest.mark.parametrize(
    "query",
    [
        "holiday get_forecast",
        "holiday 'get_forecast'",
        'holiday "GET_FORECAST"',
        "holiday `get_forecast` please",
        "please get_forecast, holiday",
        "节日get_forecast 节日 get_forecast",
    ],
)
def test_words_next_to_a_tool_name_teach_nothing(query: str) -> None:
    made = chat()
    made.search(query)
    made.call("get_forecast")
    assert lessons(made) == []


@pytest.mark.parametrize(
    ("query", "names", "teaches"),
    [
        ("weather tomorrow", ["weather"], True),
        ("the 'weather' tomorrow", ["weather"], False),
        ("holiday send", ["mcp__mail__send"], True),
        ("holiday send_it", ["mcp__mail__send_it"], False),
        ("get_forecasts", ["get_forecast"], True),
        ("select:weather", ["weather"], False),
        ("weather", [], True),
    ],
)
def test_a_query_teaches_unless_it_has_a_name_or_operators(
    query: str, names: list[str], teaches: bool
) -> None:
    assert can_teach(query, names) is teaches


def test_a_search_that_found_nothing_learns_from_the_one_that_did() -> None:
    made = chat()
    made.search("天气")
    made.search("weather")
    made.call("get_forecast")
    assert lessons(made) == [("weather", "get_forecast", 1.0), ("天气", "get_forecast", 0.5)]
    made.search("mail")
    made.call("send_mail")
    assert lessons(made) == [("mail", "send_mail", 1.0)]


@pytest.mark.parametrize(
    ("missed", "asked", "teaches"),
    [
        (["holidays of the moon"], "weather", False),
        (["holidays and weather of the moon"], "weather", True),
        (["moonshine weather", "holidays"], "weather", True),
        (["天气", "holidays"], "weather", False),
        (["节日"], "天气 weather", False),
    ],
)
def test_a_miss_about_something_else_teaches_nothing(
    missed: list[str], asked: str, teaches: bool
) -> None:
    """A turn may be about two things, of which the first has no tool."""
    trail = SearchTrail()
    for query in missed:
        trail.replied()
        trail.searched(SearchResult(query=query))
    trail.replied()
    trail.searched(
        SearchResult(query=asked, matches=(SearchMatch(name="get_forecast", description=""),))
    )
    trail.succeeded(Tool(name="get_forecast"))
    taught = [lesson.query for lesson in trail.drain_lessons()]
    assert asked in taught
    assert (missed[0] in taught) is teaches
    assert len(taught) == 1 + teaches


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
