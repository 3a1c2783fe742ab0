"""AstrBot's Responses input with the service's own searches, without AstrBot."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tool_search.adapters.astrbot.responses import ResponsesHook, with_searches
from tool_search.adapters.astrbot.run import AstrBotConversation, AstrBotRun
from tool_search.adapters.astrbot.toolset import NativeTools
from tool_search.adapters.openai_responses.tools import wire_tools
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.session.session import ToolSearchSession
from tool_search.testing.openai_responses.rules import check_openai_responses

NATIVE = profile_for("openai_responses", "gpt-5.4")
ADDITIONAL = profile_for("openai_responses", "gpt-5.1")
NAMES = ("alpha", "beta", "gamma")


def a_run() -> AstrBotRun:
    """Return a run on some deferred tools, in `tool_search` mode."""
    catalog = ToolCatalog([Tool(name=name, description=f"Does {name}.") for name in NAMES])
    session = ToolSearchSession(catalog, config=ToolSearchConfig(tool_schema_mode="tool_search"))
    session.begin_turn("hi", profile=NATIVE)
    executors = {name: SimpleNamespace(name=name) for name in NAMES}
    return AstrBotRun(AstrBotConversation(session), executors, search_tool_name="tool_search")


def call(call_id: str, name: str, arguments: str = "{}") -> dict[str, Any]:
    """Return a call as AstrBot writes it."""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def output(call_id: str, text: str) -> dict[str, Any]:
    """Return a result as AstrBot writes it."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


USER: dict[str, Any] = {"type": "message", "role": "user", "content": "hi"}
REASONING: dict[str, Any] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "encrypted_content": "x",
}


def searched(run: AstrBotRun, call_id: str, query: str) -> list[dict[str, Any]]:
    """Return a search and what it found."""
    said = json.dumps({"query": query})
    return [call(call_id, "tool_search", said), output(call_id, run.search({"query": query}))]


def kinds(items: list[dict[str, Any]]) -> list[str]:
    """Return the types of items."""
    return [item["type"] for item in items]


def test_a_search_carries_the_definitions_it_found() -> None:
    run = a_run()
    items = with_searches([USER, *searched(run, "c1", "beta")], run, NATIVE)
    assert kinds(items) == ["message", "tool_search_call", "tool_search_output"]
    assert items[1]["arguments"] == {"query": "beta"}
    assert [tool["name"] for tool in items[2]["tools"]] == ["beta"]


def test_a_call_of_what_was_found_names_its_namespace() -> None:
    """The service refuses it otherwise."""
    run = a_run()
    found = searched(run, "c1", "beta")
    items = with_searches([USER, *found, call("c2", "beta"), output("c2", "ok")], run, NATIVE)
    assert items[3]["namespace"] == "beta"
    assert items[4] == output("c2", "ok")


def test_notices_behind_a_search_become_a_developers_message() -> None:
    """After all results of a reply, because an output has only tools."""
    run = a_run()
    found = searched(run, "c1", "beta")
    found[1]["output"] += "\n[NOTICE] slow down"
    rest = [call("c2", "gamma"), output("c2", "ok")]
    mixed = [USER, found[0], rest[0], found[1], rest[1]]
    items = with_searches(mixed, run, NATIVE)
    assert items[-1] == {"type": "message", "role": "developer", "content": "[NOTICE] slow down"}
    assert with_searches([*mixed, USER], run, NATIVE)[-2:] == [items[-1], USER]


def test_a_failed_search_says_why() -> None:
    """Its output has no place for it."""
    run = a_run()
    items = with_searches([USER, call("c1", "tool_search"), output("c1", "timed out")], run, NATIVE)
    assert items[2]["tools"] == []
    assert items[3]["content"] == "timed out"


def test_a_tool_called_without_a_search_comes_before_its_reply() -> None:
    run = a_run()
    run.conversation.decide("alpha", {})
    reply = [REASONING, call("c1", "alpha"), output("c1", "ok")]
    items = with_searches([USER, *reply], run, NATIVE)
    assert kinds(items) == [
        "message",
        "additional_tools",
        "reasoning",
        "function_call",
        "function_call_output",
    ]


def test_a_model_without_tool_search_gets_definitions_behind_the_results() -> None:
    run = a_run()
    items = with_searches([USER, *searched(run, "c1", "beta")], run, ADDITIONAL)
    assert kinds(items) == ["message", "function_call", "function_call_output", "additional_tools"]
    assert "beta" in items[2]["output"]


def test_what_is_not_a_call_stays_as_astrbot_wrote_it() -> None:
    run = a_run()
    picture = {"type": "input_image", "image_url": "data:x", "detail": "low"}
    own: list[dict[str, Any]] = [
        {"type": "message", "role": "system", "content": "s"},
        {"type": "message", "role": "user", "content": [picture]},
        REASONING,
        {"type": "message", "role": "assistant", "content": "yes"},
        USER,
    ]
    assert with_searches(own, run, NATIVE) == own


def test_a_call_id_that_comes_again_is_told_by_its_place() -> None:
    run = a_run()
    first, second = searched(run, "c1", "beta"), searched(run, "c1", "gamma")
    items = with_searches([USER, *first, USER, *second], run, NATIVE)
    named = [[tool["name"] for tool in item["tools"]] for item in items if "tools" in item]
    assert named == [["beta"], ["gamma"]]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Steps of a conversation: a kind, and what it is about."""
    kind = st.sampled_from(["user", "say", "search", "call", "reason"])
    return draw(st.lists(st.tuples(kind, st.sampled_from(NAMES)), max_size=5))


@given(histories())
def test_every_history_is_valid_and_grows_at_its_end_alone(steps: list[tuple[str, str]]) -> None:
    """By the service's rules, at each step, for both kinds of models."""
    run, own = a_run(), [USER]
    sent: dict[ProviderProfile, list[dict[str, Any]]] = {NATIVE: [], ADDITIONAL: []}
    for number, (kind, name) in enumerate(steps):
        call_id = f"c{number}"
        if kind == "user":
            own = [*own, USER]
        elif kind == "say":
            own = [*own, {"type": "message", "role": "assistant", "content": name}, USER]
        elif kind == "search":
            own = [*own, *searched(run, call_id, name)]
        else:
            run.conversation.decide(name, {})
            reasoning = [{**REASONING, "id": f"rs_{number}"}] if kind == "reason" else []
            own = [*own, *reasoning, call(call_id, name), output(call_id, "ok")]
        for profile, before in sent.items():
            items = with_searches(own, run, profile)
            tools = wire_tools(run.plan(profile).tools, profile)
            body = {"model": profile.model, "input": items, "tools": tools, "store": False}
            assert check_openai_responses(body) is None
            assert items[: len(before)] == before
            sent[profile] = items


async def test_a_search_in_a_reply_is_a_call_to_astrbot() -> None:
    class Provider:
        async def _query(self, payloads: Any, tools: Any) -> Any:
            """Not asked."""

        async def _query_stream(self, payloads: Any, tools: Any) -> Any:
            """Not asked."""

        async def _parse_response(self, response: Any, tools: Any) -> Any:
            return response["output"]

    hook = ResponsesHook(Provider)
    hook.install()
    tools = NativeTools()
    tools.search_tool_name = "find_tools"
    search = {
        "type": "tool_search_call",
        "execution": "client",
        "call_id": "c1",
        "arguments": {"query": "x"},
    }
    said = {"type": "message", "content": []}
    response = {"output": [said, search]}
    parsed = await Provider()._parse_response(response, tools)
    assert parsed == [said, call("c1", "find_tools", '{"query":"x"}')]
    assert await Provider()._parse_response(response, None) == response["output"]
