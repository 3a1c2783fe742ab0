"""The plugin's settings in AstrBot, read into the library's own."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from pydantic import ValidationError

from tool_search.config.bot import ToolSearchConfig
from tool_search.config.providers import Dialect
from tool_search.i18n import LANGUAGES

__all__ = ["PLACE_SETTINGS", "AstrBotSettings", "NativeChoice", "place_value", "read_settings"]

NativeChoice = Literal["auto", "on", "off"]
"""Use of a vendor's own tool search: at its own endpoint, at any, or at none."""

PLACE_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "tool_schema_mode": ("auto", "tool_search", "full"),
    "threshold": (),
    "threshold_tokens": (),
    "max_results": (),
    "engine": ("bm25", "rank_bm25", "lexical", "regex"),
    "language": ("auto", *LANGUAGES),
    "native_claude": get_args(NativeChoice),
    "native_openai": get_args(NativeChoice),
}
"""The settings that may differ by place, with their choices; one without choices is a number."""

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
    """The settings of an operator.

    Attributes:
        config: The library's settings.
        native_claude: Use of Claude's own tool search.
        native_openai: Use of OpenAI's own tool search, in its Responses API.
        cover_subagents: True if subagents search too.
        cover_scheduled_tasks: True if scheduled tasks search too.
        skills_like: True if AstrBot's own mode is `skills_like`, which stays as it is unless
            the plugin's mode is `tool_search`.
        problems: The values that are not allowed, with what is.
    """

    config: ToolSearchConfig
    native_claude: NativeChoice = "auto"
    native_openai: NativeChoice = "auto"
    cover_subagents: bool = True
    cover_scheduled_tasks: bool = True
    skills_like: bool = False
    problems: tuple[str, ...] = ()

    def with_own_mode(self, mode: str) -> AstrBotSettings:
        """Return the settings at a place with a mode of AstrBot's own.

        A mode of the plugin's other than `auto` goes before it. `full` is AstrBot's default,
        and so says nothing.

        Args:
            mode: AstrBot's `tool_schema_mode`; releases keep values that only this plugin knows.
        """
        if self.config.tool_schema_mode != "auto" or mode not in ("skills_like", "tool_search"):
            return self
        if mode == "skills_like":
            return replace(self, skills_like=True)
        return replace(self, config=self.config.model_copy(update={"tool_schema_mode": mode}))

    def native(self, dialect: Dialect) -> NativeChoice:
        """Return the use of the tool search of a dialect's vendor."""
        chosen: dict[Dialect, NativeChoice] = {
            "anthropic": self.native_claude,
            "openai_responses": self.native_openai,
        }
        return chosen.get(dialect, "off")


def read_settings(given: Mapping[str, Any] | None) -> AstrBotSettings:
    """Read the settings; the default replaces a value that is not allowed, with a warning."""
    given = given or {}
    return AstrBotSettings(
        config=_config(_wanted(given)),
        native_claude=_native(given, "native_claude"),
        native_openai=_native(given, "native_openai"),
        cover_subagents=bool(given.get("cover_subagents", True)),
        cover_scheduled_tasks=bool(given.get("cover_scheduled_tasks", True)),
    )


def place_value(setting: str, written: str) -> str | int | None:
    """Return the value that an administrator wrote; None if it is not allowed."""
    choices = PLACE_SETTINGS[setting]
    if choices:
        return written if written in choices else None
    try:
        number = int(written)
        ToolSearchConfig.model_validate(_wanted({setting: number}))
    except ValueError:  # pydantic's error is one
        return None
    return number


def _native(given: Mapping[str, Any], key: str) -> NativeChoice:
    chosen = given.get(key, "auto")
    if chosen not in get_args(NativeChoice):
        _log.warning("%s: %r is not allowed; auto is used", key, chosen)
        return "auto"
    return cast("NativeChoice", chosen)


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
