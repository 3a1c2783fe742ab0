"""Which of a dialect's rules one endpoint has: the vendor's own or a compatible one's."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["OPENAI_MAX_TOOLS", "Endpoint"]

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
        max_tools: How many tools a request may have (OpenAI Chat dialect); None
            for no limit.
        extra_parameters: Top-level request parameters of this vendor that the
            dialect's own service does not know.
    """

    supports_tool_search: bool = True
    supports_cache_control: bool = True
    max_tools: int | None = OPENAI_MAX_TOOLS
    extra_parameters: frozenset[str] = field(default_factory=frozenset)
