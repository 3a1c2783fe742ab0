"""The sections `tool_search`, `learning` and `history`, of conversations."""

from __future__ import annotations

from tool_search.config.search import SearchSettings
from tool_search.config.settings import Settings
from tool_search.config.values import ConversationSettings, HistoryLimits

__all__ = ["HistorySettings", "LearningSettings", "ToolSearchConfig"]


class LearningSettings(Settings):
    """The `learning` section: searches that learn from later calls.

    Attributes:
        enabled: False: nothing is read, written or ranked by learning.
        shared: True if what several users' calls taught counts for others too; False: each
            user has only their own, and all without a name are one. Null: true in a bot,
            false in the proxy, whose users are credentials.
    """

    enabled: bool = True
    shared: bool | None = None


class ToolSearchConfig(Settings, ConversationSettings):
    """The `tool_search` section, with `tool_schema_mode`, which is next to it in a file.

    Attributes:
        search: The search of a catalog.
        learning: The learning of searches from later calls.

    >>> ToolSearchConfig(tool_schema_mode="auto").threshold
    25
    """

    search: SearchSettings = SearchSettings()
    learning: LearningSettings = LearningSettings()


class HistorySettings(Settings, HistoryLimits):
    """The `history` section: limits of a conversation in requests.

    The recorded history stays whole.
    """
