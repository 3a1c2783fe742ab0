"""AstrBot's own data about a place of conversation (`unified_msg_origin`) and about tools.

AstrBot is loaded on first use.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from typing import Any

from tool_search.adapters.astrbot.settings import PLACE_SETTINGS
from tool_search.adapters.astrbot.tools import without_guard
from tool_search.catalog.tool import Tool

__all__ = [
    "is_admin",
    "is_switched_off",
    "load_settings",
    "restricted_tools",
    "save_settings",
    "user_of",
]

_KEY = "tool_search_settings"
_EVERY_PLUGIN = ["*"]
_UNREADABLE = (
    "AstrBot's tool permissions cannot be read: %s; every user finds every tool, and "
    "AstrBot checks each call"
)
_log = logging.getLogger(__name__)


async def load_settings(umo: str) -> dict[str, Any]:
    """Return the settings that an administrator has set for a place."""
    from astrbot.core import sp  # noqa: PLC0415 - AstrBot is here

    kept = await sp.session_get(umo, _KEY, {})
    if not isinstance(kept, Mapping):
        return {}
    return {key: value for key, value in kept.items() if key in PLACE_SETTINGS}


async def save_settings(umo: str, settings: Mapping[str, Any]) -> None:
    """Save the settings of a place; without any, it follows the plugin's own."""
    from astrbot.core import sp  # noqa: PLC0415 - AstrBot is here

    if settings:
        await sp.session_put(umo, _KEY, dict(settings))
    else:
        await sp.session_remove(umo, _KEY)


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


def is_admin(event: Any) -> bool:
    """True if an event is from an administrator of the bot."""
    asked = getattr(event, "is_admin", None)
    return bool(asked()) if callable(asked) else False


def user_of(event: Any) -> str:
    """Return the sender of an event with the platform, or its place if it has no sender."""
    umo = str(event.unified_msg_origin)
    asked = getattr(event, "get_sender_id", None)
    sender = str(asked() or "") if callable(asked) else ""
    return f"{umo.partition(':')[0]}:{sender}" if sender else umo


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
    except Exception as exc:  # noqa: BLE001  # any release of AstrBot may change its data
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
