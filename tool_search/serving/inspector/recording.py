"""The reader of requests that begin and end: their records are made in a thread of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, NamedTuple

from tool_search.core.services import SearchMatch, SearchResult
from tool_search.core.values.json import compact_json
from tool_search.core.values.redaction import log_failure
from tool_search.serving.inspector.log import RecordLog
from tool_search.serving.inspector.masking import Masker
from tool_search.serving.inspector.recorder import Explain, Recorder
from tool_search.serving.inspector.records import (
    CatalogRecord,
    HitRecord,
    QueryRecord,
    RequestRecord,
    RequestRow,
    SearchRecord,
)
from tool_search.serving.inspector.settings import InspectorSettings

__all__ = ["Ended", "Recording", "search_record"]

# Requests that wait for their record; a process under such a load has no time for more.
_MAX_WAITING = 200
_log = logging.getLogger(__name__)


class Ended(NamedTuple):
    """A request that has ended, as the inspector keeps it.

    Attributes:
        record: The record.
        names: The tools that it could find; empty: there is no such list.
        explain: Explains the rankings of its searches.
        owner: The client of the request.
    """

    record: RequestRecord
    names: Iterable[str] = ()
    explain: Explain | None = None
    owner: str = ""


class Recording:
    """A recorder, and the one thread that makes its records, in order.

    Proxy and gateway tell it when a request begins and ends.

    Args:
        settings: The settings.

    Attributes:
        recorder: The records.
        with_bodies: True if they keep bodies.
    """

    def __init__(self, settings: InspectorSettings) -> None:
        log = RecordLog(settings.path, settings.max_log_bytes) if settings.path else None
        self.recorder = Recorder(settings.keep_requests, log)
        self.with_bodies = settings.bodies
        self._thread: ThreadPoolExecutor | None = None
        self._lock = Lock()
        self._waiting = 0

    def show(self, row: RequestRow, owner: str = "") -> None:
        """Show a request that has begun, until it ends."""
        self.recorder.begin(row, owner)

    def end(self, request_id: str, write: Callable[[], Ended | None]) -> None:
        """Take the end of a request; if too many wait for their record, leave it out and warn.

        Args:
            request_id: The id of its record.
            write: Writes it, in the thread; None: it leaves no record.
        """
        with self._lock:
            is_left_out = self._waiting >= _MAX_WAITING
            if not is_left_out:
                self._waiting += 1
                self._thread = self._thread or ThreadPoolExecutor(1, "inspector")
                self._thread.submit(self._record, request_id, write)
        if is_left_out:
            _log.warning("the inspector leaves out a request: %d wait", self._waiting)
            self.recorder.forget(request_id)

    def body(self, content: Any, masker: Masker) -> str | None:
        """Return a body with keys masked; None if bodies are not kept."""
        if not self.with_bodies or content is None:
            return None
        return compact_json(masker.value(content))

    def settle(self) -> None:
        """Wait until the records that were submitted are made."""
        with self._lock:
            waiting = self._thread.submit(int) if self._thread else None
        if waiting is not None:
            waiting.result()

    def close(self) -> None:
        """End the thread, after the records that wait; a later one begins another."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()

    def _record(self, request_id: str, write: Callable[[], Ended | None]) -> None:
        try:
            ended = write()
            if ended is not None:
                record = ended.record
                self.recorder.add(
                    record,
                    catalog=self._catalog(record.catalog, ended.names) if record.catalog else None,
                    explain=ended.explain,
                    owner=ended.owner,
                )
        except Exception:  # noqa: BLE001  # a request that ended well is not ours to break
            log_failure(_log, "the inspector leaves out a request")
        finally:
            self.recorder.forget(request_id)
            with self._lock:
                self._waiting -= 1

    def _catalog(self, catalog_id: str, names: Iterable[str]) -> CatalogRecord:
        """Return the names that a request can find, made once for each list."""
        known = self.recorder.catalog(catalog_id)
        return known or CatalogRecord(id=catalog_id, names=tuple(names))


def search_record(result: SearchResult | None, error: str | None, masker: Masker) -> SearchRecord:
    """Return the record of a search."""
    parts = () if result is None else result.parts or (result,)
    queries = tuple(
        QueryRecord(
            query=masker.text(part.query),
            hits=tuple(_hit(match, masker) for match in part.matches),
            total_found=part.total_found,
            total_tools=part.total_tools,
            unmatched=tuple(map(masker.text, part.unmatched)),
        )
        for part in parts
    )
    return SearchRecord(queries=queries, error=masker.text(error or ""))


def _hit(match: SearchMatch, masker: Masker) -> HitRecord:
    return HitRecord(
        name=masker.text(match.name),
        description=masker.text(match.description),
        server=masker.text(match.server or ""),
        score=round(match.score, 6),
    )
