"""Search as a conversation is given it: the protocols, the results, and the texts it needs itself.

Nothing here loads an engine or a text. The engines and texts of this package come by
`tool_search.search.discovery.search_services.SearchServices`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, runtime_checkable

from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.schemas import Schemas
from tool_search.core.catalog.tool import Tool
from tool_search.core.values.clean_text import clean_line
from tool_search.core.values.json import compact_json
from tool_search.i18n import Language, text

# Messages bring pydantic, which no index needs.
if TYPE_CHECKING:
    from tool_search.core.messages import Notice

__all__ = [
    "CALL_TOOL_NAME",
    "Lesson",
    "OhMyPiMatch",
    "OhMyPiResult",
    "SearchMatch",
    "SearchResult",
    "SearchTool",
    "SearchesCatalogs",
    "ToolSearchIndex",
    "Trail",
    "Votes",
    "call_tool_definition",
    "clean_description",
    "clean_match",
    "instructed",
]

# The protocol of a search index, and the results that it returns.


Votes = Callable[[str, Callable[[str], Tool | None]], Mapping[str, float]]
"""Returns votes for a query by tool name, as shares of the score that it could reach.

The second argument returns the tool of a name, or None if it may not be found.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchMatch:
    """A tool that a search found.

    Attributes:
        name: The tool's canonical name.
        description: The tool's description.
        server: Its MCP server, or None.
        score: From 0 to 1, relative to what the query could reach; 0 in a result that
            was read from a history.
        parameters: The tool's schema, if the result must carry it because the request
            does not declare the tool.
    """

    name: str
    description: str = ""
    server: str | None = None
    score: float = 0.0
    parameters: Mapping[str, Any] | None = None

    @classmethod
    def from_object(cls, content: object) -> Self | None:
        """Return the match that a result's JSON holds, or None if it has no name."""
        if not isinstance(content, dict) or not isinstance(content.get("name"), str):
            return None
        description, server = content.get("description"), content.get("server")
        parameters = content.get("parameters")
        return cls(
            name=content["name"],
            description=description if isinstance(description, str) else "",
            server=server if isinstance(server, str) else None,
            parameters=parameters if isinstance(parameters, dict) else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The answer to one query.

    Attributes:
        query: The query as the caller wrote it; several queries are joined by " | ".
        matches: The best tools, highest score first, ties by name; of several queries of
            a call, the best of each in turn.
        total_found: Number of tools that passed the relevance floor, before any cut.
        total_tools: Number of tools that were searched.
        loaded: Names of found tools that can already be called, best first.
        unmatched: Words of the query that no tool has.
        hint: A localized sentence for the model.
        error: A localized sentence for the model; nothing was searched.
        parts: The result of each query, if several were merged; no history has them.
    """

    query: str
    matches: tuple[SearchMatch, ...] = ()
    total_found: int = 0
    total_tools: int = 0
    loaded: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    hint: str | None = None
    error: str | None = None
    parts: tuple[SearchResult, ...] = field(default=(), compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools that the result makes callable, matches first."""
        return (*(match.name for match in self.matches), *self.loaded)

    def without(self, names: Collection[str]) -> SearchResult:
        """Return the result without these tools."""
        return replace(
            self,
            matches=tuple(match for match in self.matches if match.name not in names),
            loaded=tuple(name for name in self.loaded if name not in names),
            parts=tuple(part.without(names) for part in self.parts),
        )

    def to_json(self) -> str:
        """Return the compact JSON that models and histories have, without scores."""
        if self.error is not None:
            return compact_json({"query": self.query, "error": self.error})
        content: dict[str, Any] = {
            "query": self.query,
            "matches": [_match_object(match) for match in self.matches],
        }
        if self.loaded:
            content["loaded"] = list(self.loaded)
        content["total_found"] = self.total_found
        content["total_tools"] = self.total_tools
        if self.hint:
            content["hint"] = self.hint
        if self.unmatched:
            content["unmatched"] = list(self.unmatched)
        return compact_json(content)

    @classmethod
    def from_json(cls, text: str) -> SearchResult | None:
        """Return the result that a history holds, or None if the text is not a result.

        Text after the JSON is ignored: bots append notices to tool results.
        """
        try:
            content, _ = json.JSONDecoder().raw_decode(text.lstrip())
        except (ValueError, RecursionError):
            return None
        if not isinstance(content, dict) or not isinstance(content.get("query"), str):
            return None
        if isinstance(content.get("error"), str):
            return cls(query=content["query"], error=content["error"])
        # Histories hold results of oh-my-pi's search tool too, which have this key.
        if isinstance(content.get("activated_tools"), list):
            return _read_oh_my_pi(content)
        matches = content.get("matches")
        if not isinstance(matches, list):
            return None
        return cls(
            query=content["query"],
            matches=tuple(filter(None, map(SearchMatch.from_object, matches))),
            total_found=_count(content.get("total_found")),
            total_tools=_count(content.get("total_tools")),
            loaded=_texts(content.get("loaded")),
            unmatched=_texts(content.get("unmatched")),
            hint=content["hint"] if isinstance(content.get("hint"), str) else None,
        )


def _match_object(match: SearchMatch) -> dict[str, Any]:
    content: dict[str, Any] = {"name": match.name, "description": match.description}
    if match.server:
        content["server"] = match.server
    if match.parameters is not None:
        content["parameters"] = match.parameters
    return content


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _texts(value: object) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OhMyPiMatch(SearchMatch):
    """A match whose arguments are shown in short.

    Attributes:
        signature: The arguments, in short: `name`, `name?`.
    """

    signature: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OhMyPiResult(SearchResult):
    """A result whose JSON has oh-my-pi's keys.

    Attributes:
        form: `names` for the four keys of oh-my-pi's document, `tools` for its later form.
    """

    form: Literal["names", "tools"] = "names"

    def to_json(self) -> str:
        """Return oh-my-pi's compact answer, with schemas that the result must carry."""
        if self.error is not None:
            # Not `super()`: with slots, the dataclass is not the class of this body.
            return SearchResult.to_json(self)
        content: dict[str, Any] = {
            "query": self.query,
            "activated_tools": [match.name for match in self.matches],
            "match_count": len(self.matches),
            "total_tools": self.total_tools,
        }
        # Four keys have no place for a schema that the request does not declare.
        if self.form == "tools" or any(match.parameters is not None for match in self.matches):
            content["tools"] = [_oh_my_pi_object(match) for match in self.matches]
        return compact_json(content)


def _oh_my_pi_object(match: SearchMatch) -> dict[str, Any]:
    signature = match.signature if isinstance(match, OhMyPiMatch) else ()
    content: dict[str, Any] = {"name": match.name, "description": match.description}
    if signature or match.parameters is None:
        content["params"] = list(signature)
    if match.parameters is not None:
        content["parameters"] = match.parameters
    return content


def _read_oh_my_pi(content: Mapping[str, Any]) -> OhMyPiResult:
    """Return the result that a history holds.

    An answer of the form `names` has names alone.
    """
    tools = content.get("tools")
    form: Literal["names", "tools"] = "tools" if isinstance(tools, list) else "names"
    if not isinstance(tools, list):
        tools = [{"name": name} for name in content["activated_tools"]]
    found, searched = content.get("match_count"), content.get("total_tools")
    return OhMyPiResult(
        query=content["query"],
        matches=tuple(filter(None, map(_read_oh_my_pi_match, tools))),
        total_found=found if isinstance(found, int) else 0,
        total_tools=searched if isinstance(searched, int) else 0,
        form=form,
    )


def _read_oh_my_pi_match(content: object) -> OhMyPiMatch | None:
    match = OhMyPiMatch.from_object(content)
    if match is None or not isinstance(content, dict):
        return None
    params = content.get("params")
    listed = params if isinstance(params, list) else ()
    return replace(match, signature=tuple(key for key in listed if isinstance(key, str)))


@runtime_checkable
class ToolSearchIndex(Protocol):
    """A searchable, immutable set of tools."""

    def search(
        self,
        query: str | Sequence[str],
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """Return the tools that fit the query, highest score first, ties by name.

        Args:
            query: Words in any language; the results of several queries are merged.
            limit: Maximum number of matches; 0 or less gives none, but counts.
            allowed: Returns True for the name of a tool that may be found; other tools
                are in no match and in no count.

        Returns:
            Matches with scores from 0 to 1. A query without a letter or digit, and
            an empty index, give a result without matches. No text of a model raises.
        """
        ...

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> ToolSearchIndex:
        """Return an index with some tools added or replaced and others removed.

        It ranks exactly as an index that is built from scratch, and shares structure with
        this one, which does not change.
        """
        ...


# Parts of every search tool: the instructions, the texts of matches, and `call_tool`.


CALL_TOOL_NAME = "call_tool"

_MAX_DESCRIPTION_CHARS = 300
_MAX_SERVER_CHARS = 100


def clean_description(description: str) -> str:
    """Return a third party's text in a form that may enter a prompt.

    One line without control and invisible characters, of at most 300 characters.
    """
    return clean_line(description, _MAX_DESCRIPTION_CHARS)


def clean_match(match: SearchMatch) -> SearchMatch:
    """Return a match as a model reads it: its description and its server clean and short."""
    server = clean_line(match.server, _MAX_SERVER_CHARS) if match.server else None
    return replace(match, description=clean_description(match.description), server=server)


def instructed(prompt: str, search_tool: str, language: Language) -> str:
    """Return a system prompt that has the instructions how to search, once.

    Args:
        prompt: The system prompt of the bot's owner.
        search_tool: The search tool's name.
        language: The language of the instructions.
    """
    instructions = text("system.instructions", language, search_tool=search_tool)
    if instructions in prompt:
        return prompt
    return f"{prompt.rstrip()}\n\n{instructions}" if prompt.strip() else instructions


def call_tool_definition(language: Language, *, name: str = CALL_TOOL_NAME) -> Tool:
    """Return the tool that calls tools for which a provider's list has no room."""
    return Tool(
        name=name,
        kind="builtin",
        description=text("call_tool.description", language),
        parameters={
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": text("call_tool.name", language)},
                "arguments": {
                    "type": "object",
                    "description": text("call_tool.arguments", language),
                },
            },
            "required": ["name", "arguments"],
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A query that a tool answered.

    Attributes:
        query: The query as it was asked.
        tool: The tool's canonical name.
        strength: 1; one half if another query found the tool, one quarter if the call was
            in the next turn.
        definition: The sketch of the tool's definition; empty if it is unknown.
    """

    query: str
    tool: str
    strength: float = 1.0
    definition: str = field(default="", repr=False)


class Trail(Protocol):
    """The searches of one conversation that may still teach something."""

    def begin_turn(self) -> None:
        """Begin a user turn; searches before the last turn teach no more."""
        ...

    def replied(self) -> None:
        """Begin a reply of the model; its calls are made at once."""
        ...

    def searched(self, result: SearchResult) -> None:
        """Record a search, which may teach later."""
        ...

    def succeeded(self, tool: Tool) -> None:
        """Record a call that a tool answered: the searches that led to it teach now."""
        ...

    def called_before(self, name: str) -> None:
        """Record a call of an earlier request: the searches that led to it teach no more."""
        ...

    def drain_lessons(self) -> tuple[Lesson, ...]:
        """Return the lessons since the last call of this method."""
        ...


class SearchTool(Protocol):
    """The search tool of one conversation, over one catalog; see `ToolSearchTool`."""

    def definition(self) -> Tool:
        """Return the search tool as a definition; its text depends on the catalog."""
        ...

    def run(
        self,
        arguments: Mapping[str, Any],
        *,
        callable_now: frozenset[str] = frozenset(),
        discovered: int = 0,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """Answer one call; no arguments of a model raise."""
        ...


class SearchesCatalogs(Protocol):
    """The search of the conversations that share some settings; any thread may ask it.

    Attributes:
        embeds: True if a search embeds its query, and so may wait for an embedder.
        schemas: The readers of tools' schemas.
    """

    embeds: bool
    schemas: Schemas

    def index_of(self, catalog: ToolCatalog) -> ToolSearchIndex:
        """Return the index over a catalog's deferred tools.

        Raises:
            SearchError: The engine is unknown, or has failed.
        """
        ...

    def updated(
        self, index: ToolSearchIndex, before: ToolCatalog, after: ToolCatalog
    ) -> ToolSearchIndex:
        """Return the index over a changed catalog's deferred tools.

        Raises:
            SearchError: The engine has failed.
        """
        ...

    def with_votes(self, index: ToolSearchIndex, votes: Votes | None) -> ToolSearchIndex:
        """Return the index with votes added to its scores, if it can take votes."""
        ...

    def search_tool(
        self, index: ToolSearchIndex, catalog: ToolCatalog, *, name: str, language: Language
    ) -> SearchTool:
        """Return the search tool over an index, under the name that the model calls."""
        ...

    def rank(
        self,
        index: ToolSearchIndex,
        catalog: ToolCatalog,
        message: str,
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        """Return the best tools for a message, by its words alone; none if it has operators."""
        ...

    def explain(
        self, index: ToolSearchIndex, catalog: ToolCatalog, query: str, names: Sequence[str]
    ) -> dict[str, dict[str, Any]]:
        """Return the reasons for which a query found tools, by name, as JSON values."""
        ...

    def listing(
        self,
        catalog: ToolCatalog,
        *,
        name: str,
        language: Language,
        denied: Callable[[Iterable[Tool]], frozenset[str]],
    ) -> str:
        """Return the listing of tools that wait to be found; empty for none.

        Args:
            catalog: The tools.
            name: The search tool's name.
            language: The language of the conversation.
            denied: Returns the names of those tools that its first user may not call.
        """
        ...

    def notices(self, catalog: ToolCatalog, *, is_searched: bool) -> Iterable[Notice]:
        """Return what an operator should know of a catalog, and of copies that are searched."""
        ...

    def text_bytes(self, catalog: ToolCatalog) -> int:
        """Return the UTF-8 bytes of the active tools' definitions as JSON, keys included."""
        ...

    def trail(self) -> Trail:
        """Return the trail of a new conversation."""
        ...
