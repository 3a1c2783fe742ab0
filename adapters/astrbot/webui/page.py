"""The facts of the plugin's page, as JSON values."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from tool_search.adapters.astrbot import AstrBotToolSearch
from tool_search.adapters.astrbot.preferences import provider_id
from tool_search.adapters.astrbot.run import AstrBotConversation, tokens_of
from tool_search.adapters.astrbot.settings import AstrBotSettings
from tool_search.adapters.astrbot.status import unmatched_patterns
from tool_search.adapters.astrbot.webui.activity import Activity, Moment
from tool_search.catalog.near_copies import copies_of
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.discoveries import tool_tokens
from tool_search.i18n import language_of_locale
from tool_search.search import ToolSearchIndex, build_index
from tool_search.search.discovery.search_tool import clean_description
from tool_search.search.index.explanation import Explanation
from tool_search.search.index.older_first import search_older_first
from tool_search.search.index.ranking import RankedIndex
from tool_search.search.learned import with_votes

__all__ = ["ToolSearchPage"]

_MAX_QUERY_CHARS = 1_000
_MAX_DESCRIPTION_CHARS = 300
_MAX_TRIED = 20
_MAX_WORDS = 12


class ToolSearchPage:
    """The facts that the page shows; nothing but `forget` changes anything.

    Args:
        tool_search: The tool search of the plugin.
        context: AstrBot's context for plugins.
    """

    def __init__(self, tool_search: AstrBotToolSearch, context: Any) -> None:
        self._tool_search = tool_search
        self._context = context
        self._index: tuple[str, Any, ToolSearchIndex] | None = None

    @property
    def _activity(self) -> Activity:
        return self._tool_search.activity

    @property
    def _settings(self) -> AstrBotSettings:
        return self._tool_search.settings

    async def overview(self, locale: str = "") -> dict[str, Any]:
        """Return the state of tool search in this bot.

        Args:
            locale: The WebUI's, for the texts of problems.
        """
        catalog, settings, search = self._catalog(), self._settings, self._tool_search
        savings, added = search.savings, self._add(catalog)
        return {
            "mode": settings.config.tool_schema_mode,
            "threshold": settings.config.threshold,
            "engine": settings.config.search.engine,
            "since": self._activity.since,
            "now": time.time(),
            "total": len(catalog.active) + len(added),
            "core": len(catalog.core) + len(added),
            "deferred": len(catalog.deferred),
            "off": len(self._switched_off()),
            "saved": savings.total,
            "saved_today": savings.today,
            "requests": savings.requests,
            "providers": [
                {"provider": provider_id(each), "strategy": search.profile(each, settings).strategy}
                for each in self._context.get_all_providers()
            ],
            "unmatched": list(unmatched_patterns(settings.config.always_loaded_tools, catalog)),
            "problems": [each.said(language_of_locale(locale)) for each in settings.problems],
            "warnings": list(search.reports.last),
        }

    async def tools(self) -> dict[str, Any]:
        """Return a row for each tool, and the searches that found nothing."""
        catalog = self._catalog()
        rows = await asyncio.to_thread(self._rows, catalog)
        off = [self._row(name, "", "", "off", 0) for name in self._switched_off()]
        in_vain = [moment.to_object() for moment in reversed(self._activity.in_vain)]
        return {"tools": [*rows, *off], "in_vain": in_vain}

    async def search(self, query: str) -> dict[str, Any]:
        """Return what a search finds in this bot, with the reasons; nothing is discovered.

        Args:
            query: The query, as a model would write it.
        """
        query = query.strip()[:_MAX_QUERY_CHARS]
        catalog, settings = self._catalog(), self._settings
        config = settings.config
        if not query:
            return {"query": "", "total": len(catalog.deferred), "found": 0, "hits": []}
        votes = await self._tool_search.votes() if config.learning.enabled else None
        index = await asyncio.to_thread(self._built_index, catalog, settings)
        index = with_votes(index, votes)
        found = await asyncio.to_thread(
            search_older_first,
            index,
            query,
            limit=_MAX_TRIED,
            allowed=None,
            copies=copies_of(catalog),
            tools=catalog,
        )
        names = [match.name for match in found.matches]
        reasons = await asyncio.to_thread(_explain, index, query, names)
        return {
            "query": query,
            "total": found.total_tools,
            "found": found.total_found,
            "returned": config.max_results,
            "unmatched": list(found.unmatched),
            "hits": [
                {
                    "name": match.name,
                    "server": match.server or "",
                    "description": _short(match.description),
                    "score": round(match.score, 3),
                    "reasons": reasons.get(match.name),
                }
                for match in found.matches
            ],
        }

    async def learned(self) -> dict[str, Any]:
        """Return the words that have led to each tool."""
        learned = await self._tool_search.learned()
        return {
            "enabled": self._settings.config.learning.enabled,
            "tools": [{"name": name, "words": list(words)} for name, words in learned.items()],
        }

    async def forget(self, tool: str) -> dict[str, Any]:
        """Erase what was learned about a tool.

        Args:
            tool: Its name.
        """
        return {"tool": tool, "erased": await self._tool_search.forget_learned(tool)}

    async def conversations(self) -> dict[str, Any]:
        """Return the conversations with a request since the plugin was loaded, last first."""
        listed = [
            {
                "place": place,
                "id": conversation,
                "moments": len(line.moments),
                "at": line.moments[-1].at,
            }
            for (place, conversation), line in self._activity.timelines.items()
            if line.moments
        ]
        return {"conversations": listed}

    async def conversation(self, place: str, conversation: str) -> dict[str, Any]:
        """Return the state and the timeline of a conversation.

        Args:
            place: AstrBot's `unified_msg_origin`.
            conversation: The id of the conversation in it.
        """
        key = place, conversation
        line = self._activity.timelines.get(key)
        moments: list[Moment] = [] if line is None else list(line.moments)
        known = self._tool_search.conversation(key)
        return {
            "place": place,
            "id": conversation,
            "state": None if known is None else _state(known),
            "moments": [moment.to_object() for moment in moments],
        }

    def _catalog(self) -> ToolCatalog:
        tools = self._context.get_llm_tool_manager().get_full_tool_set()
        return self._tool_search.catalog_of(tools, self._settings)

    def _switched_off(self) -> list[str]:
        tools = self._context.get_llm_tool_manager().func_list
        return sorted({tool.name for tool in tools if not getattr(tool, "active", True)})

    def _rows(self, catalog: ToolCatalog) -> list[dict[str, Any]]:
        core = {tool.name for tool in catalog.core}
        rows = [self._tool_row(tool, tool.name in core) for tool in catalog.active]
        return [*(self._tool_row(tool, True) for tool in self._add(catalog)), *rows]

    def _add(self, catalog: ToolCatalog) -> list[Tool]:
        """Return AstrBot's own tools in requests so far; they are in no list before."""
        found = {
            tool.name: tool
            for key in self._activity.timelines
            if (known := self._tool_search.conversation(key)) is not None
            for tool in known.view.catalog.core
            if tool.name not in catalog
        }
        return [found[name] for name in sorted(found)]

    def _tool_row(self, tool: Tool, is_core: bool) -> dict[str, Any]:
        kind = "core" if is_core else "deferred"
        text = _short(clean_description(tool.description))
        return self._row(tool.name, tool.server or "", text, kind, tool_tokens(tool))

    def _row(
        self, name: str, server: str, description: str, kind: str, tokens: int
    ) -> dict[str, Any]:
        return {
            "name": name,
            "server": server,
            "description": description,
            "kind": kind,
            "tokens": tokens,
            "found": self._activity.found[name],
            "called": self._activity.called[name],
        }

    def _built_index(self, catalog: ToolCatalog, settings: AstrBotSettings) -> ToolSearchIndex:
        """Return the index of the deferred tools; the last one is kept."""
        chosen = settings.config.search
        if self._index is None or self._index[:2] != (catalog.fingerprint, chosen):
            built = build_index(catalog.deferred, chosen)
            self._index = (catalog.fingerprint, chosen, built)
        return self._index[2]


def _state(conversation: AstrBotConversation) -> dict[str, Any]:
    view, sent = conversation.view, conversation.last_request
    mode = view.mode
    return {
        "mode": mode.mode,
        "reason": mode.reason,
        "core": [tool.name for tool in view.catalog.core],
        "found": list(view.discoveries.names),
        "declared": [] if sent is None else list(sent.tools.names),
        "strategy": "" if sent is None else sent.profile.strategy,
        "tokens": 0 if sent is None else tokens_of(sent, conversation),
        "full": conversation.full_tokens,
    }


def _explain(index: ToolSearchIndex, query: str, names: list[str]) -> Mapping[str, dict[str, Any]]:
    """Return the reasons for each hit; an engine that gives none has none."""
    if not isinstance(index, RankedIndex):
        return {}
    return {found.tool: _write_explanation(found) for found in index.explain(query, names)}


def _write_explanation(found: Explanation) -> dict[str, Any]:
    return {
        "named": found.is_named,
        "sum": round(found.sum, 3),
        "boost": round(found.boost, 3),
        "learned": round(found.learned, 3),
        "operators": round(found.operators, 3),
        "words": [
            {
                "word": word.word,
                "share": round(word.share, 3),
                "fields": {field: round(share, 3) for field, share in word.fields.items()},
                "instead": list(word.instead),
            }
            for word in found.reasons.words[:_MAX_WORDS]
        ],
    }


def _short(text: str) -> str:
    if len(text) <= _MAX_DESCRIPTION_CHARS:
        return text
    return f"{text[:_MAX_DESCRIPTION_CHARS]}…"
