"""Endpoints: what a Responses or Chat service refuses that is known before, or mended for good."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.services.raw import JSON, RawService, vendor_error
from tests.services.request_rules import ALL_RULES
from tests.services.rules import RULES, TOOLS, Bot, ServiceRule, bot_of, declared_lists, five_turns
from tests.services.test_sizes import answers, bot, codes
from tool_search.core.settings import Dialect
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.events import RunnerEvent, RunnerWarning

WITHOUT_EFFORT = RULES["functions have reasoning_effort none"]
EFFORT_WORDS = (
    "Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions. "
    "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
)
COLLIDES = (
    "Invalid Value: 'tools.namespace'. User-defined namespace '{}' collides with an existing tool "
    "namespace."
)
META = (
    'only `"auto"` is supported for `tool_choice`. `"none"`, `"required"`, and named function '
    "choices are not currently supported"
)
DEFERRED = {"model": "gpt-5.5", "strategy": "openai_responses", "tool_search": "deferred"}


def told(events: list[list[RunnerEvent]], code: str) -> list[str]:
    """Return the messages of a warning's code, in all turns."""
    warnings = (event for turn in events for event in turn if isinstance(event, RunnerWarning))
    return [event.message for event in warnings if event.code == code]


async def two_turns(bot: Bot) -> None:
    """Ask for two tools."""
    for tool in TOOLS[:2]:
        await bot.ask(tool)


@pytest.mark.parametrize(
    ("model", "base_url", "reasons"),
    [
        ("gpt-5.6-sol", None, False),
        ("gpt-6-luna", None, False),
        ("gpt-5.10", "https://mine.openai.azure.com/openai/v1", False),
        ("gpt-6-astra", "https://api.business.githubcopilot.com", False),
        ("gpt-5.5", None, True),
        ("gpt-6-chat-latest", None, True),
        ("openai/gpt-6-sol", "https://openrouter.ai/api/v1", True),
    ],
)
def test_models_that_reason_only_without_functions_are_known(
    model: str, base_url: str | None, reasons: bool
) -> None:
    profile = profile_for("openai_chat", model, base_url=base_url)
    assert profile.reasons_with_tools is reasons


async def test_known_model_is_asked_right_and_the_owner_is_told_once() -> None:
    known = profile_for("openai_chat", "gpt-6-sol")
    async with bot_of(
        WITHOUT_EFFORT, "openai_chat", "gpt-6-sol", words=EFFORT_WORDS, profile=known
    ) as made:
        await five_turns(made)
        made.check(WITHOUT_EFFORT)
        assert made.service.refused == []
        (said,) = told(made.events, "reasoning_off")
        assert "openai_responses" in said


async def test_deployment_of_any_name_is_learned_by_its_words_and_told_once() -> None:
    async with bot_of(WITHOUT_EFFORT, "openai_chat", "my-deployment", words=EFFORT_WORDS) as made:
        await five_turns(made)
        made.check(WITHOUT_EFFORT)
        assert made.service.refused == [EFFORT_WORDS]
        assert len(told(made.events, "reasoning_off")) == 1


async def test_effort_that_the_owner_set_goes_out_as_it_is() -> None:
    rule = replace(WITHOUT_EFFORT, provider={"extra_body": {"reasoning_effort": "low"}})
    rule = replace(rule, is_broken=lambda *_: False)
    async with bot_of(rule, "openai_chat", "gpt-6-sol", words=EFFORT_WORDS) as made:
        await made.ask(TOOLS[0])
        assert {body["reasoning_effort"] for body in made.service.bodies} == {"low"}
        assert told(made.events, "reasoning_off") == []


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "learned"])
async def test_meta_gives_the_last_answer_of_a_turn_without_tools(
    dialect: Dialect, known: bool
) -> None:
    rule = RULES["tool_choice is auto or left out"]
    model = "meta/muse-spark-1.3" if known else "house-model"
    async with bot_of(rule, dialect, model, words=META) as made:
        await rule.talk(made)
        made.check(rule)
        assert len(made.service.refused) == (not known)


@pytest.mark.parametrize("words", ["Tool choice must be auto", META])
async def test_refused_choice_is_read_at_responses_in_every_services_words(words: str) -> None:
    rule = replace(RULES["tool_choice is auto or left out"], talk=two_turns)
    async with bot_of(rule, "openai_responses", "house-model", words=words) as made:
        await rule.talk(made)
        made.check(rule)
        assert made.service.refused == [words]


async def test_long_ids_of_reasoning_do_not_go_back_and_its_content_does() -> None:
    rule = RULES["no id is longer than 64 characters"]
    words = "Invalid 'input[2].id': string too long. Expected a string with maximum length 64"
    async with bot_of(rule, "openai_responses", "house-model", words=words) as made:
        await rule.talk(made)
        made.check(rule)
        assert "sealed-1_0" in json.dumps(made.service.bodies[-1])


SERVERS = ("web", "browser", "functions", "terminal", "image_gen", "file_search")


def collides(name: str) -> Callable[[Dialect, JSON], bool]:
    def is_broken(_: Dialect, body: JSON) -> bool:
        spaces = (tool for tool in declared_lists(body) if tool.get("type") == "namespace")
        called = (item.get("namespace") for item in body["input"])
        return name in {*called, *(space["name"] for space in spaces)}

    return is_broken


@pytest.mark.parametrize("known", [True, False], ids=["known", "learned"])
@pytest.mark.parametrize("server", SERVERS)
async def test_server_with_a_name_of_the_services_is_declared_under_another(
    server: str, known: bool
) -> None:
    """In the list, in what a search loaded and in earlier calls, from the first turn on."""
    rule = ServiceRule(is_broken=collides(server), talk=two_turns, server=server, provider=DEFERRED)
    profile = profile_for("openai_responses", "gpt-5.5", search_form="deferred") if known else None
    async with bot_of(
        rule, "openai_responses", "gpt-5.5", words=COLLIDES.format(server), profile=profile
    ) as made:
        await rule.talk(made)
        made.check(rule)
        assert len(made.service.refused) == (not known)
        assert any(tool.get("type") == "namespace" for tool in made.service.bodies[0]["tools"])


@pytest.mark.parametrize("form", ["deferred", "hosted", "client"])
@pytest.mark.parametrize("name", ["file_search", "web", "functions", "terminal", "python"])
async def test_deferred_function_has_no_name_of_the_services(name: str, form: str) -> None:
    rule = RULES["no function is named python"]
    rule = replace(
        rule,
        is_broken=lambda _, body: name in {tool.get("name") for tool in declared_lists(body)},
        tools=(name, *TOOLS),
        talk=five_turns,
        provider={**DEFERRED, "tool_search": form},
    )
    profile = profile_for("openai_responses", "gpt-5.5", search_form=form)  # type: ignore[arg-type]
    async with bot_of(
        rule, "openai_responses", "gpt-5.5", words=COLLIDES.format(name), profile=profile
    ) as made:
        await made.ask(name if form != "hosted" else TOOLS[0])
        assert made.service.refused == []


def forms(said: str) -> Iterator[tuple[str, object]]:
    """Yield the forms in which xAI and gateways before it say a sentence."""
    coded = {"code": "invalid-argument", "error": said}
    yield "string", coded
    yield "without code", {"error": said}
    yield "object", vendor_error(said)
    yield "wrapped", {"error": {"message": f"Upstream error: {json.dumps(coded)}", "code": 400}}


SEALED = (
    "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified one.",
    "Could not decode the compaction blob. Ensure it is unmodified from the compact response.",
)


@pytest.mark.parametrize("said", SEALED, ids=["reasoning", "compaction"])
@pytest.mark.parametrize("form", ["string", "without code", "object", "wrapped"])
async def test_stale_encrypted_reasoning_is_left_out_in_every_form_of_the_words(
    form: str, said: str
) -> None:
    rule = replace(ALL_RULES["no reasoning of earlier replies"], talk=two_turns)
    words = json.dumps(dict(forms(said))[form])
    async with bot_of(rule, "openai_responses", "grok-4.6", words=words) as made:
        await rule.talk(made)
        made.check(rule)
        assert len(made.service.refused) == 1


def spoken(step: str, _: JSON) -> dict[str, Any]:
    content = [{"type": "reasoning_text", "text": f"I think of {step}."}]
    return {"type": "reasoning", "id": f"think-{step}", "summary": [], "content": content}


@pytest.mark.parametrize("model", ["deepseek-v4-flash", "deepseek-flash", "mimo-v2.5-pro"])
async def test_reasoning_text_goes_back_and_foreign_calls_get_a_placeholder(model: str) -> None:
    rule = RULES["calls follow their reasoning_text"]
    words = "The `reasoning_text` in the thinking mode must be passed back to the API."
    known = profile_for("openai_responses", model, base_url="https://gateway.example/v1")
    async with bot_of(
        replace(rule, reasoning=spoken), "openai_responses", model, words=words, profile=known
    ) as made:
        await five_turns(made)
        made.check(rule)
        assert made.service.refused == []
        assert "I think of 1_0." in json.dumps(made.service.bodies[-1])
    async with bot_of(rule, "openai_responses", model, words=words, profile=known) as made:
        await five_turns(made)
        assert made.service.refused == []


async def test_claudes_history_goes_on_at_a_service_that_wants_reasoning_text() -> None:
    is_broken = RULES["calls follow their reasoning_text"].is_broken
    words = "The `reasoning_text` in the thinking mode must be passed back to the API."
    strict = RawService(
        rule=lambda body: words if is_broken("openai_responses", body) else None, reasoning=spoken
    )
    services = {"claude": ("claude", RawService()), "seek": ("responses", strict)}
    async with bot(services) as made:
        for turn, name in enumerate(("claude", "seek", "claude", "seek")):
            assert answers(await made.turn(f"Please use {TOOLS[turn]}", name))
        assert strict.refused == [words]


async def test_pictures_of_results_come_after_them_for_a_service_that_wants_text() -> None:
    rule = RULES["a call's output is a string"]
    words = "Input should be a valid string"
    async with bot_of(rule, "openai_responses", "house-model", words=words, status=422) as made:
        await made.ask(TOOLS[0])
        made.check(rule)
        items = made.service.bodies[-1]["input"]
        place = next(n for n, item in enumerate(items) if "is done" in str(item.get("output")))
        assert items[place + 1]["role"] == "user"
        assert [part["type"] for part in items[place + 1]["content"]] == ["input_image"]


async def test_filtered_reply_without_a_message_is_a_refusal() -> None:
    """Azure leaves `message` out of a choice that its filter stopped."""
    choice = {"index": 0, "finish_reason": "content_filter", "content_filter_results": {}}
    service = FilteringService(reply={"object": "chat.completion", "choices": [choice]})
    async with bot({"azure": ("chat", service)}) as made:
        events = await made.turn("Please tell me")
        assert answers(events)
        assert codes(events) == ["reply_refused"]


class FilteringService(RawService):
    """A service that always gives one reply."""

    def __init__(self, reply: Mapping[str, Any]) -> None:
        super().__init__()
        self.reply = reply

    def answer(self, dialect: str, body: JSON) -> tuple[str, int, bytes]:
        """Return the reply."""
        del dialect, body
        return "application/json", 200, json.dumps(self.reply).encode()


@pytest.mark.parametrize("searches", [1, 2])
async def test_kimi_declares_no_tool_a_second_time(searches: int) -> None:
    """In the same turn, in the next and in searches side by side."""
    rule = replace(RULES["no function is declared twice"], searches=searches)
    words = "function name read_invoice is duplicated"
    async with bot_of(rule, "openai_chat", "kimi-k3", words=words) as made:
        await rule.talk(made)
        made.check(rule)
        sent = made.service.bodies[-1]
        assert sum("tools" in message for message in sent["messages"]) == 2


async def test_kimi_that_refuses_a_second_declaration_gets_the_growing_list() -> None:
    rule = ServiceRule(
        is_broken=lambda _, body: any("tools" in message for message in body["messages"]),
        talk=five_turns,
        provider={"strategy": "tools_in_messages"},
    )
    words = "function name read_invoice is duplicated"
    async with bot_of(rule, "openai_chat", "kimi-k3", words=words) as made:
        await rule.talk(made)
        made.check(rule)
        assert len(made.service.refused) == 1
