"""Records of the searches and calls of an MCP gateway's clients."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tool_search.catalog.tokens import estimate_tokens
from tool_search.inspector.masking import Masker
from tool_search.inspector.recorder import Explain
from tool_search.inspector.recording import Recording
from tool_search.inspector.records import (
    CatalogRecord,
    ClientSide,
    HitRecord,
    QueryRecord,
    RequestRecord,
    SearchRecord,
)
from tool_search.search.index.protocol import SearchResult
from tool_search.values.json import compact_json

__all__ = ["ListedTools", "McpRecords"]

_ANSWERED, _FAILED = 200, 500


@dataclass(frozen=True, slots=True)
class ListedTools:
    """The list of one client.

    Attributes:
        session: The name of its session.
        exposure: The change of the list by a search.
        listed: The names in the list, as clients are shown them.
        shown: The names that clients are shown, by canonical name, of all tools.
        definition: Returns the definition of a shown name; it is called in a thread.
        catalog_id: The fingerprint of all tools.
    """

    session: str
    exposure: str
    listed: Sequence[str]
    shown: Mapping[str, str]
    definition: Callable[[str], Mapping[str, Any]]
    catalog_id: str


class McpRecords:
    """The records of a gateway.

    Args:
        recording: The recorder, and its thread.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._tokens: tuple[str, dict[str, int]] = ("", {})
        self._masker = Masker(())

    def searched(
        self, tools: ListedTools, result: SearchResult, explain: Explain, *, seconds: float
    ) -> None:
        """Record a search.

        Args:
            tools: The list of the client after it.
            result: The result.
            explain: Explains its ranking.
            seconds: The seconds that it took.
        """
        at = time.time()
        self.recording.submit(lambda: self._add_search(tools, result, explain, (at, seconds)))

    def called(
        self,
        tools: ListedTools,
        name: str,
        *,
        seconds: float,
        failed: bool,
        bodies: tuple[Mapping[str, Any], Mapping[str, Any]],
    ) -> None:
        """Record a call of a tool.

        Args:
            tools: The list of the client.
            name: The canonical name of the tool.
            seconds: The seconds that its server was waited for.
            failed: True if it failed.
            bodies: The arguments and the result.
        """
        at = time.time()
        self.recording.submit(
            lambda: self._add_call(tools, name, (at, seconds), bodies, failed=failed)
        )

    def _add_search(
        self,
        tools: ListedTools,
        result: SearchResult,
        explain: Explain,
        timed: tuple[float, float],
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
        record = self._record(tools, timed, failed=result.error is not None).model_copy(
            update={
                "found": len(search.found),
                "searches": 1,
                "empty_searches": int(not search.found),
                "own_seconds": round(timed[1], 6),
                "searched": (search,),
            }
        )
        self._add(tools, record, explain)

    def _add_call(
        self,
        tools: ListedTools,
        name: str,
        timed: tuple[float, float],
        bodies: tuple[Mapping[str, Any], Mapping[str, Any]],
        *,
        failed: bool,
    ) -> None:
        shown = self._masker.text(name)
        request, reply = map(self._body, bodies)
        record = self._record(tools, timed, failed=failed).model_copy(
            update={
                "called": 1,
                "passed": "called",
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
        self, tools: ListedTools, timed: tuple[float, float], *, failed: bool
    ) -> RequestRecord:
        tokens = self._tokens_of(tools)
        return RequestRecord(
            id=secrets.token_hex(6),
            at=timed[0],
            client="mcp",
            conversation=self._masker.text(tools.session),
            dialect="mcp",
            strategy=tools.exposure,
            path="tools/call",
            status=_FAILED if failed else _ANSWERED,
            tools=len(tools.shown),
            declared=len(tools.listed),
            deferred=len(tools.shown) - len(tools.listed),
            tokens=sum(tokens.get(name, 0) for name in tools.listed),
            full_tokens=sum(tokens.values()),
            seconds=round(timed[1], 6),
            catalog=tools.catalog_id,
        )

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
        self.recording.recorder.add(record, catalog=catalog, explain=explain)
