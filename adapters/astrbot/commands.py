"""What `/tool_search` answers an administrator of the bot."""

from __future__ import annotations

import json
import logging
from typing import Any

from tool_search.adapters.astrbot import AstrBotToolSearch, ConversationId
from tool_search.adapters.astrbot.preferences import keep_settings, kept_settings
from tool_search.adapters.astrbot.run import AstrBotConversation
from tool_search.adapters.astrbot.settings import (
    OF_ONE_PLACE,
    AstrBotSettings,
    value_of_place,
)
from tool_search.catalog.catalog import ToolCatalog
from tool_search.discovery.modes import tool_tokens
from tool_search.discovery.search_tool import clean_description
from tool_search.i18n import Language, text
from tool_search.search import build_index
from tool_search.search.index.older_first import search_older_first

__all__ = ["AstrBotCommands"]

_USUAL_LANGUAGE: Language = "zh-CN"  # AstrBot's own commands answer in it
_DEFAULT = "default"
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
            conversation, settings = await self._here(event)
            key = await self._key(event)
            count = self._tool_search.forget(key, await self._saved(key))
        except Exception as exc:  # noqa: BLE001  # a command is answered, whatever happens
            return self._failed(exc)
        return text("astrbot.reset", _language(settings, conversation), count=count)

    async def set(self, event: Any, setting: str = "", value: str = "") -> str:
        """Sets something for the place of a message alone; with no value, shows what is set.

        Args:
            event: AstrBot's event.
            setting: A setting under its name; empty: which are set.
            value: What holds from the next message on; `default`: the plugin's own.
        """
        try:
            return await self._set(event, setting.strip(), value.strip())
        except Exception as exc:  # noqa: BLE001  # a command is answered, whatever happens
            return self._failed(exc)

    async def _status(self, event: Any) -> str:
        conversation, settings = await self._here(event)
        language = _language(settings, conversation)
        if conversation is None:
            return text("astrbot.status_new", language, **_counts(self._catalog(settings)))
        session = conversation.session
        full = sum(map(tool_tokens, session.catalog.active))
        profile = self._tool_search.profile(event, settings)
        plan = session.plan(profile)
        now = sum(map(tool_tokens, plan.tools.loaded))
        if profile.is_native:  # references show the model what was found
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
        conversation, settings = await self._here(event)
        language = _language(settings, conversation)
        if not query:
            return text("astrbot.test_empty", language)
        known = conversation.session.catalog if conversation is not None else None
        catalog = known or self._catalog(settings)
        config = settings.config
        index = build_index(catalog.deferred, config.search)
        found = search_older_first(
            index,
            query,
            limit=config.max_results,
            allowed=None,
            copies=catalog.copies,
            tools=catalog,
        )
        values = {"query": query, "total": len(catalog.deferred)}
        if not found.matches:
            return text("astrbot.test_none", language, **values)
        head = text("astrbot.test_head", language, found=found.total_found, **values)
        lines = [
            f"{place}. {match.name}: {clean_description(match.description)}"
            for place, match in enumerate(found.matches, 1)
        ]
        return "\n".join([head, *lines])

    async def _set(self, event: Any, setting: str, value: str) -> str:
        conversation, settings = await self._here(event)
        language = _language(settings, conversation)
        umo = event.unified_msg_origin
        kept = await kept_settings(umo)
        if setting not in OF_ONE_PLACE or not value:
            said = ", ".join(f"{key} = {kept[key]}" for key in kept)
            return text(
                "astrbot.set_usage",
                language,
                kept=said or text("astrbot.found_none", language),
                settings=", ".join(OF_ONE_PLACE),
            )
        if value == _DEFAULT:
            kept.pop(setting, None)
            await keep_settings(umo, kept)
            return text("astrbot.set_default", language, setting=setting)
        allowed = value_of_place(setting, value)
        if allowed is None:
            choices = ", ".join(OF_ONE_PLACE[setting]) or text("astrbot.set_number", language)
            return text("astrbot.set_refused", language, setting=setting, choices=choices)
        await keep_settings(umo, {**kept, setting: allowed})
        return text("astrbot.set", language, setting=setting, value=allowed)

    async def _here(self, event: Any) -> tuple[AstrBotConversation | None, AstrBotSettings]:
        """What is remembered of a message's conversation, and what holds at its place."""
        settings = await self._tool_search.settings_at(event.unified_msg_origin)
        return self._tool_search.conversation(await self._key(event)), settings

    def _catalog(self, settings: AstrBotSettings) -> ToolCatalog:
        tools = self._context.get_llm_tool_manager().get_full_tool_set()
        return self._tool_search.catalog_of(tools, settings)

    async def _key(self, event: Any) -> ConversationId:
        umo = event.unified_msg_origin
        current = await self._context.conversation_manager.get_curr_conversation_id(umo)
        return umo, str(current or "")

    async def _saved(self, key: ConversationId) -> list[Any]:
        """The history as AstrBot has saved it."""
        saved = await self._context.conversation_manager.get_conversation(*key)
        history = json.loads(saved.history or "[]") if saved is not None else []
        return history if isinstance(history, list) else []

    def _failed(self, exc: Exception) -> str:
        _log.exception("a command cannot be answered")
        return text(
            "astrbot.failed",
            _language(self._tool_search.settings),
            cause=f"{type(exc).__name__}: {exc}",
        )


def _language(
    settings: AstrBotSettings, conversation: AstrBotConversation | None = None
) -> Language:
    if settings.config.language != "auto":
        return settings.config.language
    return _USUAL_LANGUAGE if conversation is None else conversation.session.language


def _counts(catalog: ToolCatalog) -> dict[str, int]:
    return {
        "total": len(catalog.active),
        "core": len(catalog.core),
        "deferred": len(catalog.deferred),
    }
