"""The `permissions` section: rules for calls, and questions to the user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from tool_search.config.settings import Settings
from tool_search.core.settings import HiddenTools
from tool_search.core.values.patterns import NAMED_PATTERN, read_pattern

__all__ = ["PermissionMode", "PermissionRules", "PermissionSettings"]

PermissionMode = Literal["default", "plan", "accept", "bypass", "never-ask"]
"""`default`: the rules decide; `plan`: only what changes nothing; `accept`: asks only if a
rule says so or a tool is destructive; `bypass`: nothing is asked; `never-ask`: what
would be asked is denied. What a rule denies is denied in every mode."""


class PermissionRules(Settings):
    """Rules of one level: `tool`, `tool(argument=pattern)`, `mcp__server__*`, globs.

    A plain name in `allow` is about the bot's own tools alone; a server's tools are named by
    their server. In `ask` and `deny` it covers a server's tool of that name too.

    Attributes:
        allow: Calls that run without a question.
        ask: Calls that the user is asked about; wins over `allow`.
        deny: Calls that never run; wins over both.
    """

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    @field_validator("allow", "ask", "deny")
    @classmethod
    def _are_rules(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for rule in value:
            name, bracket, rest = rule.partition("(")
            if not name.strip() or name != name.strip():
                raise ValueError(f"the rule {rule!r} must begin with a tool's name")
            if bracket and (not rest.endswith(")") or rest == ")"):
                raise ValueError(
                    f"the rule {rule!r} must be tool or tool(pattern), with one pattern in brackets"
                )
            if bracket:
                _check_pattern(rule, rest.removesuffix(")"))
        return value


def _check_pattern(rule: str, pattern: str) -> None:
    named = NAMED_PATTERN.fullmatch(pattern)
    try:
        read_pattern(named[2] if named else pattern)
    except ValueError as exc:
        raise ValueError(f"the rule {rule!r} cannot be read: {exc}") from exc


class PermissionSettings(PermissionRules):
    """All levels of rules, and how they are applied.

    Attributes:
        mode: The mode in which conversations begin.
        otherwise: The decision on a call that no rule names.
        policy: Rules that no mode, grant or hook can lift.
        roles: Further rules for users with a role, by the role's name.
        trusted_servers: Servers whose hints count, such as `readOnlyHint`: by their
            exact names. Any other server's tool is assumed to change and destroy things.
        hidden: Tools that a user may not call, but that the conversation refers to
            already: `keep` declares them on, so that the prompt cache holds; `strict`
            leaves them out, and their references become text. A call is answered like
            that of an unknown name in either case.
        grants: A file in which an older version kept `always`, relative to the
            configuration's own place: taken into the store once.
        ask_timeout_s: Seconds the user has to answer; after that the answer is no.
    """

    mode: PermissionMode = "default"
    otherwise: Literal["allow", "ask", "deny"] = "allow"
    policy: PermissionRules = PermissionRules()
    roles: Mapping[str, PermissionRules] = Field(default_factory=dict)
    trusted_servers: tuple[str, ...] = ()
    hidden: HiddenTools = "keep"
    grants: str | None = None
    ask_timeout_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 300.0

    @property
    def rules_nothing(self) -> bool:
        """True if every call is allowed, except those that a tool's author wants asked."""
        levels = (self, self.policy, *self.roles.values())
        ruled = any(level.allow or level.ask or level.deny for level in levels)
        return not ruled and self.mode == "default" and self.otherwise == "allow"

    def grants_file(self, source: Path | None = None) -> Path | None:
        """Return the file of grants of an older version.

        Args:
            source: The bot's configuration file: a relative path is relative to it.
        """
        if self.grants is None:
            return None
        folder = Path() if source is None else source.resolve().parent
        return folder / Path(self.grants).expanduser()
