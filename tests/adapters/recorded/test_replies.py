"""The adapters against recorded traffic of the real services."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tests.adapters.contract import plan_of
from tests.adapters.recorded.traffic import DIALECTS, READERS, REASON, RECORDED, WRITERS
from tool_search.adapters.anthropic import reply as anthropic_reply
from tool_search.adapters.anthropic.history import history_from_wire
from tool_search.adapters.openai_responses import history as openai_responses_history
from tool_search.adapters.openai_responses import reply as openai_responses_reply
from tool_search.adapters.sdk.failures import ReplyFailedError
from tool_search.adapters.sdk.reply_stream import reply_events
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Message
from tool_search.core.settings import Dialect
from tool_search.providers.base import CallDelta, ReplyDelta, ReplyEnd, ReplyEvent
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.session.session import ToolSearchSession
from tool_search.testing import check_request

CLAUDE = profile_for("anthropic", "claude-sonnet-4-6")
GPT = profile_for("openai_chat", "gpt-5.4")
RESPONSES = profile_for("openai_responses", "gpt-5.4")
PROFILES = {"anthropic": CLAUDE, "openai_chat": GPT, "openai_responses": RESPONSES}
TARGETS = {
    "claude": CLAUDE,
    "generic anthropic": CLAUDE.generic(),
    "openai_chat": GPT,
    "responses client": RESPONSES,
    "responses deferred": profile_for("openai_responses", "gpt-5.4", search_form="deferred"),
    "responses hosted": profile_for("openai_responses", "gpt-5.4", search_form="hosted"),
    "responses additional": profile_for("openai_responses", "gpt-5"),
    "generic responses": RESPONSES.generic(),
}
STARTS = ("message_start", "response.created")

needs_recordings = pytest.mark.skipif(not RECORDED.is_dir(), reason=REASON)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One recorded request, if there is one, and its reply: an object, or a stream's events."""

    label: str
    dialect: Dialect
    request: dict[str, Any] | None
    reply: Any

    @property
    def streamed(self) -> bool:
        """True if the reply is a stream's events."""
        return isinstance(self.reply, list)


def exchanges() -> Iterator[Exchange]:
    """Yield every recorded exchange in one of our dialects."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for path in sorted(RECORDED.glob("pydantic-ai/**/*.yaml")):
        recorded = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - safe
        for number, entry in enumerate(recorded["interactions"]):
            dialect: Any = DIALECTS.get(entry["request"]["uri"].partition("?")[0])
            if dialect:
                response = entry["response"]
                reply = response.get("parsed_body") or _events(response["body"]["string"])
                yield Exchange(
                    label=f"{path.stem}-{number}",
                    dialect=dialect,
                    request=entry["request"]["parsed_body"],
                    reply=reply,
                )
    for vendor, dialect in (("anthropic", "anthropic"), ("openai", "openai_responses")):
        folder = RECORDED / "vercel-ai" / "packages" / vendor
        for path in sorted(folder.glob("**/*.json")):
            reply = json.loads(path.read_text(encoding="utf-8"))
            yield Exchange(label=path.name, dialect=dialect, request=None, reply=reply)
        for path in sorted(folder.glob("**/*.chunks.txt")):
            reply = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            yield Exchange(label=path.name, dialect=dialect, request=None, reply=reply)


def _events(text: str) -> list[Any]:
    lines = (line[5:] for line in text.splitlines() if line.startswith("data:"))
    return [json.loads(line) for line in lines if "[DONE]" not in line]


EXCHANGES = list(exchanges()) if RECORDED.is_dir() else []


def read(exchange: Exchange) -> list[ReplyEvent]:
    """Return the events that an adapter makes of a recorded reply."""
    reader, profile = READERS[exchange.dialect], PROFILES[exchange.dialect]
    if not exchange.streamed:
        return list(reply_events(reader.from_wire(exchange.reply, plan_of(), profile)))
    events: list[ReplyEvent] = []
    for steps in _steps(exchange.reply):
        reply = reader.StreamedReply(plan_of(), profile)
        events = [event for wire in steps for event in reply.read(wire)]
        (end,) = reply.end()
        events += [end] if isinstance(end, ReplyEnd) else end
    return events


def _steps(events: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the streams of a recording that has several, one after the other."""
    starts = [n for n, event in enumerate(events) if event.get("type") in STARTS] or [0]
    for start, stop in zip(starts, [*starts[1:], len(events)], strict=True):
        yield list(events[start:stop])


@needs_recordings
@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.label)
def test_recorded_reply_is_read(exchange: Exchange) -> None:
    *before, end = read(exchange)
    assert isinstance(end, ReplyEnd)
    assert end.message.text or end.message.tool_calls
    assert end.stop_reason == ("calls" if end.message.tool_calls else "answer")
    assert end.usage.input_tokens > 0 < end.usage.output_tokens
    assert all(call.is_readable for call in end.message.tool_calls)
    assert "".join(e.text for e in before if isinstance(e, ReplyDelta)) == end.message.text
    assert tuple(e.call for e in before if isinstance(e, CallDelta)) == end.message.tool_calls


@needs_recordings
def test_recordings_have_all_dialects_and_both_ways() -> None:
    """The test above would pass on an empty folder too."""
    kinds = [(exchange.dialect, exchange.streamed) for exchange in EXCHANGES]
    assert len(kinds) >= 115
    both_ways = {(name, way) for name in ("anthropic", "openai_responses") for way in (True, False)}
    assert both_ways | {("openai_chat", False)} <= set(kinds)


def conversations() -> list[tuple[str, list[Any], list[Any]]]:
    """Return each recorded Anthropic history with its reply, and the tools it had."""
    found: list[tuple[str, list[Any], list[Any]]] = []
    for exchange in EXCHANGES:
        if exchange.dialect == "anthropic" and exchange.request:
            reply = [] if exchange.streamed else [exchange.reply]
            messages = [*exchange.request["messages"], *reply]
            found.append((exchange.label, messages, exchange.request.get("tools") or []))
    return found


def responses_conversations() -> list[tuple[str, Any, list[Any]]]:
    """Return each recorded Responses history with its reply, and the functions it had."""
    found: list[tuple[str, Any, list[Any]]] = []
    for exchange in EXCHANGES:
        if exchange.dialect == "openai_responses" and exchange.request:
            given = exchange.request["input"]
            items = [{"role": "user", "content": given}] if isinstance(given, str) else given
            reply = [] if exchange.streamed else exchange.reply["output"]
            tools = [*(exchange.request.get("tools") or ()), *_brought(items)]
            found.append((exchange.label, [*items, *reply], _functions(tools)))
    return found


def _brought(items: Sequence[Any]) -> list[Any]:
    return [tool for item in items for tool in item.get("tools", ())]


def _functions(tools: Sequence[Any]) -> list[Any]:
    """Return the functions as Anthropic has them, each once, those in namespaces too."""
    members = [m for tool in tools for m in (tool.get("tools") or [tool]) if "name" in m]
    return list({m["name"]: {**m, "input_schema": m["parameters"]} for m in members}.values())


def session_over(history: Sequence[Message], tools: Sequence[Any]) -> ToolSearchSession:
    """Return a session that goes on with an imported history and its tools."""
    catalog = [
        Tool(name=t["name"], description=t.get("description") or "", parameters=t["input_schema"])
        for t in tools
        if "input_schema" in t
    ]
    config = ToolSearchConfig(tool_schema_mode="tool_search")
    # A catalog without tools has no search: one that nothing refers to keeps it.
    session = ToolSearchSession(ToolCatalog([*catalog, Tool(name="unused")]), config=config)
    session.adopt_history(history)
    return session


def matched(history: Sequence[Message]) -> list[str]:
    """Return the names that the searches of a history found, in order."""
    results = [json.loads(m.text) for m in history if m.name == "tool_search"]
    return [match["name"] for result in results for match in result.get("matches", ())]


def referenced(messages: Sequence[Any]) -> list[str]:
    """Return the names that a recorded history refers to, in order."""
    text = json.dumps(messages)
    reference = json.JSONDecoder(
        object_hook=lambda o: names.append(o["tool_name"]) if "tool_name" in o else o
    )
    names: list[str] = []
    reference.decode(text)
    return names


@needs_recordings
@pytest.mark.parametrize("case", conversations(), ids=lambda case: case[0])
def test_recorded_history_is_valid_for_every_provider(case: Any) -> None:
    _, messages, tools = case
    history = history_from_wire(messages)
    names = set(referenced(messages))
    assert names <= set(matched(history))
    for target, profile in TARGETS.items():
        session = session_over(history, tools)
        session.begin_turn("And now?", profile=profile)
        body = WRITERS[profile.dialect].to_wire(session.plan(profile), profile)
        assert check_request(profile.dialect, body) is None, target
        if profile.strategy == "claude":
            assert names <= set(referenced(body["messages"])), target


@needs_recordings
@pytest.mark.parametrize("case", responses_conversations(), ids=lambda case: case[0])
def test_recorded_responses_history_is_valid_for_every_provider(case: Any) -> None:
    """The same, out of items; what a search or an announcement brought in is found there."""
    _, items, tools = case
    history = openai_responses_history.history_from_wire(items)
    brought = {tool["name"] for tool in _functions(_brought(items))}
    assert brought <= set(matched(history))
    for target, profile in TARGETS.items():
        session = session_over(history, tools)
        session.begin_turn("And now?", profile=profile)
        body = WRITERS[profile.dialect].to_wire(session.plan(profile), profile)
        assert check_request(profile.dialect, body) is None, target


@needs_recordings
def test_search_result_in_the_next_reply_stands_before_the_call() -> None:
    """Recorded: a server-side search that a client's call of the same reply interrupted."""
    folder = RECORDED / "vercel-ai-newer"
    first, second = (
        json.loads((folder / f"anthropic-tool-search-error-step-{n}.1.json").read_text("utf-8"))
        for n in (1, 2)
    )
    calls = [block for block in first["content"] if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": c["id"], "content": "ok"} for c in calls]
    user = {"role": "user", "content": "Do it."}
    history = history_from_wire([user, first, {"role": "user", "content": results}, second])
    kinds = [(message.role, [call.name for call in message.tool_calls]) for message in history]
    assert kinds[0] == ("user", [])
    assert kinds[1] == ("assistant", ["tool_search"])
    assert kinds[2][0] == "tool"
    assert "error" in json.loads(history[2].text)
    assert kinds[3] == ("assistant", [call["name"] for call in calls])
    assert all(not call.id.startswith("srvtoolu_") for m in history for call in m.tool_calls)


@needs_recordings
def test_recorded_error_bodies_are_read_as_failures() -> None:
    """An error that came with a status of 200 says what it would have said outside."""
    for path in (RECORDED / "vercel-ai-newer").glob("anthropic-*.error.json"):
        with pytest.raises(ReplyFailedError) as caught:
            anthropic_reply.from_wire(json.loads(path.read_text("utf-8")), plan_of(), CLAUDE)
        assert caught.value.failure.status == 400
        assert caught.value.failure.code == "invalid_request_error"
    for path in (RECORDED / "vercel-ai-newer").glob("openai-*error.1.json"):
        with pytest.raises(ReplyFailedError) as caught:
            openai_responses_reply.from_wire(json.loads(path.read_text("utf-8")), plan_of(), GPT)
        assert caught.value.failure.status == 400
