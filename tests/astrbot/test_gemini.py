"""Gemini, and vendors that only speak Anthropic's dialect: filtered lists, whatever the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.astrbot.bot import AstrBot, lists, new_user
from tests.astrbot.loopback import Service, service
from tool_search.testing import StandInServer

CORE = ("future_task", "send_message_to_user", "tool_search")
ASK = "convert a length from metres to feet"


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a reply of Gemini's that calls one function."""
    return replied({"functionCall": {"name": name, "args": arguments}})


def replied(part: dict[str, Any]) -> dict[str, Any]:
    """Return a reply of Gemini's."""
    content = {"role": "model", "parts": [part]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}


def model(body: dict[str, Any]) -> dict[str, Any]:
    """Searches, calls what it found, and answers."""
    results = [
        part["functionResponse"]
        for content in body["contents"]
        for part in content.get("parts", ())
        if "functionResponse" in part
    ]
    if not results:
        asked = "train tickets" if "train" in str(body["contents"][-1]) else "convert length"
        return called("tool_search", {"query": asked})
    if "train" in str(results[0]):
        said = {"text": f"read: {results[-1]['response']}"}
        return replied(said) if len(results) > 1 else called(declared(body)[-1], {})
    if len(results) == 1:
        arguments = {"value": 1, "from_unit": "m", "to_unit": "ft"}
        return called("convert_length", arguments)
    return replied({"text": f"read: {results[-1]['response']}"})


def declared(body: dict[str, Any]) -> tuple[str, ...]:
    """Return the functions that a request declares, in order."""
    (tools,) = body["tools"]
    return tuple(tool["name"] for tool in tools["functionDeclarations"])


@pytest.fixture(scope="module")
def gemini() -> Iterator[Service]:
    """Gemini's own API."""
    with service(model) as served:
        yield served


@pytest.fixture(scope="module")
def bot(start_bot: Callable[..., AstrBot], gemini: Service) -> AstrBot:
    """40 tools; each test asks another of its providers."""
    return start_bot(
        providers=("openai", "gemini", "gemini-openai", "kimi"),
        tools=40,
        settings={"native_claude": "on", "native_openai": "on"},
        gemini=gemini.address,
    )


def test_geminis_own_provider_gets_a_list_that_grows(bot: AstrBot, gemini: Service) -> None:
    bot.set_runner(provider="gemini", fallbacks=[])
    assert "mcp convert_length" in bot.say(ASK, user=new_user())
    first, second, third = (declared(body) for _, body in gemini.asked)
    assert set(first) == set(CORE)
    assert second[: len(first)] == first
    assert "convert_length" in second
    assert third == second


@pytest.mark.parametrize(
    ("provider", "dialect"), [("gemini-openai", "openai_chat"), ("kimi", "anthropic")]
)
def test_compatible_endpoints_get_a_list_that_grows(
    bot: AstrBot, server: StandInServer, provider: str, dialect: str
) -> None:
    bot.set_runner(provider=provider, fallbacks=[])
    assert "mcp convert_length" in bot.say(ASK, user=new_user())
    assert {request.dialect for request in server.requests} == {dialect}
    first, second, third = lists(server.requests)
    assert first == CORE
    assert second[: len(first)] == first
    assert third == second
    assert all(b"defer_loading" not in request.raw_body for request in server.requests)
    assert not server.violations


TRAINS = """
from astrbot.core.agent.tool import FunctionTool
class Trains(FunctionTool):
    async def call(self, context, **arguments):
        return f"ran {self.name}"
tool = Trains(
    name="12306-tickets", description="Books train tickets.",
    parameters={"type": "object", "properties": {}},
)
tool.handler_module_path = "data.plugins.astrbot_plugin_toolbox.main"
bot.lifecycle.provider_manager.llm_tools.func_list.append(tool)
"""


@pytest.mark.parametrize("provider", ["gemini", "openai"])
def test_a_name_that_begins_with_a_digit_is_sent_where_it_may_be(
    bot: AstrBot, server: StandInServer, gemini: Service, provider: str
) -> None:
    """Gemini and Kimi refuse the whole request with it."""
    bot.ask("run", code=TRAINS)
    try:
        answer = bot.say("book train tickets", user=new_user(), provider=provider)
    finally:
        bot.ask("run", code="bot.lifecycle.provider_manager.llm_tools.func_list.pop()")
    assert "ran 12306-tickets" in answer
    if provider == "openai":
        assert server.requests[-1].tool_names[-1] == "12306-tickets"
    else:
        assert declared(gemini.asked[-1][1])[-1].startswith("t_12306-tickets_")
