"""Which of a dialect's rules one endpoint has: the vendor's own or a compatible one's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["OPENAI_MAX_TOOLS", "Endpoint", "ReasoningField", "ReasoningRule"]

ReasoningRule = Literal[
    "by_model", "free", "deepseek", "kimi", "kimi_not_empty", "kimi_with_effort", "refused"
]
"""`by_model`: that of the model's vendor in the Chat dialect, if it has one; `free`: none;
`deepseek`, `kimi`: the vendor's, in the Chat and the Anthropic dialect; `kimi_not_empty`: an empty
text counts as missing; `kimi_with_effort`: the request states a `reasoning_effort` as well;
`refused`: messages have no reasoning."""
ReasoningField = Literal["reasoning_content", "reasoning", "reasoning_details"]

OPENAI_MAX_TOOLS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """What an endpoint knows beyond the dialect's common ground.

    The default is the vendor's own service. `Endpoint(supports_tool_search=False)`
    is a compatible endpoint that has never heard of `defer_loading`,
    `Endpoint(max_tools=None)` an OpenAI-compatible one without a limit, as Ollama.

    Attributes:
        supports_tool_search: It takes `defer_loading`, `tool_reference` and the
            search tools (Anthropic dialect); `tool_search`, namespaces, and items that
            bring tools (OpenAI Responses dialect).
        supports_cache_control: It takes `cache_control` (Anthropic dialect).
        max_output_tokens: How many tokens a reply may be allowed (Anthropic dialect);
            None: as documented for Claude, for other models no limit.
        max_tools: How many tools a request may have (OpenAI Chat dialect); None
            for no limit.
        context_tokens: How many tokens the model is shown at most; None: as many as come.
        takes_pictures: Its models see pictures.
        reasoning: Whose rule on the reasoning of earlier replies it has.
        reasoning_field: The name that reasoning has in its replies (OpenAI Chat dialect).
        extra_parameters: Top-level request parameters of this vendor that the
            dialect's own service does not know.
        refused_tools: Names of tools whose definitions it refuses, for a fault of its own
            that nobody has documented.
    """

    supports_tool_search: bool = True
    supports_cache_control: bool = True
    max_output_tokens: int | None = None
    max_tools: int | None = OPENAI_MAX_TOOLS
    context_tokens: int | None = None
    takes_pictures: bool = True
    reasoning: ReasoningRule = "by_model"
    reasoning_field: ReasoningField = "reasoning_content"
    extra_parameters: frozenset[str] = field(default_factory=frozenset)
    refused_tools: frozenset[str] = field(default_factory=frozenset)
