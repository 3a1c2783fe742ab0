"""Names of strategies in settings, and the facts that a strategy's class states.

The modules of settings and providers know no strategy. They read these facts.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import AfterValidator

from tool_search.errors import UnsupportedStrategyError

if TYPE_CHECKING:
    from tool_search.core.kinds import Dialect

__all__ = [
    "AUTO",
    "DefinitionsRole",
    "ProviderStrategy",
    "StrategyChoice",
    "StrategyFacts",
    "StrategyName",
    "current_strategy_name",
    "registered_strategy",
]

StrategyName = str
"""The name of a strategy; a configuration and a profile check it against the registry."""
DefinitionsRole = Literal["system", "developer"]
AUTO: Literal["auto"] = "auto"
"""The choice that leaves the strategy to what is known of the provider."""

_log = logging.getLogger(__name__)
# Strategies are above settings in the order of imports, so the registry is named by a string.
_REGISTRY = "tool_search.core.strategies.registry"
_FORMER_NAMES: Mapping[str, str] = {"late_tools": "tools_in_messages"}


class StrategyFacts(Protocol):
    """The facts that a strategy's class states as class attributes."""

    @property
    def name(self) -> StrategyName:
        """The name in configurations and profiles."""

    @property
    def list_grows(self) -> bool:
        """True if discoveries are appended to the tool list; False if it stays."""

    @property
    def sends_definitions_in_messages(self) -> bool:
        """True if definitions follow the message that found them."""

    @property
    def definitions_role(self) -> DefinitionsRole:
        """The role of a message of OpenAI Chat that holds definitions."""

    @property
    def dialect(self) -> Dialect | None:
        """The only dialect that can write the requests; None: any."""

    @property
    def requires(self) -> str:
        """The model that it needs, for the error; empty: any model will do."""

    @property
    def rejected_by(self) -> re.Pattern[str] | None:
        """A service's words if it does not know the feature; None: none are known."""

    @property
    def uses_limits(self) -> bool:
        """True if `max_deferred` and `max_tool_bytes` of a profile apply."""


def current_strategy_name(name: str) -> str:
    """Return a strategy's name; for a former name the current one, with a line in the log."""
    current = _FORMER_NAMES.get(name)
    if current is None:
        return name
    _log.warning("strategy %r is now named %r; the old name still works", name, current)
    return current


def registered_strategy(name: str) -> StrategyFacts:
    """Return the facts of the strategy that is registered under a name.

    Raises:
        UnsupportedStrategyError: There is none; the message has the known names.
    """
    facts: StrategyFacts = import_module(_REGISTRY).strategy_class(name)
    return facts


def _check_name(name: str) -> str:
    current = current_strategy_name(name)
    try:
        registered_strategy(current)
    except UnsupportedStrategyError as exc:
        raise ValueError(str(exc)) from exc
    return current


def _check_choice(name: str) -> str:
    return name if name == AUTO else _check_name(name)


ProviderStrategy = Annotated[str, AfterValidator(_check_name)]
"""The name of a registered strategy."""
StrategyChoice = Annotated[str, AfterValidator(_check_choice)]
"""`auto`, or the name of a registered strategy."""
