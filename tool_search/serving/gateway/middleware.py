"""Middleware as MCProxy's file has it: filters, security rules, descriptions, logging.

Patterns are matched by RE2, in linear time: they are an operator's, and what they are matched
against is a stranger's.

Source: MCProxy's example configuration: `tool_filter`, `security` and its three default rules,
`description_enricher`, `logging`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError, field_validator

from tool_search.config.settings import Settings
from tool_search.core.values.json import compact_json
from tool_search.errors import ConfigurationError

__all__ = [
    "CallLogging",
    "ClientMiddleware",
    "Enricher",
    "MiddlewareEntry",
    "SecurityMiddleware",
    "SecurityRule",
    "ToolFilter",
    "made_client",
    "made_proxy",
]

_MAX_PATTERN_CHARS = 1_000
_Made = TypeVar("_Made", bound=Settings)


class MiddlewareEntry(Settings):
    """One entry of a list of middleware.

    Attributes:
        type: The kind of step.
        enabled: False if it is not made.
        config: Its settings.
    """

    type: Annotated[str, Field(min_length=1, max_length=100)]
    enabled: bool = True
    config: Mapping[str, Any] = Field(default_factory=dict)


class ToolFilter(Settings):
    """Filters tools by the server's own name: what `allow` matches, else all but `disallow`.

    Attributes:
        allow: A regular expression, found anywhere in the name; it wins over `disallow`.
        disallow: A regular expression.
    """

    allow: str | None = None
    disallow: str | None = None

    @field_validator("allow", "disallow")
    @classmethod
    def _compiles(cls, value: str | None, info: Any) -> str | None:
        if value is not None:
            _check_pattern(value, f"{info.field_name} regex pattern")
        return value

    def admits(self, tool: str) -> bool:
        """True if the tool is shown and can be called."""
        if self.allow is not None:
            return matches(self.allow, tool)
        return self.disallow is None or not matches(self.disallow, tool)


class SecurityRule(Settings):
    """A rule that blocks calls.

    Attributes:
        name: Its name in logs.
        description: Its purpose.
        pattern: A regular expression over `tool_name:NAME args:{json}`.
        block_message: The text of the blocked call's result.
        enabled: False if it is passed over.
    """

    name: str
    description: str = ""
    pattern: str
    block_message: str = "Blocked by a security rule"
    enabled: bool = True

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        _check_pattern(value, "security rule pattern")
        return value


# Name, purpose, pattern and text of the rules without a `config`.
_DEFAULT_RULES = (
    (
        "no_system_commands",
        "Commands that change the system.",
        r"(?i)(rm\s+-rf|sudo|passwd|shutdown|reboot|format|del\s+/|rd\s+/s)",
        "System commands are not allowed",
    ),
    (
        "no_sensitive_files",
        "Files with passwords and keys.",
        r"(?i)(/etc/passwd|/etc/shadow|\.ssh/|\.aws/|\.env|config\.json|secret)",
        "Access to sensitive files is not allowed",
    ),
    (
        "no_network_commands",
        "Programs that reach other machines.",
        r"(?i)(curl|wget|nc|netcat|telnet|ssh|ftp|sftp)\s+",
        "Network commands are not allowed",
    ),
)


def _default_rules() -> tuple[SecurityRule, ...]:
    """Return MCProxy's default rules; their patterns are compiled here, not at import."""
    return tuple(
        SecurityRule(name=name, description=purpose, pattern=pattern, block_message=message)
        for name, purpose, pattern, message in _DEFAULT_RULES
    )


class SecurityMiddleware(Settings):
    """Blocks calls by rules.

    Attributes:
        rules: The rules; the first that matches blocks.
        log_blocked: True if each blocked call is logged.
    """

    rules: tuple[SecurityRule, ...] = Field(default_factory=_default_rules)
    log_blocked: bool = True

    def blocking(self, tool: str, arguments: Mapping[str, Any]) -> SecurityRule | None:
        """Return the rule that blocks a call, or None."""
        text = f"tool_name:{tool} args:{compact_json(dict(arguments))}"
        enabled = (rule for rule in self.rules if rule.enabled)
        return next((rule for rule in enabled if matches(rule.pattern, text)), None)


class CallLogging(Settings):
    """Logs calls with their durations and ids.

    Attributes:
        level: The level of the records.
    """

    level: Literal["trace", "debug", "info", "warn", "warning", "error"] = "info"


class Enricher(Settings):
    """Adds to descriptions, or replaces them.

    Attributes:
        suffix: The text after each description.
        overrides: Descriptions in place of others, by the tool's full name or own name.
    """

    suffix: str = " (via mcproxy)"
    overrides: Mapping[str, str] = Field(default_factory=dict)

    def description(self, full_name: str, tool: str, description: str) -> str:
        """Return the description that clients read."""
        given = self.overrides.get(full_name, self.overrides.get(tool, description))
        return f"{given}{self.suffix}"


ClientMiddleware = CallLogging | ToolFilter | SecurityMiddleware
"""A step of one server."""

_PROXY: Mapping[str, type[Enricher | ToolFilter]] = {
    "description_enricher": Enricher,
    "tool_filter": ToolFilter,
}
_CLIENT: Mapping[str, type[CallLogging | ToolFilter | SecurityMiddleware]] = {
    "logging": CallLogging,
    "tool_filter": ToolFilter,
    "security": SecurityMiddleware,
}


def made_proxy(entries: Iterable[MiddlewareEntry]) -> tuple[Enricher | ToolFilter, ...]:
    """Return the enabled steps over all servers; `tool_search` is a section of its own.

    Raises:
        ValueError: A type is unknown, or a setting of a step is wrong.
    """
    wanted = [entry for entry in entries if entry.enabled and entry.type != "tool_search"]
    return tuple(_build_step(entry, _PROXY, (*_PROXY, "tool_search")) for entry in wanted)


def made_client(entries: Iterable[MiddlewareEntry]) -> tuple[ClientMiddleware, ...]:
    """Return the enabled steps of a server.

    Raises:
        ValueError: A type is unknown, or a setting of a step is wrong.
    """
    return tuple(_build_step(entry, _CLIENT, _CLIENT) for entry in entries if entry.enabled)


def _build_step(
    entry: MiddlewareEntry, kinds: Mapping[str, type[_Made]], known: Iterable[str]
) -> _Made:
    kind = kinds.get(entry.type)
    if kind is None:
        raise ValueError(
            f"unknown middleware type {entry.type!r}; known here: {', '.join(sorted(known))}"
        )
    try:
        return kind.model_validate(dict(entry.config))
    except ValidationError as exc:
        problems = "; ".join(
            f"{'.'.join(map(str, error['loc'])) or 'config'}: "
            f"{error['msg'].removeprefix('Value error, ')}"
            for error in exc.errors(include_url=False)
        )
        raise ValueError(f"middleware {entry.type!r}: {problems}") from exc


def matches(pattern: str, text: str) -> bool:
    """True if a pattern is found in a text."""
    return _compile(pattern).search(text) is not None


def _check_pattern(pattern: str, what: str) -> None:
    if len(pattern) > _MAX_PATTERN_CHARS:
        raise ValueError(f"Invalid {what}: more than {_MAX_PATTERN_CHARS} characters")
    try:
        _compile(pattern)
    except ConfigurationError:
        raise
    except Exception as exc:  # `re2.error` is not in the package's stubs
        # The package gives the reason as bytes.
        reasons = (each.decode() if isinstance(each, bytes) else str(each) for each in exc.args)
        raise ValueError(f"Invalid {what} {pattern!r}: {' '.join(reasons)}") from exc


@cache
def _compile(pattern: str) -> Any:
    try:
        re2 = import_module("re2")
    except ModuleNotFoundError as exc:
        raise ConfigurationError(
            "patterns of a middleware need the package google-re2: "
            "pip install 'tool-search-middleware[regex]'; in a clone: pip install '.[regex]'"
        ) from exc
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options=options)
