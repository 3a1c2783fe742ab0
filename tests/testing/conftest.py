"""A running stand-in server, and the real SDK clients that talk to it.

pytest reads this file before it starts its workers, as it does in each folder named `test…`:
what takes seconds to import is imported by the fixtures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import anthropic
    import openai

    from tool_search.testing import StandInServer

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = {"role": "user", "content": "What is the weather in Paris?"}


@pytest.fixture(scope="session")
def running() -> Iterator[StandInServer]:
    """Yield one server for all tests of the folder."""
    from tool_search.testing import StandInServer  # noqa: PLC0415

    with StandInServer() as server:
        yield server


@pytest.fixture
def server(running: StandInServer) -> StandInServer:
    """Return the server without a trace of the test before."""
    running.reset()
    return running


@pytest.fixture
async def claude(server: StandInServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    """Yield a real client that does not repeat failed requests."""
    import anthropic  # noqa: PLC0415

    # Loading the certificates for a plain-text connection would take most of a test's time.
    http_client = anthropic.DefaultAsyncHttpxClient(verify=False)
    async with anthropic.AsyncAnthropic(
        api_key="a-key",
        base_url=server.anthropic_base_url,
        max_retries=0,
        http_client=http_client,
    ) as client:
        yield client


@pytest.fixture
async def gpt(server: StandInServer) -> AsyncIterator[openai.AsyncOpenAI]:
    """Yield a real client that does not repeat failed requests."""
    import openai  # noqa: PLC0415

    http_client = openai.DefaultAsyncHttpxClient(verify=False)
    async with openai.AsyncOpenAI(
        api_key="a-key",
        base_url=server.openai_base_url,
        max_retries=0,
        http_client=http_client,
    ) as client:
        yield client


@pytest.fixture
def claude_body() -> dict[str, Any]:
    """Return a valid request to Claude."""
    tool = {"name": "get_weather", "description": "The weather.", "input_schema": SCHEMA}
    return {
        "model": "claude-sonnet-4-6",
        "max_tokens": 100,
        "messages": [QUESTION],
        "tools": [tool],
    }


@pytest.fixture
def gpt_body() -> dict[str, Any]:
    """Return a valid request to OpenAI."""
    function = {"name": "get_weather", "description": "The weather.", "parameters": SCHEMA}
    tool = {"type": "function", "function": function}
    return {"model": "gpt-5.4", "messages": [QUESTION], "tools": [tool]}


@pytest.fixture
def conversation() -> dict[str, Any]:
    """Return a conversation with everything: deferred tools, references, a server search."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    return {
        "model": "claude-sonnet-4-6",
        "max_tokens": 1024,
        "system": [{"type": "text", "text": "Be brief."}],
        "tool_choice": {"type": "auto"},
        "tools": [
            {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
            {"name": "tool_search", "input_schema": {"type": "object", "properties": {}}},
            {"name": "get_weather", "input_schema": schema, "defer_loading": True},
            {"name": "get_time", "input_schema": schema, "defer_loading": True},
        ],
        "messages": [
            {"role": "user", "content": "Weather in Paris?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Searching."},
                    {"type": "tool_use", "id": "toolu_1", "name": "tool_search", "input": {}},
                    {"type": "tool_use", "id": "toolu_2", "name": "tool_search", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": [{"type": "tool_reference", "tool_name": "get_weather"}],
                    },
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": "none"},
                    {"type": "text", "text": "Tool loaded."},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "server_tool_use",
                        "id": "srvtoolu_01abc",
                        "name": "tool_search_tool_bm25",
                        "input": {"query": "time"},
                    },
                    {
                        "type": "tool_search_tool_result",
                        "tool_use_id": "srvtoolu_01abc",
                        "content": {
                            "type": "tool_search_tool_search_result",
                            "tool_references": [
                                {"type": "tool_reference", "tool_name": "get_time"}
                            ],
                        },
                    },
                    {"type": "text", "text": "It is sunny."},
                ],
            },
            {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
        ],
    }
