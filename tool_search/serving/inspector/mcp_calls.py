"""Records of the searches and calls of an MCP gateway's clients."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tool_search.core.catalog.tool import estimate_tokens
from tool_search.core.services import SearchResult
from tool_search.core.values.json import compact_json
from tool_search.serving.inspector.masking import Masker
from tool_search.serving.inspector.recorder import Explain
from tool_search.serving.inspector.recording import Ended, Recording, search_record
from tool_search.serving.inspector.records import ClientSide, RequestRecord, RequestRow

__all__ = ["ANSWERED", "FAILED", "ListedTools", "McpRecords", "UnderWay"]

ANSWERED, FAILED = 200, 500
_LEFT = 499


@dataclass(frozen=True, slots=True)
class ListedTools:
    """The list of one client.

    Attributes:
        session: The name of its session.
        owner: The name of the client by its token; empty: there are no tokens.
        exposure: The change of the list by a search.
        listed: The names in the list, as clients are shown them.
        shown: The names that clients are shown, by canonical name, of all tools.
        definition: Returns the definition of a shown name; it is called in a thread.
        catalog_id: The fingerprint of all tools.
    """

    session: str
    owner: str
    exposure: str
    listed: Sequence[str]
    shown: Mapping[str, str]
    definition: Callable[[str], Mapping[str, Any]]
    catalog_id: str


@dataclass(slots=True)
class UnderWay:
    """A search or a call that has begun.

    Attributes:
        records: The records of the gateway.
        id: The id of its record.
        at: The time of its begin, in seconds since the epoch.
        name: The canonical name of the called tool; empty: it is a search.
        began: The same time of a clock that never goes back.
        write: Writes its record; None: it leaves no row.
    """

    records: McpRecords
    name: str
    id: str = field(default_factory=partial(secrets.token_hex, 6))
    at: float = field(default_factory=time.time)
    began: float = field(default_factory=time.perf_counter)
    write: Callable[[], Ended] | None = None

    def searched(self, tools: ListedTools, result: SearchResult, explain: Explain | None) -> None:
        """Take the result of a search, and what explains its ranking."""
        seconds = time.perf_counter() - self.began
        self.write = partial(self.records.search, self, tools, seconds, result, explain)

    def called(
        self,
        tools: ListedTools,
        *,
        status: int,
        bodies: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None] = (None, None),
    ) -> None:
        """Take the end of a call, its arguments and its result."""
        seconds = time.perf_counter() - self.began
        self.write = partial(self.records.call, self, tools, seconds, status, bodies)


class McpRecords(Recording):
    """The records of a gateway."""

    _tokens: tuple[str, dict[str, int]] = ("", {})
    _masker = Masker(())

    @contextmanager
    def under_way(self, tools: ListedTools, name: str = "") -> Iterator[UnderWay]:
        """Show a search or a call while a block runs; the block says how it ended.

        A call whose client leaves gets a record here. Any other block that says nothing leaves
        no row.

        Args:
            tools: The list of the client.
            name: The canonical name of the called tool; empty: it is a search.
        """
        begun = UnderWay(self, name)
        self.show(RequestRow(**self._figures(tools, begun), running=True), tools.owner)
        try:
            yield begun
        except asyncio.CancelledError:
            if name:
                begun.called(tools, status=_LEFT)
            raise
        finally:
            self.end(begun.id, begun.write or (lambda: None))

    def search(
        self,
        begun: UnderWay,
        tools: ListedTools,
        seconds: float,
        result: SearchResult,
        explain: Explain | None,
    ) -> Ended:
        """Write the record of a search."""
        search = search_record(result, result.error, self._masker)
        return self._end(
            tools,
            begun,
            seconds,
            explain,
            status=ANSWERED if result.error is None else FAILED,
            found=len(search.found),
            searches=1,
            empty_searches=int(not search.found),
            own_seconds=round(seconds, 6),
            searched=(search,),
        )

    def call(
        self,
        begun: UnderWay,
        tools: ListedTools,
        seconds: float,
        status: int,
        bodies: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None],
    ) -> Ended:
        """Write the record of a call."""
        request, reply = (self.body(content, self._masker) for content in bodies)
        called = (self._masker.text(begun.name),)
        side = ClientSide(tools=len(tools.listed), calls=called, request=request, reply=reply)
        return self._end(tools, begun, seconds, None, status=status, called=1, client_side=side)

    def _end(
        self,
        tools: ListedTools,
        begun: UnderWay,
        seconds: float,
        explain: Explain | None,
        **more: Any,
    ) -> Ended:
        tokens = self._tokens_of(tools)
        record = RequestRecord(
            **self._figures(tools, begun),
            tokens=sum(tokens.get(name, 0) for name in tools.listed),
            full_tokens=sum(tokens.values()),
            seconds=round(seconds, 6),
            catalog=tools.catalog_id,
            **more,
        )
        return Ended(record, map(self._masker.text, tools.shown), explain, tools.owner)

    def _figures(self, tools: ListedTools, begun: UnderWay) -> dict[str, Any]:
        """Return what is known of a row from its begin on."""
        return {
            "id": begun.id,
            "at": begun.at,
            "client": "mcp",
            "conversation": self._masker.text(tools.session),
            "dialect": "mcp",
            "strategy": tools.exposure,
            "passed": "called" if begun.name else "",
            "path": "tools/call",
            "tools": len(tools.shown),
            "declared": len(tools.listed),
            "deferred": len(tools.shown) - len(tools.listed),
        }

    def _tokens_of(self, tools: ListedTools) -> dict[str, int]:
        """Return the estimated tokens of each definition, made once for a list of tools."""
        if self._tokens[0] != tools.catalog_id:
            sizes = {
                name: estimate_tokens(compact_json(tools.definition(name)))
                for name in tools.shown.values()
            }
            self._tokens = tools.catalog_id, sizes
        return self._tokens[1]
