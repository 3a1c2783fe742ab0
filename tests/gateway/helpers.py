"""A source of tools for tests, and a service over it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tool_search import Tool
from tool_search.core.messages import ToolCall
from tool_search.errors import SourceError
from tool_search.runner.execution.context import ToolContext, ToolExecutor
from tool_search.runner.execution.results import ExecutionEvent, ExecutionResult
from tool_search.serving.gateway import gateway_config
from tool_search.serving.gateway.calls import Progress
from tool_search.serving.gateway.clients import GatewayClient
from tool_search.serving.gateway.service import GatewayService
from tool_search.sources import ServerStatus

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
SERVERS = {
    "github": ("create_issue", "merge_pull_request", "list_commits"),
    "chat": ("send_message", "list_channels"),
    "mail": ("read_inbox", "send_mail"),
}


def tools_of(servers: Mapping[str, Iterable[str]], **more: Any) -> tuple[Tool, ...]:
    """A tool for each name of each server."""
    return tuple(
        Tool(
            name=name,
            server=server,
            kind="mcp",
            description=f"{name.replace('_', ' ').capitalize()} at {server}.",
            parameters=TEXT,
            **more,
        )
        for server, names in servers.items()
        for name in names
    )


class FakeSource:
    """Servers without processes; a call answers with its name and arguments.

    `answers` has the answer, or the failure, of a tool by its own name.
    """

    def __init__(self, tools: Iterable[Tool], answers: Mapping[str, Any] | None = None) -> None:
        self.tools = tuple(tools)
        self.answers = dict(answers or {})
        self.requests: list[tuple[str, str, Any]] = []
        self._callbacks: list[Callable[[Any], object]] = []

    @property
    def status(self) -> tuple[ServerStatus, ...]:
        servers = dict.fromkeys(tool.server or "" for tool in self.tools)
        return tuple(ServerStatus(server=name, state="connected") for name in servers)

    @property
    def executor(self) -> ToolExecutor:
        return _Executor()

    def subscribe(self, callback: Callable[[Any], object]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def replace(self, tools: Iterable[Tool]) -> None:
        self.tools = tuple(tools)
        for callback in tuple(self._callbacks):
            callback(None)

    async def session(self, server: str) -> Any:
        raise SourceError("has no session in tests", server=server)

    async def request(
        self,
        server: str,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        content = dict(params or {})
        self.requests.append((server, method, content))
        if on_progress is not None:
            await on_progress(1, 2, "half")
        answer = self.answers.get(content.get("name", ""))
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return dict(answer)
        text = f"{server} {content['name']} {content['arguments']}"
        return {"content": [{"type": "text", "text": text}]}


class _Executor:
    """Runs tools without a server."""

    async def run(self, call: ToolCall, _: ToolContext) -> AsyncGenerator[ExecutionEvent, None]:
        yield ExecutionResult(content=f"ran {call.name}")


@asynccontextmanager
async def served(
    source: Any, *, servers: Iterable[str] = SERVERS, **settings: Any
) -> AsyncGenerator[GatewayService]:
    """A service over a source; `settings` are those of `tool_search`, or whole sections."""
    sections: dict[str, Any] = {
        key: settings.pop(key) for key in ("middleware", "permissions") if key in settings
    }
    config = gateway_config({
        "mcpServers": {name: {"command": "never"} for name in servers},
        "tool_search": {"maxToolsLimit": 3, **settings},
        **sections,
    })  # fmt: skip
    service = GatewayService(config, source)
    await service.start()
    try:
        yield service
    finally:
        await service.aclose()


def listed(service: GatewayService, client: GatewayClient) -> list[str]:
    """The names of a client's list."""
    return [tool["name"] for tool in service.list_tools(client)]


async def text_of(
    service: GatewayService, client: GatewayClient, tool: str, /, **arguments: Any
) -> str:
    """The text of the answer to a call."""
    answer = await service.call_tool(client, tool, arguments)
    return "\n".join(str(item.get("text")) for item in answer.content["content"])
