"""The arms of a run: ways to give a model its tools, fixed before the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from tool_search import ToolSearchConfig
from tool_search.i18n import LANGUAGES

__all__ = ["ALL", "RIGHT", "Arm", "choose_arms", "known_arms"]

ALL, RIGHT = "all tools", "right tools"
ArmKind = Literal["all", "right", "search"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to give a model its tools.

    Attributes:
        name: Its name in results.
        kind: `all` declares every tool, `right` only those that answer the request,
            `search` those that tool search declares.
        settings: The settings of `tool_search` that it changes.
    """

    name: str
    kind: ArmKind
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> ToolSearchConfig:
        """Its whole configuration; nothing is learned from task to task."""
        mode = "tool_search" if self.kind == "search" else "full"
        fixed = {"tool_schema_mode": mode, "learning": {"enabled": False}}
        return ToolSearchConfig.model_validate({**self.settings, **fixed})


def known_arms() -> tuple[Arm, ...]:
    """Return every arm: all tools, the right tools, and search in each listing and wording.

    The wording is the language of our texts; `auto` is that of the request.
    """
    searches = [
        Arm(
            name=f"search, {listing}, {wording}",
            kind="search",
            settings={**({"listing": listing} if listing != "plain" else {}), "language": wording},
        )
        for listing in _listings()
        for wording in ("auto", *LANGUAGES)
    ]
    return (Arm(name=ALL, kind="all"), Arm(name=RIGHT, kind="right"), *searches)


def choose_arms(names: Sequence[str] = ()) -> tuple[Arm, ...]:
    """Return the arms of these names; without any, those whose wording is `auto`.

    Raises:
        SystemExit: An arm is not known.
    """
    known = {arm.name: arm for arm in known_arms()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no arm is named {unknown[0]!r}; known: {'; '.join(known)}")
    usual = [arm for arm in known.values() if arm.settings.get("language", "auto") == "auto"]
    return tuple(known[name] for name in names) if names else tuple(usual)


def _listings() -> tuple[str, ...]:
    """Return the values of the setting `listing`; `plain` stands for having no such setting."""
    setting = ToolSearchConfig.model_fields.get("listing")
    return get_args(setting.annotation) if setting is not None else ("plain",)
