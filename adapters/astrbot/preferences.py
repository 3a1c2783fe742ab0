"""AstrBot's own data about a place of conversation (`unified_msg_origin`), a message and tools.

AstrBot is loaded on first use.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tool_search.adapters.astrbot.kept import JsonFile
from tool_search.adapters.astrbot.reports import MISTAKES
from tool_search.adapters.astrbot.settings import (
    PLACE_SETTINGS,
    AstrBotSettings,
    good_values,
    read_settings,
)
from tool_search.adapters.astrbot.surface import PICTURE_CHOICE, is_there
from tool_search.adapters.astrbot.tools import without_guard
from tool_search.adapters.wire.values import mapping_of
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import COMMON, NameRule
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.calls import allowed_to_all
from tool_search.core.profiles import ProviderProfile
from tool_search.errors import ConfigurationError
from tool_search.providers.profile_choice import profile_for

__all__ = [
    "PlaceSettings",
    "calls_tools",
    "database_errors",
    "demands_of",
    "first_provider",
    "follow_settings",
    "is_switched_off",
    "name_rule_of",
    "own_mode",
    "permitted",
    "plugin_of",
    "provider_id",
    "restricted_tools",
    "user_of",
]

_KEY = "tool_search_settings"
_EVERY_PLUGIN = ["*"]
_UNREADABLE = (
    "AstrBot's tool permissions cannot be read: %s; every user finds every tool, and "
    "AstrBot checks each call"
)
# Each in 4.29, and in 4.27 and before.
_MODES = (
    ("agent_runner", "config", "misc", "tool_schema_mode"),
    ("provider_settings", "tool_schema_mode"),
)
_FALLBACKS = (
    ("agent_runner", "config", "model", "fallback_provider_ids"),
    ("provider_settings", "fallback_chat_models"),
)
_OPENAI_CHAT = "openai_chat_completion"
_GEMINI = "googlegenai_chat_completion"
_GEMINI_ADDRESS = "https://generativelanguage.googleapis.com"
_log = logging.getLogger(__name__)


def database_errors() -> tuple[type[Exception], ...]:
    """Return the kinds of errors of AstrBot's database."""
    errors = sys.modules.get("sqlalchemy.exc")  # AstrBot has loaded it
    return (OSError,) if errors is None else (OSError, errors.SQLAlchemyError)


def plugin_of(module: Any) -> str | None:
    """Return the name of the plugin that a module belongs to; None if it is no plugin's."""
    if not isinstance(module, str) or not module:
        return None
    registry = sys.modules.get("astrbot.core.star.star")
    star = getattr(registry, "star_map", {}).get(module)
    if star is not None and star.name:
        return str(star.name)
    # A tool of a module besides the plugin's main one: data.plugins.<folder>.<module>.
    _, found, rest = module.partition("plugins.")
    return rest.partition(".")[0] or None if found else None


def own_mode(context: Any, umo: str) -> str:
    """Return AstrBot's own `tool_schema_mode` at a place; empty if it has none."""
    found = _read_configuration(context.get_config(umo=umo), _MODES)
    return found if isinstance(found, str) else ""


async def first_provider(context: Any, event: Any, request: Any = None) -> Any:
    """Return the provider that AstrBot asks first; None if there is none.

    The choice of a message, which the WebUI's chat makes, goes before the provider of its
    place, and a fallback that reads pictures before a provider that does not, in releases
    that ask it.

    Args:
        context: AstrBot's context for plugins.
        event: AstrBot's event.
        request: Its request; None: one without pictures.
    """
    chosen = await _chosen_provider(context, event)
    if chosen is None or not getattr(request, "image_urls", None) or _reads_pictures(chosen):
        return chosen
    if not is_there(PICTURE_CHOICE):
        return chosen
    listed = _read_configuration(context.get_config(umo=event.unified_msg_origin), _FALLBACKS)
    fallbacks = [context.get_provider_by_id(each) for each in listed or () if each]
    return next((each for each in fallbacks if each and _reads_pictures(each)), chosen)


def calls_tools(provider: Any) -> bool:
    """True if AstrBot's settings let a provider call tools; an unknown provider may."""
    modalities = _of_provider(provider, "modalities")
    return not modalities or "tool_use" in modalities


def demands_of(provider: Any) -> tuple[str | None, str | None]:
    """Return the reasoning and the signature that a provider demands of a message with calls.

    None for what it does not demand; AstrBot sends what a message of its history has.
    """
    facts = _facts(provider)
    if facts is None:
        return None, None
    signature = facts.missing_signature
    if _of_provider(provider, "type") == _GEMINI:
        # AstrBot decodes it, and Google's SDK writes bytes.
        return None, None if signature is None else b64encode(signature.encode()).decode()
    return facts.missing_reasoning, signature


def name_rule_of(provider: Any) -> NameRule:
    """Return the rule for the names of tools of a provider whose list AstrBot writes."""
    facts = _facts(provider)
    return COMMON if facts is None else facts.name_rule


def _facts(provider: Any) -> ProviderProfile | None:
    """Return what is known of a provider with OpenAI's or Gemini's dialect; None of others."""
    kind, address = _of_provider(provider, "type"), _of_provider(provider, "api_base")
    if kind not in (_GEMINI, _OPENAI_CHAT):
        return None
    model = str(provider.get_model() or "")
    if kind == _GEMINI:
        return profile_for("openai_chat", model, base_url=_GEMINI_ADDRESS)
    if not model:
        return None
    try:
        return profile_for("openai_chat", model, base_url=str(address or "") or None)
    except ConfigurationError:  # an address that is none
        return None


def provider_id(provider: Any) -> str:
    """Return the name that an operator gave a provider; empty for none."""
    return str(_of_provider(provider, "id") or "")


async def _chosen_provider(context: Any, event: Any) -> Any:
    chosen = event.get_extra("selected_provider")
    if isinstance(chosen, str) and chosen:
        return context.get_provider_by_id(chosen)
    umo = event.unified_msg_origin
    ask = getattr(context, "get_using_provider_async", None)  # from 4.29 on
    try:
        return context.get_using_provider(umo=umo) if ask is None else await ask(umo=umo)
    except ValueError as exc:  # the provider of this place is not for chats
        _log.warning("the provider of %s cannot be asked: %s", umo, exc)
        return None


def _reads_pictures(provider: Any) -> bool:
    """True if AstrBot sends pictures to a provider: an empty list of modalities has all."""
    modalities = _of_provider(provider, "modalities")
    return isinstance(modalities, list) and (not modalities or "image" in modalities)


def _of_provider(provider: Any, key: str) -> Any:
    config = getattr(provider, "provider_config", None)
    return config.get(key) if isinstance(config, Mapping) else None


def _read_configuration(config: Any, places: tuple[tuple[str, ...], ...]) -> Any:
    """Return the first value that is set at one of these places of a configuration."""
    for path in places:
        value = config
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if value:
            return value
    return None


class PlaceSettings:
    """The settings that administrators have set for single places.

    They are in the plugin's data folder, which AstrBot deletes with the plugin's data. Those that
    an earlier version of the plugin kept in AstrBot's preferences are moved there.

    Args:
        path: Their file; None for this process alone.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file = JsonFile(path)
        kept = self._file.read().get("places")
        self._kept: dict[str, Any] = dict(kept) if isinstance(kept, Mapping) else {}
        self._has_moved = False

    async def load(self, umo: str) -> dict[str, Any]:
        """Return the settings of a place."""
        if not self._has_moved:
            await self._move()
            self._has_moved = True
        kept = self._kept.get(umo)
        own = kept if isinstance(kept, Mapping) else {}
        return {key: value for key, value in own.items() if key in PLACE_SETTINGS}

    async def save(self, umo: str, settings: Mapping[str, Any]) -> None:
        """Save the settings of a place; without any, it follows the plugin's own."""
        self._kept.pop(umo, None)
        if settings:
            self._kept[umo] = dict(settings)
        await asyncio.to_thread(self._file.write, {"places": dict(self._kept)})

    async def _move(self) -> None:
        from astrbot.core import sp  # noqa: PLC0415 - AstrBot is here

        for earlier in await sp.session_get(None, _KEY):
            value = mapping_of(earlier.value).get("val")
            if earlier.scope_id not in self._kept and isinstance(value, Mapping):
                await self.save(earlier.scope_id, value)
            await sp.session_remove(earlier.scope_id, _KEY)


def follow_settings(
    given: Mapping[str, Any], folder: Path | None
) -> tuple[dict[str, Any], AstrBotSettings]:
    """Return the good values of the plugin's settings, which are kept, and the settings.

    Args:
        given: The settings, as AstrBot has them.
        folder: The plugin's data folder; None to keep nothing.
    """
    file = JsonFile(folder and folder / "settings.json")
    before = file.read().get("settings")
    before = before if isinstance(before, Mapping) else {}
    settings = read_settings(given, before)
    for problem in settings.problems:
        _log.warning("%s", problem)
    good = {**good_values({**before}), **good_values(given)}
    good = {key: value for key, value in good.items() if key in given}
    if good != before:
        file.write({"settings": good})
    return good, settings


async def is_switched_off(event: Any, plugin: str) -> bool:
    """True if AstrBot has switched a plugin off at the place of an event.

    Its configuration has a list of plugins, and each place has a switch.
    """
    listed = getattr(event, "plugins_name", None)
    if listed is not None and listed != _EVERY_PLUGIN and plugin not in listed:
        return True
    from astrbot.core.star.session_plugin_manager import (  # noqa: PLC0415 - AstrBot is here
        SessionPluginManager,
    )

    answer = SessionPluginManager.is_plugin_enabled_for_session(event.unified_msg_origin, plugin)
    return not (await answer if inspect.isawaitable(answer) else answer)


def _is_admin(event: Any) -> bool:
    """True if an event is from an administrator of the bot."""
    asked = getattr(event, "is_admin", None)
    return bool(asked()) if callable(asked) else False


def user_of(event: Any) -> str:
    """Return the sender of an event with the platform, or its place if it has no sender."""
    umo = str(event.unified_msg_origin)
    asked = getattr(event, "get_sender_id", None)
    sender = str(asked() or "") if callable(asked) else ""
    return f"{umo.partition(':')[0]}:{sender}" if sender else umo


async def permitted(
    manager: Any,
    event: Any,
    catalog: ToolCatalog,
    definitions: Mapping[str, Tool],
    tools: Iterable[Any],
) -> tuple[ToolCatalog, Callable[[Tool], str | None]]:
    """Return a catalog that knows which tools are restricted, and the reason why one is refused.

    The reason is empty: a tool that is not for this user is answered like an unknown name.

    Args:
        manager: AstrBot's manager of tools.
        event: The event of a user's message.
        catalog: The catalog of the tools.
        definitions: Their definitions, by name.
        tools: AstrBot's own.
    """
    named = {tool.name: tool for tool in tools}
    kept_back = await restricted_tools(manager, definitions, named)
    restricted = {catalog.by_source[definitions[name].source].name for name in kept_back}
    if not restricted:
        return catalog, allowed_to_all
    allowed = _is_admin(event)

    def refusal(tool: Tool) -> str | None:
        return None if allowed or tool.name not in restricted else ""

    return catalog.restricting(restricted), refusal


async def restricted_tools(
    manager: Any, definitions: Mapping[str, Tool], tools: Mapping[str, Any]
) -> frozenset[str]:
    """Return the tools that AstrBot keeps for administrators; its guard still checks each call.

    Args:
        manager: AstrBot's manager of tools.
        definitions: The definitions, by name.
        tools: AstrBot's own, by name. Without guards, nothing is restricted.
    """
    if all(without_guard(tool) is tool for tool in tools.values()):
        return frozenset()
    try:
        fallback = manager._default_permission  # noqa: SLF001 - AstrBot has no other way to ask
        return await _administrators_tools(fallback, definitions)
    except (*MISTAKES, *database_errors()) as exc:
        _log.warning(_UNREADABLE, f"{type(exc).__name__}: {exc}")
        return frozenset()


async def _administrators_tools(fallback: Any, definitions: Mapping[str, Tool]) -> frozenset[str]:
    from astrbot.core import sp  # noqa: PLC0415 - AstrBot is here

    kept = await sp.global_get("tool_permissions", {})
    own = kept.get("_default") or {}
    return frozenset(
        name
        for name, tool in definitions.items()
        if tool.kind in ("plugin", "mcp") and (own.get(name) or fallback(name)) == "admin"
    )
