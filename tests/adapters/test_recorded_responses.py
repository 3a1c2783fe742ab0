"""Whole conversations that OpenAI's Responses service was recorded in, led by our session.

Our next request equals the recorded one, but for ids (and so a message told by its text
in place of its parts), the search tool's parameters, and wording: the instructions and
what describes the search tool.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tool_search.adapters.openai_responses_history import history_from_wire
from tool_search.adapters.openai_responses_reply import StreamedReply, from_wire
from tool_search.adapters.openai_responses_wire import to_wire
from tool_search.calls import AnsweredCall
from tool_search.catalog import Tool, ToolCatalog
from tool_search.config import SearchForm, ToolSearchConfig
from tool_search.messages import RequestPlan, ToolCall
from tool_search.profiles import ProviderProfile, profile_for
from tool_search.providers import ReplyEnd
from tool_search.search.result import SearchMatch, SearchResult
from tool_search.session import CallResult, ToolSearchSession

RECORDED = Path(__file__).parents[3] / "shared" / "recorded" / "pydantic-ai"
REASON = "the recorded traffic is not there: ../shared/recorded beside the checkout"
URL = "https://api.openai.com/v1/responses"
SETTINGS = ("include", "parallel_tool_calls", "reasoning", "stream", "tool_choice")

needs_recordings = pytest.mark.skipif(not RECORDED.is_dir(), reason=REASON)

EQUAL: dict[str, tuple[SearchForm, tuple[int, ...]]] = {
    "test_openai_execution_client_round_trip": ("deferred", (0, 1, 2)),
    "test_openai_client_tool_search_streaming": ("deferred", (0, 1, 2)),
    "test_openai_hosted_tool_search_stateless_continuation": ("hosted", (0, 1, 2)),
    "test_openai_native_tool_search_round_trip": ("hosted", (0,)),
    "test_openai_native_tool_search_streaming": ("hosted", (0,)),
    "test_openai_native_tool_search_with_deferred_capability": ("hosted", (0, 1)),
    "test_openai_native_tool_search_with_deferred_capability_gpt_5_6_sol": ("hosted", (0, 1)),
    "test_live_tool_search_handoff_anthropic_to_openai": ("hosted", (2, 3)),
    "test_openai_live_delta_preserves_the_warmed_cache_prefix": ("hosted", (0,)),
    "test_cross_provider_capability_replay[openai-responses-gpt-5.4-google-gemini-3-flash-preview]":
        ("client", (0,)),
    "test_openai_deferred_capability_runs_on_model_without_native_tool_search": ("client", (0,)),
}  # fmt: skip
"""Which requests of a recording are ours too, and in which form."""

_CAPABILITY = "a tool that is no search brings other tools in; here only a search does"
_HISTORY = "one request with a history made by hand, led by no session"
_OTHER_DEFINITION = "found by hand: neither strict nor deferred, unlike the one declared"
OTHERS = {
    "test_openai_native_tool_search_round_trip-1": "leaves the service's search output out",
    "test_openai_native_tool_search_streaming-1": "leaves the service's search output out",
    "test_openai_native_tool_search_with_deferred_capability-2": _CAPABILITY,
    "test_openai_native_tool_search_with_deferred_capability-3": _CAPABILITY,
    "test_openai_native_tool_search_with_deferred_capability_gpt_5_6_sol-2": _CAPABILITY,
    "test_openai_native_tool_search_with_deferred_capability_gpt_5_6_sol-3": _CAPABILITY,
    "test_cross_provider_capability_replay"
    "[openai-responses-gpt-5.4-google-gemini-3-flash-preview]-1": _CAPABILITY,
    "test_cross_provider_capability_replay"
    "[openai-responses-gpt-5.4-google-gemini-3-flash-preview]-2": _CAPABILITY,
    "test_openai_deferred_capability_runs_on_model_without_native_tool_search-1": _CAPABILITY,
    "test_openai_deferred_capability_runs_on_model_without_native_tool_search-2": _CAPABILITY,
    "test_openai_live_delta_preserves_the_warmed_cache_prefix-1": _CAPABILITY,
    "test_supported_model_calls_additional_tool-0": _CAPABILITY,
    "test_unsupported_model_calls_the_tool_the_announcement_revealed-0": _CAPABILITY,
    "test_openai_native_tool_search-0": "a namespace without a server, made by hand",
    "test_openai_promotes_local_search_history_round_trip-0": _OTHER_DEFINITION,
    "test_openai_promotes_local_search_history_round_trip-1": _OTHER_DEFINITION,
    "test_tool_availability_portability_matrix[R1-T3-native-search]-0": _HISTORY,
    "test_tool_availability_portability_matrix[R1-T4-local-search-additional-tools]-0": _HISTORY,
    "test_tool_availability_portability_matrix[R2-T3-native-search]-0": _HISTORY,
    "test_tool_availability_portability_matrix[R2-T4-local-search-additional-tools]-0": _HISTORY,
    "test_tool_availability_portability_matrix[R4-T3-additional-tools]-0": _HISTORY,
    "test_tool_availability_portability_matrix[R4-T4-additional-tools]-0": _HISTORY,
}
"""The requests that are not, with the reason."""


@dataclass(frozen=True)
class Exchange:
    """A recorded request and its reply: an object, or a stream's events."""

    request: dict[str, Any]
    reply: Any

    def read(self, plan: RequestPlan, profile: ProviderProfile) -> ReplyEnd:
        """The reply as the adapter reads it."""
        if isinstance(self.reply, dict):
            return from_wire(self.reply, plan, profile)
        reader = StreamedReply(plan, profile)
        for event in self.reply:
            list(reader.read(event))
        (end,) = reader.end()
        assert isinstance(end, ReplyEnd)
        return end


def recordings() -> Iterator[tuple[str, dict[int, Exchange]]]:
    """The Responses exchanges of each recording, by their number in it."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for path in sorted(RECORDED.glob("**/*.yaml")):
        text = path.read_text(encoding="utf-8")
        if URL not in text:
            continue
        entries = yaml.load(text, Loader=loader)["interactions"]  # noqa: S506 - safe
        yield (
            path.stem,
            {
                number: Exchange(entry["request"]["parsed_body"], _reply(entry["response"]))
                for number, entry in enumerate(entries)
                if entry["request"]["uri"] == URL
            },
        )


def _reply(response: dict[str, Any]) -> Any:
    if response.get("parsed_body"):
        return response["parsed_body"]
    lines = response["body"]["string"].splitlines()
    return [json.loads(line[5:]) for line in lines if line.startswith("data:")]


EXCHANGES = dict(recordings()) if RECORDED.is_dir() else {}


@dataclass
class Led:
    """A session that says what was said in a recording."""

    session: ToolSearchSession
    profile: ProviderProfile

    @classmethod
    def over(cls, request: Mapping[str, Any], form: SearchForm) -> Led:
        """A session at the beginning of a recorded request, its history imported."""
        tools = [tool for tool in request["tools"] if tool["type"] == "function"]
        searching = any(tool["type"] == "tool_search" for tool in request["tools"])
        catalog = ToolCatalog(
            Tool(
                name=tool["name"],
                description=tool["description"],
                parameters=tool["parameters"],
                always_load=not tool.get("defer_loading"),
            )
            for tool in tools
        )
        mode = ToolSearchConfig(tool_schema_mode="tool_search" if searching else "full")
        led = cls(
            ToolSearchSession(catalog, config=mode),
            profile_for("openai_responses", request["model"], search_form=form),
        )
        *before, last = request["input"]
        led.session.adopt_history(history_from_wire(before))
        led.session.begin_turn(last["content"], profile=led.profile)
        return led

    def go_on(self, end: ReplyEnd, said: list[dict[str, Any]]) -> None:
        """Takes a reply in, and what the next request answers it with."""
        outputs = {item["call_id"]: item for item in said if "call_id" in item}
        calls = self.session.accept(end.message)
        for call in calls:
            self.session.commit([self._result(call, outputs)])
        if not calls:
            self.session.begin_turn(said[-1]["content"], profile=self.profile)

    def _result(self, call: ToolCall, outputs: Mapping[str, Any]) -> CallResult:
        output = outputs[call.id]
        if output["type"] == "function_call_output":
            return CallResult(decision=self.session.decide(call), content=output["output"])
        matches = tuple(SearchMatch(name=tool["name"]) for tool in output["tools"])
        result = SearchResult(query="q", matches=matches, total_found=len(matches))
        answer = AnsweredCall(call=call, content=result.to_json(), result=result)
        return CallResult(decision=answer, content=answer.content)


def comparable(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request without what may differ."""
    kept = {key: value for key, value in body.items() if key != "instructions"}
    return {
        **kept,
        "tools": [_tool(tool) for tool in body["tools"]],
        "input": [_item(item) for item in body["input"]],
    }


def _tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    if tool["type"] == "tool_search":
        return {key: tool[key] for key in tool if key not in ("description", "parameters")}
    return tool


def _item(item: Mapping[str, Any]) -> dict[str, Any]:
    left_out = {"id", "arguments"} if item.get("type") == "tool_search_call" else {"id"}
    content = item.get("content")
    if item.get("role") == "assistant":
        left_out |= {"type", "status"}
        content = content if isinstance(content, str) else "".join(p["text"] for p in content or ())
    rest = {key: value for key, value in item.items() if key not in left_out}
    return {**rest, "content": content} if "content" in rest else rest


@needs_recordings
@pytest.mark.parametrize("name", EQUAL)
def test_session_sends_what_was_recorded(name: str) -> None:
    """Request by request, the recorded replies taken in between."""
    form, numbers = EQUAL[name]
    exchanges = EXCHANGES[name]
    led = Led.over(exchanges[numbers[0]].request, form)
    for number in numbers:
        request = exchanges[number].request
        plan = led.session.plan(led.profile)
        settings = {key: request.get(key) for key in SETTINGS}
        body = to_wire(plan, led.profile, extra_body={**settings, "store": None})
        assert comparable(body) == comparable(request), number
        end = exchanges[number].read(plan, led.profile)
        if number + 1 in numbers:
            led.go_on(end, exchanges[number + 1].request["input"])


@needs_recordings
def test_every_recorded_request_is_compared_or_has_a_reason() -> None:
    """None is forgotten, and no reason outlives its recording."""
    recorded = {f"{name}-{number}" for name, found in EXCHANGES.items() for number in found}
    compared = {f"{name}-{number}" for name, (_, numbers) in EQUAL.items() for number in numbers}
    assert recorded == compared | OTHERS.keys()
    assert not compared & OTHERS.keys()
