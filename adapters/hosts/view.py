"""`ToolView`: the view of a host's conversation, with this package's search."""

from __future__ import annotations

from typing import Unpack

from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.conversation.view import View, ViewOptions, ViewServices
from tool_search.core.strategies import ToolsAssembler
from tool_search.search.discovery.search_services import SearchServices
from tool_search.stores.record import ConversationRecord

__all__ = ["ToolView"]


class ToolView(View):
    """The tools that one conversation of a host, or one request of it, shows.

    `ToolSearch.view` makes it. It holds names and lessons, never messages. Threads may share
    a view: parallel searches of one reply are safe.

    Args:
        catalog: The tools.
        config: The settings.
        services: What it shares with other views; None: nothing, and the engine of the settings.
        turn: The other arguments of `View`.

    Raises:
        ConfigurationError: The mode is `skills_like`.
        SessionError: A tool has the search tool's name.
    """

    def __init__(
        self,
        catalog: ToolCatalog,
        *,
        config: ToolSearchConfig,
        services: ViewServices | None = None,
        **turn: Unpack[ViewOptions],
    ) -> None:
        services = services or ViewServices(
            assembler=ToolsAssembler(), search=SearchServices(config)
        )
        super().__init__(catalog, config=config, services=services, **turn)

    def record(self) -> ConversationRecord:
        """Return the state as a store keeps it, without messages."""
        return ConversationRecord.of(super().record())
