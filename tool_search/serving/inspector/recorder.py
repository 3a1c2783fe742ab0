"""The latest requests in memory: bounded, shared by threads, followed by open pages."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

from tool_search.errors import SearchError
from tool_search.serving.inspector.log import RecordLog
from tool_search.serving.inspector.records import CatalogRecord, RequestRecord, RequestRow

__all__ = ["Explain", "Recorder", "explained"]

Explain = Callable[[str, Sequence[str]], Mapping[str, Mapping[str, Any]]]
"""Returns the reasons for which a query found tools, by name."""

# An explanation needs the request's tools and index, which are large if each list is another.
_MAX_EXPLAINABLE = 100
_MAX_CATALOGS = 64
_MAX_BODY_CHARS = 64_000_000
_MAX_RUNNING = 1_000
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Entry:
    number: int
    record: RequestRecord
    row: str
    explain: Explain | None
    owner: str


class Recorder:
    """The latest requests; every method may be called from any thread.

    Each request has an owner, the name of a client by its token; empty: there are no tokens.
    Those who read give the owner whose requests they may see; None: all.

    Args:
        keep_requests: The number of requests.
        log: A file that each request is written to; None: there is none.
    """

    def __init__(self, keep_requests: int, log: RecordLog | None = None) -> None:
        self._log = log
        self._lock = Lock()
        self._entries: deque[_Entry] = deque(maxlen=keep_requests)
        self._running: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._catalogs: OrderedDict[str, CatalogRecord] = OrderedDict()
        self._followers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._explainable: deque[_Entry] = deque()
        self._with_bodies: deque[tuple[int, _Entry]] = deque()
        self._body_chars = 0
        self._last = 0

    @property
    def last(self) -> int:
        """The number of the latest request; the first is 1."""
        return self._last

    @property
    def followers(self) -> int:
        """The number of open streams."""
        return len(self._followers)

    def begin(self, row: RequestRow, owner: str = "") -> None:
        """Show a request that is under way, until it is added or forgotten."""
        written = row.model_dump_json()
        with self._lock:
            self._running[row.id] = owner, written
            if len(self._running) > _MAX_RUNNING:
                self._running.popitem(last=False)
        self._wake_all()

    def forget(self, request_id: str) -> None:
        """Show a request that is under way no longer; nothing happens to an added one."""
        with self._lock:
            was_running = self._running.pop(request_id, None)
        if was_running is not None:
            self._wake_all()

    def running(self, owner: str | None = None) -> dict[str, str]:
        """Return the rows of requests that are under way as JSON, by id, oldest first."""
        with self._lock:
            kept = self._running.items()
            return {name: row for name, (whose, row) in kept if owner in (None, whose)}

    def add(
        self,
        record: RequestRecord,
        *,
        catalog: CatalogRecord | None = None,
        explain: Explain | None = None,
        owner: str = "",
    ) -> None:
        """Keep a request, and wake those who follow.

        Args:
            record: The request.
            catalog: The tools that it could find.
            explain: Explains the rankings of its searches.
            owner: The client of the request.
        """
        if self._log is not None:
            self._log.write(explained(record, explain), catalog)
        row = record.row().model_dump_json()
        with self._lock:
            self._running.pop(record.id, None)
            self._last += 1
            entry = _Entry(self._last, record, row, explain, owner)
            self._entries.append(entry)
            if catalog is not None:
                self._catalogs[catalog.id] = catalog
                self._catalogs.move_to_end(catalog.id)
            self._trim(entry)
        self._wake_all()

    def _trim(self, entry: _Entry) -> None:
        """Drop what no longer fits with a new request."""
        while len(self._catalogs) > _MAX_CATALOGS:
            self._catalogs.popitem(last=False)
        if entry.explain is not None:
            self._explainable.append(entry)
        if len(self._explainable) > _MAX_EXPLAINABLE:
            self._explainable.popleft().explain = None
        chars = entry.record.body_chars
        if chars:
            self._with_bodies.append((chars, entry))
            self._body_chars += chars
        oldest = self._last - (self._entries.maxlen or 0)
        while self._with_bodies and (
            self._body_chars > _MAX_BODY_CHARS or self._with_bodies[0][1].number <= oldest
        ):
            chars, dropped = self._with_bodies.popleft()
            self._body_chars -= chars
            dropped.record = dropped.record.without_bodies()

    def _wake_all(self) -> None:
        with self._lock:
            followers = list(self._followers.items())
        for event, loop in followers:
            self._wake(event, loop)

    def _wake(self, event: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.call_soon_threadsafe(event.set)
        except RuntimeError:  # the loop was closed before its stream
            with self._lock:
                self._followers.pop(event, None)

    def rows(
        self, after: int = 0, limit: int = 1_000, owner: str | None = None
    ) -> list[tuple[int, str]]:
        """Return numbers and rows as JSON, oldest first.

        Args:
            after: The number of the last request that the caller has.
            limit: The largest number of rows: the newest.
            owner: The client whose requests they are; None: any.
        """
        found: list[tuple[int, str]] = []
        with self._lock:
            for entry in reversed(self._entries):
                if entry.number <= after or len(found) >= limit:
                    break
                if owner in (None, entry.owner):
                    found.append((entry.number, entry.row))
        return found[::-1]

    def get(self, request_id: str, owner: str | None = None) -> RequestRecord | None:
        """Return a request with its explanations; None if it is not kept.

        It may take milliseconds for each search.
        """
        entry = self._entry(request_id)
        if entry is None or owner not in (None, entry.owner):
            return None
        return explained(entry.record, entry.explain)

    def has(self, request_id: str) -> bool:
        """True if a request has ended and is kept."""
        return self._entry(request_id) is not None

    def _entry(self, request_id: str) -> _Entry | None:
        with self._lock:
            return next((e for e in reversed(self._entries) if e.record.id == request_id), None)

    def catalog(self, catalog_id: str) -> CatalogRecord | None:
        """Return a list of tools that is kept; None for any other."""
        with self._lock:
            return self._catalogs.get(catalog_id)

    def all(self, owner: str | None = None) -> tuple[list[RequestRecord], list[CatalogRecord]]:
        """Return all requests, oldest first, and the lists of tools that they could find."""
        with self._lock:
            records = [e.record for e in self._entries if owner in (None, e.owner)]
            named = {record.catalog for record in records}
            return records, [c for c in self._catalogs.values() if owner is None or c.id in named]

    @contextmanager
    def following(self) -> Iterator[asyncio.Event]:
        """Give an event of the running loop that each new request sets."""
        event = asyncio.Event()
        with self._lock:
            self._followers[event] = asyncio.get_running_loop()
        try:
            yield event
        finally:
            with self._lock:
                self._followers.pop(event, None)


def explained(record: RequestRecord, explain: Explain | None) -> RequestRecord:
    """Return a request with the reasons for its rankings, as far as they are known."""
    if explain is None or not record.searched:
        return record
    searched = []
    for search in record.searched:
        queries = []
        for query in search.queries:
            try:
                reasons = explain(query.query, [hit.name for hit in query.hits])
            except SearchError as exc:
                _log.warning("the ranking for a query cannot be explained: %s", exc)
                reasons = {}
            hits = [
                hit.model_copy(update={"reasons": dict(reasons[hit.name])})
                if hit.name in reasons
                else hit
                for hit in query.hits
            ]
            queries.append(query.model_copy(update={"hits": tuple(hits)}))
        searched.append(search.model_copy(update={"queries": tuple(queries)}))
    return record.model_copy(update={"searched": tuple(searched)})
