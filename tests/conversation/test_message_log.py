"""The indexes of a history say what the history itself says, however it has grown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tool_search.core.conversation.history import MessageLog, unanswered_calls, visible_names
from tool_search.core.messages import Message, ToolCall
from tool_search.core.services import SearchMatch, SearchResult

_IDS = st.sampled_from(["a", "b", "c", "d"])
_FOUND = SearchResult(
    query="q",
    matches=(SearchMatch(name="get_forecast", description=""),),
    total_found=1,
    total_tools=9,
).to_json()
_MESSAGES = st.one_of(
    st.just(Message(role="user", content="hello")),
    st.lists(_IDS, unique=True, max_size=3).map(
        lambda ids: Message(
            role="assistant", content="x", tool_calls=tuple(ToolCall(id=i, name="f") for i in ids)
        )
    ),
    st.builds(
        Message,
        role=st.just("tool"),
        content=st.sampled_from([_FOUND, "no JSON", ""]),
        tool_call_id=_IDS,
        name=st.sampled_from(["tool_search", "f"]),
    ),
)
_EXCHANGE = (
    Message(role="assistant", tool_calls=(ToolCall(id="restored", name="tool_search"),)),
    Message(role="tool", tool_call_id="restored", name="tool_search", content=_FOUND),
)


def _check(log: MessageLog) -> None:
    messages = log.messages
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    assert len(log) == len(messages)
    assert log.last_user == (users[-1] if users else None)
    assert log.unanswered_calls == unanswered_calls(messages)
    assert all(map(log.awaits, (call.id for call in unanswered_calls(messages))))
    assert log.call_ids == {call.id for message in messages for call in message.tool_calls}
    assert log.shown_tools == visible_names(messages, "tool_search")


@given(st.lists(_MESSAGES, max_size=12), st.lists(_MESSAGES, max_size=6))
def test_indexes_agree_with_the_history(first: list[Message], more: list[Message]) -> None:
    log = MessageLog(first, search_tool_name="tool_search")
    _check(log)
    for message in more:
        log.append(message)
        _check(log)
    if log.last_user is not None:
        log.insert(log.last_user, _EXCHANGE)
        _check(log)
        assert log.messages[log.last_user].role == "user"
    log.replace(more)
    _check(log)
    assert log.messages == tuple(more)


def test_history_is_one_tuple_until_it_changes() -> None:
    log = MessageLog([Message(role="user", content="hi")], search_tool_name="tool_search")
    before = log.messages
    assert log.messages is before
    log.append(Message(role="assistant", content="ho"))
    assert log.messages[:1] == before
