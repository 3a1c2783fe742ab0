"""The sections `tool_search`, `learning` and `history`, of conversations."""

from __future__ import annotations

from typing import Any

from tool_search.config.search import EmbedderSettings, SearchSettings
from tool_search.config.settings import Settings
from tool_search.core.settings import ConversationSettings, HistoryLimits

__all__ = ["HistorySettings", "LearningSettings", "ToolSearchConfig", "bound_embedder"]


class LearningSettings(Settings):
    """The `learning` section: searches that learn from later calls.

    Attributes:
        enabled: False: nothing is read, written or ranked by learning.
        shared: True if what several users' calls taught counts for others too; False: each
            user has only their own, and all without a name are one. Null: true in a bot,
            false in the proxy, whose users are credentials.
        vectors: True if the vector of a query is kept with its words, and a map of meaning is
            learned from the vectors; a reader of the store could turn them back into some words
            of the query. Only `hybrid` and `semantic` have vectors.
    """

    enabled: bool = True
    shared: bool | None = None
    vectors: bool = False


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


def bound_embedder(config: Any) -> Any:
    """Give an embedder the section `limits`; after the validation of a whole configuration."""
    search = config.tool_search.search
    if isinstance(search.embedder, EmbedderSettings):
        bounded = search.model_copy(update={"embedder": search.embedder.bounded(config.limits)})
        changed = config.tool_search.model_copy(update={"search": bounded})
        # The section is frozen from now on.
        config.__dict__["tool_search"] = changed
    return config
