"""Requests in a file of JSON Lines, which `tool-search inspect-log` shows again.

A line is `{"catalog": {...}}`, the tools that later requests can find, or `{"request": {...}}`.
"""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from tool_search.core.values.json import compact_json
from tool_search.errors import ConfigurationError
from tool_search.serving.inspector.records import CatalogRecord, RequestRecord

__all__ = ["KeptLog", "RecordLog", "read_log"]

_MODE = 0o600
_log = logging.getLogger(__name__)


class RecordLog:
    """A file that requests are written to; the file before it has the ending `.1`.

    A file that cannot be written costs no request: one warning is logged, and later requests
    are tried again.

    Args:
        path: The file; only its owner may read it.
        max_bytes: The size from which on a new file is begun.
    """

    def __init__(self, path: str | os.PathLike[str], max_bytes: int) -> None:
        self._path = Path(path)
        self._max_bytes = max_bytes
        self._written: set[str] = set()
        self._has_failed = False

    def write(self, record: RequestRecord, catalog: CatalogRecord | None = None) -> None:
        """Append a request, and its tools if the file does not have them."""
        try:
            self._rotate()
            lines = []
            if catalog is not None and catalog.id not in self._written:
                lines.append(f'{{"catalog":{catalog.model_dump_json()}}}\n')
            lines.append(f'{{"request":{record.model_dump_json()}}}\n')
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
            with open(file, "ab") as opened:  # noqa: PTH123  # a descriptor with a mode of its own
                opened.write("".join(lines).encode("utf-8", "replace"))
        except OSError as exc:
            if not self._has_failed:
                _log.warning("inspector.path %r cannot be written: %s", str(self._path), exc)
            self._has_failed = True
            return
        self._has_failed = False
        if catalog is not None:
            self._written.add(catalog.id)

    def _rotate(self) -> None:
        if not self._path.exists() or self._path.stat().st_size < self._max_bytes:
            return
        self._path.replace(f"{self._path}.1")
        self._written.clear()


@dataclass(frozen=True, slots=True)
class KeptLog:
    """The content of a log.

    Attributes:
        requests: The requests, oldest first.
        catalogs: The lists of tools that could be found.
        unread: The number of lines that could not be read.
    """

    requests: tuple[RequestRecord, ...]
    catalogs: tuple[CatalogRecord, ...]
    unread: int


def read_log(path: str | os.PathLike[str], keep_requests: int) -> KeptLog:
    """Return the last requests of a log.

    A line that is not of a log is passed over: the last one may be half written.

    Args:
        path: The file.
        keep_requests: The number of requests.

    Raises:
        ConfigurationError: The file cannot be read, or no line of it is of a log.
    """
    requests: deque[RequestRecord] = deque(maxlen=keep_requests)
    catalogs: dict[str, CatalogRecord] = {}
    unread = 0
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                found = _read_line(line)
                if isinstance(found, RequestRecord):
                    requests.append(found)
                elif isinstance(found, CatalogRecord):
                    catalogs[found.id] = found
                elif line.strip():
                    unread += 1
    except OSError as exc:
        raise ConfigurationError(f"the log {str(path)!r} cannot be read: {exc.strerror}") from exc
    if unread and not requests:
        raise ConfigurationError(
            f"{str(path)!r} is not a log of requests; name the file of the setting inspector.path"
        )
    return KeptLog(tuple(requests), tuple(catalogs.values()), unread)


def _read_line(line: str) -> RequestRecord | CatalogRecord | None:
    try:
        content = json.loads(line)
        if not isinstance(content, dict):
            return None
        if "request" in content:
            return RequestRecord.model_validate_json(compact_json(content["request"]))
        if "catalog" in content:
            return CatalogRecord.model_validate_json(compact_json(content["catalog"]))
    except (ValueError, RecursionError, ValidationError):
        return None
    return None
