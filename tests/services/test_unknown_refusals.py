"""Refusals in words that no table has: a turn ends with an answer all the same."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle

import pytest

from tests.services.raw import JSON, RawService
from tests.services.rules import RULES, bot_of, tool_of
from tests.services.test_sizes import (
    LIMIT,
    MODELS,
    PICTURE,
    TOOLS,
    answers,
    bot,
    codes,
    entries,
    report_tool,
    size_of,
)
from tool_search import CallOptions, ExecutableTool, Tool, ToolSearchConfig
from tool_search.core.messages import TextPart
from tool_search.errors import AllProvidersFailedError
from tool_search.runner.events import ContentLeftOut, RunnerWarning
from tool_search.runner.observing import EventLog

FULL = ToolSearchConfig(tool_schema_mode="full", language="en-US")
KEY = "sk-live-0123456789abcdef"
ODD = "Die Anfrage wurde nicht angenommen (E-4711)."
OPTIONAL = {
    "anthropic": lambda body: "cache_control" in str(body),
    "claude": lambda body: "defer_loading" in json.dumps(body) or "cache_control" in str(body),
    "chat": lambda body: "stream_options" in body or "tool_search" in json.dumps(body["tools"]),
    "responses": lambda body: "include" in body or '"tool_search"' in json.dumps(body["tools"]),
}


def short_tool(name: str) -> ExecutableTool:
    """Return a tool that a search finds by its name, with a short result."""
    return tool_of(name, [], RULES["no tools"])


@pytest.mark.parametrize("kind", ["claude", "chat", "responses"])
async def test_form_without_optional_parts_helps_and_is_remembered(kind: str) -> None:
    service = RawService(rule=lambda body: ODD if OPTIONAL[kind](body) else None)
    async with bot({"odd": (kind, service)}) as made:
        first = await made.turn(f"Please use {TOOLS[0]}")
        second = await made.turn(f"Please use {TOOLS[1]}")
        assert all(map(answers, (first, second)))
        assert codes(first) == ["form_refused"]
        assert codes(second) == []
        assert len(service.refused) == 1


@pytest.mark.parametrize("kind", MODELS)
async def test_request_without_tools_is_the_last_form_and_the_person_is_told(kind: str) -> None:
    service = RawService(rule=lambda body: ODD if body.get("tools") else None)
    async with bot({"odd": (kind, service)}) as made:
        events = await made.turn(f"Please use {TOOLS[0]}")
        assert answers(events)
        assert any(isinstance(event, ContentLeftOut) for event in events)
        assert codes(events) == ["form_refused"]
        assert len(service.refused) <= 4
        refused = len(service.refused)
        assert answers(await made.turn(f"Please use {TOOLS[1]}"))
        other = [event async for event in made.runner.run("Please use it", conversation="d")]
        assert answers(other)
        assert len(service.refused) == refused


async def test_tools_come_back_after_a_message_that_a_service_with_tools_refuses() -> None:
    service = RawService()
    async with bot({"odd": ("chat", service)}) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        service.rule = lambda body: ODD if body.get("tools") else None
        assert answers(await made.turn(f"Please use {TOOLS[1]}"))
        service.rule = lambda _: None
        assert answers(await made.turn(f"Please use {TOOLS[2]}"))
        assert service.bodies[-1].get("tools")


@pytest.mark.parametrize("kind", MODELS)
async def test_service_that_refuses_everything_is_asked_few_times_and_keeps_its_form(
    kind: str,
) -> None:
    service = RawService(rule=lambda _: ODD)
    async with bot({"odd": (kind, service)}) as made:
        with pytest.raises(AllProvidersFailedError, match="E-4711"):
            await made.turn(f"Please use {TOOLS[0]}")
        assert len(service.refused) <= 5
        service.rule = lambda _: None
        assert answers(await made.turn(f"Please use {TOOLS[1]}"))
        assert made.history[0].text.endswith(TOOLS[0])


async def test_other_provider_is_asked_first_and_the_refused_form_never_again() -> None:
    odd = RawService(rule=lambda body: ODD if OPTIONAL["chat"](body) else None)
    good = RawService()
    async with bot({"odd": ("chat", odd), "good": ("claude", good)}) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        assert (len(odd.refused), len(odd.bodies)) == (1, 0)
        events = await made.turn(f"Please use {TOOLS[1]}", "odd")
        assert answers(events)
        assert codes(events) == ["form_refused"]
        assert (len(odd.refused), len(odd.bodies)) == (1, 3)


async def test_refusing_provider_is_asked_again_if_its_fallback_fails() -> None:
    odd = RawService(rule=lambda body: ODD if OPTIONAL["chat"](body) else None)
    down = RawService(rule=lambda _: "overloaded", status=503)
    async with bot({"odd": ("chat", odd), "down": ("claude", down)}) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        assert (len(odd.refused), len(down.refused)) == (1, 1)


async def test_fallback_with_tools_is_preferred_to_a_form_without() -> None:
    odd = RawService(rule=lambda body: ODD if body.get("tools") else None)
    good = RawService()
    async with bot({"odd": ("chat", odd), "good": ("claude", good)}) as made:
        for name in TOOLS:
            events = await made.turn(f"Please use {name}", "odd")
            assert answers(events)
            assert not any(isinstance(event, ContentLeftOut) for event in events)
        assert not odd.bodies


@pytest.mark.parametrize("status", [400, 404, 409, 413, 415, 422])
async def test_form_helps_at_each_status_of_a_request_that_is_at_fault(status: int) -> None:
    service = RawService(rule=lambda b: ODD if OPTIONAL["chat"](b) else None, status=status)
    async with bot({"odd": ("chat", service)}) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        assert len(service.refused) == 1


@pytest.mark.parametrize(
    "words",
    [
        "Functions need another mode: set reasoning_effort to 'none' or leave them.",
        "请将 reasoning_effort 设置为 none 后重试。",
    ],
)
async def test_value_that_the_words_ask_for_is_tried_first(words: str) -> None:
    def rule(body: JSON) -> str | None:
        return None if body.get("reasoning_effort") == "none" else words

    service = RawService(rule=rule)
    async with bot({"odd": ("chat", service)}) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        assert len(service.refused) == 1
        assert service.bodies[0]["tools"]


async def test_no_words_change_what_is_said_or_paid() -> None:
    words = "Oops: set model to 'dear-model', use store=true and set messages to 'x'."
    service = RawService(rule=lambda body: words if body.get("tools") else None)
    async with bot({"odd": ("responses", service)}) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        for body in service.bodies:
            assert (body["model"], body.get("store")) == ("gpt-5.5", False)


@pytest.mark.parametrize("kind", MODELS)
async def test_tool_that_the_words_name_is_renamed_or_left_out_and_others_run(kind: str) -> None:
    by_name = RawService(rule=lambda b: _naming(b, '"water_plants"', "E-1: water_plants, nein"))
    by_kind = RawService(rule=lambda b: _naming(b, '"water_plants', "E-2: {} geht nicht"))
    for service in (by_name, by_kind):
        async with bot({"odd": (kind, service)}, config=FULL) as made:
            events = await made.turn(f"Please use {TOOLS[0]}")
            assert answers(events)
            assert len(service.refused) <= 3
            assert "read_invoice" in json.dumps(service.bodies[-1].get("tools"))
            assert not any(isinstance(event, ContentLeftOut) for event in events)
    assert "water_plants_" in json.dumps(by_name.bodies[-1]["tools"])


def _naming(body: JSON, name: str, words: str) -> str | None:
    found = re.search(rf"{name}\w*", json.dumps(body.get("tools", [])))
    return words.format(found[0].strip('"')) if found else None


async def test_tool_of_another_user_that_the_words_name_changes_nothing() -> None:
    words = "E-3: the tool secret_of_others is odd"
    service = RawService(rule=lambda body: words if OPTIONAL["chat"](body) else None)
    async with bot({"odd": ("chat", service)}) as made:
        events = await made.turn(f"Please use {TOOLS[0]}")
        assert answers(events)
        assert len(service.refused) == 1
        assert "secret_of_others" not in json.dumps(service.bodies)


async def test_schema_of_names_and_types_alone_helps() -> None:
    def rule(body: JSON) -> str | None:
        return ODD if re.search("description.{9}.*(pattern|oneOf)", json.dumps(body)) else None

    schema = {
        "type": "object",
        "properties": {"text": {"oneOf": [{"type": "string", "pattern": "a*"}]}},
        "required": ["text"],
    }
    ran: list[str] = []

    def ring(text: str) -> str:
        ran.append(text)
        return "rung"

    tool = ExecutableTool(
        tool=Tool(name="ring_bell", description="Can ring bell.", parameters=schema),
        function=ring,
    )
    service = RawService(rule=rule)
    async with bot({"odd": ("chat", service)}, tools=[tool]) as made:
        assert answers(await made.turn("Please use ring_bell"))
        assert len(service.refused) <= 3
        assert ran == ["1_1"]


@pytest.mark.parametrize(
    "name",
    [
        "replies with calls have content that is a string",
        "replies with calls have content that is not empty",
        "a reply has one call",
        "results name their functions",
        "no message of the system's",
    ],
)
async def test_messages_of_the_plainest_shape_help_and_tools_run(name: str) -> None:
    rule = replace(RULES[name], refusals=2)
    async with bot_of(rule, "openai_chat", "house-model", words=ODD) as made:
        await rule.talk(made)
        made.check(rule)


async def test_reasoning_that_is_not_taken_back_ends_no_turn() -> None:
    service = RawService(
        rule=lambda b: ODD if "reasoning_content" in str(b["messages"]) else None,
        reasoning=lambda reply, _: {"reasoning_content": f"I think of {reply}"},
    )
    async with bot({"odd": ("chat", service)}) as made:
        for name in TOOLS[:2]:
            assert answers(await made.turn(f"Please use {name}"))
        assert len(service.refused) == 1
        assert {"read_invoice", "water_plants"} <= {m.name for m in made.history}


async def test_thinking_and_a_picture_that_are_both_refused_end_no_turn() -> None:
    def rule(body: JSON) -> str | None:
        said = json.dumps(body["messages"])
        if '"thinking"' in said and "answer" in said:
            return ODD
        return "This model does not support image inputs." if '"image"' in said else None

    service = RawService(
        rule=rule,
        reasoning=lambda reply, _: {"type": "thinking", "thinking": reply, "signature": "s"},
    )
    async with bot({"odd": ("anthropic-generic", service)}) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        assert answers(await made.turn([PICTURE, TextPart(f"Please use {TOOLS[1]}")]))
        assert answers(await made.turn(f"Please use {TOOLS[2]}"))
        assert set(TOOLS[:3]) <= {m.name for m in made.history}
        assert len(service.refused) <= 4


@pytest.mark.parametrize("status", [400, 409, 413])
async def test_form_after_the_first_helps_at_each_status(status: int) -> None:
    service = RawService(rule=lambda b: ODD if '"anyOf"' in json.dumps(b) else None, status=status)
    schema = {"type": "object", "properties": {"text": {"anyOf": [{"type": "string"}]}}}
    tool = ExecutableTool(
        tool=Tool(name="ring_bell", description="Can ring bell.", parameters=schema),
        function=lambda **_: "rung",
    )
    async with bot({"odd": ("claude", service)}, tools=[tool], config=FULL) as made:
        assert answers(await made.turn("Please use ring_bell"))
        assert len(service.refused) == 2
        assert service.bodies[-1]["tools"]


async def test_field_in_each_function_that_is_refused_is_left_out_at_responses() -> None:
    service = RawService(rule=lambda b: ODD if '"strict"' in json.dumps(b) else None)
    async with bot({"odd": ("responses", service)}) as made:
        for name in TOOLS[:2]:
            assert answers(await made.turn(f"Please use {name}"))
        assert len(service.refused) <= 2
        assert {"read_invoice", "water_plants"} <= {m.name for m in made.history}


@pytest.mark.parametrize("kind", ["anthropic-generic", "chat"])
async def test_list_that_is_too_long_is_sent_with_its_last_tools(kind: str) -> None:
    service = RawService(rule=lambda b: ODD if len(b.get("tools", ())) > 2 else None)
    config = ToolSearchConfig(tool_schema_mode="tool_search", max_results=1, language="en-US")
    async with bot({"odd": (kind, service)}, config=config) as made:
        refused = []
        for name in TOOLS[:4]:
            before = len(service.refused)
            assert answers(await made.turn(f"Please use {name}"))
            refused.append(len(service.refused) - before)
        assert refused == [0, 2, 1, 0]
        assert set(TOOLS[:4]) <= {m.name for m in made.history}


@pytest.mark.parametrize("kind", ["anthropic-generic", "chat"])
async def test_tool_that_no_words_name_ends_no_use_of_the_others(kind: str) -> None:
    service = RawService(rule=lambda b: ODD if "read invoice." in str(b.get("tools")) else None)
    config = ToolSearchConfig(tool_schema_mode="tool_search", max_results=1, language="en-US")
    async with bot({"odd": (kind, service)}, config=config) as made:
        refused = []
        for name in TOOLS[:3]:
            before = len(service.refused)
            events = await made.turn(f"Please use {name}")
            assert answers(events)
            refused.append(len(service.refused) - before)
        assert refused == [2, 1, 1]
        assert {"water_plants", "book_flight"} <= {m.name for m in made.history}
        # Another conversation has the tool again, if it is taken there.
        service.rule = lambda _: None
        other = [event async for event in made.runner.run(f"Use {TOOLS[0]}", conversation="d")]
        assert answers(other)
        assert "read_invoice" in json.dumps(service.bodies[-1]["tools"])


async def test_form_without_tools_that_one_conversation_needs_costs_one_refusal_a_turn() -> None:
    service = RawService(
        rule=lambda b: ODD if b.get("tools") and "plants 1_1" in json.dumps(b) else None
    )
    async with bot({"odd": ("chat", service)}) as made:
        refused = []
        for name in ("water_plants", *TOOLS[2:4]):
            before = len(service.refused)
            assert answers(await made.turn(f"Please use {name}"))
            refused.append(len(service.refused) - before)
        assert refused[0] <= 3
        assert refused[1:] == [1, 1]
        other = [event async for event in made.runner.run(f"Use {TOOLS[0]}", conversation="d")]
        assert answers(other)
        assert service.bodies[-1].get("tools")


@pytest.mark.parametrize("make", [report_tool, short_tool])
async def test_service_that_refuses_in_turns_answers_and_nothing_is_lost(
    make: Callable[[str], ExecutableTool],
) -> None:
    count = iter(range(1_000))
    service = RawService(rule=lambda _: ODD if next(count) % 2 == 0 else None)
    async with bot({"odd": ("chat", service)}, tools=[make(name) for name in TOOLS]) as made:
        for name in TOOLS:
            assert answers(await made.turn(f"Please use {name}"))
        ran = [m.name for m in made.history if m.role == "tool" and m.name in TOOLS]
        assert ran == list(TOOLS)
        service.rule = lambda _: None
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        assert service.bodies[-1].get("tools")


@pytest.mark.parametrize(
    "words", ["x" * 2_000_000, "请求无法处理（错误 4711）。", f"no, not with {KEY}", ""]
)
async def test_words_of_any_kind_end_no_turn_and_show_no_key(
    words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tool_search.runner.events")
    calls = CallOptions(turn_observers=[EventLog()])
    service = RawService(rule=lambda body: words if OPTIONAL["chat"](body) else None)
    async with bot({"odd": ("chat", service)}, calls=calls) as made:
        events = await made.turn(f"Please use {TOOLS[0]}")
        assert answers(events)
        (notice,) = [event for event in events if isinstance(event, RunnerWarning)]
        assert len(notice.message) < 2_000
        (logged,) = [each for each in caplog.messages if '"form_refused"' in each]
        assert json.loads(logged)["refusal"] == notice.message
        assert KEY not in caplog.text
        assert words[:9] in notice.message or KEY in words


async def test_refusal_inside_a_stream_is_answered_in_a_plainer_form() -> None:
    body = json.dumps({"error": {"message": ODD, "type": "invalid_request_error"}})
    service = RawService(
        rule=lambda b: (
            ODD if "tool_choice" in b or "tool_search" in json.dumps(b["tools"]) else None
        ),
        wrap=lambda _: json.loads(body),
        status=200,
    )
    async with bot({"odd": ("chat", service)}) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        assert len(service.refused) == 1


@pytest.mark.parametrize("kind", MODELS)
async def test_system_text_that_is_refused_becomes_the_persons(kind: str) -> None:
    def rule(body: JSON) -> str | None:
        roles = {message.get("role") for message in entries(body)}
        return ODD if body.get("system") or body.get("instructions") or "system" in roles else None

    service = RawService(rule=rule)
    async with bot({"odd": (kind, service)}) as made:
        for name in TOOLS[:2]:
            assert answers(await made.turn(f"Please use {name}"))
        assert {"read_invoice", "water_plants"} <= {m.name for m in made.history}
        assert len(service.refused) <= 2


@pytest.mark.parametrize("words", ["the plan permits a budget of 5000", "das ist zu viel"])
async def test_length_of_a_reply_that_the_words_name_becomes_shorter(words: str) -> None:
    service = RawService(
        rule=lambda b: f"max_tokens: {words}" if b["max_tokens"] > 5_000 else None,
        wrap=lambda said: {"error": {"message": said}},
    )
    async with bot({"odd": ("anthropic-generic", service)}) as made:
        for name in TOOLS[:2]:
            assert answers(await made.turn(f"Please use {name}"))
        assert len(service.refused) == 1
        assert service.bodies[-1]["max_tokens"] == (5_000 if "5000" in words else 4_096)


async def test_mark_of_a_failed_result_that_is_refused_is_left_out() -> None:
    service = RawService(rule=lambda b: ODD if "is_error" in json.dumps(b["messages"]) else None)
    async with bot({"odd": ("anthropic-generic", service)}) as made:
        for name in TOOLS[:2]:
            assert answers(await made.turn(f"Please use {name}"))
        assert {"read_invoice", "water_plants"} <= {m.name for m in made.history}
        assert len(service.refused) <= 2


@pytest.mark.parametrize("kind", MODELS)
async def test_history_that_is_too_long_in_strange_words_is_shortened(kind: str) -> None:
    service = RawService(rule=lambda b: "上下文太大啦" if size_of(b) > LIMIT // 2 else None)
    async with bot({"odd": (kind, service)}) as made:
        for name in TOOLS:
            before = len(service.refused)
            assert answers(await made.turn(f"Please use {name}"))
            assert len(service.refused) - before <= 4
        assert set(TOOLS) <= {m.name for m in made.history}


async def test_history_is_whole_again_where_its_length_was_not_at_fault() -> None:
    service = RawService()
    async with bot({"odd": ("chat", service)}) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        service.rule = lambda body: ODD if body.get("tools") else None
        assert answers(await made.turn(f"Please use {TOOLS[1]}"))
        service.rule = lambda _: None
        assert answers(await made.turn(f"Please use {TOOLS[2]}"))
        assert "read invoice 1_1" in json.dumps(service.bodies[-1]["messages"])


async def test_words_that_name_other_fields_each_time_end_in_a_form_without_any() -> None:
    named = cycle(("stream", "include", "tools"))

    def rule(body: JSON) -> str | None:
        return next(named) if '"tool_search"' in json.dumps(body["tools"]) else None

    odd, good = RawService(rule=rule), RawService()
    async with bot({"odd": ("responses", odd), "good": ("claude", good)}) as made:
        for number in range(4):
            assert answers(await made.turn(f"Please use {TOOLS[number]}", "odd"))
        assert len(odd.refused) == 2
        assert odd.bodies


@pytest.mark.parametrize(("most", "notices"), [(8, 0), (6, 1)])
async def test_history_of_few_messages_is_sent_and_its_notice_comes_once(
    most: int, notices: int
) -> None:
    service = RawService(rule=lambda body: ODD if len(body["messages"]) > most else None)
    async with bot({"odd": ("anthropic-generic", service)}) as made:
        told = []
        for name in TOOLS[:4]:
            events = await made.turn(f"Please use {name}")
            assert answers(events)
            told += codes(events)
        assert told.count("form_refused") == notices
        assert notices or set(TOOLS[:4]) <= {m.name for m in made.history}


@pytest.mark.parametrize("kind", MODELS)
async def test_body_of_any_depth_ends_no_turn(kind: str) -> None:
    class Deep(RawService):
        def answer(self, dialect: str, body: JSON) -> tuple[str, int, bytes]:
            kind, status, data = super().answer(dialect, body)
            return kind, status, b"[" * 100_000 if status == self.status else data

    service = Deep(rule=lambda b: ODD if OPTIONAL[kind.partition("-")[0]](b) else None)
    async with bot({"odd": (kind, service)}) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))


async def test_template_that_breaks_in_strange_words_is_given_plainer_messages() -> None:
    def rule(body: JSON) -> str | None:
        is_empty = any(m.get("content", "") is None for m in body["messages"])
        return "Jinja: cannot iterate over None" if is_empty else None

    service = RawService(rule=rule, status=500)
    async with bot({"odd": ("chat", service)}) as made:
        for name in TOOLS[:2]:
            assert answers(await made.turn(f"Please use {name}"))
        assert {"read_invoice", "water_plants"} <= {m.name for m in made.history}


@pytest.mark.parametrize("status", [401, 403, 429, 503])
async def test_no_plainer_form_is_tried_where_the_request_is_not_at_fault(status: int) -> None:
    service = RawService(rule=lambda _: ODD, status=status)
    async with bot({"odd": ("chat", service)}) as made:
        with pytest.raises(AllProvidersFailedError):
            await made.turn(f"Please use {TOOLS[0]}")
        assert len(service.refused) == 1


async def test_tool_that_ran_is_not_run_again_for_a_refusal() -> None:
    def rule(body: JSON) -> str | None:
        has_result = any(m.get("role") == "tool" for m in body["messages"][-1:])
        return ODD if has_result and "stream_options" in body else None

    service = RawService(rule=rule)
    async with bot({"odd": ("chat", service)}) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        results = [m for m in made.history if m.role == "tool" and m.name == TOOLS[0]]
        assert len(results) == 1


async def test_call_of_a_tool_that_is_not_listed_is_read_from_the_refusal() -> None:
    """Groq refuses it, and has the call in the error (mastra 9688)."""

    def rule(body: JSON) -> str | None:
        return "x" if "read_invoice" not in json.dumps(body["tools"]) else None

    def groq(_: str) -> object:
        said = "attempted to call tool 'read_invoice' which was not in request.tools"
        call = {"name": "read_invoice<|channel|>commentary", "arguments": {"text": "given"}}
        return {
            "error": {
                "message": f"Tool call validation failed: tool call validation failed: {said}",
                "type": "invalid_request_error",
                "code": "tool_use_failed",
                "failed_generation": json.dumps(call),
            }
        }

    service = RawService(rule=rule, wrap=groq)
    async with bot({"groq": ("chat", service)}) as made:
        assert answers(await made.turn(f"Please use {TOOLS[0]}"))
        results = [m.text for m in made.history if m.role == "tool" and m.name == TOOLS[0]]
        assert results[0].startswith("read invoice given")
        assert len(service.refused) == 1
