"""The commands below `/tool_search`, for an administrator of the bot."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from tool_search.adapters.astrbot import AstrBotToolSearch, ConversationId
from tool_search.adapters.astrbot.preferences import load_settings, save_settings
from tool_search.adapters.astrbot.run import AstrBotConversation
from tool_search.adapters.astrbot.settings import (
    PLACE_SETTINGS,
    AstrBotSettings,
    place_value,
)
from tool_search.catalog.catalog import ToolCatalog
from tool_search.discovery.modes import tool_tokens
from tool_search.discovery.search_tool import clean_description
from tool_search.i18n import Language, text
from tool_search.search import build_index
from tool_search.search.index.older_first import search_older_first

__all__ = ["AstrBotCommands"]

_DEFAULT_LANGUAGE: Language = "zh-CN"  # AstrBot's own commands answer in it
_DEFAULT = "default"
_log = logging.getLogger(__name__)


class AstrBotCommands:
    """The commands of one plugin.

    Args:
        tool_search: The tool search of the plugin.
        context: AstrBot's context for plugins.
    """

    def __init__(self, tool_search: AstrBotToolSearch, context: Any) -> None:
        self._tool_search = tool_search
        self._context = context

    async def status(self, event: Any) -> str:
        """Return the state of tool search in the conversation of a message."""
        try:
            return await self._status(event)
        except Exception as exc:  # noqa: BLE001  # a command is answered, whatever happens
            return self._failure_text(exc)

    async def test(self, event: Any, query: str) -> str:
        """Return what a search finds, best first, without discovering it."""
        try:
            return await self._test(event, query.strip())
        except Exception as exc:  # noqa: BLE001  # a command is answered, whatever happens
            return self._failure_text(exc)

    async def reset(self, event: Any) -> str:
        """Drop the discoveries of the conversation of a message."""
        try:
            conversation, settings = await self._conversation_at(event)
            key = await self._key(event)
            count = self._tool_search.forget(key, await self._saved_history(key))
        except Exception as exc:  # noqa: BLE001  # a command is answered, whatever happens
            return self._failure_text(exc)
        return text("astrbot.reset", _language(settings, conversation), count=count)

    async def set(self, event: Any, setting: str = "", value: str = "") -> str:
        """Change a setting for the place of a message alone; without a value, show the settings.

        Args:
            event: AstrBot's event.
            setting: The name of a setting; empty to show the settings.
            value: The value from the next message on; `default` for the plugin's own.
        """
        try:
            return await self._set(event, setting.strip(), value.strip())
        except Exception as exc:  # noqa: BLE001  # a command is answered, whatever happens
            return self._failure_text(exc)

    async def _status(self, event: Any) -> str:
        conversation, settings = await self._conversation_at(event)
        language = _language(settings, conversation)
        if conversation is None:
            return text("astrbot.status_new", language, **_counts(self._catalog(settings)))
        view = conversation.view
        full = sum(map(tool_tokens, view.catalog.active))
        profile = self._tool_search.profile(event, settings)
        plan = view.plan((), profile)
        now = sum(map(tool_tokens, plan.tools.loaded))
        if profile.is_native:  # the definitions of discovered tools are sent too
            now += sum(tool_tokens(entry.tool) for entry in view.discoveries)
        return text(
            "astrbot.status",
            language,
            mode=view.mode.mode,
            reason=view.mode.reason,
            strategy=plan.strategy,
            found=", ".join(view.discoveries.names) or text("astrbot.found_none", language),
            now=now,
            full=full,
            saved=max(0, round(100 * (1 - now / full))) if full else 0,
            **_counts(view.catalog),
        )

    async def _test(self, event: Any, query: str) -> str:
        conversation, settings = await self._conversation_at(event)
        language = _language(settings, conversation)
        if not query:
            return text("astrbot.test_empty", language)
        known = conversation.view.catalog if conversation is not None else None
        catalog = known or self._catalog(settings)
        config = settings.config
        # Both may take a second, or wait for an embedder.
        index = await asyncio.to_thread(build_index, catalog.deferred, config.search)
        found = await asyncio.to_thread(
            search_older_first,
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
        conversation, settings = await self._conversation_at(event)
        language = _language(settings, conversation)
        umo = event.unified_msg_origin
        kept = await load_settings(umo)
        if setting not in PLACE_SETTINGS or not value:
            said = ", ".join(f"{key} = {kept[key]}" for key in kept)
            return text(
                "astrbot.set_usage",
                language,
                kept=said or text("astrbot.found_none", language),
                settings=", ".join(PLACE_SETTINGS),
            )
        if value == _DEFAULT:
            kept.pop(setting, None)
            await save_settings(umo, kept)
            return text("astrbot.set_default", language, setting=setting)
        allowed = place_value(setting, value)
        if allowed is None:
            choices = ", ".join(PLACE_SETTINGS[setting]) or text("astrbot.set_number", language)
            return text("astrbot.set_refused", language, setting=setting, choices=choices)
        await save_settings(umo, {**kept, setting: allowed})
        return text("astrbot.set", language, setting=setting, value=allowed)

    async def _conversation_at(
        self, event: Any
    ) -> tuple[AstrBotConversation | None, AstrBotSettings]:
        """Return a message's conversation, if it is known, and the settings at its place."""
        settings = await self._tool_search.settings_at(event.unified_msg_origin)
        return self._tool_search.conversation(await self._key(event)), settings

    def _catalog(self, settings: AstrBotSettings) -> ToolCatalog:
        tools = self._context.get_llm_tool_manager().get_full_tool_set()
        return self._tool_search.catalog_of(tools, settings)

    async def _key(self, event: Any) -> ConversationId:
        umo = event.unified_msg_origin
        current = await self._context.conversation_manager.get_curr_conversation_id(umo)
        return umo, str(current or "")

    async def _saved_history(self, key: ConversationId) -> list[Any]:
        """Return the history that AstrBot has saved."""
        saved = await self._context.conversation_manager.get_conversation(*key)
        history = json.loads(saved.history or "[]") if saved is not None else []
        return history if isinstance(history, list) else []

    def _failure_text(self, exc: Exception) -> str:
        _log.exception("a command failed")
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
    return _DEFAULT_LANGUAGE if conversation is None else conversation.view.language


def _counts(catalog: ToolCatalog) -> dict[str, int]:
    return {
        "total": len(catalog.active),
        "core": len(catalog.core),
        "deferred": len(catalog.deferred),
    }
