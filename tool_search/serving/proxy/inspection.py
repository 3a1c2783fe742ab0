"""Requests of the proxy for the inspector: a record of each, made off the event loop."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from tool_search.adapters.hosts.chain import chain_digests
from tool_search.core.catalog.tool import estimate_tokens
from tool_search.core.services import SearchResult
from tool_search.core.values.json import compact_json
from tool_search.serving.inspector.masking import Masker
from tool_search.serving.inspector.prompts import LastPrompts, SentPrompt, compare_prompts
from tool_search.serving.inspector.recording import Ended, Recording, search_record
from tool_search.serving.inspector.records import (
    CallRecord,
    ClientSide,
    DeclaredTool,
    PrefixRecord,
    RequestRecord,
    RequestRow,
    StepRecord,
)
from tool_search.serving.proxy.clients import core_reason
from tool_search.serving.proxy.dialects.base import JSON, ListedTool, WireCall, WireTool
from tool_search.serving.proxy.report import Report
from tool_search.serving.proxy.requests import CREDENTIALS, ClientRequest, object_in
from tool_search.serving.proxy.settings import ProxyConfig
from tool_search.serving.proxy.tools import ClientTools
from tool_search.serving.proxy.turn import Turn

__all__ = ["Inspection"]

_SECRET_HEADERS = (*CREDENTIALS, "proxy-authorization", "cookie")


class Inspection(Recording):
    """The records of a proxy's requests.

    Args:
        config: The proxy's settings.
    """

    def __init__(self, config: ProxyConfig) -> None:
        super().__init__(config.inspector)
        self._prompts = LastPrompts()

    def begin(self, report: Report) -> None:
        """Show a request that is under way."""
        request = report.request
        if request is None:
            return
        text = Masker(_secrets(request)).text
        row = RequestRow(**_figures(report, request, text), running=True)
        self.show(row, request.client)

    def observe(self, report: Report) -> None:
        """Take in the report of a request that has ended; its record is made in a thread."""
        self.end(report.id, partial(self._write_record, report))

    def _write_record(self, report: Report) -> Ended | None:
        request = report.request
        # The two refer to each other, and hold bodies.
        report.request = None
        if request is None:
            return None
        masker, turn = Masker(_secrets(request)), report.turn
        last, keys = self._before(report, request)
        conversation = last.conversation if last else (keys[0][-8:] if keys else "")
        prefixes = self._prefixes(last, report.id, conversation, report.sent, keys)
        writer = _RecordWriter(report, request, masker, self)
        record = writer.record(conversation, prefixes)
        if turn is None:
            return Ended(record, owner=request.client)
        names = (masker.text(tool.name) for tool in turn.view.catalog.deferred)
        return Ended(record, names, turn.view.explain, request.client)

    def _before(
        self, report: Report, request: ClientRequest
    ) -> tuple[SentPrompt | None, list[str]]:
        """Return the prompt before a request, and the keys by which the next one finds it."""
        body, dialect, turn = request.body, request.dialect, report.turn
        owner = f"{request.owner} {request.upstream.id} {dialect.name} {report.model}"
        if turn is not None:
            chain = turn.history.chain
        elif dialect.is_searchable(body):
            chain = [item for _, item in dialect.chained(dialect.items(body))]
        else:
            chain = []
        before = body.get("previous_response_id") or body.get("conversation")
        digests = [] if before else chain_digests(owner, chain)
        keys = digests[-1:]
        if turn is not None and turn.replies and turn.replies[-1].get("id"):
            keys.append(f"{owner} {turn.replies[0].get('id')}")
        earlier = [f"{owner} {before}"] if isinstance(before, str) else digests[::-1]
        return self._prompts.find(earlier), keys

    def _prefixes(
        self,
        last: SentPrompt | None,
        request_id: str,
        conversation: str,
        sent: Sequence[bytes],
        keys: Sequence[str],
    ) -> list[PrefixRecord | None]:
        """Compare each request to the provider with the one before it."""
        found: list[PrefixRecord | None] = []
        for body in sent:
            found.append(compare_prompts(last, body, texts=self.with_bodies) if last else None)
            last = SentPrompt(request_id, conversation, body)
        if last is not None and sent:
            self._prompts.keep(keys, last)
        return found


class _RecordWriter:
    """Writes the record of one request."""

    def __init__(
        self,
        report: Report,
        request: ClientRequest,
        masker: Masker,
        recording: Recording,
    ) -> None:
        self._report = report
        self._request = request
        self._masker = masker
        self._recording = recording

    def record(self, conversation: str, prefixes: Sequence[PrefixRecord | None]) -> RequestRecord:
        report, turn, text = self._report, self._report.turn, self._masker.text
        steps = tuple(self._steps(prefixes))
        searches = turn.searches if turn else ()
        searched = tuple(search_record(s.result, s.error, self._masker) for s in searches)
        client_side = self._client_side(steps)
        declared = tuple(self._declare(turn)) if turn else ()
        kept = [prefix for prefix in prefixes if prefix is not None]
        count = turn.tools.count if turn else client_side.tools
        in_prompt = sum(not tool.deferred for tool in declared) if turn else count
        return RequestRecord(
            **_figures(report, self._request, text),
            conversation=conversation,
            strategy=turn.profile.strategy if turn else "",
            passed=report.passed,
            status=report.status,
            tools=count,
            declared=in_prompt,
            deferred=_defer(turn) if turn else 0,
            found=len({name for search in searched for name in search.found}),
            called=len(client_side.calls),
            searches=len(searched),
            empty_searches=sum(not search.found for search in searched),
            tokens=report.declared_tokens,
            full_tokens=report.whole_tokens,
            kept_bytes=sum(prefix.kept_bytes for prefix in kept),
            total_bytes=sum(prefix.total_bytes for prefix in kept),
            prefix_cause=next((p.cause for p in kept if p.cause), ""),
            seconds=round(report.seconds, 6),
            own_seconds=round(report.own_s, 6),
            catalog=turn.view.catalog.fingerprint[:12] if turn else "",
            declared_tools=declared,
            searched=searched,
            steps=steps,
            client_side=client_side,
        )

    def _steps(self, prefixes: Sequence[PrefixRecord | None]) -> Iterator[StepRecord]:
        dialect, turn = self._request.dialect, self._report.turn
        replies = turn.replies if turn else []
        for index, sent in enumerate(self._report.sent):
            body = self._request.body if sent is self._request.raw else object_in(sent) or {}
            reply = replies[index] if index < len(replies) else None
            yield StepRecord(
                request_bytes=len(sent),
                tools=_count(body.get("tools")),
                messages=len(dialect.items(body)),
                calls=tuple(self._calls(turn, reply)) if turn and reply else (),
                prefix=prefixes[index],
                request=self._body(body),
                reply=self._body(reply if reply is not None else object_in(self._report.reply)),
            )

    def _calls(self, turn: Turn, reply: JSON) -> Iterator[CallRecord]:
        for call in _calls_in(turn, reply):
            is_search = turn.is_search(call)
            seen: str | None = turn.tools.name_of(call.namespace, call.name)
            if call.id in turn.answers:
                visible = turn.answers[call.id]
                seen = turn.tools.name_of(visible.namespace, visible.name) if visible else None
            name = self._masker.text(call.name)
            yield CallRecord(name=name, seen=self._masker.text(seen or ""), is_search=is_search)

    def _client_side(self, steps: Sequence[StepRecord]) -> ClientSide:
        report, dialect, turn = self._report, self._request.dialect, self._report.turn
        body = self._request.body
        if self._request.raw is not report.raw:  # it was written anew for the provider
            body = object_in(report.raw) or {}
        reply = object_in(report.reply)
        if self._recording.with_bodies and turn is not None and turn.replies:
            reply = dialect.merged(copy.deepcopy(turn.replies), turn.answers)
        return ClientSide(
            request_bytes=len(report.raw),
            tools=_count(body.get("tools")),
            messages=len(dialect.items(body)),
            calls=tuple(call.seen for step in steps for call in step.calls if call.seen),
            request=self._body(body),
            reply=self._body(reply),
        )

    def _body(self, body: JSON | None) -> str | None:
        return self._recording.body(body, self._masker)

    def _declare(self, turn: Turn) -> Iterator[DeclaredTool]:
        """Yield the tools of the last request, each with the reason for it."""
        text = self._masker.text
        found = _found_by(turn, self._request)
        core = {tool.name for tool in turn.view.catalog.core}
        defers = any(tool.definition.get("defer_loading") for tool in turn.tools.wire.values())
        for other in turn.tools.others:
            tokens = estimate_tokens(compact_json(other))
            yield DeclaredTool(name=text(_name(other)), why="as_it_came", tokens=tokens)
        for entry in turn.listed:
            if entry.wire is None:
                name = _name(entry.own or {})
                tokens = estimate_tokens(compact_json(entry.own))
                yield DeclaredTool(name=text(name), why="search_tool", tokens=tokens)
                continue
            name = turn.tools.name_of(entry.wire.namespace, entry.wire.name)
            tokens = _tokens(turn.tools, entry)
            deferred = entry.deferred
            if name in core:
                rule = "defer_loading" if defers else core_reason(entry.wire, self._request.rule)
                by = text(rule or "tool_search.always_loaded_tools")
                yield DeclaredTool(
                    name=text(name), why="core", by=by, tokens=tokens, deferred=deferred
                )
            elif name in found:
                by = text(found[name])
                yield DeclaredTool(
                    name=text(name), why="found", by=by, tokens=tokens, deferred=deferred
                )
            elif not deferred or name in turn.view.found:
                yield DeclaredTool(name=text(name), why="called", tokens=tokens, deferred=deferred)


def _figures(report: Report, request: ClientRequest, text: Callable[[str], str]) -> dict[str, Any]:
    """Return what is known of a request from its begin on."""
    return {
        "id": report.id,
        "at": report.at,
        "client": text(report.client),
        "model": text(report.model),
        "dialect": report.dialect,
        "upstream": report.upstream,
        "path": report.path,
        "streamed": bool(request.body.get("stream")),
    }


def _found_by(turn: Turn, request: ClientRequest) -> dict[str, str]:
    """Return the query by which each name was found first; empty if it is not known."""
    found: dict[str, str] = {}
    kept = [SearchResult.from_json(w) for m in turn.history.moments for w in m.results]
    for result in [*kept, *(search.result for search in turn.searches)]:
        for part in (result.parts or (result,)) if result else ():
            for name in part.names:
                found.setdefault(name, part.query)
    for name in (*turn.history.found, *request.found_by_client.found):
        found.setdefault(turn.tools.name_of(None, name), "")
    return found


def _calls_in(turn: Turn, reply: JSON) -> list[WireCall]:
    items = turn.dialect.reply_items(reply)
    return [call for item in items for call in turn.dialect.calls(item)]


def _defer(turn: Turn) -> int:
    shown = sum(entry.wire is not None and not entry.deferred for entry in turn.listed)
    return turn.tools.count - shown


def _tokens(tools: ClientTools, entry: ListedTool) -> int:
    wire: WireTool | None = entry.wire
    return tools.tokens[tools.sources[wire.namespace, wire.name]] if wire else 0


def _name(definition: JSON) -> str:
    """Return the name of a definition of any dialect."""
    function = definition.get("function")
    inner = function if isinstance(function, dict) else {}
    return str(definition.get("name") or inner.get("name") or definition.get("type") or "")


def _count(tools: object) -> int:
    return len(tools) if isinstance(tools, list) else 0


def _secrets(request: ClientRequest) -> Iterator[str]:
    """Yield the credentials of a request, which no record may have."""
    for name in _SECRET_HEADERS:
        value = request.headers.get(name, "")
        yield value
        yield value.partition(" ")[2]
    if request.upstream.api_key_env:
        yield os.environ.get(request.upstream.api_key_env, "")
