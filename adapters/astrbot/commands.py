"""The commands below `/tool_search`, for an administrator of the bot."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable
from importlib import invalidate_caches
from typing import Any

from tool_search.adapters.astrbot import AstrBotToolSearch, ConversationId
from tool_search.adapters.astrbot.preferences import (
    database_errors,
    provider_id,
)
from tool_search.adapters.astrbot.reports import MISTAKES
from tool_search.adapters.astrbot.run import AstrBotConversation
from tool_search.adapters.astrbot.settings import (
    ENGINE_PACKAGES,
    PLACE_SETTINGS,
    AstrBotSettings,
    number_range,
    place_value,
    usable_engines,
)
from tool_search.adapters.astrbot.status import Status, status_text
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.i18n import Language, text
from tool_search.search.discovery.search_tool import clean_description

__all__ = ["AstrBotCommands"]

_DEFAULT_LANGUAGE: Language = "zh-CN"  # AstrBot's own commands answer in it
_DEFAULT = "default"
_MAX_LEARNED = 30
_MAX_CAUSE_CHARS = 500
_REMOVABLE = ("regex", "hybrid", "semantic")
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
        return await self._answer(event, self._status(event))

    async def test(self, event: Any, query: str) -> str:
        """Return what the model's search finds, best first; nothing is discovered."""
        return await self._answer(event, self._test(event, query.strip()))

    async def learned(self, event: Any) -> str:
        """Return the words that have led to each tool."""
        return await self._answer(event, self._show_learned(event))

    async def forget(self, event: Any, tool: str) -> str:
        """Erase what was learned about a tool.

        Args:
            event: AstrBot's event.
            tool: The tool's name.
        """
        return await self._answer(event, self._forget(event, tool.strip()))

    async def install(self, event: Any, engine: str) -> str:
        """Install the packages of a search engine, with AstrBot's own installer.

        Args:
            event: AstrBot's event.
            engine: The engine.
        """
        return await self._answer(event, self._install(event, engine.strip()))

    async def uninstall(self, event: Any, engine: str) -> str:
        """Remove the packages of a search engine that this plugin's command installed.

        Args:
            event: AstrBot's event.
            engine: The engine.
        """
        return await self._answer(event, self._uninstall(event, engine.strip()))

    async def reset(self, event: Any) -> str:
        """Drop the discoveries of the conversation of a message."""
        return await self._answer(event, self._reset(event))

    async def set(self, event: Any, setting: str = "", value: str = "") -> str:
        """Change a setting for the place of a message alone; without a value, show the settings.

        Args:
            event: AstrBot's event.
            setting: The name of a setting; empty to show the settings.
            value: The value from the next message on; `default` for the plugin's own.
        """
        return await self._answer(event, self._set(event, setting.strip(), value.strip()))

    async def _answer(self, event: Any, answer: Awaitable[str]) -> str:
        """Return an answer, or the cause why there is none."""
        try:
            return await answer
        except (*MISTAKES, *database_errors()) as exc:
            _log.exception("a command failed")
            language = await self._language_at(event)
            return text("astrbot.failed", language, cause=f"{type(exc).__name__}: {exc}")

    async def _language_at(self, event: Any) -> Language:
        """Return the language of answers to a message, whatever else fails."""
        try:
            conversation, settings = await self._conversation_at(event)
        except (*MISTAKES, *database_errors()):
            return _language(self._tool_search.settings)
        return _language(settings, conversation)

    def _install_hint(self, language: Language, engine: str) -> str:
        size = ENGINE_PACKAGES[engine].megabytes
        return text("astrbot.install_hint", language, engine=engine, size=size)

    async def _install(self, event: Any, engine: str) -> str:
        conversation, settings = await self._conversation_at(event)
        language = _language(settings, conversation)
        needed = ENGINE_PACKAGES.get(engine)
        if needed is None:
            return text("astrbot.install_usage", language, engines=_list(language))
        if not needed.are_installed:
            from astrbot.core import pip_installer  # noqa: PLC0415 - AstrBot is here
            from astrbot.core.utils.pip_installer import (  # noqa: PLC0415
                DependencyConflictError,
                PipInstallError,
            )

            for package in needed.packages:
                try:
                    await pip_installer.install(package_name=package)
                except (DependencyConflictError, PipInstallError) as exc:
                    cause = f"{package}: {exc} (AstrBot's log has what pip says)"
                    return text("astrbot.failed", language, cause=cause[:_MAX_CAUSE_CHARS])
            invalidate_caches()
            _log.info("the packages of the engine %r are installed: %s", engine, needed.packages)
        return text("astrbot.installed", language, engine=engine)

    async def _uninstall(self, event: Any, engine: str) -> str:
        conversation, settings = await self._conversation_at(event)
        language = _language(settings, conversation)
        # AstrBot itself needs the packages of the others.
        if engine not in _REMOVABLE:
            return text("astrbot.install_usage", language, engines=_list(language))
        names = [name.partition("[")[0] for name in ENGINE_PACKAGES[engine].packages]
        command = (sys.executable, "-m", "pip", "uninstall", "--yes", *names)
        done = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        _, said = await done.communicate()
        if done.returncode:
            cause = said.decode("utf-8", "replace")[-_MAX_CAUSE_CHARS:]
            return text("astrbot.failed", language, cause=cause)
        invalidate_caches()
        return text("astrbot.uninstalled", language, engine=engine)

    async def _reset(self, event: Any) -> str:
        conversation, settings = await self._conversation_at(event)
        key = await self._key(event)
        count = self._tool_search.forget(key, await self._saved_history(key))
        return text("astrbot.reset", _language(settings, conversation), count=count)

    async def _status(self, event: Any) -> str:
        conversation, settings = await self._conversation_at(event)
        return status_text(
            Status(
                language=_language(settings, conversation),
                conversation=conversation,
                settings=settings,
                catalog=self._catalog(settings),
                providers=self._providers(settings),
                switched_off=self._switched_off(),
                savings=self._tool_search.savings,
                problems=settings.problems,
                hooks=self._tool_search.hooks,
                warnings=self._tool_search.reports.last,
            )
        )

    def _providers(self, settings: AstrBotSettings) -> dict[str, str]:
        """Return the strategy that each configured provider gets next."""
        return {
            provider_id(each): self._tool_search.profile(each, settings).strategy
            for each in self._context.get_all_providers()
        }

    def _switched_off(self) -> tuple[str, ...]:
        tools = self._context.get_llm_tool_manager().func_list
        return tuple(sorted(tool.name for tool in tools if not getattr(tool, "active", True)))

    async def _test(self, event: Any, query: str) -> str:
        conversation, settings = await self._conversation_at(event)
        language = _language(settings, conversation)
        if not query:
            return text("astrbot.test_empty", language)
        tools = self._context.get_llm_tool_manager().get_full_tool_set().tools
        view = await self._tool_search.view_for(event, await self._key(event), tools)
        found = await asyncio.to_thread(view.preview, {"query": query})
        if found.error is not None:
            return found.error
        names = (*found.names, *found.loaded)
        values = {"query": query, "total": found.total_tools}
        if not names:
            return text("astrbot.test_none", language, **values)
        head = text("astrbot.test_head", language, found=found.total_found, **values)
        lines = [
            f"{place}. {match.name}{_of(match.server)}: {clean_description(match.description)}"
            for place, match in enumerate(found.matches, 1)
        ]
        if found.loaded:
            loaded = ", ".join(found.loaded)
            lines.append(text("astrbot.test_loaded", language, names=loaded))
        return "\n".join([head, *lines])

    async def _show_learned(self, event: Any) -> str:
        conversation, settings = await self._conversation_at(event)
        language = _language(settings, conversation)
        learned = await self._tool_search.learned()
        if not learned:
            return text("astrbot.learned_none", language)
        shown = list(learned.items())[:_MAX_LEARNED]
        lines = [f"{tool}: {', '.join(words)}" for tool, words in shown]
        head = text("astrbot.learned_head", language, count=len(learned))
        return "\n".join([head, *lines])

    async def _forget(self, event: Any, tool: str) -> str:
        conversation, settings = await self._conversation_at(event)
        language = _language(settings, conversation)
        if not tool:
            return text("astrbot.forget_usage", language)
        count = await self._tool_search.forget_learned(tool)
        return text("astrbot.forgotten", language, tool=tool, count=count)

    async def _set(self, event: Any, setting: str, value: str) -> str:
        conversation, settings = await self._conversation_at(event)
        language = _language(settings, conversation)
        umo = event.unified_msg_origin
        places = self._tool_search.places
        kept = await places.load(umo)
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
            await places.save(umo, kept)
            return text("astrbot.set_default", language, setting=setting)
        allowed = place_value(setting, value)
        if allowed is None:
            is_engine = setting == "engine"
            choices = ", ".join(usable_engines() if is_engine else PLACE_SETTINGS[setting])
            if value in ENGINE_PACKAGES and is_engine:
                return self._install_hint(language, value)
            if not choices:
                low, high = number_range(setting)
                choices = text("astrbot.set_number", language, low=low, high=high)
            return text("astrbot.set_refused", language, setting=setting, choices=choices)
        await places.save(umo, {**kept, setting: allowed})
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


def _language(
    settings: AstrBotSettings, conversation: AstrBotConversation | None = None
) -> Language:
    if settings.config.language != "auto":
        return settings.config.language
    return _DEFAULT_LANGUAGE if conversation is None else conversation.view.language


def _list(language: Language) -> str:
    """Return the engines that have packages, with their sizes."""
    return ", ".join(
        text("astrbot.engine_size", language, engine=engine, size=ENGINE_PACKAGES[engine].megabytes)
        for engine in _REMOVABLE
    )


def _of(server: str | None) -> str:
    return f" ({server})" if server else ""
