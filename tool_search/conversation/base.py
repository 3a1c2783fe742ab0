"""The parts that a session and a view share: their tools, and who may call them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tool_search.catalog.catalog import ToolCatalog
from tool_search.catalog.tool import Tool
from tool_search.conversation.calls import CallResolver, declared_to_all
from tool_search.conversation.tools import ToolState
from tool_search.discovery.modes import ModeDecision
from tool_search.discovery.search_tool import CALL_TOOL_NAME
from tool_search.discovery.state import DiscoveryState
from tool_search.i18n import Language
from tool_search.providers.profiles import ProviderProfile

__all__ = ["ToolConversation"]


class ToolConversation(ABC):
    """A conversation over a catalog, whoever owns its messages."""

    _tools: ToolState
    _discoveries: DiscoveryState
    _asked: ProviderProfile | None = None

    @property
    def _decision(self) -> ModeDecision:
        return self._tools.frozen.decision

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

    @abstractmethod
    def _why_not(self, tool: Tool) -> str | None:
        """Return why this turn's user may not call a tool; empty: the model must not know of it."""

    def _resolver(self) -> CallResolver:
        searching = self._decision.mode == "tool_search"
        return CallResolver(
            catalog=self._tools.catalog,
            discoveries=self._discoveries,
            core=self._tools.tool_order.core,
            search_tool=self._tools.search_tool() if searching else None,
            search_tool_name=self._tools.search_tool_name,
            call_tool_name=CALL_TOOL_NAME,
            language=self.language,
            permits=self.permits,
            denial_reason=self._why_not,
            sets_aside=declared_to_all if self._asked is None else self._asked.sets_aside,
        )
