"""One conversation over a catalog, whoever owns its messages: its tools, and its next request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import wire_name
from tool_search.core.catalog.tool import Tool
from tool_search.core.conversation.calls import (
    CallResolver,
    allowed_to_all,
    denial_of_roles,
)
from tool_search.core.conversation.record import (
    ConversationState,
    LeftOut,
    PrefixBoundThinking,
    referred_names,
)
from tool_search.core.conversation.synthetic_searches import InsertionPoint
from tool_search.core.conversation.tools import ToolState
from tool_search.core.discoveries import DiscoveryState, Mode, ModeDecision
from tool_search.core.messages import KeptWork, Message, Phase, RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.core.services import CALL_TOOL_NAME, SearchesCatalogs, instructed
from tool_search.core.settings import ConversationSettings
from tool_search.core.strategies import PlanInput, StrategySet, ToolsAssembler, ToolSearchStrategy
from tool_search.i18n import Language, text

__all__ = ["ToolConversation"]


class ToolConversation(ABC):
    """A conversation over a catalog, whoever owns its messages.

    Args:
        catalog: The tools.
        config: The settings.
        search: What searches the catalog.
        assembler: Makes tool lists.
        record: A conversation to go on with.
        max_tools: The longest tool list that every provider of the bot takes.
        strategies: Strategies of this conversation; they win over registered ones of their name.
    """

    # A view may be of another user at each request: a changed list is no news there.
    _announces_hidden = False

    def __init__(
        self,
        catalog: ToolCatalog,
        *,
        config: ConversationSettings,
        search: SearchesCatalogs,
        assembler: ToolsAssembler,
        record: ConversationState | None,
        max_tools: int | None = None,
        strategies: Iterable[ToolSearchStrategy] = (),
    ) -> None:
        self._config = config
        self._strategies = StrategySet(strategies, assembler)
        self._discoveries = DiscoveryState(record.discoveries if record else ())
        self._tools = ToolState(
            catalog,
            config=config,
            discoveries=self._discoveries,
            max_tools=max_tools,
            search=search,
        )
        self._left_out = LeftOut(record.left_out if record else None)
        self._thinking = PrefixBoundThinking(record.thinking if record else None)
        self._kept = KeptWork()
        self._asked: ProviderProfile | None = None
        self._refused: frozenset[str] = frozenset()
        self._denial_reason: Callable[[Tool], str | None] = allowed_to_all
        self._turn_order: tuple[str, ...] = ()
        if record is not None:
            self._tools.restore(record)
            self._turn_order = self._tools.tool_order.declared_order

    @property
    def _decision(self) -> ModeDecision:
        return self._tools.frozen.decision

    @property
    def _is_searching(self) -> bool:
        return self._decision.mode == "tool_search"

    @property
    def language(self) -> Language:
        """The language of all text for the model and the user."""
        return self._tools.frozen.language

    @property
    def catalog(self) -> ToolCatalog:
        """The current tools as this conversation has them: core and deferred, under its names."""
        return self._tools.catalog

    @property
    def discoveries(self) -> DiscoveryState:
        """The discoveries."""
        return self._discoveries

    @property
    def search_tool_name(self) -> str:
        """The name by which the model calls searches, declared or not."""
        return self._tools.search_tool_name

    def permits(self, tool: Tool) -> bool:
        """True if this turn's user may call a tool."""
        return self._why_not(tool) is None

    def denied(self, tools: Iterable[Tool]) -> frozenset[str]:
        """Return the names of those tools that this turn's user may not call."""
        reason = self._denial_reason
        # Most bots deny nothing: 3,000 tools need not be asked for one by one.
        is_open = getattr(reason, "is_open", lambda: reason in (allowed_to_all, denial_of_roles))
        if is_open():
            tools = [tool for tool in tools if tool.roles]
        return frozenset(tool.name for tool in tools if self._why_not(tool) is not None)

    @abstractmethod
    def _why_not(self, tool: Tool) -> str | None:
        """Return why this turn's user may not call a tool; empty: the model must not know of it."""

    @abstractmethod
    def _shown_tools(self) -> Iterable[Tool]:
        """Return the tools that a filtered list may have."""

    def _resolver(self) -> CallResolver:
        asked, active = self._asked, self._tools.catalog.active
        aside = active if asked is not None and asked.set_aside else ()
        return CallResolver(
            catalog=self._tools.catalog,
            schemas=self._tools.search.schemas,
            discoveries=self._discoveries,
            core=self._tools.tool_order.core,
            search_tool=self._tools.search_tool() if self._is_searching else None,
            search_tool_name=self._tools.search_tool_name,
            call_tool_name=CALL_TOOL_NAME,
            language=self.language,
            denial_reason=self._why_not,
            denied=self.denied,
            set_aside=frozenset(tool.name for tool in aside if asked and asked.sets_aside(tool)),
        )

    def _request(self, conversation: PlanInput, phase: Phase = "answer") -> RequestPlan:
        """Return the next request; thinking that is bound to its prefix keeps it."""
        if conversation.mode != "skills_like" and phase != "final":
            phase = "answer"
        if conversation.profile.thinking_bound_to_prefix and conversation.history:
            plan = self._thinking.plan(
                lambda start: self._strategies.plan(
                    replace(conversation, thinking_from=start), phase=phase
                )
            )
        else:
            if conversation.history:
                self._thinking.interrupt()
            plan = self._strategies.plan(conversation, phase=phase)
        self._tools.notice_schemas(plan.tools.incomplete(self._tools.search.schemas.declared))
        return plan

    def _plan_input(
        self,
        profile: ProviderProfile,
        history: tuple[Message, ...],
        prompt: str,
        *,
        selected: Sequence[str] = (),
    ) -> PlanInput:
        """Return what a strategy makes a request of.

        Args:
            profile: The provider, within whose limits the tools fit.
            history: The messages that the request carries.
            prompt: The system prompt of the bot's owner.
            selected: In the phase `detail`: the tools that the model picked.
        """
        frozen, order = self._tools.frozen, self._tools.tool_order
        mode = frozen.decision.mode
        if mode == "skills_like" and profile.thinking_bound_to_prefix:
            mode = "full"  # nothing is deferred: its phases would change the list in a turn
        is_searching, language = frozen.decision.mode == "tool_search", frozen.language
        name = wire_name(self._tools.search_tool_name, profile.name_rule)
        return PlanInput(
            catalog=self._tools.catalog,
            retained=order.retained(self._discoveries),
            profile=profile,
            schemas=self._tools.search.schemas,
            mode=mode,
            catalog_order=order.catalog_order,
            declared_order=self._declared_order(profile, history),
            core=self._declared_core(),
            search_tool=frozen.search_tool if is_searching else None,
            call_tool=frozen.call_tool,
            history=history,
            system=instructed(prompt, name, language) if is_searching else prompt,
            listing=self._listing_for(prompt) if is_searching else "",
            selected=tuple(dict.fromkeys(selected)),
            refused=self._refused,
            hidden=self._hide(profile, mode, history),
            text_after_references=text("search.loaded", language)
            if self._config.boundary_text
            else "",
            prompt=prompt,
            language=language,
            kept=self._kept,
        )

    def _declared_order(
        self,
        profile: ProviderProfile,
        history: tuple[Message, ...],  # noqa: ARG002  # a view reads it
    ) -> tuple[str, ...]:
        """Return the declared names; a list that grows in a turn would end thinking bound to it."""
        is_bound = profile.thinking_bound_to_prefix
        return self._turn_order if is_bound else self._tools.tool_order.declared_order

    def _declared_core(self) -> frozenset[str]:
        """Return the names that every request declares."""
        return self._tools.tool_order.core

    def _listing_for(self, system: str) -> str:  # noqa: ARG002  # a view reads it
        """Return the listing of tools that a system text gets."""
        return self._tools.frozen.listing or ""

    def _hide(
        self, profile: ProviderProfile, mode: Mode, history: tuple[Message, ...]
    ) -> frozenset[str]:
        """Return the names that are left out of a request: this turn's user may not call them."""
        catalog = self._tools.catalog
        names, is_new = self._left_out.names(
            profile,
            mode,
            catalog=catalog,
            shown=self._shown_tools,
            referred=lambda: referred_names(self._discoveries, self._whole(history), catalog),
            denied=self.denied,
        )
        if is_new and self._announces_hidden:
            self._tools.announce(
                "permitted_tools_changed",
                "what this turn's user may call is not what could be called before: the tools "
                "that are declared change, and the prompt cache ends there",
            )
        return names

    def _whole(self, history: tuple[Message, ...]) -> tuple[Message, ...]:  # a session has its own
        """Return the history of which a request carries a part."""
        return history

    def _kept_record(
        self,
        *,
        insertion_points: tuple[InsertionPoint, ...],
        former_search_names: tuple[str, ...],
    ) -> ConversationState:
        """Return the state as a store keeps it, without messages.

        Raises:
            SessionError: No turn has begun yet.
        """
        frozen, order = self._tools.frozen, self._tools.tool_order
        return ConversationState(
            language=frozen.language,
            decision=frozen.decision,
            search_tool=frozen.search_tool,
            tool_order=order.record(frozen.decision.mode),
            discoveries=self._discoveries.entries,
            insertion_points=insertion_points,
            thinking=self._thinking.record,
            left_out=self._left_out.digests,
            configured=frozen.configured,
            former_search_names=former_search_names,
            listing=frozen.listing or "",
        )
