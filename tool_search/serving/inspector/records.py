"""The record of one request, as the page shows it and a log file keeps it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

__all__ = [
    "CallRecord",
    "CatalogRecord",
    "ClientSide",
    "DeclaredTool",
    "DeclaredWhy",
    "HitRecord",
    "PrefixRecord",
    "QueryRecord",
    "RequestRecord",
    "RequestRow",
    "SearchRecord",
    "StepRecord",
]

DeclaredWhy = Literal["core", "search_tool", "found", "called", "as_it_came"]
"""The reason for which a request declares a tool."""


class _Record(BaseModel):
    # A file of a later version may have more fields.
    model_config = ConfigDict(frozen=True, extra="ignore")


class DeclaredTool(_Record):
    """A tool that a request declared.

    Attributes:
        name: The name.
        why: The reason.
        by: The rule of a core tool, or the query that found a tool.
        deferred: True if the definition waits outside the prompt.
        tokens: The estimated tokens of the definition.
    """

    name: str
    why: DeclaredWhy
    by: str = ""
    deferred: bool = False
    tokens: int = 0


class HitRecord(_Record):
    """A tool that a query found.

    Attributes:
        name: The name.
        description: The description, shortened.
        server: The server; empty: none.
        score: The score.
        reasons: The explanation of the score, as `search --explain --json` prints it; None: it
            is computed when asked for, or no longer known.
    """

    name: str
    description: str = ""
    server: str = ""
    score: float = 0.0
    reasons: dict[str, Any] | None = None


class QueryRecord(_Record):
    """One query of a search.

    Attributes:
        query: The query.
        hits: The tools that it found, best first.
        total_found: The number of tools over the relevance floor.
        total_tools: The number of tools that were searched.
        unmatched: Words that no tool has.
    """

    query: str
    hits: tuple[HitRecord, ...] = ()
    total_found: int = 0
    total_tools: int = 0
    unmatched: tuple[str, ...] = ()


class SearchRecord(_Record):
    """One call of the search tool.

    Attributes:
        queries: The queries.
        error: The reason for which nothing was searched; empty: it was.
    """

    queries: tuple[QueryRecord, ...] = ()
    error: str = ""

    @property
    def found(self) -> tuple[str, ...]:
        """The names that it found, each once."""
        names = (hit.name for query in self.queries for hit in query.hits)
        return tuple(dict.fromkeys(names))


class PrefixRecord(_Record):
    """The difference of a prompt to the one before it in the conversation.

    Attributes:
        before: The id of the request with the prompt before.
        kept_bytes: The bytes of that prompt that are repeated: the place of the first byte
            that moved.
        total_bytes: All bytes of that prompt.
        cause: The kind of the first change; empty: the prompt continues.
        path: The place of the change in the JSON.
        subject: The tool that changed.
        in_prompt: False if a prompt cache loses nothing.
        old: The old text there, shortened; kept only with bodies.
        new: The new text there, likewise.
    """

    before: str
    kept_bytes: int
    total_bytes: int
    cause: str = ""
    path: str = ""
    subject: str = ""
    in_prompt: bool = True
    old: str = ""
    new: str = ""


class CallRecord(_Record):
    """A call in a model's reply.

    Attributes:
        name: The name that the model called.
        seen: The name that the client saw; empty: it saw no call.
        is_search: True if it was a search.
    """

    name: str
    seen: str = ""
    is_search: bool = False


class _Side(_Record):
    """A request and its reply.

    Attributes:
        request_bytes: The size of the request.
        tools: The number of tools.
        messages: The number of messages or items.
        request: The body, with keys masked; None: bodies are not kept.
        reply: The reply, likewise.
    """

    request_bytes: int = 0
    tools: int = 0
    messages: int = 0
    request: str | None = None
    reply: str | None = None


class StepRecord(_Side):
    """A request to the provider, and its reply.

    Attributes:
        calls: The calls of the reply.
        prefix: The difference to the prompt before; None: the first of a conversation.
    """

    calls: tuple[CallRecord, ...] = ()
    prefix: PrefixRecord | None = None


class ClientSide(_Side):
    """A request as the client made it, and the reply that it saw.

    Attributes:
        calls: The names of the calls that it saw.
    """

    calls: tuple[str, ...] = ()


class RequestRow(_Record):
    """The figures of a request: a row of the list.

    Attributes:
        id: The id.
        at: The time of the request, in seconds since the epoch.
        client: The name of the client's rule.
        conversation: The conversation; requests that begin alike are of one.
        model: The model.
        dialect: The format.
        upstream: The provider's id.
        strategy: The strategy; empty: the request was passed on.
        passed: The reason for which it was passed on; empty: it was not.
        path: The path.
        streamed: True if the reply was a stream.
        status: The status of the reply; 499: the client left before its end.
        tools: The number of the client's tools.
        declared: The tools whose definitions were in the prompt of the last request.
        deferred: The tools that were not.
        found: The tools that searches of this request found.
        called: The calls that the client saw.
        searches: The searches.
        empty_searches: The searches that found nothing.
        tokens: The estimated tokens of the declared definitions.
        full_tokens: The estimated tokens of all definitions.
        kept_bytes: The repeated bytes of the prompts before.
        total_bytes: All bytes of the prompts before; 0: there was none.
        prefix_cause: The first change of a prompt; empty: none.
        seconds: Seconds from the request to its end.
        own_seconds: Seconds in which neither the provider nor the client was waited for.
        running: True while the request is under way: only what is known at its start is there.
    """

    id: str
    at: float
    client: str = ""
    conversation: str = ""
    model: str = ""
    dialect: str = ""
    upstream: str = ""
    strategy: str = ""
    passed: str = ""
    path: str = ""
    streamed: bool = False
    status: int = 0
    tools: int = 0
    declared: int = 0
    deferred: int = 0
    found: int = 0
    called: int = 0
    searches: int = 0
    empty_searches: int = 0
    tokens: int = 0
    full_tokens: int = 0
    kept_bytes: int = 0
    total_bytes: int = 0
    prefix_cause: str = ""
    seconds: float = 0.0
    own_seconds: float = 0.0
    running: bool = False


class RequestRecord(RequestRow):
    """A request in full.

    Attributes:
        catalog: The id of the list of tools that could be found; empty: none.
        declared_tools: The tools that the last request declared.
        searched: The searches, in order.
        steps: The requests to the provider, in order.
        client_side: The request as the client made it.
    """

    catalog: str = ""
    declared_tools: tuple[DeclaredTool, ...] = ()
    searched: tuple[SearchRecord, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    client_side: ClientSide = ClientSide()

    def row(self) -> RequestRow:
        """Return the figures alone."""
        return RequestRow(**{name: getattr(self, name) for name in RequestRow.model_fields})

    @property
    def body_chars(self) -> int:
        """The characters of the kept bodies."""
        sides: tuple[_Side, ...] = (self.client_side, *self.steps)
        return sum(len(side.request or "") + len(side.reply or "") for side in sides)

    def without_bodies(self) -> RequestRecord:
        """Return the record without bodies."""
        none = {"request": None, "reply": None}
        return self.model_copy(
            update={
                "client_side": self.client_side.model_copy(update=none),
                "steps": tuple(step.model_copy(update=none) for step in self.steps),
            }
        )


class CatalogRecord(_Record):
    """The names of the tools that requests with one list can find.

    Attributes:
        id: The id of the list.
        names: The names.
    """

    id: str
    names: tuple[str, ...]
