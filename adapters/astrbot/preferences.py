"""What AstrBot keeps about a place of conversation (`unified_msg_origin`), and about tools.

AstrBot is loaded when it is asked.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from typing import Any

from tool_search.adapters.astrbot.settings import OF_ONE_PLACE
from tool_search.adapters.astrbot.tools import behind_guard
from tool_search.catalog.tool import Tool

__all__ = [
    "is_admin",
    "is_switched_off",
    "keep_settings",
    "kept_settings",
    "restricted_tools",
]

_KEY = "tool_search_settings"
_EVERY_PLUGIN = ["*"]
_UNREADABLE = (
    "AstrBot's tool permissions cannot be read: %s; every tool is found by everybody, and "
    "AstrBot checks each call"
)
_log = logging.getLogger(__name__)


async def kept_settings(umo: str) -> dict[str, Any]:
    """The settings that an administrator has set for a place."""
    from astrbot.core import sp  # noqa: PLC0415 - AstrBot is here

    kept = await sp.session_get(umo, _KEY, {})
    if not isinstance(kept, Mapping):
        return {}
    return {key: value for key, value in kept.items() if key in OF_ONE_PLACE}


async def keep_settings(umo: str, settings: Mapping[str, Any]) -> None:
    """Keeps the settings of a place; none: it follows the plugin's own."""
    from astrbot.core import sp  # noqa: PLC0415 - AstrBot is here

    if settings:
        await sp.session_put(umo, _KEY, dict(settings))
    else:
        await sp.session_remove(umo, _KEY)


async def is_switched_off(event: Any, plugin: str) -> bool:
    """Whether AstrBot has a plugin switched off where an event is from.

    By the list of plugins of its configuration, or for the one place.
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
    """Whether an event is from an administrator of the bot."""
    asked = getattr(event, "is_admin", None)
    return bool(asked()) if callable(asked) else False


async def restricted_tools(
    manager: Any, definitions: Mapping[str, Tool], tools: Mapping[str, Any]
) -> frozenset[str]:
    """The tools that AstrBot keeps for administrators; its guard checks every call anyway.

    Args:
        manager: AstrBot's manager of tools.
        definitions: The definitions, by name.
        tools: AstrBot's own, by name. Without a guard before any, there are no permissions.
    """
    if all(behind_guard(tool) is tool for tool in tools.values()):
        return frozenset()
    try:
        fallback = manager._default_permission  # noqa: SLF001 - AstrBot has no other way to ask
        return await _restricted(fallback, definitions)
    except Exception as exc:  # noqa: BLE001  # what AstrBot keeps may change with any release
        _log.warning(_UNREADABLE, f"{type(exc).__name__}: {exc}")
        return frozenset()


async def _restricted(fallback: Any, definitions: Mapping[str, Tool]) -> frozenset[str]:
    from astrbot.core import sp  # noqa: PLC0415 - AstrBot is here

    kept = await sp.global_get("tool_permissions", {})
    own = kept.get("_default") or {}
    return frozenset(
        name
        for name, tool in definitions.items()
        if tool.kind in ("plugin", "mcp") and (own.get(name) or fallback(name)) == "admin"
    )
