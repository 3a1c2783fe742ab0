"""The plugin's settings in AstrBot, read into the library's own."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from pydantic import ValidationError

from tool_search.adapters.astrbot_claude import NativeChoice
from tool_search.config import ToolSearchConfig

__all__ = ["AstrBotSettings", "read_settings"]

_PLAIN = (
    "tool_schema_mode",
    "threshold",
    "max_results",
    "always_loaded_tools",
    "auto_always_load_builtin",
    "language",
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AstrBotSettings:
    """What an operator has set.

    Attributes:
        config: The library's settings.
        native_claude: Where Claude's own tool search is used.
        cover_subagents: Whether agents that this one hands over to search too.
        cover_scheduled_tasks: Whether tasks that wake the bot up search too.
    """

    config: ToolSearchConfig
    native_claude: NativeChoice = "auto"
    cover_subagents: bool = True
    cover_scheduled_tasks: bool = True


def read_settings(given: Mapping[str, Any] | None) -> AstrBotSettings:
    """The settings; a value that is not allowed is replaced by its default, with a warning."""
    given = given or {}
    native = given.get("native_claude", "auto")
    if native not in get_args(NativeChoice):
        _log.warning("native_claude: %r is not allowed; it is auto", native)
        native = "auto"
    return AstrBotSettings(
        config=_config(_wanted(given)),
        native_claude=cast("NativeChoice", native),
        cover_subagents=bool(given.get("cover_subagents", True)),
        cover_scheduled_tasks=bool(given.get("cover_scheduled_tasks", True)),
    )


def _wanted(given: Mapping[str, Any]) -> dict[str, Any]:
    wanted: dict[str, Any] = {key: given[key] for key in _PLAIN if given.get(key) is not None}
    if given.get("threshold_tokens"):  # a form has no empty number: 0 is none
        wanted["threshold_tokens"] = given["threshold_tokens"]
    if given.get("engine"):
        wanted["search"] = {"engine": given["engine"]}
    if given.get("learning") is not None:
        wanted["learning"] = {"enabled": bool(given["learning"])}
    return wanted


def _config(wanted: dict[str, Any]) -> ToolSearchConfig:
    try:
        return ToolSearchConfig.model_validate(wanted)
    except ValidationError as exc:
        wrong = {str(error["loc"][0]) for error in exc.errors()}
        for error in exc.errors(include_url=False):
            _log.warning(
                "%s: %r is not allowed: %s; its default is used",
                ".".join(map(str, error["loc"])),
                error["input"],
                error["msg"],
            )
        return ToolSearchConfig.model_validate(
            {key: value for key, value in wanted.items() if key not in wrong}
        )
