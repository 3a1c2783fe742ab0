"""Tool search behind a base URL: requests of clients, answered with a provider's replies."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing

import httpx2

from tool_search.adapters.hosts.chain import ExchangeChain
from tool_search.adapters.sdk.connection import read_body
from tool_search.adapters.sdk.failures import ReplyFailedError
from tool_search.adapters.wire.incoming import TooLargeError
from tool_search.config.limits import LimitSettings
from tool_search.core.values.json import json_bytes
from tool_search.core.values.redaction import log_failure
from tool_search.errors import ToolSearchError
from tool_search.serving.proxy.addresses import with_version
from tool_search.serving.proxy.clients import client_of
from tool_search.serving.proxy.dialects.anthropic import AnthropicMessages
from tool_search.serving.proxy.dialects.base import JSON, ReplyStream, SentEvent, WireDialect
from tool_search.serving.proxy.dialects.client_search import ClientSearch
from tool_search.serving.proxy.dialects.openai_chat import OpenAIChat
from tool_search.serving.proxy.dialects.openai_responses import OpenAIResponses
from tool_search.serving.proxy.history import (
    conversation_id,
    keep_exchange,
    kept_reply,
)
from tool_search.serving.proxy.preparation import Preparation
from tool_search.serving.proxy.report import CLIENT_LEFT, Report
from tool_search.serving.proxy.requests import (
    ClientRequest,
    owner_of,
    read_object,
    uncompressed,
)
from tool_search.serving.proxy.settings import ProxyConfig
from tool_search.serving.proxy.state import SQLiteExchanges, open_evidence, open_state
from tool_search.serving.proxy.stored import KeptThings, Owners, asked_in, warn_of_lost_result
from tool_search.serving.proxy.turn import Turn
from tool_search.serving.proxy.upstreams import ProxyReply, Upstreams, plain_headers, sent_events
from tool_search.stores.sqlite.store import SQLiteStore

__all__ = ["DIALECTS", "ProxyService"]

DIALECTS: tuple[WireDialect, ...] = (AnthropicMessages(), OpenAIChat(), OpenAIResponses())
"""The formats that clients may speak."""

_COUNT_TOKENS = "/v1/messages/count_tokens"
_PLAIN = {"accept-encoding": "identity"}
_JSON_HEADERS = httpx2.Headers({"content-type": "application/json"})
_log = logging.getLogger(__name__)


class _BrokenOffError(Exception):
    """A failure of the provider after the client's stream has begun.

    Attributes:
        status: The provider's status.
        body: The provider's error.
    """

    def __init__(self, status: int, body: JSON | None) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.body = body


class ProxyService:
    """The requests of clients, with tool search, and everything else passed on.

    Args:
        config: The settings.
        begin: Takes a report of each request that begins.
        observe: Takes it again when the request ends.
    """

    def __init__(
        self,
        config: ProxyConfig,
        *,
        begin: Callable[[Report], None] = lambda _report: None,
        observe: Callable[[Report], None] = lambda _report: None,
    ) -> None:
        self.config = config
        self.upstreams = Upstreams(config.upstreams, config.limits)
        self._begin = begin
        self._observe = observe
        store, self._secret = open_state(config.state)
        self._store = store
        self._evidence = open_evidence(config.state)
        self._exchanges = ExchangeChain(store)
        self.kept = KeptThings(
            self.upstreams,
            self._exchanges,
            Owners(store, shared=config.shared_account),
            self._secret,
        )
        self._preparation = Preparation(config, self._exchanges, self._evidence)

    def dialect_of(self, path: str) -> WireDialect | None:
        """Return the format of a path; None for a path that is passed on."""
        if path == _COUNT_TOKENS:
            return DIALECTS[0]
        whole = with_version(path)
        return next((each for each in DIALECTS if each.path == whole), None)

    async def answer(
        self, path: str, raw: bytes, headers: httpx2.Headers, query: str = "", client: str = ""
    ) -> ProxyReply:
        """Answer a client's request in one of the formats.

        Args:
            path: The path.
            raw: The body.
            headers: The headers.
            query: The query, without the question mark.
            client: The name of the client by its token; empty: there are no tokens.
        """
        dialect = self.dialect_of(path)
        if dialect is None:
            raise ToolSearchError(f"{path!r} is not the path of a format; pass it on")
        compressed = None
        encoding = headers.get("content-encoding", "")
        plain = await uncompressed(raw, encoding, self.config.listen.max_body_bytes)
        if plain is not None:
            compressed, raw, headers = (raw, headers), plain, headers.copy()
            del headers["content-encoding"]
        body = await read_object(raw) or {}
        model = str(body.get("model") or "")
        upstream = self.upstreams.choose(dialect.name, model)
        if upstream is None:
            message = f"no upstream speaks {dialect.name} and has the model {model!r}"
            return _refuse(dialect, 404, message)
        owner = self.kept.owner_on(upstream, client)
        if upstream.api_key_env is not None:
            refused = await self.kept.refusal(upstream, owner, path, await asked_in(raw), model)
            if refused is not None:
                return _refuse(dialect, *refused)
        rule = client_of(headers, self.config.clients)
        report = Report(
            dialect=dialect.name,
            model=model,
            upstream=upstream.id,
            client=rule.name,
            path=path,
            raw=raw,
        )
        report.request = asked = ClientRequest(
            dialect=dialect,
            path=path,
            raw=raw,
            headers=headers,
            query=query,
            upstream=upstream,
            rule=rule,
            owner=owner_of(headers, self._secret),
            report=report,
            body=body,
            client=client,
            compressed=compressed,
        )
        if not owner or not dialect.is_kept(body):
            return await self._answer_and_report(asked)
        asked.headers = headers | _PLAIN
        return self.kept.learned(await self._answer_and_report(asked), owner)

    async def _answer_and_report(self, asked: ClientRequest) -> ProxyReply:
        """Answer a request, whose report begins and ends whatever happens."""
        self._begin(asked.report)
        try:
            return await self._answer(asked)
        except (httpx2.HTTPError, ReplyFailedError, TooLargeError) as exc:
            return self._unreachable(asked, exc)
        except asyncio.CancelledError:
            self._end(asked, CLIENT_LEFT)
            raise
        except Exception:
            # Its report has to end too: the inspector shows it as under way until then.
            self._end(asked, 500)
            raise

    async def _answer(self, asked: ClientRequest) -> ProxyReply:
        try:
            turn = await self._preparation.turn(asked)
        except Exception:  # noqa: BLE001  # whatever fails here, the client still gets its reply
            path = asked.path
            log_failure(_log, "the request goes on as it came: preparing it for %s failed", path)
            asked.report.passed, turn = "failed", None
        if turn is None and asked.found_by_client.client_search is not None:
            return await self._translate(asked, asked.found_by_client.client_search)
        if turn is None:
            return await self._pass_on(asked)
        if asked.path == _COUNT_TOKENS:
            return await self._pass_on(asked, turn.request())
        if asked.body.get("stream"):
            return await self._stream(asked, turn)
        return await self._whole(asked, turn)

    async def _pass_on(self, asked: ClientRequest, content: bytes | None = None) -> ProxyReply:
        """Send a request on, and its reply back, in bytes."""
        headers = asked.headers
        asked.report.sent.append(asked.raw if content is None else content)
        if content is None:
            content, headers = asked.compressed or (asked.raw, headers)
        began = time.monotonic()

        def ended(status: int) -> None:
            asked.report.provider_s += time.monotonic() - began
            self._end(asked, status)

        reply = await self.upstreams.forward(
            asked.upstream,
            "POST",
            asked.path,
            headers=headers,
            content=content,
            query=asked.query,
            ended=ended,
        )
        name = conversation_id(asked.body)
        if name and asked.kept is not None and reply.status < 400:
            await keep_exchange(self._exchanges, asked.owner, [kept_reply(name)], asked.kept)
        return reply

    async def _whole(
        self, asked: ClientRequest, turn: Turn, first: tuple[httpx2.Response, bytes] | None = None
    ) -> ProxyReply:
        """Answer a request with one whole reply.

        Args:
            asked: The request.
            turn: Its turn.
            first: The provider's first reply and its body, if it has come already.
        """
        while True:
            (response, raw), first = first or await self._answered_whole(asked, turn), None
            reply = await self._read_reply(response, raw)
            if reply is None:
                settled = await self._settle(asked, turn, response, raw)
                if settled is not None:
                    return settled
                continue
            if await asyncio.to_thread(turn.take, reply) is not None:
                break
            await turn.keep_unanswered(self._exchanges)
        await turn.keep(self._exchanges)
        merged = await asyncio.to_thread(lambda: json_bytes(turn.merged()))
        headers = self._reply_headers(asked, response)
        self._end(asked, response.status_code)
        return ProxyReply(response.status_code, headers, merged)

    async def _read_reply(self, response: httpx2.Response, raw: bytes) -> JSON | None:
        """Return the object in a reply; None for an error, or what is none."""
        return await read_object(raw, self.config.limits) if response.status_code < 400 else None

    async def _answered_whole(
        self, asked: ClientRequest, turn: Turn
    ) -> tuple[httpx2.Response, bytes]:
        """Send the next request of a turn, and return its reply and the whole body."""
        content = await asyncio.to_thread(turn.request)
        async with asked.report.waits(), self._send(asked, content) as response:
            return response, await read_body(response)

    def _send(
        self, asked: ClientRequest, content: bytes
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        asked.report.sent.append(content)
        return self.upstreams.send(
            asked.upstream,
            "POST",
            asked.path,
            headers=asked.headers | _PLAIN,
            content=content,
            query=asked.query,
        )

    def _as_it_came(
        self, asked: ClientRequest, response: httpx2.Response, raw: bytes
    ) -> ProxyReply:
        """Return the provider's own error, with its status and `retry-after`."""
        headers = plain_headers(response)
        warn_of_lost_result(asked.upstream.id, asked.body, raw)
        asked.report.reply = raw
        self._end(asked, response.status_code)
        return ProxyReply(response.status_code, headers, raw)

    async def _stream(self, asked: ClientRequest, turn: Turn) -> ProxyReply:
        """Answer a request with a stream, as soon as the provider's first reply begins."""
        content = await asyncio.to_thread(turn.request)
        stack = AsyncExitStack()
        async with asked.report.waits():
            response = await stack.enter_async_context(self._send(asked, content))
        kind = response.headers.get("content-type", "")
        if response.status_code >= 400 or "event-stream" not in kind:
            # An error, a page, or a provider that cannot stream.
            async with stack, asked.report.waits():
                raw = await read_body(response)
            if response.status_code >= 400:
                settled = await self._settle(asked, turn, response, raw)
                return settled or await self._stream(asked, turn)
            return await self._whole(asked, turn, (response, raw))
        stream = turn.dialect.stream(turn.holds, turn.body)
        visible = self._visible(asked, turn, stream, stack, response)
        events = self._events(asked, stream, visible)
        return ProxyReply(response.status_code, self._reply_headers(asked, response), events)

    async def _settle(
        self, asked: ClientRequest, turn: Turn, response: httpx2.Response, raw: bytes
    ) -> ProxyReply | None:
        """Return the reply to a refused request; None: the turn has another form of it."""
        if response.status_code < 400 or not await asyncio.to_thread(
            turn.change_form, response.status_code, raw
        ):
            return self._as_it_came(asked, response, raw)
        _log.warning("upstream %s: a request is sent again in another form", asked.upstream.id)
        if turn.profile.takes_tools:
            return None
        asked.report.turn, asked.report.passed = None, "refused"
        warn_of_lost_result(asked.upstream.id, asked.body, raw)
        reply = await self._pass_on(asked)
        if reply.status < 400:
            turn.accept()
        return reply

    async def _translate(self, asked: ClientRequest, search: ClientSearch) -> ProxyReply:
        """Answer a client that searches by itself with the reply of a provider that cannot."""
        original = await read_object(asked.report.raw) or {}
        stack = AsyncExitStack()
        async with asked.report.waits():
            response = await stack.enter_async_context(self._send(asked, asked.raw))
        headers = plain_headers(response)
        if response.status_code < 400 and "event-stream" in headers.get("content-type", ""):
            stream = asked.dialect.stream(lambda _name, _namespace: False, original)
            whole = _whole_reply(response, stream, self.config.limits)
            visible = _search(asked, search, stream, stack, whole)
            content = self._events(asked, stream, visible)
            return ProxyReply(response.status_code, headers, content)
        async with stack:
            raw = await read_body(response)
        reply = await self._read_reply(response, raw)
        if reply is None:
            return self._as_it_came(asked, response, raw)
        shown = await asyncio.to_thread(
            lambda: json_bytes(asked.dialect.echoed(search.reply(reply), original))
        )
        self._end(asked, response.status_code)
        return ProxyReply(response.status_code, headers, shown)

    async def _events(
        self, asked: ClientRequest, stream: ReplyStream, visible: AsyncGenerator[SentEvent]
    ) -> AsyncIterator[bytes]:
        """Yield the client's stream; a failure ends it in the form of the dialect."""
        status, body, problem = 0, None, ""
        try:
            async with aclosing(visible) as events:
                async for event in events:
                    written = event.encoded
                    content = await asyncio.to_thread(written) if event.is_large else written()
                    began = time.monotonic()
                    yield content
                    asked.report.client_s += time.monotonic() - began
            yield stream.end_mark()
        except (GeneratorExit, asyncio.CancelledError):
            status = CLIENT_LEFT
            raise
        except _BrokenOffError as exc:
            status, body, problem = exc.status, exc.body, _problem(exc)
        except (httpx2.HTTPError, ReplyFailedError, TooLargeError) as exc:
            status, problem = 502, _problem(exc)
        except Exception:  # noqa: BLE001  # the client gets an end, whatever fails here
            log_failure(_log, "a stream of %s ended early", asked.upstream.id)
            status, problem = 500, "the proxy failed"
        finally:
            self._end(asked, status or 200)
        if status:
            _log.warning("upstream %s: %s in a stream", asked.upstream.id, problem)
            for event in stream.error(status, body, problem):
                yield event.encoded()

    async def _visible(
        self,
        asked: ClientRequest,
        turn: Turn,
        stream: ReplyStream,
        stack: AsyncExitStack,
        response: httpx2.Response,
    ) -> AsyncGenerator[SentEvent]:
        """Yield the client's events, from the provider's replies one after the other."""
        while True:
            async with stack:
                whole = _whole_reply(response, stream, self.config.limits)
                async for event in asked.report.received(whole):
                    for visible in await _read_event(stream, event):
                        yield visible
            if stream.failed:
                return
            released = await asyncio.to_thread(turn.take, stream.reply())
            if released is not None:
                break
            await turn.keep_unanswered(self._exchanges)
            stream.begin_step()
            stack, response = await self._next_step(asked, turn)
        # Kept before the end is sent: the client's next request may come at once.
        await turn.keep(self._exchanges)
        for call_id, call in released:
            for visible in stream.release(call_id, call):
                yield visible
        for visible in stream.finish():
            yield visible

    async def _next_step(
        self, asked: ClientRequest, turn: Turn
    ) -> tuple[AsyncExitStack, httpx2.Response]:
        """Send the next request of a turn, and return its reply as it begins."""
        content = await asyncio.to_thread(turn.request)
        stack = AsyncExitStack()
        async with asked.report.waits():
            response = await stack.enter_async_context(self._send(asked, content))
        if response.status_code >= 400:
            async with stack:
                raise _BrokenOffError(
                    response.status_code, await read_object(await read_body(response))
                )
        return stack, response

    def _reply_headers(self, asked: ClientRequest, response: httpx2.Response) -> httpx2.Headers:
        return plain_headers(response) | {"x-tool-search": asked.report.header()}

    def _unreachable(self, asked: ClientRequest, exc: Exception) -> ProxyReply:
        status = 504 if isinstance(exc, httpx2.TimeoutException) else 502
        self._end(asked, status)
        _log.warning("upstream %s: %s", asked.upstream.id, type(exc).__name__)
        return _refuse(asked.dialect, status, _problem(exc))

    def _end(self, asked: ClientRequest, status: int) -> None:
        asked.report.end(status)
        self._observe(asked.report)

    async def close(self) -> None:
        """Close connections and files."""
        await self.upstreams.close()
        if isinstance(self._store, SQLiteExchanges):
            self._store.close()
        if isinstance(self._evidence, SQLiteStore):
            await self._evidence.aclose()


async def _search(
    asked: ClientRequest,
    search: ClientSearch,
    stream: ReplyStream,
    stack: AsyncExitStack,
    whole: AsyncIterator[SentEvent],
) -> AsyncGenerator[SentEvent]:
    """Yield the events of a reply to a client that searches by itself."""
    async with stack:
        async for event in asked.report.received(whole):
            for visible in filter(None, map(search.event, await _read_event(stream, event))):
                yield visible
    if not stream.failed:
        for visible in filter(None, map(search.event, stream.finish())):
            yield visible


async def _read_event(stream: ReplyStream, event: SentEvent) -> Iterable[SentEvent]:
    """Return what a client sees of an event; a large one is read off the event loop."""
    seen = stream.read(event)
    return await asyncio.to_thread(list, seen) if event.is_large else seen


async def _whole_reply(
    response: httpx2.Response, stream: ReplyStream, limits: LimitSettings
) -> AsyncIterator[SentEvent]:
    """Yield the events of a reply.

    Raises:
        _BrokenOffError: The stream ended before the reply.
    """
    try:
        async for event in sent_events(response, limits):
            yield event
    except httpx2.TransportError:
        # A connection that breaks after the end of the reply has lost nothing.
        if not stream.is_complete:
            raise
    if not stream.is_complete and not stream.failed:
        raise _BrokenOffError(502, None)


def _refuse(dialect: WireDialect, status: int, message: str) -> ProxyReply:
    return ProxyReply(
        status,
        _JSON_HEADERS,
        json_bytes(dialect.error_body(status, message)),
    )


def _problem(exc: Exception) -> str:
    if isinstance(exc, ReplyFailedError | TooLargeError):
        return f"the provider's reply was given up: {exc}"
    if isinstance(exc, _BrokenOffError):
        return f"the provider's reply broke off ({exc})"
    kind = "did not answer in time" if isinstance(exc, httpx2.TimeoutException) else "failed"
    return f"the provider {kind} ({type(exc).__name__})"
