"""The rules of one endpoint of a dialect: the vendor's own or a compatible one."""

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
`refused`: messages must not have reasoning."""
ReasoningField = Literal["reasoning_content", "reasoning", "reasoning_details"]

OPENAI_MAX_TOOLS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The features and limits of an endpoint.

    The default is the vendor's own service. `Endpoint(supports_tool_search=False)` is a
    compatible endpoint that does not know `defer_loading`, `Endpoint(max_tools=None)` an
    OpenAI-compatible one without a limit, such as Ollama.

    Attributes:
        supports_tool_search: True if it accepts `defer_loading`, `tool_reference` and the
            search tools (Anthropic dialect); `tool_search`, namespaces, and items that load
            tools (OpenAI Responses dialect).
        supports_cache_control: True if it accepts `cache_control` (Anthropic dialect).
        max_output_tokens: The limit of a reply (Anthropic dialect); None for the documented
            one of Claude models, and for no limit of other models.
        max_tools: The limit of tools in a request (OpenAI Chat dialect); None for no limit.
        context_tokens: The limit of tokens in the model's context; None for no limit.
        takes_pictures: True if its models accept pictures.
        reasoning: The rule for the reasoning of earlier replies.
        reasoning_field: The name of reasoning in its replies (OpenAI Chat dialect).
        extra_parameters: Top-level request parameters of this vendor that the dialect's own
            service does not know.
        refused_tools: Names of tools whose definitions it rejects without a documented
            reason.
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
