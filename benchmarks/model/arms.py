"""The arms of a run: ways to give a model its tools, fixed before the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from model.peers import PEERS
from tool_search import ToolSearchConfig
from tool_search.i18n import LANGUAGES

__all__ = ["ALL", "RIGHT", "Arm", "choose_arms", "known_arms"]

ALL, RIGHT = "all tools", "right tools"
ArmKind = Literal["all", "right", "search", "peer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to give a model its tools.

    Attributes:
        name: Its name in results.
        kind: `all` declares every tool, `right` only those that answer the request,
            `search` those that tool search declares, `peer` the two of a peer's search.
        settings: The settings of `tool_search` that it changes.
        package: The package and version of a peer's search.
    """

    name: str
    kind: ArmKind
    settings: Mapping[str, Any] = field(default_factory=dict)
    package: str = ""

    @property
    def config(self) -> ToolSearchConfig:
        """Its whole configuration; nothing is learned from task to task."""
        mode = "tool_search" if self.kind == "search" else "full"
        fixed = {"tool_schema_mode": mode, "learning": {"enabled": False}}
        return ToolSearchConfig.model_validate({**self.settings, **fixed})


def known_arms() -> tuple[Arm, ...]:
    """Return every arm: all tools, the right tools, search in each form, and peers' searches.

    The forms are the listings and wordings. The wording is the language of our texts; `auto` is
    that of the request. A peer whose package is absent has an arm without a `package`.
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
    peers = [Arm(name=name, kind="peer", package=peer.installed) for name, peer in PEERS.items()]
    return (Arm(name=ALL, kind="all"), Arm(name=RIGHT, kind="right"), *searches, *peers)


def choose_arms(
    names: Sequence[str] = (), *, peers: bool = False
) -> tuple[tuple[Arm, ...], Mapping[str, str]]:
    """Return the arms of a run, and the reason of each that is left out.

    Args:
        names: The arms; without any, those whose wording is `auto`.
        peers: True to add the peers' searches.

    Raises:
        SystemExit: An arm is not known, or none is left.
    """
    known = {arm.name: arm for arm in known_arms()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no arm is named {unknown[0]!r}; known: {'; '.join(known)}")
    usual = [name for name, arm in known.items() if _is_usual(arm)]
    chosen = [*(names or usual), *(PEERS if peers else ())]
    arms = [known[name] for name in dict.fromkeys(chosen)]
    left_out = {
        arm.name: f"the package {PEERS[arm.name].package} is not installed"
        for arm in arms
        if arm.kind == "peer" and not arm.package
    }
    left = tuple(arm for arm in arms if arm.name not in left_out)
    if not left:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in left_out.items())
        raise SystemExit(f"no arm is left: {reasons}; install it, or name other arms")
    return left, left_out


def _is_usual(arm: Arm) -> bool:
    return arm.kind != "peer" and arm.settings.get("language", "auto") == "auto"


def _listings() -> tuple[str, ...]:
    """Return the values of the setting `listing`; `plain` stands for having no such setting."""
    setting = ToolSearchConfig.model_fields.get("listing")
    return get_args(setting.annotation) if setting is not None else ("plain",)
