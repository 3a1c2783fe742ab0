"""Claude's own tool search inside AstrBot: two public methods of one provider, wrapped.

AstrBot hands a tool result's content to Anthropic as it is, so references need no more
than this. What is stored stays text: a fallback provider and the saved history never
see a reference.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from functools import wraps
from typing import Any

from tool_search.adapters.astrbot.hooks import NativeHook, Wrapper
from tool_search.adapters.astrbot.run import AstrBotRun
from tool_search.adapters.astrbot.tools import plain_message, text_behind
from tool_search.adapters.astrbot.toolset import run_of
from tool_search.catalog.names import wire_name
from tool_search.i18n import text
from tool_search.messages import ReferencePart, RequestPlan
from tool_search.providers.profiles import ProviderProfile
from tool_search.search.index.protocol import SearchResult
from tool_search.strategies import ClaudeToolSearchStrategy

__all__ = ["ClaudeHook", "with_references"]

_strategy = ClaudeToolSearchStrategy()
_log = logging.getLogger(__name__)


class ClaudeHook(NativeHook):
    """The wrapper around AstrBot's Anthropic provider.

    Args:
        provider_class: AstrBot's `ProviderAnthropic`. Its subclasses are other vendors'.
        boundary: Whether a line of text stands behind references.
    """

    dialect = "anthropic"
    strategy = "claude"

    def __init__(self, provider_class: Any, *, boundary: bool = True) -> None:
        super().__init__(provider_class)
        self._boundary = boundary

    def address(self, provider: Any) -> str:
        """Where a provider's requests go; empty where it does not say."""
        return str(getattr(provider, "base_url", "") or "")

    def _wrappers(self) -> Mapping[str, Wrapper]:
        return {"text_chat": self._wrapped, "text_chat_stream": self._wrapped_stream}

    def _wrapped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        async def text_chat(provider: Any, *args: Any, **kwargs: Any) -> Any:
            profile = self.asked(provider, kwargs.get("func_tool"), kwargs.get("model"))
            if profile is None:
                return await original(provider, *args, **kwargs)
            try:
                return await original(provider, *args, **self._told(kwargs, profile))
            except Exception as exc:
                if not self.gives_up(provider, profile, exc):
                    raise
            return await original(provider, *args, **self._told(kwargs, profile.generic()))

        return text_chat

    def _wrapped_stream(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        async def text_chat_stream(provider: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            profile = self.asked(provider, kwargs.get("func_tool"), kwargs.get("model"))
            told = kwargs if profile is None else self._told(kwargs, profile)
            has_begun = False
            try:
                async with aclosing(original(provider, *args, **told)) as chunks:
                    async for chunk in chunks:
                        has_begun = True
                        yield chunk
                return  # noqa: TRY300  # what follows is for failures
            except Exception as exc:
                if has_begun or profile is None or not self.gives_up(provider, profile, exc):
                    raise
            told = self._told(kwargs, profile.generic())
            async with aclosing(original(provider, *args, **told)) as chunks:
                async for chunk in chunks:
                    yield chunk

        return text_chat_stream

    def _told(self, kwargs: Mapping[str, Any], profile: ProviderProfile) -> dict[str, Any]:
        """The arguments of a request as this provider is told of tools."""
        tools = kwargs["func_tool"]
        run = run_of(tools)
        try:
            told = {**kwargs, "func_tool": tools.for_profile(profile)}
            if run is not None and profile.strategy == "claude":
                plan = run.plan(profile)
                told["contexts"] = with_references(
                    kwargs.get("contexts"), run, plan, boundary=self._boundary
                )
        except Exception:  # noqa: BLE001  # a bot's turn must not end by a mistake of ours
            _log.exception("Claude is told of tools as every provider is")
            return dict(kwargs)
        return told


def with_references(
    contexts: Iterable[Any] | None, run: AstrBotRun, plan: RequestPlan, *, boundary: bool = True
) -> list[Any]:
    """The messages of a request, search results as references to what it declares.

    Args:
        contexts: AstrBot's own messages, which stay as they are.
        run: Whose request it is.
        plan: What the request declares.
        boundary: Whether a line of text stands behind the references of an exchange.
    """
    line = text("search.loaded", run.session.language) if boundary else ""
    searches: set[str] = set()
    shown: list[Any] = []
    behind: list[str] = []
    for said in contexts or ():
        content = plain_message(said)
        if content.get("role") != "tool":
            shown += _boundary(behind)
            behind = []
        searches |= _searches(content, run.search_tool_name)
        found = content.get("role") == "tool" and content.get("tool_call_id") in searches
        references, rest = _references(content.get("content"), plan) if found else ([], "")
        if references:
            behind = [*behind[:-1], rest, line] if behind else [rest, line]
        shown.append({**content, "content": references} if references else said)
    return [*shown, *_boundary(behind)]


def _boundary(lines: Iterable[str]) -> list[dict[str, Any]]:
    said = "\n".join(line for line in lines if line)
    return [{"role": "user", "content": [{"type": "text", "text": said}]}] if said else []


def _searches(content: Mapping[str, Any], search_tool_name: str) -> set[str]:
    """The ids of the searches in one message."""
    return {
        call.get("id")
        for call in content.get("tool_calls") or ()
        if (call.get("function") or {}).get("name") == search_tool_name
    }


def _references(content: Any, plan: RequestPlan) -> tuple[list[dict[str, Any]], str]:
    """References in place of a search result, and what AstrBot wrote behind it."""
    if not isinstance(content, str):
        return [], ""
    result = SearchResult.from_json(content)
    part = _strategy.format_result(result) if result is not None else None
    if not isinstance(part, ReferencePart):
        return [], ""
    names = [name for name in dict.fromkeys(part.names) if plan.tools.declares(name)]
    references = [{"type": "tool_reference", "tool_name": wire_name(name)} for name in names]
    return references, text_behind(content)
