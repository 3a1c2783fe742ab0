"""Calls of tools at their servers: rules and middleware before, and the answer as it came."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.messages import ImagePart, ToolCall
from tool_search.core.values.aside import closing
from tool_search.core.values.clean_text import clean_line
from tool_search.core.values.json import compact_json
from tool_search.core.values.redaction import redacted_text
from tool_search.errors import SourceError, ToolSearchError
from tool_search.i18n import Language, text
from tool_search.runner.events import ToolFinished
from tool_search.runner.execution import CallOptions, CallRunner, Permissions, ToolExecutor
from tool_search.runner.execution.context import ToolContext
from tool_search.runner.execution.hooks import CallLimits, HookAnswer, HookedCall, ToolHook
from tool_search.runner.execution.results import (
    CallProgress,
    ExecutionEvent,
    ExecutionResult,
    as_text,
    failure_result,
)
from tool_search.serving.gateway.config import GatewayConfig
from tool_search.serving.gateway.middleware import CallLogging, SecurityMiddleware
from tool_search.serving.gateway.offer import Offer
from tool_search.sources.results import is_long_answer

__all__ = ["CallAnswer", "GatewayCalls", "Progress", "RefusedRequestError", "Requests"]

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
_MAX_TEXT_CHARS = 1_000_000
_MAX_DATA_CHARS = 30_000_000
_MAX_ITEMS = 1_000
_MAX_LOG_CHARS = 500
# Facts of one hop; the gateway writes its own.
_OWN_META = "io.modelcontextprotocol/"
_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_log = logging.getLogger(__name__)


class RefusedRequestError(ToolSearchError):
    """A request of a client that the gateway refuses.

    Attributes:
        kind: `invalid` for wrong parameters, `unknown` for what does not exist, `failed` for
            a server that could not be reached or refused.
        code: The JSON-RPC code of the server that refused; None: none did.
    """

    def __init__(
        self,
        problem: str,
        *,
        kind: Literal["invalid", "unknown", "failed"],
        code: int | None = None,
    ) -> None:
        super().__init__(problem)
        self.kind = kind
        self.code = code


@runtime_checkable
class Requests(Protocol):
    """A source that sends requests to its servers, such as `MCPSource`."""

    async def request(
        self,
        server: str,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        on_progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Return the result of a request, as JSON."""
        ...


@dataclass(slots=True, kw_only=True)
class CallAnswer:
    """The answer to a call.

    Attributes:
        content: The result of `tools/call`, as JSON.
        error: The failure of the server, if there was no result.
    """

    content: dict[str, Any]
    error: Exception | None = None

    @property
    def is_error(self) -> bool:
        """True if the tool failed, or did not run."""
        return self.content.get("isError") is True

    @property
    def needs_input(self) -> bool:
        """True if the server asks for input, and the call goes on after it."""
        return "inputRequests" in self.content


@dataclass(slots=True)
class _OpenCall:
    on_progress: Progress | None
    more: Mapping[str, Any]
    answer: dict[str, Any] | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class _Steps:
    logs: tuple[CallLogging, ...] = ()
    security: tuple[SecurityMiddleware, ...] = ()


class GatewayCalls:
    """Runs calls for clients.

    Args:
        source: The source of the tools.
        config: The settings: permissions, and the middleware of each server.
    """

    def __init__(self, source: Any, config: GatewayConfig) -> None:
        servers = config.mcp_servers
        self._steps = {name: _steps(config, name) for name in servers}
        self._others = _steps(config, "")
        self._executor = _PassingExecutor(source)
        self.permissions = Permissions(config.permissions)
        has_security = any(each.security for each in (*self._steps.values(), self._others))
        hooks = (ToolHook(before=self._check_security),) if has_security else ()
        # A server's own `timeout` ends its calls.
        limits = CallLimits(longest_result=_MAX_TEXT_CHARS)
        self.options = CallOptions(permissions=self.permissions, hooks=hooks, limits=limits)
        self._runner = CallRunner(
            catalog=ToolCatalog(), executor=self._executor, options=self.options
        )
        self._numbers = itertools.count(1)

    def permitted(self, catalog: ToolCatalog) -> ToolCatalog:
        """Return a catalog without the tools that no client may call."""
        if self.permissions.allows_everything(None):
            return catalog
        context = ToolContext(conversation="", language="en-US")
        kept = [
            tool for tool in catalog.active if self.permissions.denial_reason(tool, context) is None
        ]
        return ToolCatalog(kept, names=catalog.book) if len(kept) < len(catalog) else catalog

    def use(self, offer: Offer) -> None:
        """Run the tools of an offer from the next call on."""
        self._executor.use(offer)
        self._runner.replace(offer.whole, self._executor)

    async def run(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        conversation: str,
        language: Language,
        user: str | None = None,
        on_progress: Progress | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> CallAnswer:
        """Run one call.

        Args:
            name: The canonical name of the tool.
            arguments: The arguments, as the client sent them.
            conversation: The client's session.
            language: The language of texts that are not the server's.
            user: The client, if it is known.
            on_progress: Gets the progress, the total and a message.
            more: Further parameters of the request, such as `inputResponses`.
        """
        number = f"gw-{next(self._numbers)}"
        call = ToolCall(id=number, name=name, arguments=compact_json(dict(arguments)))
        context = self._runner.context(conversation, language, user=user)
        open_call = _OpenCall(on_progress, more or {})
        with self._executor.opened(number, open_call):
            began = time.perf_counter()
            (finished,) = await self._runner.results([call], context)
            seconds = time.perf_counter() - began
        if open_call.answer is not None and is_long_answer(open_call.answer):
            # Off the event loop, which the JSON of megabytes would hold.
            answer = await asyncio.to_thread(_answer, open_call, finished, language)
        else:
            answer = _answer(open_call, finished, language)
        self._record(name, number, seconds, answer)
        return answer

    def _record(self, name: str, number: str, seconds: float, answer: CallAnswer) -> None:
        tool = self._runner.catalog.get(name)
        server, listed = tool.source if tool is not None else (None, name)
        for step in self._steps.get(server or "", self._others).logs:
            outcome = "failed" if answer.is_error else "ok"
            _log.log(
                _LEVELS[step.level],
                "mcp_call: id=%s server=%r tool=%r outcome=%s seconds=%.4f",
                number, server, listed, outcome, seconds,
                extra={"call_id": number, "server": server, "tool": listed,
                       "outcome": outcome, "seconds": seconds},
            )  # fmt: skip

    async def _check_security(self, call: HookedCall) -> HookAnswer | None:
        server, listed = call.tool.source
        for step in self._steps.get(server or "", self._others).security:
            # A pattern may take a while over megabytes of arguments.
            rule = await asyncio.to_thread(step.blocking, listed, call.arguments)
            if rule is not None:
                if step.log_blocked:
                    _log.warning(
                        "mcp_blocked: rule %r blocks a call of %r of server %r",
                        rule.name, listed, server,
                    )  # fmt: skip
                return HookAnswer(block=rule.block_message)
        return None


def _steps(config: GatewayConfig, server: str) -> _Steps:
    steps = config.middleware.of_server(server)
    return _Steps(
        tuple(step for step in steps if isinstance(step, CallLogging)),
        tuple(step for step in steps if isinstance(step, SecurityMiddleware)),
    )


@dataclass(slots=True)
class _Opened:
    calls: dict[str, _OpenCall]
    number: str

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        del self.calls[self.number]


class _PassingExecutor:
    """Sends calls to the servers, and keeps the answers as they came.

    Args:
        source: The source of the tools.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self._requests: Requests | None = source if isinstance(source, Requests) else None
        self._offer: Offer | None = None
        self._open: dict[str, _OpenCall] = {}

    def use(self, offer: Offer) -> None:
        self._offer = offer

    def opened(self, number: str, call: _OpenCall) -> _Opened:
        self._open[number] = call
        return _Opened(self._open, number)

    async def run(
        self, call: ToolCall, context: ToolContext
    ) -> AsyncGenerator[ExecutionEvent, None]:
        """Run one call; yield its events, the result last."""
        tool = self._offer.listed.get(call.name) if self._offer is not None else None
        if tool is None:
            yield failure_result("failed", "call.tool_gone", context.language, name=call.name)
            return
        server, listed = tool.source
        open_call = self._open[call.id]
        if self._requests is not None and server is not None:
            params = {
                "name": listed,
                "arguments": call.parsed_arguments() or {},
                **open_call.more,
            }
            yield await self._ask(self._requests, server, params, open_call, context)
            return
        inner = ToolCall(id=call.id, name=tool.name, arguments=call.arguments)
        executor: ToolExecutor = self._source.executor
        steps = itertools.count(1)
        async with closing(executor.run(inner, context)) as events:
            async for event in events:
                if isinstance(event, CallProgress) and open_call.on_progress is not None:
                    await open_call.on_progress(next(steps), None, event.message)
                yield event

    async def _ask(
        self,
        source: Requests,
        server: str,
        params: Mapping[str, Any],
        open_call: _OpenCall,
        context: ToolContext,
    ) -> ExecutionResult:
        try:
            answer = await source.request(
                server, "tools/call", params, on_progress=open_call.on_progress
            )
        except SourceError as exc:
            open_call.error = exc
        except TimeoutError:
            open_call.error = TimeoutError(f"server {server!r} did not answer the call in time")
        if open_call.error is not None:
            problem = clean_line(redacted_text(str(open_call.error)), _MAX_LOG_CHARS)
            _log.warning("mcp_call_failed: tool %r: %s", params["name"], problem)
            return failure_result("failed", "call.no_result", context.language, name="")
        open_call.answer = answer
        # The answer itself is passed on: this says only how the call ended.
        return ExecutionResult(content="", is_error=answer.get("isError") is True)


def _answer(call: _OpenCall, finished: ToolFinished, language: Language) -> CallAnswer:
    if call.error is not None:
        problem = redacted_text(str(call.error))[:_MAX_LOG_CHARS]
        return CallAnswer(content=error_content(problem), error=call.error)
    if call.answer is not None:
        return CallAnswer(content=_within_limits(call.answer, language))
    return CallAnswer(content=_content(finished))


def error_content(message: str) -> dict[str, Any]:
    """Return the result of a call that failed, with a message."""
    return {"content": [{"type": "text", "text": message}], "isError": True}


def _content(finished: ToolFinished) -> dict[str, Any]:
    """Return a result of a source's executor in the form of the protocol."""
    items = [{"type": "text", "text": finished.content}]
    for part in finished.parts:
        if isinstance(part, ImagePart):
            head, _, data = part.url.partition(";base64,")
            if data:
                kind = head.removeprefix("data:")
                items.append({"type": "image", "data": data, "mimeType": kind})
            else:
                items.append({"type": "text", "text": part.url})
    return {"content": items, "isError": finished.is_error}


def _within_limits(answer: Mapping[str, Any], language: Language) -> dict[str, Any]:
    """Return a server's answer without what is too long, or not as the protocol says."""
    room = _Room(language)
    found: dict[str, Any] = {}
    for key in ("inputRequests", "requestState", "resultType"):
        if key in answer:
            found[key] = answer[key]
    if "inputRequests" not in answer:
        items = answer.get("content")
        listed = items[:_MAX_ITEMS] if isinstance(items, list) else []
        found["content"] = [room.fit(item) for item in listed]
        found["isError"] = answer.get("isError") is True
    structured = answer.get("structuredContent")
    if structured is not None:
        if len(compact_json(structured)) > _MAX_TEXT_CHARS:
            return error_content(room.left_out("structuredContent", len(compact_json(structured))))
        found["structuredContent"] = structured
    meta = answer.get("_meta")
    if isinstance(meta, Mapping):
        kept = {key: meta[key] for key in meta if not str(key).startswith(_OWN_META)}
        if kept and len(compact_json(kept)) <= _MAX_TEXT_CHARS:
            found["_meta"] = kept
    return found


@dataclass(slots=True)
class _Room:
    """The room that is left in a result."""

    language: Language
    text: int = _MAX_TEXT_CHARS
    data: int = _MAX_DATA_CHARS
    _kinds: Mapping[str, str] = field(
        default_factory=lambda: {"text": "text", "image": "data", "audio": "data"}
    )

    def fit(self, item: object) -> dict[str, Any]:
        """Return an item, cut or replaced if there is no room for it."""
        if not isinstance(item, Mapping) or not isinstance(item.get("type"), str):
            return self._cut_text({"type": "text", "text": as_text(item)})
        found = dict(item)
        key = self._kinds.get(found["type"])
        if key == "text":
            return self._cut_text(found)
        size = len(compact_json(found))
        if key is None and size <= self.text:
            self.text -= size
            return found
        if size <= self.data:
            self.data -= size
            return found
        return {"type": "text", "text": self.left_out(found["type"], size)}

    def _cut_text(self, item: dict[str, Any]) -> dict[str, Any]:
        written = as_text(item.get("text"))
        if len(written) > self.text:
            item["text"] = f"{written[: self.text]}…"
        self.text -= min(len(written), self.text)
        return item

    def left_out(self, kind: str, size: int) -> str:
        return text("call.left_out", self.language, kind=kind, size=f"{size:,}")
