"""Requests by OpenAI's published specification, both of its dialects.

It knows shapes, not the rules about what belongs together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.adapters.contract import QUESTION, plan_of
from tests.adapters.plans import plans
from tests.adapters.test_sdk_types import GPT, RESPONSES
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.adapters.openai_responses import wire as openai_responses_wire
from tool_search.core.messages import RequestPlan
from tool_search.core.profiles import ProviderProfile

SPECIFICATION = Path(__file__).parents[3] / "shared" / "recorded" / "openai-openapi.yaml"
REASON = "OpenAI's specification is not there: ../shared/recorded beside the checkout"

pytestmark = pytest.mark.skipif(not SPECIFICATION.is_file(), reason=REASON)


@cache
def components() -> Any:
    """Return the specification's schemas; dates among their examples are texts in JSON."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = SPECIFICATION.read_text(encoding="utf-8")
    content = yaml.load(text, Loader=loader)  # noqa: S506 - safe
    schemas = json.dumps(content["components"]["schemas"], default=str)
    return {"schemas": json.loads(schemas, object_hook=_by_its_type)}


def _by_its_type(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a choice that a type decides, as one of any: some of the choices overlap."""
    if "discriminator" not in schema or "oneOf" not in schema:
        return schema
    return {("anyOf" if key == "oneOf" else key): value for key, value in schema.items()}


@cache
def specified(schema: str) -> jsonschema_rs.Draft202012Validator:
    """Return the validator of one schema."""
    reference = {"$ref": f"#/components/schemas/{schema}", "components": components()}
    return jsonschema_rs.Draft202012Validator(reference)


def problems(schema: str, body: Mapping[str, Any]) -> list[str]:
    """Return the errors of a request, by the specification."""
    return [f"{error.instance_path}: {error}" for error in specified(schema).iter_errors(body)]


def begun(plan: RequestPlan) -> RequestPlan:
    """Return the plan after a question: every request has a message."""
    return replace(plan, messages=(QUESTION, *plan.messages))


def test_specification_finds_what_is_wrong_within_an_item() -> None:
    body = openai_responses_wire.to_wire(plan_of(), RESPONSES[0])
    body["input"].append({"type": "function_call", "name": "x"})
    assert problems("CreateResponse", body)
    body = openai_chat_wire.to_wire(plan_of(), GPT)
    del body["tools"][0]["function"]["name"]
    assert problems("CreateChatCompletionRequest", body)


@settings(max_examples=20)
@given(plan=plans(), profile=st.sampled_from(RESPONSES))
def test_any_responses_request_is_as_specified(plan: RequestPlan, profile: ProviderProfile) -> None:
    body = openai_responses_wire.to_wire(begun(plan), profile)
    assert problems("CreateResponse", body) == []


@settings(max_examples=20)
@given(plan=plans(("generic", "bridge", "claude")))
def test_any_chat_request_is_as_specified(plan: RequestPlan) -> None:
    body = openai_chat_wire.to_wire(begun(plan), GPT)
    assert problems("CreateChatCompletionRequest", body) == []


def test_replies_sent_back_are_as_specified() -> None:
    """The items of a reply, as the adapter keeps them: reasoning, phases, the service's search."""
    profile = RESPONSES[3]
    blocks: tuple[dict[str, Any], ...] = (
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "tool_search_call", "call_id": None, "execution": "server",
         "status": "completed", "arguments": {"paths": ["a"]}},
        {"type": "tool_search_output", "call_id": None, "execution": "server",
         "status": "completed", "tools": []},
        {"type": "message", "role": "assistant", "phase": "final_answer", "content": "Done."},
    )  # fmt: skip
    tools = openai_responses_wire.to_wire(plan_of(), profile)["tools"]
    body = {"model": "gpt-5.4", "input": list(blocks), "tools": [{"type": "tool_search"}, *tools]}
    assert problems("CreateResponse", body) == []
