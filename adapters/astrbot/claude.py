"""Claude's own tool search inside AstrBot: two public methods of one provider, wrapped.

AstrBot passes a tool result's content to Anthropic unchanged, so references need no other
hook. The stored history stays text: neither it nor a fallback provider sees a reference.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from functools import wraps
from typing import Any

from tool_search.adapters.astrbot.hooks import NativeHook, Wrapper
from tool_search.adapters.astrbot.reports import MISTAKES
from tool_search.adapters.astrbot.run import AstrBotRun
from tool_search.adapters.astrbot.tools import plain_message, text_after_result
from tool_search.adapters.astrbot.toolset import run_of
from tool_search.core.catalog.naming import wire_name
from tool_search.core.messages import ReferencePart, RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import SearchResult
from tool_search.core.strategies import ClaudeToolSearchStrategy
from tool_search.i18n import text

__all__ = ["ClaudeHook", "with_references"]

_strategy = ClaudeToolSearchStrategy()
_log = logging.getLogger(__name__)


class ClaudeHook(NativeHook):
    """The wrapper around AstrBot's Anthropic provider.

    Args:
        provider_class: AstrBot's `ProviderAnthropic`. Its subclasses are other vendors'.
        boundary: True if a line of text follows references.
    """

    dialect = "anthropic"
    strategy = "claude"

    def __init__(self, provider_class: Any, *, boundary: bool = True) -> None:
        super().__init__(provider_class)
        self._boundary = boundary

    def address(self, provider: Any) -> str:
        """Return the address of a provider's requests; empty if it has none."""
        return str(getattr(provider, "base_url", "") or "")

    def _wrappers(self) -> Mapping[str, Wrapper]:
        return {"text_chat": self._wrap, "text_chat_stream": self._wrap_stream}

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        async def text_chat(provider: Any, *args: Any, **kwargs: Any) -> Any:
            profile = self.request_profile(provider, kwargs.get("func_tool"), kwargs.get("model"))
            if profile is None:
                return await original(provider, *args, **kwargs)
            try:
                return await original(provider, *args, **self._arguments_for(kwargs, profile))
            except Exception as exc:
                if not self.should_filter(provider, profile, exc):
                    raise
            return await original(provider, *args, **self._arguments_for(kwargs, profile.generic()))

        return text_chat

    def _wrap_stream(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        async def text_chat_stream(provider: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            profile = self.request_profile(provider, kwargs.get("func_tool"), kwargs.get("model"))
            arguments = kwargs if profile is None else self._arguments_for(kwargs, profile)
            has_begun = False
            try:
                async with aclosing(original(provider, *args, **arguments)) as chunks:
                    async for chunk in chunks:
                        has_begun = True
                        yield chunk
                return  # noqa: TRY300  # what follows is for failures
            except Exception as exc:
                if has_begun or profile is None or not self.should_filter(provider, profile, exc):
                    raise
            arguments = self._arguments_for(kwargs, profile.generic())
            async with aclosing(original(provider, *args, **arguments)) as chunks:
                async for chunk in chunks:
                    yield chunk

        return text_chat_stream

    def _arguments_for(self, kwargs: Mapping[str, Any], profile: ProviderProfile) -> dict[str, Any]:
        """Return the arguments of a request, with the tools as this provider takes them."""
        tools = kwargs["func_tool"]
        run = run_of(tools)
        try:
            arguments = {**kwargs, "func_tool": tools.for_profile(profile)}
            if run is not None and profile.strategy == "claude":
                plan = run.plan(profile)
                arguments["contexts"] = with_references(
                    kwargs.get("contexts"), run, plan, boundary=self._boundary
                )
        except MISTAKES:
            _log.exception("native tool search failed: Claude gets a filtered list")
            return dict(kwargs)
        return arguments


def with_references(
    contexts: Iterable[Any] | None, run: AstrBotRun, plan: RequestPlan, *, boundary: bool = True
) -> list[Any]:
    """Return the messages of a request, with search results as references to its tools.

    Args:
        contexts: AstrBot's own messages, which are not changed.
        run: The run of the request.
        plan: The plan that declares the tools.
        boundary: True if a line of text follows the references of an exchange.
    """
    line = text("search.loaded", run.session.language) if boundary else ""
    searches: set[str] = set()
    shown: list[Any] = []
    after: list[str] = []
    for said in contexts or ():
        content = plain_message(said)
        if content.get("role") != "tool":
            shown += _user_message(after)
            after = []
        searches |= _searches(content, run.search_tool_name)
        found = content.get("role") == "tool" and content.get("tool_call_id") in searches
        references, rest = _references(content.get("content"), run, plan) if found else ([], "")
        if references:
            after = [*after[:-1], rest, line] if after else [rest, line]
        shown.append({**content, "content": references} if references else said)
    return [*shown, *_user_message(after)]


def _user_message(lines: Iterable[str]) -> list[dict[str, Any]]:
    said = "\n".join(line for line in lines if line)
    return [{"role": "user", "content": [{"type": "text", "text": said}]}] if said else []


def _searches(content: Mapping[str, Any], search_tool_name: str) -> set[str]:
    """Return the ids of the searches in one message."""
    return {
        call.get("id")
        for call in content.get("tool_calls") or ()
        if (call.get("function") or {}).get("name") == search_tool_name
    }


def _references(
    content: Any, run: AstrBotRun, plan: RequestPlan
) -> tuple[list[dict[str, Any]], str]:
    """Return references in place of a search result, and AstrBot's text after it."""
    if not isinstance(content, str):
        return [], ""
    result = SearchResult.from_json(content)
    part = _strategy.format_result(result) if result is not None else None
    if not isinstance(part, ReferencePart):
        return [], ""
    found = dict.fromkeys(map(run.canonical, part.names))
    names = [name for name in found if plan.tools.declares(name)]
    references = [{"type": "tool_reference", "tool_name": wire_name(name)} for name in names]
    return references, text_after_result(content)
