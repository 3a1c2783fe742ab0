"""Five turns against services that enforce one rule on reasoning, with a swap in the middle."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from tests.services.raw import (
    JSON,
    RawService,
    Reasoning,
    Rule,
    google_error,
    groq_error,
    openrouter_error,
    vendor_error,
)
from tool_search import ProviderConfig, ToolSearchConfig, ToolSearchRunner
from tool_search.adapters import build_provider
from tool_search.runner.events import Done, RunnerEvent, RunnerWarning

TOOLS = ("read_invoice", "water_plants", "book_flight", "tune_piano", "bake_bread")
DEEPSEEK = "The `{}` in the thinking mode must be passed back to the API."
KIMI = (
    "thinking is enabled but reasoning_content is missing in assistant tool call message at "
    "index {}"
)


def calling(body: JSON) -> list[tuple[int, JSON]]:
    """Return the messages with calls, by their index."""
    return [(n, m) for n, m in enumerate(body["messages"]) if m.get("tool_calls")]


def deepseek(body: JSON) -> str | None:
    missing = any(m.get("reasoning_content") is None for _, m in calling(body))
    return DEEPSEEK.format("reasoning_content") if missing else None


def kimi(body: JSON) -> str | None:
    return next(
        (KIMI.format(n) for n, m in calling(body) if m.get("reasoning_content") is None), None
    )


def kimi_not_empty(body: JSON) -> str | None:
    return next((KIMI.format(n) for n, m in calling(body) if not m.get("reasoning_content")), None)


def kimi_with_effort(body: JSON) -> str | None:
    stated = body.get("reasoning_effort") is not None
    found = (n for n, m in calling(body) if not (m.get("reasoning_content") and stated))
    return next(map(KIMI.format, found), None)


def takes_no_reasoning(body: JSON) -> str | None:
    for index, message in enumerate(body["messages"]):
        if message.get("reasoning") is not None:
            return f"'messages.{index}' : property 'reasoning' is unsupported"
    return None


def writes_a_broken_call() -> Rule:
    """Groq's model writes its first call of each turn so that nobody can read it.

    Four of the five: in one the other provider begins.
    """
    seen: set[str] = set()

    def rule(body: JSON) -> str | None:
        sent = json.dumps(body["messages"])
        if body["messages"][-1]["role"] != "user" or sent in seen:
            return None
        seen.add(sent)
        return "Failed to call a function. Please adjust your prompt."

    return rule


def signed_calls(body: JSON) -> str | None:
    """Google's rule: calls since the user's last message are signed, by it or as documented."""
    users = [n for n, m in enumerate(body["messages"]) if m["role"] == "user"]
    for index, message in calling(body):
        google = (message["tool_calls"][0].get("extra_content") or {}).get("google", {})
        if index > users[-1] and not google.get("thought_signature"):
            return (
                "Function call is missing a thought_signature in functionCall parts. This is "
                "required for tools to work correctly."
            )
    return None


def own_details(body: JSON) -> str | None:
    """Return a gateway's rule: what it sent comes back as it was."""
    for _, message in calling(body):
        if not message["tool_calls"][0]["id"].startswith("call_"):
            continue
        said = message.get("reasoning_details")
        if said is not None and said != details("", body)["reasoning_details"]:
            return "Corrupted thought signature."
    return None


def details(_: str, body: JSON) -> dict[str, Any]:
    del body
    entries = [
        {"type": "reasoning.text", "text": "Hm, so.", "signature": "EqRk", "index": 0},
        {"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "index": 1},
    ]
    return {"reasoning": "Hm, so.", "reasoning_details": entries}


def text(name: str) -> Reasoning:
    return lambda step, _: {name: f"I think of {step}."}


def signature(step: str, _: JSON) -> dict[str, Any]:
    return {"extra_content": {"google": {"thought_signature": f"sig-{step}"}}}


def thinking(step: str, body: JSON) -> dict[str, Any]:
    return {"type": "thinking", "thinking": f"On {step}.", "signature": f"{body['model']}:{step}"}


def bound_thinking(body: JSON) -> str | None:
    """Anthropic's rule: a signature is one of this model's."""
    for index, message in enumerate(body["messages"]):
        blocks = message["content"] if isinstance(message["content"], list) else []
        for place, block in enumerate(blocks):
            signed = block.get("signature", f"{body['model']}:")
            if not signed.startswith(f"{body['model']}:"):
                return f"messages.{index}.content.{place}: Invalid `signature` in `thinking` block"
    return None


def thinks_first(body: JSON) -> str | None:
    """Anthropic's rule on thinking with a budget, while calls are being answered."""
    if (body.get("thinking") or {}).get("type") != "enabled" or len(body["messages"]) < 2:
        return None
    reply, last = body["messages"][-2:]
    found = reply["content"][0]["type"]
    if last["content"][0]["type"] != "tool_result" or found == "thinking":
        return None
    return (
        f"messages.{len(body['messages']) - 2}.content.0.type: Expected `thinking` or "
        f"`redacted_thinking`, but found `{found}`."
    )


def thought_of_calls(message: str) -> Rule:
    def rule(body: JSON) -> str | None:
        for index, said in enumerate(body["messages"]):
            kinds = [b["type"] for b in said["content"] if isinstance(said["content"], list)]
            if said["role"] == "assistant" and "tool_use" in kinds and "thinking" not in kinds:
                return message.format(index)
        return None

    return rule


def encrypted(step: str, body: JSON) -> dict[str, Any]:
    content = f"{body['model']}:{step}"
    return {"type": "reasoning", "id": f"rs_{step}", "summary": [], "encrypted_content": content}


def bound_items(body: JSON) -> str | None:
    """OpenAI's rule: an encrypted item is one of this model's."""
    for item in body["input"]:
        own = str(item.get("encrypted_content") or body["model"]).startswith(body["model"])
        if not own:
            return "Encrypted content item_id did not match the target item id."
    return None


def no_phase(body: JSON) -> str | None:
    for index, item in enumerate(body["input"]):
        if "phase" in item:
            return f"Unknown parameter: 'input[{index}].phase'."
    return None


def plain(step: str, _: JSON) -> dict[str, Any]:
    """Reasoning as DeepSeek's Responses and vLLM give it: text, under an id of any form."""
    content = [{"type": "reasoning_text", "text": f"I think of {step}."}]
    return {"type": "reasoning", "id": f"think-{step}", "summary": [], "content": content}


def uninterleaved(body: JSON) -> str | None:
    """DeepSeek's rule: a reply's calls come together, and then their outputs."""
    unanswered_calls: list[str] = []
    answering = False
    for item in body["input"]:
        if item.get("type") == "function_call":
            if answering and unanswered_calls:
                return f"No tool output found for function call {unanswered_calls[0]}."
            answering = False
            unanswered_calls.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            answering = True
            unanswered_calls.remove(item["call_id"])
    return (
        f"No tool output found for function call {unanswered_calls[0]}."
        if unanswered_calls
        else None
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """A service, and how many of its refusals teach what it wants.

    Attributes:
        learned: Refusals that are expected; each is answered by another form of the request.
    """

    type: str
    model: str
    rule: Rule
    reasoning: Reasoning | None = None
    streams: bool = False
    learned: int = 0
    wrap: Callable[[str], object] = vendor_error
    extra: Mapping[str, Any] | None = None
    other: str = "gpt-5.4"
    other_type: str = "openai_chat"


CASES = {
    "deepseek": Case(
        type="openai_chat", model="deepseek-v4-flash", rule=deepseek,
        reasoning=text("reasoning_content"),
    ),
    "deepseek streams": Case(
        type="openai_chat", model="deepseek-v4-pro", rule=deepseek, streams=True,
        reasoning=text("reasoning_content"),
    ),
    "deepseek by another name": Case(
        type="openai_chat", model="ds4", rule=deepseek, learned=1,
        reasoning=text("reasoning_content"),
    ),
    "kimi": Case(
        type="openai_chat", model="kimi-k2.6", rule=kimi, reasoning=text("reasoning_content")
    ),
    "kimi k3": Case(
        type="openai_chat", model="kimi-k3", rule=kimi, reasoning=text("reasoning_content")
    ),
    "kimi that thinks of nothing": Case(type="openai_chat", model="kimi-k2.5", rule=kimi),
    "kimi refuses an empty text": Case(
        type="openai_chat", model="kimi-k2.5", rule=kimi_not_empty, learned=1
    ),
    "kimi wants the effort": Case(
        type="openai_chat", model="kimi-k2.5", rule=kimi_with_effort, learned=2
    ),
    "no reasoning": Case(
        type="openai_chat", model="m", rule=takes_no_reasoning, reasoning=text("reasoning"),
        learned=1,
    ),
    "details": Case(
        type="openai_chat", model="m", rule=own_details, reasoning=details, streams=True
    ),
    "kimi behind a gateway": Case(
        type="openai_chat", model="some-kimi", rule=kimi, learned=1, wrap=openrouter_error
    ),
    "broken calls": Case(
        type="openai_chat", model="llama-4", rule=writes_a_broken_call(), learned=4,
        wrap=groq_error,
    ),
    "signed calls": Case(
        type="openai_chat", model="gemini-3-pro", rule=signed_calls, reasoning=signature,
        learned=1, wrap=google_error,
    ),
    "two models of one gateway": Case(
        type="anthropic", model="claude-sonnet-4-6", rule=bound_thinking, reasoning=thinking,
        other_type="anthropic", other="claude-opus-4-6",
    ),
    "thinking with a budget": Case(
        type="anthropic", model="claude-sonnet-4-6", rule=thinks_first, reasoning=thinking,
        extra={"thinking": {"type": "enabled", "budget_tokens": 1024}},
    ),
    "deepseek's messages": Case(
        type="anthropic", model="deepseek-v4-pro", learned=1, reasoning=thinking,
        rule=thought_of_calls(DEEPSEEK.format("content[].thinking")),
    ),
    "kimi's messages": Case(
        type="anthropic", model="kimi-k2.6", learned=1, rule=thought_of_calls(KIMI)
    ),
    "encrypted items": Case(
        type="openai_responses", model="gpt-5.5", rule=bound_items, reasoning=encrypted,
        other_type="openai_responses", other="gpt-5.6",
    ),
    "no phase": Case(
        type="openai_responses", model="gpt-5.5", rule=no_phase, reasoning=encrypted, learned=1
    ),
    "deepseek's responses": Case(
        type="openai_responses", model="deepseek-v4-pro", rule=uninterleaved, reasoning=plain
    ),
}  # fmt: skip


@dataclass
class Bot:
    """A runner over a service with a rule and another provider."""

    runner: ToolSearchRunner
    service: RawService
    model: str
    other: RawService
    other_model: str
    ran: list[str]

    async def turn(self, tool: str, provider: str) -> list[RunnerEvent]:
        self.runner.use(provider)
        return [event async for event in self.runner.run(f"Please use {tool}")]


def unmarked(messages: Any) -> Any:
    """Messages without cache breakpoints, which move with the end of the conversation."""

    def drop(block: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in block.items() if key != "cache_control"}

    return json.loads(json.dumps(messages), object_hook=drop)


def _config(name: str, kind: str, model: str, service: RawService, extra: Any) -> ProviderConfig:
    base = service.url if kind == "anthropic" else f"{service.url}/v1"
    return ProviderConfig.model_validate(
        {
            "id": name, "type": kind, "model": model, "base_url": base, "api_key_env": None,
            "cooldown_s": 0, "extra_body": extra or {},
        }
    )  # fmt: skip


@pytest.fixture
async def bot(request: pytest.FixtureRequest) -> AsyncIterator[Bot]:
    case: Case = request.param
    ran: list[str] = []

    def tool(name: str) -> Any:
        def run(text: str) -> str:
            ran.append(f"{name}({text})")
            return "done"

        run.__name__ = name
        run.__doc__ = f"Really {name.replace('_', ' ')}, as it was asked for."
        return run

    service = RawService(
        rule=case.rule, reasoning=case.reasoning, streams=case.streams, wrap=case.wrap
    )
    other = RawService(rule=case.rule if case.other_type == case.type else lambda _: None)
    if case.other_type == case.type:
        other.reasoning = case.reasoning
    with ExitStack() as servers:
        servers.enter_context(service.running())
        if case.type == case.other_type and case.type != "openai_chat":
            other = service  # two models at one host
        else:
            other.rule, other.reasoning = lambda _: None, None
            servers.enter_context(other.running())
        async with AsyncExitStack() as stack:
            providers = {
                "service": _config("service", case.type, case.model, service, case.extra),
                "other": _config("other", case.other_type, case.other, other, None),
            }
            made = {
                name: await stack.enter_async_context(
                    build_provider(config, api_key="unused", fallbacks=True)
                )
                for name, config in providers.items()
            }
            runner = ToolSearchRunner(
                providers=made,
                tools=[tool(name) for name in TOOLS],
                config=ToolSearchConfig(tool_schema_mode="tool_search"),
                cooldown_s=0,
            )
            stack.push_async_callback(runner.aclose)
            yield Bot(runner, service, case.model, other, case.other, ran)


@pytest.mark.parametrize(
    ("bot", "learned"), [(c, c.learned) for c in CASES.values()], ids=CASES, indirect=["bot"]
)
async def test_five_turns_with_a_swap_in_the_middle_reach_their_answers(
    bot: Bot, learned: int
) -> None:
    """No refusal reaches the user, and what was learned of a service is not asked again."""
    events = await bot.turn(TOOLS[0], "service")
    events += await bot.turn(TOOLS[1], "service")
    # The other provider searches, and fails before its next reply; then the service does.
    bot.other.failing = bot.other_model
    events += await bot.turn(TOOLS[2], "other")
    bot.other.failing = None
    bot.service.failing = bot.model
    events += await bot.turn(TOOLS[3], "service")
    bot.service.failing = None
    events += await bot.turn(TOOLS[4], "service")
    answers = [event.answer for event in events if isinstance(event, Done)]
    assert [answer.split()[0] for answer in answers] == ["answer"] * 5
    assert [call.partition("(")[0] for call in bot.ran] == list(TOOLS)
    assert len(bot.service.refused) == learned, json.dumps(bot.service.refused)
    if learned == 0 and "messages" in bot.service.bodies[0]:
        bodies = [body for body in bot.service.bodies if body["model"] == bot.model]
        sent = [unmarked(body["messages"]) for body in bodies]
        assert all(after[: len(before)] == before for before, after in pairwise(sent))
    moved = [e for e in events if isinstance(e, RunnerWarning) and e.code == "prefix_moved"]
    assert moved == []
