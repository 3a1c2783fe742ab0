"""The work of the AstrBot plugin, on a stand-in for the parts of AstrBot that it touches.

The real AstrBot needs an environment of its own; its tests are in `tests/astrbot`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from snapshot.conversations import LANGUAGES
from snapshot.files import SnapshotError, write_lines
from snapshot.script import some_tools

from tool_search.adapters.astrbot import AstrBotToolSearch


class FunctionTool:
    """As AstrBot's, with the fields that the plugin reads."""

    def __init__(self, name: str, description: str = "", parameters: Any = None) -> None:
        self.name = name
        self.description = description
        self.parameters = parameters or {"type": "object", "properties": {}}
        self.handler: Any = None
        self.handler_module_path: str | None = None
        self.active = True


class MCPTool(FunctionTool):
    """As AstrBot's."""

    mcp_server_name: str | None = None


class ToolSet:
    """As AstrBot's, which sorts what OpenAI gets."""

    def __init__(self, tools: Iterable[FunctionTool] | None = None) -> None:
        self.tools = list(tools or ())

    def __len__(self) -> int:
        return len(self.tools)

    def openai_schema(self, omit_empty_parameter_field: Any = None) -> list[dict[str, Any]]:
        """Return the list for OpenAI."""
        del omit_empty_parameter_field
        fields = [
            {"name": one.name, "description": one.description, "parameters": one.parameters}
            for one in sorted(self.tools, key=lambda tool: tool.name)
        ]
        return [{"type": "function", "function": one} for one in fields]

    def anthropic_schema(self) -> list[dict[str, Any]]:
        """Return the list for Anthropic."""
        return [
            {"name": one.name, "description": one.description, "input_schema": one.parameters}
            for one in self.tools
        ]

    def google_schema(self) -> dict[str, Any]:
        """Return the list for Google."""
        return {"function_declarations": [one["function"] for one in self.openai_schema()]}


class ProviderAnthropic:
    """As AstrBot's; keeps its requests."""

    base_url = "https://api.anthropic.com"
    model = "claude-sonnet-4-6"
    provider_config: Mapping[str, Any] = {}

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def get_model(self) -> str:
        """Return the model's name."""
        return self.model

    async def text_chat(self, **asked: Any) -> None:
        """Keep a request."""
        asked["func_tool"] = asked["func_tool"].anthropic_schema()
        self.asked.append(asked)

    async def text_chat_stream(self, **asked: Any) -> AsyncIterator[str]:
        """Keep a request that streams."""
        await ProviderAnthropic.text_chat(self, **asked)
        yield "reply"


class ProviderOpenAIResponses(ProviderAnthropic):
    """As AstrBot's; keeps its requests."""

    model = "gpt-5.5"
    client = SimpleNamespace(base_url="https://api.openai.com/v1")

    async def _query(self, payloads: Any, tools: Any) -> None:
        self.asked.append({**payloads, "tools": tools.openai_schema()})

    async def _query_stream(self, payloads: Any, tools: Any) -> AsyncIterator[str]:
        self.asked.append({**payloads, "tools": tools.openai_schema()})
        yield "reply"

    async def _parse_response(self, response: Any, _tools: Any) -> Any:
        return response


class ToolLoopAgentRunner:
    """As AstrBot's."""

    async def reset(self, provider: Any, request: Any, run_context: Any) -> None:
        """Begin with a request."""


class _Preferences:
    async def session_get(self, _umo: str, _key: str, default: Any) -> Any:
        return default

    async def global_get(self, _key: str, default: Any) -> Any:
        return default


class _PluginManager:
    @staticmethod
    async def is_plugin_enabled_for_session(_umo: str, _plugin: str) -> bool:
        return True


@contextmanager
def _astrbot() -> Iterator[None]:
    """Let imports of AstrBot find the classes above."""
    core = "astrbot.core"
    found: Mapping[str, Mapping[str, Any]] = {
        "astrbot": {},
        core: {"sp": _Preferences()},
        f"{core}.agent": {},
        f"{core}.agent.tool": {"FunctionTool": FunctionTool, "ToolSet": ToolSet},
        f"{core}.agent.runners": {},
        f"{core}.agent.runners.tool_loop_agent_runner": {
            "ToolLoopAgentRunner": ToolLoopAgentRunner
        },
        f"{core}.provider": {},
        f"{core}.provider.sources": {},
        f"{core}.provider.sources.anthropic_source": {"ProviderAnthropic": ProviderAnthropic},
        f"{core}.provider.sources.openai_responses_source": {
            "ProviderOpenAIResponses": ProviderOpenAIResponses
        },
        f"{core}.star": {},
        f"{core}.star.session_plugin_manager": {"SessionPluginManager": _PluginManager},
    }
    modules = {}
    for name, contents in found.items():
        modules[name] = ModuleType(name)
        vars(modules[name]).update(contents)
    with patch.dict(sys.modules, modules):
        yield


class _Event(SimpleNamespace):
    unified_msg_origin = "platform:friend:1"

    def set_extra(self, key: str, value: Any) -> None:
        setattr(self, key, value)

    def get_extra(self, key: str) -> Any:
        return getattr(self, key, None)


def _tools() -> list[FunctionTool]:
    """Return the tools as AstrBot has them, with one that no definition can be made of."""
    made: list[FunctionTool] = []
    for item in some_tools():
        tool = item.tool
        if tool.server is None:
            made.append(FunctionTool(tool.name, tool.description, dict(tool.parameters)))
        else:
            listed = MCPTool(tool.name, tool.description, dict(tool.parameters))
            listed.mcp_server_name = tool.server
            made.append(listed)
    return [*made, FunctionTool("files.read/all", "Read a file."), FunctionTool(" bad ")]


def _contexts(found: str) -> list[dict[str, Any]]:
    """Return a history as AstrBot keeps it, with a search, its result, and parts of its own."""
    wanted = {"name": "tool_search", "arguments": '{"query": "weather"}'}
    call = {"id": "call_1", "type": "function", "function": wanted}
    return [
        {"role": "user", "content": "opening", "_no_save": True},
        {"role": "_checkpoint", "content": {"id": "1"}},
        {"role": "user", "content": [{"type": "text", "text": "Weather in Rome?"}]},
        {"role": "assistant", "content": [{"type": "think", "think": "Hm."}], "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": f"{found}\n[NOTICE] slow down"},
        {"role": "assistant", "content": "It is sunny."},
    ]


def write_astrbot(target: Path) -> None:
    """Write requests as the plugin changes them, for its two native providers and for others."""
    with _astrbot():
        for language in LANGUAGES:
            for provider in (None, ProviderAnthropic(), ProviderOpenAIResponses()):
                name = "others" if provider is None else type(provider).__name__
                lines = asyncio.run(_played(language, provider))
                write_lines(target / "bodies" / f"astrbot-{language}-{name}.jsonl", lines)


async def _played(language: str, provider: Any) -> list[Any]:
    """Play a new conversation and a saved one; return the tools and texts that AstrBot got."""
    context = SimpleNamespace(
        get_llm_tool_manager=SimpleNamespace,
        get_using_provider=lambda **_: provider,
        get_config=lambda **_: {},
    )
    settings = {"tool_schema_mode": "tool_search", "language": language}
    plugin = AstrBotToolSearch(context, settings)
    plugin.install()
    try:
        lines, found = await _request(plugin, provider, "1", [])
        more, _ = await _request(plugin, provider, "2", _contexts(found))
    finally:
        await plugin.close()
    return [*lines, *more]


async def _request(
    plugin: AstrBotToolSearch, provider: Any, cid: str, contexts: list[Any]
) -> tuple[list[Any], str]:
    """Prepare a request and search in it; return the tools and texts, and the result."""
    tools = ToolSet(_tools())
    request = SimpleNamespace(
        func_tool=tools,
        contexts=contexts,
        system_prompt="You help.",
        prompt="Weather in Paris?",
        conversation=SimpleNamespace(cid=cid, history=json.dumps(contexts)),
    )
    await plugin.prepare(_Event(), request)
    made = request.func_tool
    if made is tools:
        raise SnapshotError("AstrBot's request keeps its tools: the plugin has failed")
    lines = [{"system": request.system_prompt, "contexts": request.contexts}, *_lists(made)]
    found = await made.get_tool("tool_search").call(None, query="weather forecast")
    lines += [{"found": found}, *_lists(made)]
    refused = await made.get_tool("convert_money").call(None, amount=7)
    lines += [{"refused": refused}, *await _asked(provider, made, _contexts(found))]
    return lines, found


def _lists(tools: Any) -> list[Any]:
    lists = (tools.openai_schema(), tools.anthropic_schema(), tools.google_schema())
    return [[tool.name for tool in tools.tools], *lists]


async def _asked(provider: Any, tools: Any, contexts: list[Any]) -> list[Any]:
    """Ask a provider as AstrBot's loop does; return the requests."""
    if provider is None:
        return []
    provider.asked.clear()
    if isinstance(provider, ProviderOpenAIResponses):
        items = [
            {"role": "user", "content": "Weather in Rome?"},
            {"type": "function_call", "call_id": "call_1", "name": "tool_search",
             "arguments": '{"query": "weather"}'},
            {"type": "function_call_output", "call_id": "call_1",
             "output": contexts[-2]["content"]},
        ]  # fmt: skip
        payloads = {"model": provider.model, "input": items}
        await provider._query(payloads, tools)  # noqa: SLF001  # as AstrBot's loop calls it
        stream = provider._query_stream(payloads, tools)  # noqa: SLF001
    else:
        await provider.text_chat(contexts=contexts, func_tool=tools, prompt="Hello")
        stream = provider.text_chat_stream(contexts=contexts, func_tool=tools, prompt="Hello")
    async for _ in stream:
        pass
    return list(provider.asked)
