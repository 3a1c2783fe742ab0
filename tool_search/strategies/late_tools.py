"""The core and our search; what it finds is appended to the messages, not to the list.

Chosen for Kimi K3 where Moonshot serves it. Follows Moonshot AI's "Dynamic tool
loading": a system message with `tools` and no content makes them callable from its
place on, so that the list stays byte for byte what it was and the prompt cache holds.
"""

from __future__ import annotations

from typing import ClassVar

from tool_search.messages import StrategyName
from tool_search.strategies.openai_responses import OpenAIResponsesToolSearchStrategy

__all__ = ["LateToolsToolSearchStrategy"]


class LateToolsToolSearchStrategy(OpenAIResponsesToolSearchStrategy):
    """Declares the core and our search as functions; definitions follow what found them.

    It is what Responses models without tool search get, in another dialect: its
    profiles have the `search_form` `additional`.
    """

    name: ClassVar[StrategyName] = "late_tools"
