"""Requests by the SDKs' own types.

The types check an `Iterable` only while it is read, so each is read to its end. The oldest
SDKs were made before tool search: what of it they have no type for is left out there, and
nothing else.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import tool_result_block_param
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses import response_input_item_param, tool_param
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter, ValidationError

from tests.adapters.contract import QUESTION, WEATHER, plan_of
from tests.adapters.plans import plans
from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.adapters.openai_responses import wire as openai_responses_wire
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import (
    DeclaredTool,
    ImagePart,
    Message,
    ReferencePart,
    RequestPlan,
    TextPart,
    ToolCall,
    ToolList,
)
from tool_search.core.profiles import ProviderProfile
from tool_search.providers.profile_choice import profile_for

CLAUDE = profile_for("anthropic", "claude-sonnet-4-6")
GPT = profile_for("openai_chat", "gpt-5.4")
RESPONSES = [
    profile_for("openai_responses", "gpt-5"),
    profile_for("openai_responses", "gpt-5.4"),
    profile_for("openai_responses", "gpt-5.4", search_form="deferred"),
    profile_for("openai_responses", "gpt-5.4", search_form="hosted", keeps_replies=True),
]
ANTHROPIC: TypeAdapter[Any] = TypeAdapter(MessageCreateParamsStreaming)
OPENAI: TypeAdapter[Any] = TypeAdapter(CompletionCreateParamsStreaming)
OPENAI_RESPONSES: TypeAdapter[Any] = TypeAdapter(ResponseCreateParamsStreaming)


def camel(tag: str) -> str:
    """Return a tag as a type's name has it."""
    return "".join(word.capitalize() for word in tag.split("_"))


# Each tag of native tool search, and the module of the SDK that has its type.
NATIVE = {
    "tool_reference": tool_result_block_param,
    "tool_search_call": response_input_item_param,
    "tool_search_output": response_input_item_param,
    "additional_tools": response_input_item_param,
    "tool_search": tool_param,
    "namespace": tool_param,
}
UNKNOWN = frozenset(
    tag for tag, module in NATIVE.items() if camel(tag) not in inspect.getsource(module)
)
TOOLS = Path(__file__).parents[3] / "shared" / "data" / "acebench_en" / "tools.jsonl"
REASON = "the public data sets are not there: ../shared/data beside the checkout"


def read(value: Any) -> Any:
    """Return the value with every lazy iterable in it read to its end."""
    if isinstance(value, Mapping):
        return {key: read(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [read(item) for item in value]
    return value


def without_unknown(value: Any) -> Any:
    """Return the value without the entries of lists that this SDK has no type for."""
    if isinstance(value, dict):
        return {key: without_unknown(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    known = (v for v in value if not isinstance(v, dict) or v.get("type") not in UNKNOWN)
    return [without_unknown(item) for item in known]


def check(adapter: TypeAdapter[Any], wire: dict[str, Any]) -> None:
    """Raise if the request is not of the SDK's type."""
    wire = without_unknown(wire)
    assert read(adapter.validate_python(wire)).keys() == wire.keys()


@pytest.mark.skipif(
    min(int(anthropic.__version__.split(".")[0]), int(openai.__version__.split(".")[0]) - 2) < 1,
    reason="SDKs from before tool search, or just after it",
)
def test_newer_sdks_have_a_type_for_everything() -> None:
    """Else native tool search would go unchecked."""
    assert not UNKNOWN


def test_check_finds_what_is_wrong_within_an_iterable() -> None:
    wire = anthropic_wire.to_wire(plan_of(), CLAUDE)
    wire["messages"][0]["content"] = [{"type": "text"}]
    with pytest.raises(ValidationError):
        check(ANTHROPIC, wire)


@given(plan=plans())
def test_any_anthropic_request_is_of_the_sdk_type(plan: RequestPlan) -> None:
    check(ANTHROPIC, anthropic_wire.to_wire(plan, CLAUDE))


# Definitions in messages are Moonshot's, and the SDK has no type for them.
@given(plan=plans(("generic", "bridge", "claude")))
def test_any_openai_request_is_of_the_sdk_type(plan: RequestPlan) -> None:
    check(OPENAI, openai_chat_wire.to_wire(plan, GPT))


@given(plan=plans(), profile=st.sampled_from(RESPONSES))
def test_any_responses_request_is_of_the_sdk_type(
    plan: RequestPlan, profile: ProviderProfile
) -> None:
    check(OPENAI_RESPONSES, openai_responses_wire.to_wire(plan, profile))


def full_plan() -> RequestPlan:
    """One of everything."""
    call = ToolCall(id="c1", name="get_weather", arguments='{"city": "Rome"}')
    tools = (DeclaredTool(Tool(name="tool_search"), cache_breakpoint=True),)
    return RequestPlan(
        strategy="claude",
        tools=ToolList((*tools, DeclaredTool(WEATHER, deferred=True))),
        messages=(
            Message(role="user", content=(TextPart("Look"), ImagePart("https://a/b.png"))),
            Message(role="assistant", content="Hm.", tool_calls=(call,)),
            Message(role="tool", tool_call_id="c1", content=(ReferencePart(("get_weather",)),)),
            QUESTION,
        ),
        system="Be kind.",
        tool_use="none",
        cached_messages=(0, 3),
        cache_system=True,
    )


def test_request_with_everything_is_of_every_type() -> None:
    check(ANTHROPIC, anthropic_wire.to_wire(full_plan(), CLAUDE))
    check(OPENAI, openai_chat_wire.to_wire(full_plan(), GPT))
    for profile in RESPONSES:
        check(OPENAI_RESPONSES, openai_responses_wire.to_wire(full_plan(), profile))


@pytest.mark.skipif(not TOOLS.is_file(), reason=REASON)
def test_tools_of_a_public_set_are_of_every_type() -> None:
    rows = (json.loads(line) for line in TOOLS.read_text("utf-8").splitlines())
    tools = [
        Tool(name=r["name"], description=r["description"], parameters=r["parameters"]) for r in rows
    ]
    entries = (
        DeclaredTool(Tool(name="tool_search")),
        *(DeclaredTool(t, deferred=True) for t in tools),
    )
    plan = RequestPlan(strategy="claude", tools=ToolList(entries), messages=(QUESTION,))
    assert len(plan.tools) == 2310
    wire = anthropic_wire.to_wire(plan, CLAUDE)
    check(ANTHROPIC, wire)
    assert json.loads(anthropic_wire.encode(plan, CLAUDE)) == wire
    wire = openai_chat_wire.to_wire(plan, GPT)
    check(OPENAI, wire)
    assert json.loads(openai_chat_wire.encode(plan, GPT)) == wire
    wire = openai_responses_wire.to_wire(plan, RESPONSES[2])
    check(OPENAI_RESPONSES, wire)
    assert json.loads(openai_responses_wire.encode(plan, RESPONSES[2])) == wire
