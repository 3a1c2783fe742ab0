"""Records of the searches and calls of an MCP gateway's clients."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from tool_search.core.catalog.tokens import estimate_tokens
from tool_search.core.results import SearchResult
from tool_search.core.values.json import compact_json
from tool_search.serving.inspector.masking import Masker
from tool_search.serving.inspector.recorder import Explain
from tool_search.serving.inspector.recording import Recording
from tool_search.serving.inspector.records import (
    CatalogRecord,
    ClientSide,
    HitRecord,
    QueryRecord,
    RequestRecord,
    RequestRow,
    SearchRecord,
)

__all__ = ["ListedTools", "McpRecords", "UnderWay"]

_ANSWERED, _LEFT, _FAILED = 200, 499, 500


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


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A search or a call that has begun.

    Attributes:
        id: The id of its record.
        at: The time of its begin, in seconds since the epoch.
        name: The canonical name of the called tool; empty: it is a search.
        began: The same time of a clock that never goes back.
    """

    id: str
    at: float
    name: str
    began: float

    @property
    def seconds(self) -> float:
        """The seconds since then."""
        return time.perf_counter() - self.began


class McpRecords:
    """The records of a gateway.

    Args:
        recording: The recorder, and its thread.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._tokens: tuple[str, dict[str, int]] = ("", {})
        self._masker = Masker(())

    @contextmanager
    def under_way(self, tools: ListedTools, name: str = "") -> Iterator[UnderWay]:
        """Show a search or a call while a block runs; the block gives it a record.

        A call whose client leaves gets one here. Any other block without a record leaves no row.

        Args:
            tools: The list of the client.
            name: The canonical name of the called tool; empty: it is a search.
        """
        begun = UnderWay(secrets.token_hex(6), time.time(), name, time.perf_counter())
        recorder = self.recording.recorder
        recorder.begin(RequestRow(**self._figures(tools, begun), running=True), tools.owner)
        try:
            yield begun
        except asyncio.CancelledError:
            if name:
                work = partial(self._add_call, tools, begun, begun.seconds, None, status=_LEFT)
                self.recording.submit(work)
            raise
        finally:
            # After its record: both are made by the one thread, in order.
            if not self.recording.submit(partial(recorder.forget, begun.id)):
                recorder.forget(begun.id)

    def searched(
        self, begun: UnderWay, tools: ListedTools, result: SearchResult, explain: Explain
    ) -> None:
        """Record a search.

        Args:
            begun: The search.
            tools: The list of the client after it.
            result: The result.
            explain: Explains its ranking.
        """
        work = partial(self._add_search, tools, begun, begun.seconds, result, explain)
        self.recording.submit(work)

    def called(
        self,
        begun: UnderWay,
        tools: ListedTools,
        *,
        failed: bool,
        bodies: tuple[Mapping[str, Any], Mapping[str, Any]],
    ) -> None:
        """Record a call of a tool.

        Args:
            begun: The call.
            tools: The list of the client.
            failed: True if it failed.
            bodies: The arguments and the result.
        """
        status = _FAILED if failed else _ANSWERED
        self.recording.submit(
            partial(self._add_call, tools, begun, begun.seconds, bodies, status=status)
        )

    def _add_search(
        self,
        tools: ListedTools,
        begun: UnderWay,
        seconds: float,
        result: SearchResult,
        explain: Explain,
    ) -> None:
        text = self._masker.text
        query = QueryRecord(
            query=text(result.query),
            hits=tuple(
                HitRecord(
                    name=text(match.name),
                    description=text(match.description),
                    server=text(match.server or ""),
                    score=round(match.score, 6),
                )
                for match in result.matches
            ),
            total_found=result.total_found,
            total_tools=result.total_tools,
            unmatched=tuple(map(text, result.unmatched)),
        )
        search = SearchRecord(queries=(query,), error=text(result.error or ""))
        status = _ANSWERED if result.error is None else _FAILED
        record = self._record(tools, begun, seconds, status).model_copy(
            update={
                "found": len(search.found),
                "searches": 1,
                "empty_searches": int(not search.found),
                "own_seconds": round(seconds, 6),
                "searched": (search,),
            }
        )
        self._add(tools, record, explain)

    def _add_call(
        self,
        tools: ListedTools,
        begun: UnderWay,
        seconds: float,
        bodies: tuple[Mapping[str, Any], Mapping[str, Any]] | None,
        *,
        status: int,
    ) -> None:
        shown = self._masker.text(begun.name)
        request, reply = map(self._body, bodies) if bodies else (None, None)
        record = self._record(tools, begun, seconds, status).model_copy(
            update={
                "called": 1,
                "client_side": ClientSide(
                    tools=len(tools.listed), calls=(shown,), request=request, reply=reply
                ),
            }
        )
        self._add(tools, record, None)

    def _body(self, content: Mapping[str, Any]) -> str | None:
        if not self.recording.with_bodies:
            return None
        return compact_json(self._masker.value(content))

    def _record(
        self, tools: ListedTools, begun: UnderWay, seconds: float, status: int
    ) -> RequestRecord:
        tokens = self._tokens_of(tools)
        return RequestRecord(
            **self._figures(tools, begun),
            status=status,
            tokens=sum(tokens.get(name, 0) for name in tools.listed),
            full_tokens=sum(tokens.values()),
            seconds=round(seconds, 6),
            catalog=tools.catalog_id,
        )

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

    def _add(self, tools: ListedTools, record: RequestRecord, explain: Explain | None) -> None:
        catalog = self.recording.recorder.catalog(tools.catalog_id)
        if catalog is None:
            names = tuple(map(self._masker.text, tools.shown))
            catalog = CatalogRecord(id=tools.catalog_id, names=names)
        self.recording.recorder.add(record, catalog=catalog, explain=explain, owner=tools.owner)
