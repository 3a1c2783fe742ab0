"""The strategies of one session, and their plans, checked: some are programs of users."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tool_search.core.messages import Phase, RequestPlan, ToolList
from tool_search.core.strategies.base import ToolSearchStrategy
from tool_search.core.strategies.history import history_as_text
from tool_search.core.strategies.plan_input import PlanInput
from tool_search.core.strategies.registry import strategy_class
from tool_search.core.strategies.tool_lists import ToolsAssembler
from tool_search.errors import (
    ConfigurationError,
    SessionError,
    ToolSearchError,
    UnsupportedStrategyError,
)
from tool_search.i18n import text

__all__ = ["StrategySet"]


@dataclass(frozen=True, slots=True)
class _CheckedList:
    """A list that was found valid, kept with what that depends on."""

    tools: ToolList


class StrategySet:
    """The strategies of one session: its own first, then the registered ones.

    Args:
        own: Strategies that win over registered ones of their name.
        assembler: The maker of tool lists that registered ones share.

    Raises:
        ConfigurationError: One is not a strategy, or two have the same name.
    """

    def __init__(self, own: Iterable[ToolSearchStrategy], assembler: ToolsAssembler) -> None:
        self._assembler = assembler
        self._made: dict[str, ToolSearchStrategy] = {}
        for strategy in own:
            # A session is public: what a program passes is not type-checked.
            given: object = strategy
            if not isinstance(given, ToolSearchStrategy):
                raise ConfigurationError(
                    f"strategies has {given!r}; it must hold instances of ToolSearchStrategy"
                )
            if strategy.name in self._made:
                raise ConfigurationError(f"strategies has two of the name {strategy.name!r}")
            self._made[strategy.name] = strategy

    def get(self, name: str) -> ToolSearchStrategy:
        """Return the strategy of a name.

        Raises:
            UnsupportedStrategyError: No strategy has it.
        """
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = strategy_class(name)(self._assembler)
        return made

    def plan(self, conversation: PlanInput, *, phase: Phase) -> RequestPlan:
        """Return the next request by the strategy that the conversation's profile names.

        Raises:
            UnsupportedStrategyError: No strategy has the name, or the provider does not
                speak its dialect.
            SessionError: The strategy failed, or it declares a tool twice or a tool that
                the catalog lacks.
        """
        profile = conversation.profile
        strategy = self.get(profile.strategy)
        if strategy.dialect not in (None, profile.dialect):
            raise UnsupportedStrategyError(
                f"strategy {strategy.name!r} needs type {strategy.dialect}, not "
                f"{profile.dialect!r} (model {profile.model!r}); use auto, generic or bridge "
                "for this provider"
            )
        if not profile.declares_tools(phase):
            return _plan_without_tools(strategy, conversation, phase)
        try:
            plan = strategy.plan(conversation, phase=phase)
        except ToolSearchError:
            raise
        except Exception as exc:
            raise SessionError(
                f"strategy {strategy.name!r} failed to plan a request: {type(exc).__name__}: "
                f"{exc}; correct the strategy, or choose another one for this provider"
            ) from exc
        _require_valid(strategy.name, plan.tools, conversation)
        return plan if plan.own_facts is not None else replace(plan, own_facts=type(strategy))


def _plan_without_tools(
    strategy: ToolSearchStrategy, conversation: PlanInput, phase: Phase
) -> RequestPlan:
    note = text("tools.unavailable", conversation.language)
    return RequestPlan(
        strategy=strategy.name,
        own_facts=type(strategy),
        phase=phase,
        tools=ToolList(),
        messages=history_as_text(conversation),
        system="\n\n".join(filter(None, (conversation.prompt, note))),
        kept=conversation.kept,
    )


def _require_valid(strategy: str, tools: ToolList, conversation: PlanInput) -> None:
    """Raise if a tool is declared twice, or if the conversation has no such tool."""
    # Lists of thousands of tools are the same object from request to request.
    key = (conversation.catalog.fingerprint, conversation.hidden, tuple(conversation.retained))
    checked = conversation.kept.get(_CheckedList, key)
    if checked is not None and checked.tools is tools:
        return
    names: set[str] = set()
    for name in tools.names:
        if name in names:
            raise SessionError(
                f"strategy {strategy!r} declares the tool {name!r} twice; declare it once"
            )
        if conversation.definition(name) is None:
            raise SessionError(
                f"strategy {strategy!r} declares the tool {name!r}, which the catalog lacks or "
                "this user may not call; declare tools that `conversation.definition` returns"
            )
        names.add(name)
    conversation.kept.put(key, _CheckedList(tools))
