"""OpenAI's own tool search inside AstrBot: three methods of its Responses provider, wrapped.

AstrBot writes a request's `input` from its history, in which a search is an ordinary function.
The wrappers turn searches into the service's own items with the found definitions before a
request is sent, and a search in a reply into a function before AstrBot reads it. The stored
history stays text.
Source: OpenAI, "Tool search" (`tool_search_call`, `tool_search_output`,
`additional_tools`).
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from tool_search.adapters.astrbot.hooks import NativeHook, SentNames, Wrapper
from tool_search.adapters.astrbot.reports import MISTAKES
from tool_search.adapters.astrbot.run import AstrBotRun
from tool_search.adapters.astrbot.tools import text_after_result
from tool_search.adapters.astrbot.toolset import NativeTools, run_of
from tool_search.adapters.openai_responses.history import history_from_wire
from tool_search.adapters.openai_responses.wire import to_wire
from tool_search.adapters.wire.values import mapping_of, text_of
from tool_search.core.catalog.naming import wire_id
from tool_search.core.profiles import ProviderProfile
from tool_search.core.values.json import compact_json

__all__ = ["ResponsesHook", "with_searches"]

Item = Mapping[str, Any]

_OUTPUTS = ("function_call_output", "tool_search_output")
_log = logging.getLogger(__name__)


class ResponsesHook(NativeHook):
    """The wrapper around AstrBot's `ProviderOpenAIResponses`."""

    dialect = "openai_responses"
    strategy = "openai_responses"

    def address(self, provider: Any) -> str:
        """Return the address of a provider's requests; empty if it has none."""
        return str(getattr(getattr(provider, "client", None), "base_url", "") or "")

    def _wrappers(self) -> Mapping[str, Wrapper]:
        return {
            "_query": self._wrap,
            "_query_stream": self._wrap_stream,
            "_parse_response": self._wrap_parse,
        }

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        async def query(provider: Any, payloads: Any, tools: Any, *args: Any, **kwargs: Any) -> Any:
            profile = self._native(provider, payloads, tools)
            if profile is not None:
                changed = _native_request(payloads, tools, profile)
                try:
                    return await original(provider, *changed, *args, **kwargs)
                except Exception as exc:
                    if not self.should_filter(provider, profile, exc):
                        raise
            sent = SentNames(self.dialect, provider, payloads, tools)
            return await sent.reply(original, *args, **kwargs)

        return query

    def _wrap_stream(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        async def query_stream(
            provider: Any, payloads: Any, tools: Any, *args: Any, **kwargs: Any
        ) -> AsyncIterator[Any]:
            profile = self._native(provider, payloads, tools)
            has_begun = False
            if profile is not None:
                changed = _native_request(payloads, tools, profile)
                try:
                    async with aclosing(original(provider, *changed, *args, **kwargs)) as chunks:
                        async for chunk in chunks:
                            has_begun = True
                            yield chunk
                    return  # noqa: TRY300  # what follows is for failures
                except Exception as exc:
                    if has_begun or not self.should_filter(provider, profile, exc):
                        raise
            sent = SentNames(self.dialect, provider, payloads, tools)
            async with aclosing(sent.chunks(original, *args, **kwargs)) as chunks:
                async for chunk in chunks:
                    yield chunk

        return query_stream

    def _wrap_parse(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        async def parse_response(
            provider: Any, response: Any, tools: Any, *args: Any, **kwargs: Any
        ) -> Any:
            if isinstance(tools, NativeTools):
                response = _with_calls(response, tools.search_tool_name)
            return await original(provider, response, tools, *args, **kwargs)

        return parse_response

    def _native(self, provider: Any, payloads: Any, tools: Any) -> ProviderProfile | None:
        """Return the profile if a request of ours goes to a model with native search."""
        profile = self.request_profile(provider, tools, mapping_of(payloads).get("model"))
        return profile if profile is not None and profile.is_native else None


def _native_request(
    payloads: Mapping[str, Any], tools: Any, profile: ProviderProfile
) -> tuple[dict[str, Any], Any]:
    """Return a copy of a request for the service's own tool search."""
    run = run_of(tools)
    try:
        if run is not None:
            items = with_searches(payloads["input"], run, profile)
            return {**payloads, "input": items}, tools.for_profile(profile)
    except MISTAKES:
        _log.exception("native tool search failed: OpenAI gets a filtered list")
    return dict(payloads), tools


def with_searches(
    items: Sequence[Item], run: AstrBotRun, profile: ProviderProfile
) -> list[dict[str, Any]]:
    """Return AstrBot's `input` with searches in the service's form and the found tools.

    Only calls and their outputs are changed. AstrBot's text after a search's result becomes a
    developer's message, because a search's output has only tools.

    Args:
        items: AstrBot's items.
        run: The run of the request.
        profile: The model that is asked.
    """
    history = history_from_wire(
        items, search_tool_name=run.search_tool_name, canonical=run.canonical
    )
    # AstrBot's history has all it needs; its ids may repeat and have to stay.
    plan = run.session.plan(history, profile, complete=False)
    written = to_wire(plan, profile)["input"]
    made = _Rewritten(written, run.search_tool_name)
    for item in items:
        made.add(item)
    return made.items()


class _Rewritten:
    """AstrBot's `input`, rewritten item by item.

    Args:
        written: The same history, written by this library.
        search_tool_name: The name of the search tool.
    """

    def __init__(self, written: Iterable[dict[str, Any]], search_tool_name: str) -> None:
        self._written = _Written(written)
        self._search_tool_name = search_tool_name
        self._items: list[dict[str, Any]] = []
        self._searches: set[str] = set()
        self._after_results: list[str] = []
        self._reply = 0  # the index at which the current reply begins

    def items(self) -> list[dict[str, Any]]:
        """Return the rewritten items."""
        self._flush()
        return self._items

    def add(self, item: Item) -> None:
        """Add AstrBot's next item."""
        is_output = item.get("type") in _OUTPUTS
        if not is_output:
            self._flush()
        place = self._written.next(text_of(item.get("call_id")), is_output=is_output)
        if place is None:
            self._items.append(dict(item))
        else:
            self._replace(item, place, is_output=is_output)
        if is_output or item.get("role") not in (None, "assistant"):
            self._reply = len(self._items)

    def _replace(self, item: Item, place: _Place, *, is_output: bool) -> None:
        call_id = place.item["call_id"]
        if item.get("name") == self._search_tool_name:
            self._searches.add(call_id)
        self._items[self._reply : self._reply] = place.before
        if is_output and call_id not in self._searches:
            self._items.append({**item, "call_id": call_id})
        else:
            self._items.append(place.item)
        self._items += place.after
        if is_output and call_id in self._searches:
            self._after_results += filter(None, [text_after_result(text_of(item.get("output")))])

    def _flush(self) -> None:
        """Add the text after results, when all results of a reply are complete."""
        if self._after_results:
            said = "\n".join(self._after_results)
            self._items.append({"type": "message", "role": "developer", "content": said})
            self._after_results, self._reply = [], len(self._items)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """One call or output in its sent form.

    Attributes:
        item: The call or output.
        before: Tools that come before its reply.
        after: Tools that come after it.
    """

    item: dict[str, Any]
    before: list[dict[str, Any]]
    after: list[dict[str, Any]] = field(default_factory=list)


class _Written:
    """A whole `input` of ours, by calls and outputs.

    Args:
        items: The input.
    """

    def __init__(self, items: Iterable[dict[str, Any]]) -> None:
        self._places: defaultdict[tuple[str, bool], deque[_Place]] = defaultdict(deque)
        before: list[dict[str, Any]] = []
        output: _Place | None = None
        for item in items:
            if item.get("type") == "additional_tools":
                (before if output is None else output.after).append(item)
                continue
            is_output = item.get("type") in _OUTPUTS
            output = None
            if "call_id" in item:
                place = _Place(item=item, before=before)
                self._places[item["call_id"], is_output].append(place)
                before, output = [], place if is_output else None

    def next(self, call_id: str, *, is_output: bool) -> _Place | None:
        """Return the next place of a call's id, which some providers use repeatedly."""
        waiting = self._places.get((wire_id(call_id), is_output)) if call_id else None
        return waiting.popleft() if waiting else None


def _with_calls(response: Any, search_tool_name: str) -> Any:
    """Return a reply with its searches as calls of a function, which AstrBot reads."""
    given = response if isinstance(response, Mapping) else vars(response)
    output = given.get("output") or []
    changed = [_as_call(item, search_tool_name) for item in output]
    if isinstance(response, Mapping):
        return {**response, "output": changed}
    return response.model_copy(update={"output": changed})


def _as_call(item: Any, search_tool_name: str) -> Any:
    said = item if isinstance(item, Mapping) else vars(item)
    if said.get("type") != "tool_search_call" or said.get("execution") != "client":
        return item
    return {
        "type": "function_call",
        "call_id": said.get("call_id"),
        "name": search_tool_name,
        "arguments": compact_json(said.get("arguments") or {}),
    }
