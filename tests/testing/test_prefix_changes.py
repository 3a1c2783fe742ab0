"""The first difference of two prompts, and its cause."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.conversations import CLAUDE, OPENAI, Chat, toolbox
from tool_search import profile_for
from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.adapters.openai_responses import wire as openai_responses_wire
from tool_search.core.profiles import ProviderProfile
from tool_search.testing import PrefixChange, prefix_change

Change = Callable[[dict[str, Any]], object]


def responses_body() -> dict[str, Any]:
    """Return a request in the Responses dialect."""
    function = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}
    return {
        "model": "gpt-5.4",
        "instructions": "Be brief.",
        "tools": [{"type": "tool_search", "execution": "client", "description": "d"}, function],
        "input": [
            {"role": "user", "content": "Hi."},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "role": "assistant", "content": "Hello."},
        ],
    }


def change(before: Any, after: Any) -> PrefixChange | None:
    """Return the change between two bodies."""
    return prefix_change(json.dumps(before).encode(), json.dumps(after).encode())


def changed(body: dict[str, Any], make: Change) -> PrefixChange | None:
    """Return the change that is made to a body."""
    after = copy.deepcopy(body)
    make(after)
    return change(body, after)


MOVED = [
    pytest.param(lambda b: b.update(model="x"), "model", "model_changed", "", id="model"),
    pytest.param(
        lambda b: b["tools"].insert(1, {"name": "new", "input_schema": {}}),
        "tools[1]",
        "tool_added",
        "new",
        id="tool in between",
    ),
    pytest.param(
        lambda b: b["tools"].append({"name": "new", "input_schema": {}}),
        "tools[4]",
        "tool_added",
        "new",
        id="tool behind",
    ),
    pytest.param(
        lambda b: b["tools"].pop(1), "tools[1]", "tool_removed", "tool_search", id="tool gone"
    ),
    pytest.param(
        lambda b: b["tools"][0].update(description="Other."),
        "tools[0].description",
        "tool_changed",
        "get_weather",
        id="definition",
    ),
    pytest.param(
        lambda b: b["tools"].insert(0, b["tools"].pop(1)),
        "tools[0]",
        "tools_reordered",
        "tool_search",
        id="order of tools",
    ),
    pytest.param(
        lambda b: b["tools"][2].update(description="Other."),
        "tools[2].description",
        "tool_changed",
        "get_time",
        id="definition that the history refers to",
    ),
    pytest.param(
        lambda b: b["system"][0].update(text="Be long."),
        "system[0].text",
        "system_changed",
        "",
        id="system text",
    ),
    pytest.param(
        lambda b: b.update(tool_choice={"type": "none"}),
        "tool_choice",
        "tool_choice_changed",
        "",
        id="choice",
    ),
    pytest.param(
        lambda b: b["messages"].pop(),
        "messages[3]",
        "history_shortened",
        "",
        id="fewer messages",
    ),
    pytest.param(
        lambda b: b["messages"][2]["content"][0]["content"].pop(),
        "messages[2].content[0].content[0]",
        "message_changed",
        "",
        id="reference left out",
    ),
    pytest.param(
        lambda b: b["messages"][1]["content"].pop(0),
        "messages[1].content[0].type",
        "thinking_left_out",
        "",
        id="thinking left out",
    ),
]


@pytest.fixture
def body() -> dict[str, Any]:
    """Return a request in the Anthropic dialect."""
    schema = {"type": "object", "properties": {}}
    found = [{"type": "tool_reference", "tool_name": "get_time"}]
    return {
        "model": "claude-sonnet-4-6",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [
            {"name": "get_weather", "description": "Weather.", "input_schema": schema},
            {"name": "tool_search", "input_schema": schema},
            {"name": "get_time", "input_schema": schema, "defer_loading": True},
            {"name": "get_news", "input_schema": schema, "defer_loading": True},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi."}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                    {"type": "tool_use", "id": "t1", "name": "tool_search", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": found}],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "Noon."}]},
        ],
    }


@pytest.mark.parametrize(("make", "path", "cause", "subject"), MOVED)
def test_first_change_is_named_with_its_cause(
    body: dict[str, Any], make: Change, path: str, cause: str, subject: str
) -> None:
    found = changed(body, make)
    assert found is not None
    assert (found.path, found.cause, found.subject) == (path, cause, subject)
    assert found.in_prompt


KEPT = [
    pytest.param(lambda _: None, id="nothing"),
    pytest.param(
        lambda b: b["messages"].append({"role": "user", "content": "And?"}), id="one message more"
    ),
    pytest.param(
        lambda b: b["messages"][3]["content"].append({"type": "text", "text": "Sharp."}),
        id="more in the last message",
    ),
    pytest.param(lambda b: b.update(stream=True, max_tokens=5), id="what no prompt shows"),
    pytest.param(lambda b: b["system"][0].pop("cache_control"), id="cache breakpoint"),
    pytest.param(lambda b: b.update(system="Be brief."), id="text as a string"),
    pytest.param(lambda b: b.update(tools=b.pop("tools")), id="order of the members"),
]


@pytest.mark.parametrize("make", KEPT)
def test_prompt_that_goes_on_has_no_change(body: dict[str, Any], make: Change) -> None:
    assert changed(body, make) is None


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        pytest.param(lambda b: b["tools"].pop(), "tool_removed", id="gone"),
        pytest.param(
            lambda b: b["tools"].append({"name": "x", "defer_loading": True}),
            "tool_added",
            id="added",
        ),
    ],
)
def test_deferred_definition_that_nothing_refers_to_is_in_no_prompt(
    body: dict[str, Any], make: Change, cause: str
) -> None:
    """Thinking that is bound to the prefix becomes invalid."""
    found = changed(body, make)
    assert found is not None
    assert (found.cause, found.in_prompt) == (cause, False)


def test_change_in_the_prompt_is_told_before_one_outside(body: dict[str, Any]) -> None:
    def both(after: dict[str, Any]) -> None:
        after["tools"].pop()
        after["messages"][0]["content"][0]["text"] = "Ho."

    found = changed(body, both)
    assert found is not None
    assert (found.path, found.before, found.after) == ("messages[0].content[0].text", "Hi.", "Ho.")
    assert str(found) == "messages[0].content[0].text: message_changed: Hi. -> Ho."


@pytest.mark.parametrize(
    ("make", "path", "cause"),
    [
        (lambda b: b.update(instructions="Be long."), "instructions[0].text", "system_changed"),
        (lambda b: b["input"].pop(1), "input[1].type", "thinking_left_out"),
        (lambda b: b["input"][0].update(content="Ho."), "input[0].content", "message_changed"),
        (lambda b: b["tools"].pop(0), "tools[0]", "tool_removed"),
    ],
)
def test_change_of_a_responses_request_is_named(make: Change, path: str, cause: str) -> None:
    found = changed(responses_body(), make)
    assert found is not None
    assert found.cause == cause
    assert found.path.startswith(path)


def test_request_that_goes_on_from_a_kept_reply_brings_only_what_is_new() -> None:
    after = {**responses_body(), "previous_response_id": "resp_1", "input": "Well?"}
    assert change(responses_body(), after) is None


def test_body_that_is_no_object_is_an_error() -> None:
    with pytest.raises(ValueError, match="JSON object"):
        prefix_change(b"[]", b"{}")


@pytest.mark.parametrize(
    ("profile", "wire"),
    [
        pytest.param(CLAUDE, anthropic_wire, id="claude"),
        *(
            pytest.param(
                profile_for("openai_responses", "gpt-5.5", search_form=form),
                openai_responses_wire,
                id=f"responses, {form}",
            )
            for form in ("client", "deferred")
        ),
    ],
)
def test_requests_of_a_native_search_only_go_on(profile: ProviderProfile, wire: Any) -> None:
    chat = Chat(toolbox(40, core=2))
    bodies = [wire.encode(chat.begin(profile), profile)]
    chat.find("tool_003", "tool_017")
    bodies.append(wire.encode(chat.session.plan(profile), profile))
    chat.call("tool_003", {"count": 1})
    bodies.append(wire.encode(chat.session.plan(profile), profile))
    chat.answer()
    bodies.append(wire.encode(chat.begin(profile), profile))
    assert [prefix_change(*pair) for pair in pairwise(bodies)] == [None] * 3


def test_filtered_list_moves_the_prefix_once_for_each_find() -> None:
    chat = Chat(toolbox(40, core=2))
    before = openai_chat_wire.encode(chat.begin(OPENAI), OPENAI)
    chat.find("tool_003")
    found = openai_chat_wire.encode(chat.session.plan(OPENAI), OPENAI)
    chat.call("tool_003", {"count": 1})
    called = openai_chat_wire.encode(chat.session.plan(OPENAI), OPENAI)
    moved = prefix_change(before, found)
    assert moved is not None
    assert (moved.path, moved.cause, moved.subject) == ("tools[3]", "tool_added", "tool_003")
    assert prefix_change(found, called) is None
