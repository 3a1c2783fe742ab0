"""Five turns against services that enforce one rule of a vendor's, with a swap in the middle."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.services.raw import JSON, RawService, Rule
from tests.services.test_reasoning import TOOLS
from tool_search import ExecutableTool, ProviderConfig, Tool, ToolSearchConfig, ToolSearchRunner
from tool_search.adapters import build_provider
from tool_search.core.messages import DeclaredTool, Message, RequestPlan, ToolList
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.events import Done, RunnerEvent, RunnerWarning

MISTRAL = "mistral-large-2512"


def nine_characters(body: JSON) -> str | None:
    for message in body["messages"]:
        ids = [call["id"] for call in message.get("tool_calls") or ()]
        for each in (*ids, *filter(None, [message.get("tool_call_id")])):
            if not re.fullmatch("[a-zA-Z0-9]{9}", each):
                return f"Tool call id was {each} but must be a-z, A-Z, 0-9, with a length of 9."
    return None


def reply_after_results(body: JSON) -> str | None:
    roles = [message["role"] for message in body["messages"]]
    wrong = ("tool", "user") in pairwise(roles)
    return "Unexpected role 'user' after role 'tool'" if wrong else None


def text_or_calls(body: JSON) -> str | None:
    wrong = any(m.get("tool_calls") and m.get("content") for m in body["messages"])
    return (
        "Assistant message must have either content or tool_calls, but not both." if wrong else None
    )


def no_unknown_field(body: JSON) -> str | None:
    if "stream_options" not in body:
        return None
    return (
        "{'detail': [{'type': 'extra_forbidden', 'loc': ['body', 'stream_options', "
        "'include_usage'], 'msg': 'Extra inputs are not permitted', 'input': True}]}"
    )


def choice_is_auto(body: JSON) -> str | None:
    return None if body.get("tool_choice", "auto") == "auto" else "Tool choice must be auto"


def says_why(step: str, _: JSON) -> dict[str, Any]:
    return {"content": f"I need that for {step}."}


class Bot:
    """A bot of services, its primary the one under test."""

    def __init__(self, *services: RawService) -> None:
        self.services = services
        self.ran: list[str] = []
        self.stack = AsyncExitStack()

    async def runner(self, *models: str, **settings: Any) -> ToolSearchRunner:
        """One provider a service, of the model in its place."""
        providers = {}
        for model, service in zip(models, self.services, strict=True):
            config = ProviderConfig(
                id=model, type="openai_chat", model=model, base_url=f"{service.url}/v1",
                api_key_env=None, timeout_s=10,
            )  # fmt: skip
            made = build_provider(config, api_key="k" * 20, fallbacks=True)
            self.stack.push_async_callback(made.aclose)
            providers[model] = made
        return ToolSearchRunner(
            providers=providers,
            tools=[
                *map(self.tool, TOOLS),
                ExecutableTool(tool=ODD, function=self.tool("odd_tool")),
            ],
            config=ToolSearchConfig(tool_schema_mode="tool_search"),
            **settings,
        )

    def tool(self, name: str) -> Callable[..., object]:
        """Return a function of a name that notes its calls."""

        def function(text: str) -> str:
            self.ran.append(name)
            return f"{name} is done"

        function.__name__ = name
        function.__doc__ = name.replace("_", " ")
        return function


async def ask(runner: ToolSearchRunner, text: str) -> list[RunnerEvent]:
    """Return the events of one turn."""
    return [event async for event in runner.run(text)]


def warned(events: list[RunnerEvent]) -> list[str]:
    """Return the codes of the warnings."""
    return [event.code for event in events if isinstance(event, RunnerWarning)]


def flavored(body: JSON) -> str | None:
    """Two of the shapes that Moonshot refuses."""
    for tool in body.get("tools") or ():
        for name, schema in tool["function"]["parameters"].get("properties", {}).items():
            wrong = f"property schema for '{name}' must be an object" if schema is True else None
            if isinstance(schema, dict) and {"type", "anyOf"} <= schema.keys():
                wrong = "when using anyOf, type should be defined in anyOf items instead of the"
            if wrong is not None:
                return (
                    "tools.function.parameters is not a valid moonshot flavored json schema, "
                    f"details: <At path 'properties': {wrong}>"
                )
    return None


ODD = Tool(
    name="odd_tool",
    description="Is always there.",
    always_load=True,
    parameters={
        "type": "object",
        "properties": {"any": True, "id": {"type": "string", "anyOf": [{"minLength": 1}, {}]}},
    },
)
RULES: dict[str, tuple[str, Rule]] = {
    "ids": (MISTRAL, nine_characters),
    "order": (MISTRAL, reply_after_results),
    "text or calls": (MISTRAL, text_or_calls),
    "fields": (MISTRAL, no_unknown_field),
    "tool choice": ("glm-5", choice_is_auto),
    "schemas": ("kimi-k2.6", flavored),
}


@pytest.mark.parametrize("known", [True, False], ids=["known", "learned"])
@pytest.mark.parametrize("rule", RULES)
async def test_five_turns_with_a_swap(rule: str, known: bool) -> None:
    """A model that is known is never refused; of another the service is asked once more."""
    model, enforced = RULES[rule]
    with ExitStack() as stack:
        strict = stack.enter_context(
            RawService(rule=enforced, streams=True, reasoning=says_why).running()
        )
        other = stack.enter_context(RawService().running())
        bot = Bot(strict, other)
        async with bot.stack:
            name = model if known else "house-model"
            steps = 2 if rule == "tool choice" else 20
            runner = await bot.runner(name, "gpt-5.4", max_steps=steps)
            codes = []
            for number, tool in enumerate(TOOLS):
                if number == 2:
                    runner.use("gpt-5.4")
                elif number == 3:
                    runner.use(name)
                    session = runner.session()
                    assert session is not None
                    # Compacted by its host: what was found is shown again before the next message.
                    session.adopt_history(session.history[-1:])
                events = await ask(runner, f"Please {tool}")
                codes += warned(events)
                assert isinstance(events[-1], Done)
                assert events[-1].answer
            assert bot.ran == list(TOOLS)
    # What fields a service knows is known of its vendor's address alone.
    is_learned = not known or rule == "fields"
    assert len(strict.refused) == is_learned
    assert codes == ["form_refused"] * is_learned


async def test_request_with_tools_has_no_stream_where_calls_do_not_come_in_one() -> None:
    cloudflare = "https://api.cloudflare.com/client/v4/accounts/a/ai/v1"
    known = profile_for("openai_chat", "@cf/openai/gpt-oss-120b", base_url=cloudflare)
    assert not known.streams_calls
    service = RawService(streams=True)
    with service.running():
        config = ProviderConfig(
            id="p", type="openai_chat", model="m", api_key_env=None, base_url=f"{service.url}/v1"
        )
        async with build_provider(config, api_key="unused") as provider:
            provider.profile = replace(provider.profile, streams_calls=False)
            for tools in ((), (DeclaredTool(Tool(name="ring_bell", description="Ring.")),)):
                message = Message(role="user", content="Please use ring_bell")
                plan = RequestPlan(strategy="generic", tools=ToolList(tools), messages=(message,))
                assert [event async for event in provider.stream(plan)]
    assert ["stream" in body for body in service.bodies] == [True, False]
