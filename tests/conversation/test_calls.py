"""Decisions on a model's calls: run, searched, or answered with an error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conversations import OPENAI, Chat, tool, toolbox
from tool_search import RunCall, Tool
from tool_search.core.conversation.calls import AnsweredCall

ADMIN = tool("shutdown_server", roles=["admin"])


@pytest.fixture
def chat() -> Chat:
    """A conversation that has begun, with a core tool, waiting ones and a restricted one."""
    chat = Chat([*toolbox(9, core=1), tool("files.read"), ADMIN, Tool(name="ping")])
    chat.begin()
    return chat


def refusal(chat: Chat, name: str, arguments: str = "{}") -> str:
    """The text of an answer that reports a failure."""
    decision = chat.decide(name, arguments)
    assert isinstance(decision, AnsweredCall)
    assert decision.is_error
    return decision.content


@pytest.mark.parametrize("name", ["core_000", "tool_003", "files.read", "files_read_601e4eb6"])
def test_a_call_that_fits_is_run(chat: Chat, name: str) -> None:
    decision = chat.decide(name, '{"count": 2}')
    assert isinstance(decision, RunCall)
    assert decision.arguments == {"count": 2}
    assert decision.tool.name == name.replace("files_read_601e4eb6", "files.read")


def test_a_deferred_tool_that_ran_without_a_search_is_discovered(chat: Chat) -> None:
    chat.call("tool_003", {"count": 1})
    assert chat.session.discoveries["tool_003"].via == "call"
    assert chat.session.plan(OPENAI).tools.names[-1] == "tool_003"


def test_a_deferred_tool_called_with_wrong_arguments_answers_with_its_schema(chat: Chat) -> None:
    """The tool is discovered too: the model has its definition from the next request on."""
    result = chat.call("tool_003", {"count": "two"})
    assert result.is_error
    assert '"two" is not of type "integer"' in result.text
    assert json.dumps(tool("x").parameters, separators=(",", ":")) in result.text
    assert "tool_003" in chat.session.discoveries


@pytest.mark.parametrize(("name", "is_found"), [("tool_003", True), ("shutdown_server", False)])
def test_a_deferred_tool_called_with_broken_arguments_is_discovered_too(
    chat: Chat, name: str, is_found: bool
) -> None:
    """It was called by its name; a tool that this caller may not call stays unknown."""
    chat.call(name, '{"count": ')
    assert (name in chat.session.discoveries) is is_found


def test_a_declared_tool_called_with_wrong_arguments_answers_without_its_schema(
    chat: Chat,
) -> None:
    assert refusal(chat, "core_000", '{"count": null}').startswith("The arguments of core_000")
    assert "schema is" not in refusal(chat, "core_000", "{}")
    chat.find("tool_003")
    assert "schema is" not in refusal(chat, "tool_003", "{}")


def test_an_unknown_name_gets_near_ones_never_the_whole_catalog(chat: Chat) -> None:
    said, *lines = refusal(chat, "tool_03").splitlines()
    near = [line.partition(":")[0] for line in lines]
    assert said.startswith("There is no tool named tool_03.")
    assert len(near) == 3
    assert set(near) < set(chat.session.catalog)


def mailing() -> Chat:
    """A conversation with a tool that sends mail among others."""
    made = Chat([*toolbox(9), tool("send_mail", description="Send a mail.")])
    made.begin()
    return made


def test_an_invented_name_is_answered_with_what_a_search_finds() -> None:
    chat = mailing()
    said = chat.call("sendTheMailOut", {"to": "x"})
    assert said.is_error
    assert "send_mail: " in said.text
    assert '"required":["count"]' in said.text
    assert "send_mail" in chat.session.discoveries
    assert "send_mail" in [each.tool.name for each in chat.session.plan(OPENAI).tools]
    assert chat.call("send_mail", {"count": 1}).text == "ok"


def test_a_call_after_an_invented_name_teaches_its_words() -> None:
    chat = mailing()
    chat.call("mail_sender_send")
    chat.call("send_mail", {"count": 1})
    lessons = [(lesson.query, lesson.tool) for lesson in chat.session.drain_lessons()]
    assert lessons == [("mail sender send", "send_mail")]


def test_a_name_like_no_other_is_sent_to_the_search(chat: Chat) -> None:
    said = refusal(chat, "брось_кости")
    assert said == (
        "There is no tool named брось_кости. Search for what you need with tool_search."
    )


def test_an_endless_name_is_cut(chat: Chat) -> None:
    assert len(refusal(chat, "x" * 100_000)) < 600


def test_full_mode_names_near_tools_and_no_search() -> None:
    chat = Chat(toolbox(3), {"tool_schema_mode": "full"})
    chat.begin()
    assert "tool_001" in refusal(chat, "tool_01")
    assert "search" not in refusal(chat, "something_else")
    assert "There is no tool named tool_search" in refusal(chat, "tool_search", '{"query": "x"}')


@pytest.mark.parametrize(
    "arguments",
    [
        "{", "[1]", "5", "null", '"x"', "{'count': 1", '{"count": 1} extra', '{"count": NaN}',
        '{"count": -Infinity}', '{"count": 1e999}', '{"count": ' + "9" * 5000 + "}",
        "[" * 100_000, "not json",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["core_000", "tool_003", "tool_search", "call_tool", "unknown"])
def test_broken_arguments_are_an_error_the_model_can_correct(
    chat: Chat, name: str, arguments: str
) -> None:
    said = refusal(chat, name, arguments)
    assert said.startswith(f"The arguments of {name} are not a JSON object")
    assert len(said) < 700


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
def test_empty_arguments_are_none(chat: Chat, arguments: str) -> None:
    """Some providers send nothing for a tool that takes nothing."""
    assert isinstance(chat.decide("ping", arguments), RunCall)


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "tool_003", "arguments": {"count": 1}},
        {"name": "tool_003", "arguments": '{"count": 1}'},
        {"arguments": {"count": 1}, "name": "tool_003", "reason": "asked"},
    ],
)
def test_call_tool_is_looked_through(chat: Chat, arguments: dict[str, Any]) -> None:
    decision = chat.decide("call_tool", json.dumps(arguments))
    assert isinstance(decision, RunCall)
    assert (decision.tool.name, decision.arguments) == ("tool_003", {"count": 1})
    assert decision.call.name == "call_tool"


@pytest.mark.parametrize(
    "arguments",
    [{"name": "ping"}, {"name": "ping", "arguments": None}, {"name": "ping", "arguments": ""},
     {"name": "ping", "arguments": "{}"}],
)  # fmt: skip
def test_call_tool_without_arguments_calls_with_none(chat: Chat, arguments: Any) -> None:
    """For tools that take nothing."""
    decision = chat.decide("call_tool", json.dumps(arguments))
    assert isinstance(decision, RunCall)
    assert decision.arguments == {}


@pytest.mark.parametrize(
    "arguments",
    [{}, {"name": None}, {"name": 5}, {"name": "tool_003", "arguments": [1]},
     {"name": "tool_003", "arguments": "{"}, {"name": ["tool_003"], "arguments": {}}],
)  # fmt: skip
def test_call_tool_with_nonsense_is_an_error(chat: Chat, arguments: Any) -> None:
    assert "call_tool" in refusal(chat, "call_tool", json.dumps(arguments))


def test_call_tool_checks_arguments_and_shows_the_schema_each_time(chat: Chat) -> None:
    """The called tool is in no list, so nothing else shows its schema."""
    chat.find("tool_003")
    wrong = json.dumps({"name": "tool_003", "arguments": {"count": "x"}})
    assert "The schema is:" in refusal(chat, "call_tool", wrong)


@pytest.mark.parametrize("name", ["no_such_tool", "call_tool", "shutdown_server"])
def test_call_tool_calls_nothing_unknown_or_forbidden(chat: Chat, name: str) -> None:
    assert name in refusal(chat, "call_tool", json.dumps({"name": name, "arguments": {}}))


def test_a_search_through_call_tool_is_a_search(chat: Chat) -> None:
    message = chat.call("call_tool", {"name": "tool_search", "arguments": {"query": "tool_003"}})
    assert message.name == "tool_search"
    assert "tool_003" in chat.session.discoveries


def test_a_tool_may_be_called_by_the_one_alias_that_is_its_own() -> None:
    """Its own name wins over another's alias, and two of one alias are ambiguous."""
    first = tool("task_output", aliases=["bash_output", "both"])
    chat = Chat([first, tool("other", aliases=["both", "core_000"]), *toolbox(3, core=1), ADMIN])
    chat.begin()
    assert chat.decide("bash_output", '{"count": 1}').tool.name == "task_output"
    assert chat.decide("core_000", '{"count": 1}').tool.name == "core_000"
    assert "no tool named both" in refusal(chat, "both")


def test_a_refused_tool_is_found_by_no_search_and_its_alias_is_refused_like_its_name() -> None:
    """One rule for search and calls; the model reads why."""
    chat = Chat([tool("send_mail", aliases=["mailer"]), *toolbox(3)])
    chat.session.begin_turn(
        "hello",
        profile=OPENAI,
        denial_reason=lambda t: "Only reading is allowed." if t.name == "send_mail" else None,
    )
    decision = chat.decide("send_mail", '{"count": 1}')
    assert (decision.content, decision.is_denied) == ("Only reading is allowed.", True)
    assert chat.search("send mail")["total_found"] == 0
    assert refusal(chat, "mailer") == "Only reading is allowed."
    assert "send_mail" not in refusal(chat, "send_mai")


def test_a_restricted_tool_runs_for_its_role_only(chat: Chat) -> None:
    """No other user learns that it exists, nor discovers it by a denied call."""
    unknown = refusal(chat, "shutdown_everything").replace("_everything", "_server")
    assert refusal(chat, "shutdown_server", '{"count": 1}') == unknown
    chat.call("shutdown_server", {"count": "x"})
    assert "shutdown_server" not in chat.session.discoveries
    chat.begin(roles=["user", "admin"])
    assert chat.call("shutdown_server", {"count": 1}).text == "ok"
    chat.begin(roles=["user"])
    assert chat.call("shutdown_server", {"count": 1}).is_error


def test_a_restricted_tool_is_near_to_nothing(chat: Chat) -> None:
    assert "shutdown_server" not in refusal(chat, "shutdown_serve").replace("shutdown_serve.", "")
    chat.begin(roles=["admin"])
    assert "shutdown_server" in refusal(chat, "shutdown_serve")


def test_a_restricted_tool_is_found_by_its_role_only(chat: Chat) -> None:
    everybody = chat.search("shutdown server")
    assert everybody["matches"] == []
    assert everybody["total_found"] == 0
    chat.begin(roles=["admin"])
    found = chat.search("shutdown server")
    assert found["matches"][0]["name"] == "shutdown_server"
    assert found["total_tools"] == everybody["total_tools"] == 11


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner,
                                                                max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(
    name=st.sampled_from(["tool_search", "call_tool", "tool_003", "core_000", "", "\ud800"])
    | st.text(max_size=8),
    arguments=st.text(max_size=20)
    | _JSON.map(json.dumps)
    | st.fixed_dictionaries(
        {}, optional={"query": _JSON, "limit": _JSON, "name": _JSON, "arguments": _JSON}
    ).map(json.dumps),
)
def test_nothing_a_model_writes_raises(name: str, arguments: str) -> None:
    chat = Chat(toolbox(4, core=1))
    chat.begin()
    message = chat.call(name, arguments)
    message.text.encode()
    assert message.text.strip()


@pytest.mark.parametrize("written", ['{"count": 1, "x": "\\ud800"}', '{"count": 1, "\\udfff": 2}'])
def test_a_lone_surrogate_in_arguments_is_replaced(chat: Chat, written: str) -> None:
    decision = chat.decide("tool_003", written)
    assert isinstance(decision, RunCall)
    json.dumps(dict(decision.arguments), ensure_ascii=False).encode()


def test_arguments_deeper_than_the_validator_reads_are_an_error(chat: Chat) -> None:
    deep = '{"count": 1, "x": ' + "[" * 500 + "]" * 500 + "}"
    assert isinstance(chat.decide("tool_003", deep), RunCall | AnsweredCall)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("帮我查天气", "没有名为 нет 的工具。请用 tool_search 搜索你需要的工具。"),
        ("Привет", "Инструмента с именем нет нет. Найдите нужный через tool_search."),
    ],
)
def test_answers_are_in_the_language_of_the_conversation(said: str, text: str) -> None:
    chat = Chat(toolbox(3))
    chat.begin(text=said)
    assert refusal(chat, "нет") == text
