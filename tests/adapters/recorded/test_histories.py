"""Every recorded history, imported and sent on to everybody: no result is lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.adapters.recorded import test_replies
from tests.adapters.recorded.comparing import MESSAGES
from tests.adapters.recorded.sessions import SEARCH, Exchange, recordings
from tests.adapters.recorded.test_replies import TARGETS
from tests.adapters.recorded.traffic import IMPORTERS, REASON, RECORDED, WRITERS
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Message
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import SearchResult
from tool_search.i18n import LANGUAGES, text
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.session.session import ToolSearchSession
from tool_search.testing import check_request

needs_recordings = pytest.mark.skipif(not RECORDED.is_dir(), reason=REASON)

CANCELLED = [text("call.cancelled", language, name="\0").split("\0") for language in LANGUAGES]
CASES = (
    [
        pytest.param(exchange, id=f"{name}-{number}")
        for name, found in recordings()
        for number, exchange in found.items()
    ]
    if RECORDED.is_dir()
    else []
)


def results(exchange: Exchange) -> Iterator[str]:
    """The text of each result of a recorded request; for a search, the names that it found."""
    messages = exchange.request[MESSAGES[exchange.dialect]]
    for message in [] if isinstance(messages, str) else messages:
        if exchange.dialect == "anthropic":
            yield from anthropic_results(message)
        elif message.get("role") == "tool":
            yield said(message["content"])
        elif message.get("type") in ("function_call_output", "tool_search_output"):
            yield said(message.get("output", message.get("tools")))


def anthropic_results(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the same in one message: results, and tools that a system message adds."""
    content = message["content"]
    blocks = [] if isinstance(content, str) else content
    for block in blocks:
        if block["type"] == "tool_result":
            yield said(block.get("content") or "")
        elif block["type"] == "tool_search_tool_result":
            yield said(block["content"].get("tool_references", []))
    added = [block["tool"] for block in blocks if block["type"] == "tool_addition"]
    if added:
        yield said([tool.get("definition", tool) for tool in added])


def said(content: Any) -> str:
    """Return a result's text, or the names of the tools that it brings."""
    if isinstance(content, str):
        search = search_names(content)
        return content if search is None else named(search)
    names = [part.get("tool_name") or part.get("name") for part in content]
    members = [m["name"] for part in content for m in part.get("tools") or ()]
    if any(names) or not content:
        return named(members or names)
    return "\n".join(part["text"] for part in content if part.get("type") != "image")


def search_names(content: str) -> Sequence[str] | None:
    """Return the names in a search's result as recorded, or in ours; None for other text."""
    result = SearchResult.from_json(content)
    if result is not None:
        return result.names
    try:
        found = json.loads(content)
    except ValueError:
        return None
    tools = found.get("discovered_tools") if isinstance(found, dict) else None
    return None if tools is None else [tool["name"] for tool in tools]


def named(names: Iterable[Any]) -> str:
    """Return the names in place of a search's result."""
    return f"found: {', '.join(sorted(map(str, names)))}"


def neutral(history: Iterable[Message]) -> list[str]:
    """Return the text of each result of a neutral history."""
    return [said(message.text) for message in history if message.role == "tool"]


def on_the_wire(dialect: str, body: Mapping[str, Any]) -> int:
    """Return the number of results in a request of ours."""
    if dialect == "anthropic":
        blocks = [b for m in body["messages"] for b in m["content"]]
        return sum(block["type"] == "tool_result" for block in blocks)
    if dialect == "openai_chat":
        return sum(message["role"] == "tool" for message in body["messages"])
    outputs = ("function_call_output", "tool_search_output")
    return sum(item.get("type") in outputs for item in body["input"])


def is_cancelled(content: str) -> bool:
    """True for the line that takes the place of a result that never came."""
    return any(content.startswith(start) and content.endswith(end) for start, end in CANCELLED)


def imported(exchange: Exchange) -> tuple[Message, ...]:
    """Return a recorded request's history, its replies bound to who wrote them."""
    messages = exchange.request[MESSAGES[exchange.dialect]]
    profile = profile_of(exchange)
    read = IMPORTERS[exchange.dialect].history_from_wire
    history: tuple[Message, ...] = read(messages, search_tool_name=SEARCH, origin=profile.origin)
    return history


def profile_of(exchange: Exchange) -> ProviderProfile:
    """Return the service that was asked."""
    return profile_for(exchange.dialect, exchange.request["model"])


def session_over(exchange: Exchange, history: Iterable[Message]) -> ToolSearchSession:
    """Return a session that goes on from a history, with the tools of its request."""
    tools = {tool.name: tool for tool, _ in exchange.tools}
    config = ToolSearchConfig(tool_schema_mode="tool_search", search_tool_name=SEARCH)
    session = ToolSearchSession(ToolCatalog([*tools.values(), Tool(name="unused")]), config=config)
    session.adopt_history(history)
    return session


def answered(exchange: test_replies.Exchange) -> tuple[list[Any], int]:
    """Return a recorded reply with a result for each of its calls, and how many it made.

    Not the request before it, whose results the other test counts.
    """
    reply: Any = exchange.reply
    user = {"role": "user", "content": "Hi."}
    if exchange.dialect == "anthropic":
        calls = [block["id"] for block in reply["content"] if block["type"] == "tool_use"]
        blocks = [{"type": "tool_result", "tool_use_id": c, "content": f"r {c}"} for c in calls]
        said = [{"role": "user", "content": blocks}] if blocks else []
        return [user, {"role": "assistant", "content": reply["content"]}, *said], len(calls)
    if exchange.dialect == "openai_chat":
        message = reply["choices"][0]["message"]
        calls = [call["id"] for call in message.get("tool_calls") or ()]
        results = [{"role": "tool", "tool_call_id": c, "content": f"r {c}"} for c in calls]
        return [user, message, *results], len(calls)
    calls = [item["call_id"] for item in reply["output"] if item["type"] == "function_call"]
    outputs = [{"type": "function_call_output", "call_id": c, "output": f"r {c}"} for c in calls]
    searches = [
        {**item, "type": "tool_search_output", "tools": []}
        for item in reply["output"]
        if item["type"] == "tool_search_call" and item["execution"] == "client"
    ]
    return [user, *reply["output"], *searches, *outputs], len(calls)


@needs_recordings
@pytest.mark.parametrize(
    "exchange",
    [e for e in test_replies.EXCHANGES if not e.streamed],
    ids=lambda exchange: exchange.label,
)
def test_recorded_reply_keeps_the_result_of_each_call(exchange: test_replies.Exchange) -> None:
    messages, count = answered(exchange)
    history = IMPORTERS[exchange.dialect].history_from_wire(messages, origin="nobody")
    asked = [call for message in history for call in message.tool_calls]
    results = [message for message in history if message.role == "tool"]
    assert [result.tool_call_id for result in results] == [call.id for call in asked]
    given = [result for result in results if result.text == f"r {result.tool_call_id}"]
    assert len(given) == count
    for profile in TARGETS.values():
        session = ToolSearchSession(ToolCatalog([Tool(name="unused")]))
        session.adopt_history(history)
        assert [m.text for m in session.history if m.role == "tool"] == [m.text for m in results]
        session.begin_turn("And now?", profile=profile)
        body = WRITERS[profile.dialect].to_wire(session.plan(profile), profile)
        assert check_request(profile.dialect, body) is None
        assert on_the_wire(profile.dialect, body) == len(results)


@needs_recordings
@pytest.mark.parametrize("exchange", CASES)
def test_recorded_history_keeps_every_result_everywhere(exchange: Exchange) -> None:
    history = imported(exchange)
    recorded = Counter(results(exchange))
    # Tools that come after a search that found them are not a result of their own.
    assert Counter(neutral(history)) - recorded == added(exchange, history)
    assert not recorded - Counter(neutral(history))
    for profile in (*TARGETS.values(), profile_of(exchange)):
        session = session_over(exchange, history)
        assert neutral(session.history) == neutral(history)
        session.begin_turn("And now?", profile=profile)
        body = WRITERS[profile.dialect].to_wire(session.plan(profile), profile)
        assert check_request(profile.dialect, body) is None
        assert on_the_wire(profile.dialect, body) == len(neutral(history))
        assert not any(map(is_cancelled, neutral(session.history)))


def added(exchange: Exchange, history: Iterable[Message]) -> Counter[str]:
    """Return the searches that represent items with definitions that no result had."""
    found = [m for m in history if m.role == "tool" and str(m.tool_call_id).startswith("added_")]
    if exchange.dialect == "anthropic":
        return Counter()
    return Counter(neutral(found))


@needs_recordings
def test_recorded_histories_have_results_of_every_kind() -> None:
    """The test above would pass on an empty folder too; prints what it read."""
    exchanges: list[Exchange] = [case.values[0] for case in CASES]  # type: ignore[misc]
    requests = Counter(exchange.dialect for exchange in exchanges)
    counts = Counter[str]()
    for exchange in exchanges:
        counts[exchange.dialect] += len(list(results(exchange)))
    print(f"requests: {dict(requests)}; results: {dict(counts)}")  # noqa: T201 - the counts
    assert sum(requests.values()) >= 105
    assert counts["anthropic"] >= 65
    assert counts["openai_chat"] >= 8
    assert counts["openai_responses"] >= 49


def test_line_for_a_result_that_never_came_is_known() -> None:
    """Else nothing here would notice one."""
    for language in LANGUAGES:
        assert is_cancelled(text("call.cancelled", language, name="tool"))
    assert not is_cancelled("21 °C")
