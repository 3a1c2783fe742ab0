"""Files that commands read; each error names its file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tool_search.catalog.formats import json_values, parse_tools
from tool_search.cli.terminal.language import wrong_use
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.errors import CatalogError, ConfigurationError
from tool_search.search import JudgedQuery

__all__ = [
    "QueryLine",
    "is_standard_input",
    "read_catalog",
    "read_judged_queries",
    "read_queries",
]


_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLine:
    """One entry of a file of queries.

    Attributes:
        place: Its place in the file, for errors.
        query: The query.
        content: The whole entry.
    """

    place: str
    query: str
    content: dict[str, Any]


def is_standard_input(path: Path) -> bool:
    """True if a path is `-`, as other commands name standard input."""
    return str(path) == "-"


def read_catalog(path: Path) -> ToolCatalog:
    """Return the catalog of a file in any format of `tool_search.catalog.formats`.

    Raises:
        CatalogError: The file cannot be read, or something in it is wrong.
    """
    try:
        text = _text(path)
    except ConfigurationError as exc:
        raise CatalogError(str(exc)) from exc
    source = "standard input" if is_standard_input(path) else str(path)
    return ToolCatalog(parse_tools(text, source=source))


def read_queries(path: Path) -> tuple[QueryLine, ...]:
    """Return the entries of a file of queries, `{"query": ...}` a line, in order.

    Raises:
        ConfigurationError: The file cannot be read, is not JSON, or an entry has no
            query.
    """
    return tuple(
        QueryLine(place=place, query=_query(entry, place), content=entry)
        for place, entry in _entries(path)
    )


def read_judged_queries(path: Path) -> tuple[JudgedQuery, ...]:
    """Return the queries of a file with the tools that answer them: `{"query", "relevant"}`.

    Raises:
        ConfigurationError: As in `read_queries`, or an entry names no relevant tool.
    """
    judged = []
    for line in read_queries(path):
        relevant = line.content.get("relevant")
        named = isinstance(relevant, list) and all(isinstance(name, str) for name in relevant)
        if not named or not relevant:
            raise ConfigurationError(
                f'{line.place}: "relevant" must be a list of one or more tool names, '
                f"not {relevant!r}"
            )
        judged.append(JudgedQuery(query=line.query, relevant=tuple(relevant)))
    return tuple(judged)


def _text(path: Path) -> str:
    try:
        content = sys.stdin.buffer.read() if is_standard_input(path) else path.read_bytes()
    except OSError as exc:
        if isinstance(exc, FileNotFoundError):
            raise wrong_use("use.no_file", path=path) from exc
        if isinstance(exc, IsADirectoryError):
            raise wrong_use("use.folder", path=path) from exc
        raise wrong_use("use.unreadable", path=path, cause=exc.strerror or exc) from exc
    # PowerShell redirects in UTF-16.
    encoding = "utf-16" if content.startswith(_UTF16_MARKS) else "utf-8"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as exc:
        line = content.count(b"\n", 0, exc.start) + 1
        raise ConfigurationError(
            f"{path}, line {line}: is not text in {encoding.upper()}: {exc.reason} "
            f"(byte 0x{content[exc.start]:02x})"
        ) from exc


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        for place, value in json_values(_text(path), source=str(path)):
            if isinstance(value, list):
                yield from ((f"{place}, index {i}", entry) for i, entry in enumerate(value))
            else:
                yield place, value
    except CatalogError as exc:
        raise ConfigurationError(str(exc)) from exc


def _query(entry: Any, place: str) -> str:
    query = entry.get("query") if isinstance(entry, dict) else None
    if not isinstance(query, str):
        raise ConfigurationError(f'{place}: must be an object with a "query", which is a text')
    return query
