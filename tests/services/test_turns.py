"""The order of turns, against services and templates that refuse any other."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest

from tests.adapters.contract import QUESTION, plan_of
from tests.conversations import Chat, toolbox
from tests.services.raw import JSON, RawService
from tests.services.rules import RULES
from tests.services.test_sizes import TOOLS, answers, bot
from tool_search import Message, ToolCall
from tool_search.adapters.openai_chat import wire
from tool_search.errors import AllProvidersFailedError
from tool_search.providers.known import NO_SIGNATURE
from tool_search.providers.profile_choice import profile_for
from tool_search.testing import check_openai_chat

GEMINI = profile_for(
    "openai_chat",
    "gemini-3-flash-preview",
    base_url="https://generativelanguage.googleapis.com/v1beta/openai",
)
ZAI = "The messages parameter is illegal. Please check the documentation."


def said_twice(body: JSON) -> str | None:
    """Return Z.ai's refusal of two messages of the user's in a row."""
    runs = [len(list(run)) for role, run in groupby(m["role"] for m in body["messages"])
            if role == "user"]  # fmt: skip
    return ZAI if any(length > 1 for length in runs) else None


async def test_message_after_a_failed_turn_is_sent_with_the_one_before_it() -> None:
    service = RawService(rule=lambda _: "overloaded", status=503)
    async with bot({"zai": ("chat", service)}) as made:
        for name in TOOLS[:2]:
            with pytest.raises(AllProvidersFailedError):
                await made.turn(f"Please use {name}")
        service.refused.clear()
        service.rule, service.status = said_twice, 400
        assert answers(await made.turn(f"Please use {TOOLS[2]}"))
        assert answers(await made.turn(f"Please use {TOOLS[3]}"))
        assert service.refused == []
        (_, first, *_) = service.bodies[-1]["messages"]
        assert first["content"].split("\n\n") == [f"Please use {name}" for name in TOOLS[:3]]
        # On record they are as the person wrote them.
        assert [m.text for m in made.history[:3]] == first["content"].split("\n\n")


HISTORIES: dict[str, list[Message]] = {
    "nothing": [],
    "turn": [Message(role="user", content="Hi."), Message(role="assistant", content="Hello.")],
    "greeting": [Message(role="assistant", content="Hello, I am the bot.")],
    "call": [
        Message(role="assistant", tool_calls=(ToolCall(id="c", name="tool_002"),)),
        Message(role="tool", tool_call_id="c", name="tool_002", content="Done."),
        Message(role="assistant", content="Done."),
    ],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
@pytest.mark.parametrize("rules", ["joined", "alternating"])
def test_restored_call_is_in_the_turn_of_the_reply_before_it(
    history: list[Message], rules: Any
) -> None:
    profile = replace(GEMINI, message_rules=rules)
    chat = Chat(toolbox(9))
    chat.begin(profile, "first")
    chat.find("tool_003")
    chat.answer()
    chat.session.adopt_history(history)
    plan = chat.begin(profile, "And now?")
    body = wire.to_wire(plan, profile)
    assert json.loads(wire.encode(plan, profile)) == body
    assert "tool_003" in json.dumps(body["messages"])
    broken = RULES["a call follows a message of the user's or a result"].is_broken
    assert not broken("openai_chat", body), body["messages"]
    if rules == "alternating":
        assert not RULES["roles alternate"].is_broken("openai_chat", body), body["messages"]
    shown = json.dumps(body["messages"], ensure_ascii=False)
    assert all(message.text in shown for message in history)
    calls = [m for m in body["messages"] if m.get("tool_calls")]
    (google,) = {m["tool_calls"][0]["extra_content"]["google"]["thought_signature"] for m in calls}
    assert google == NO_SIGNATURE


@pytest.mark.parametrize("most", [1, 2, 128])
def test_reply_of_many_calls_is_sent_as_several_with_their_results(most: int) -> None:
    calls = tuple(
        ToolCall(id=f"call_{n}", name="get_weather", arguments=f'{{"n":{n}}}') for n in range(131)
    )
    results = [
        Message(role="tool", tool_call_id=c.id, name=c.name, content=c.id) for c in calls[::-1]
    ]
    plan = plan_of(QUESTION, Message(role="assistant", content="I look.", tool_calls=calls),
                   *results, Message(role="assistant", content="Sun."), QUESTION)  # fmt: skip
    profile = replace(GEMINI, max_calls=most)
    body = wire.to_wire(plan, profile)
    assert json.loads(wire.encode(plan, profile)) == body
    assert check_openai_chat({**body, "model": "gpt-5.4"}) is None
    replies = [m for m in body["messages"] if m.get("tool_calls")]
    assert max(len(m["tool_calls"]) for m in replies) == most
    assert [c["id"] for m in replies for c in m["tool_calls"]] == [c.id for c in calls]
    assert [bool(m["content"]) for m in replies] == [True] + [False] * (len(replies) - 1)


def test_system_text_of_a_template_without_it_is_the_users() -> None:
    plan = plan_of(QUESTION)
    said = plan.without_system()
    body = wire.to_wire(said, GEMINI)
    assert json.loads(wire.encode(said, GEMINI)) == body
    (message,) = body["messages"]
    assert message == {"role": "user", "content": f"{plan.system}\n\n{QUESTION.text}"}


async def test_wrapper_of_several_calls_is_read_as_those() -> None:
    def wrap(reply: JSON) -> JSON:
        (choice,) = reply["choices"]
        for call in choice["message"].get("tool_calls") or ():
            function = call["function"]
            uses = [{"recipient_name": f"functions.{function['name']}",
                     "parameters": json.loads(function["arguments"])}]  # fmt: skip
            call["function"] = {
                "name": "multi_tool_use.parallel",
                "arguments": json.dumps({"tool_uses": uses}),
            }
        return reply

    service = RawService(change=wrap)
    async with bot({"gpt": ("chat", service)}) as made:
        for name in TOOLS[:2]:
            assert answers(await made.turn(f"Please use {name}"))
        assert [m.name for m in made.history if m.role == "tool"] == [
            "tool_search", TOOLS[0], "tool_search", TOOLS[1],
        ]  # fmt: skip


async def test_content_that_is_an_object_is_read() -> None:
    def wrap(reply: JSON) -> JSON:
        message = reply["choices"][0]["message"]
        if message["content"] is not None:
            message["content"] = {"weather": message["content"]}
        return reply

    async with bot({"cloudflare": ("chat", RawService(change=wrap))}) as made:
        (answer,) = answers(await made.turn(f"Please use {TOOLS[0]}"))
        assert answer.startswith('{"weather":"answer')
