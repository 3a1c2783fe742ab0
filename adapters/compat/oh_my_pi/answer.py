"""The answers of `search_tool_bm25`: oh-my-pi's keys, record and errors.

Error texts are oh-my-pi's own, in English whatever the conversation's language: prompts
and tests of its users refer to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

from tool_search.adapters.compat.oh_my_pi.ranking import DiscoverableTool
from tool_search.core.values.json import compact_json

if TYPE_CHECKING:
    from tool_search.config.search import AnswerForm

__all__ = [
    "DISABLED",
    "LIMIT_WRONG",
    "QUERY_MISSING",
    "QUERY_WITHOUT_WORDS",
    "UNAVAILABLE",
    "DiscoveryAnswer",
    "DiscoveryDetails",
    "DiscoveryMatch",
    "denied",
    "rounded",
]

UNAVAILABLE = "Tool discovery is unavailable in this session."
DISABLED = (
    "Tool discovery is disabled. Enable tools.discoveryMode or mcp.discoveryMode to use "
    "search_tool_bm25."
)
QUERY_MISSING = "Query is required and must not be empty."
LIMIT_WRONG = "Limit must be a positive integer."
QUERY_WITHOUT_WORDS = "Query must contain at least one letter or number."


def denied(names: Iterable[str]) -> str:
    """Return the error for tools that were found and that a capability profile forbids."""
    return f"Tool activation denied by capability profile: {', '.join(names)}"


def rounded(score: float, decimals: int) -> float:
    """Return the score rounded as by JavaScript's `toFixed`: a half goes up.

    >>> rounded(0.0078125, 6), rounded(0.0625, 3)
    (0.007813, 0.063)
    """
    return float(Decimal(score).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryMatch:
    """A found tool with oh-my-pi's keys.

    Attributes:
        name: Its name.
        label: Its name for people.
        description: Its summary, cleaned.
        schema_keys: The names of its arguments, sorted.
        signature: The arguments in short; see `DiscoverableTool`.
        score: The score of the ranking, to six decimals.
        server_name: Its MCP server.
        mcp_tool_name: Its name on that server.
    """

    name: str
    label: str
    description: str
    schema_keys: tuple[str, ...]
    signature: tuple[str, ...]
    score: float
    server_name: str | None = None
    mcp_tool_name: str | None = None

    @classmethod
    def of(cls, tool: DiscoverableTool, score: float) -> DiscoveryMatch:
        """Return the match of a tool with the raw score of its ranking."""
        return cls(
            name=tool.name,
            label=tool.label,
            description=tool.summary,
            schema_keys=tool.schema_keys,
            signature=tool.signature,
            score=rounded(score, 6),
            server_name=tool.server_name,
            mcp_tool_name=tool.mcp_tool_name,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the match as a JSON object, without missing values."""
        content: dict[str, Any] = {
            "name": self.name,
            "label": self.label,
            "description": self.description,
            "server_name": self.server_name,
            "mcp_tool_name": self.mcp_tool_name,
            "schema_keys": list(self.schema_keys),
            "signature": list(self.signature),
            "score": self.score,
        }
        return {key: value for key, value in content.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryDetails:
    """The record of one search, for programs and people.

    Attributes:
        query: The query, trimmed.
        limit: Maximum number of matches.
        total_tools: Number of tools that were searched.
        activated_tools: The tools that this search made callable.
        active_selected_tools: The tools that all searches so far have made callable.
        tools: The matches, best first.
    """

    query: str
    limit: int
    total_tools: int
    activated_tools: tuple[str, ...]
    active_selected_tools: tuple[str, ...]
    tools: tuple[DiscoveryMatch, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a JSON object."""
        return {
            "query": self.query,
            "limit": self.limit,
            "total_tools": self.total_tools,
            "activated_tools": list(self.activated_tools),
            "active_selected_tools": list(self.active_selected_tools),
            "tools": [match.to_dict() for match in self.tools],
        }

    def to_json(self, form: AnswerForm = "names") -> str:
        """Return the model's view of the search, as compact JSON.

        Args:
            form: `names` for the four keys of the document, `tools` for the later form.
        """
        content: dict[str, Any] = {
            "query": self.query,
            "activated_tools": list(self.activated_tools),
            "match_count": len(self.tools),
            "total_tools": self.total_tools,
        }
        if form == "tools":
            content["tools"] = [
                {
                    "name": match.name,
                    "description": match.description,
                    "params": list(match.signature),
                }
                for match in self.tools
            ]
        return compact_json(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryAnswer:
    """The outcome of a call of the search tool.

    Attributes:
        content: The text for the model: compact JSON, or the text of an error.
        is_error: True if nothing was searched.
        details: The record; None in an error.
    """

    content: str
    is_error: bool = False
    details: DiscoveryDetails | None = None

    @classmethod
    def error(cls, message: str) -> DiscoveryAnswer:
        """Return an answer with the reason why nothing was searched."""
        return cls(content=message, is_error=True)
