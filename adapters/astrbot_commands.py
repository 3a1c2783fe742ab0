"""What `/tool_search` answers an administrator of the bot."""

from __future__ import annotations

import json
import logging
from typing import Any

from tool_search.adapters.astrbot import AstrBotToolSearch, ConversationId
from tool_search.adapters.astrbot_run import AstrBotConversation
from tool_search.catalog import ToolCatalog
from tool_search.i18n import Language, text
from tool_search.modes import tool_tokens
from tool_search.search import build_index
from tool_search.search_tool import clean_description

__all__ = ["AstrBotCommands"]

_USUAL_LANGUAGE: Language = "zh-CN"  # AstrBot's own commands answer in it
_log = logging.getLogger(__name__)


class AstrBotCommands:
    """The commands of one plugin.

    Args:
        tool_search: What the plugin does.
        context: AstrBot's context for plugins.
    """

    def __init__(self, tool_search: AstrBotToolSearch, context: Any) -> None:
        self._tool_search = tool_search
        self._context = context

    async def status(self, event: Any) -> str:
        """What tool search does in the conversation of a message."""
        try:
            return await self._status(event)
        except Exception as exc:  # noqa: BLE001  # a command is answered, whatever happens
            return self._failed(exc)

    async def test(self, event: Any, query: str) -> str:
        """What a search finds, best first; discovers nothing."""
        try:
            return await self._test(event, query.strip())
        except Exception as exc:  # noqa: BLE001  # a command is answered, whatever happens
            return self._failed(exc)

    async def reset(self, event: Any) -> str:
        """Lets the conversation of a message start without discoveries."""
        try:
            key = await self._key(event)
            conversation = self._tool_search.conversation(key)
            count = self._tool_search.forget(key, await self._saved(key))
        except Exception as exc:  # noqa: BLE001  # a command is answered, whatever happens
            return self._failed(exc)
        return text("astrbot.reset", self._language(conversation), count=count)

    async def _status(self, event: Any) -> str:
        conversation = self._tool_search.conversation(await self._key(event))
        language = self._language(conversation)
        if conversation is None:
            catalog = self._catalog()
            return text("astrbot.status_new", language, **_counts(catalog))
        session = conversation.session
        full = sum(map(tool_tokens, session.catalog.active))
        profile = self._tool_search.profile(event)
        plan = session.plan(profile)
        now = sum(map(tool_tokens, plan.tools.loaded))
        if plan.strategy == "claude":  # references show the model what was found
            now += sum(tool_tokens(entry.tool) for entry in session.discoveries)
        return text(
            "astrbot.status",
            language,
            mode=session.decision.mode,
            reason=session.decision.reason,
            strategy=plan.strategy,
            found=", ".join(session.discoveries.names) or text("astrbot.found_none", language),
            now=now,
            full=full,
            saved=max(0, round(100 * (1 - now / full))) if full else 0,
            **_counts(session.catalog),
        )

    async def _test(self, event: Any, query: str) -> str:
        conversation = self._tool_search.conversation(await self._key(event))
        language = self._language(conversation)
        if not query:
            return text("astrbot.test_empty", language)
        catalog = self._catalog() if conversation is None else conversation.session.catalog
        config = self._tool_search.settings.config
        index = build_index(catalog.deferred, config.search)
        found = index.search(query, limit=config.max_results)
        values = {"query": query, "total": len(catalog.deferred)}
        if not found.matches:
            return text("astrbot.test_none", language, **values)
        head = text("astrbot.test_head", language, found=found.total_found, **values)
        lines = [
            f"{place}. {match.name}: {clean_description(match.description)}"
            for place, match in enumerate(found.matches, 1)
        ]
        return "\n".join([head, *lines])

    def _catalog(self) -> ToolCatalog:
        return self._tool_search.catalog_of(
            self._context.get_llm_tool_manager().get_full_tool_set()
        )

    async def _key(self, event: Any) -> ConversationId:
        umo = event.unified_msg_origin
        current = await self._context.conversation_manager.get_curr_conversation_id(umo)
        return umo, str(current or "")

    async def _saved(self, key: ConversationId) -> list[Any]:
        """The history as AstrBot has saved it."""
        saved = await self._context.conversation_manager.get_conversation(*key)
        history = json.loads(saved.history or "[]") if saved is not None else []
        return history if isinstance(history, list) else []

    def _language(self, conversation: AstrBotConversation | None) -> Language:
        chosen = self._tool_search.settings.config.language
        if chosen != "auto":
            return chosen
        return _USUAL_LANGUAGE if conversation is None else conversation.session.language

    def _failed(self, exc: Exception) -> str:
        _log.exception("a command cannot be answered")
        return text("astrbot.failed", self._language(None), cause=f"{type(exc).__name__}: {exc}")


def _counts(catalog: ToolCatalog) -> dict[str, int]:
    return {
        "total": len(catalog.active),
        "core": len(catalog.core),
        "deferred": len(catalog.deferred),
    }
