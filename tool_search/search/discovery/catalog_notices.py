"""Notices for an operator about a catalog, one for each server and kind of finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import TypeVar

from tool_search.catalog.near_copies import copies_of
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.naming import Source, name_keys
from tool_search.core.catalog.tool import Tool
from tool_search.core.messages import Notice
from tool_search.core.values.clean_text import clean_name, look_alike_keys, loose_key

__all__ = ["catalog_notices", "copy_notices"]

_T = TypeVar("_T")
_MAX_NAMED = 5
_MAX_NAME_CHARS = 80


def catalog_notices(catalog: ToolCatalog) -> tuple[Notice, ...]:
    """Return the changes to servers' definitions and the refused ones, by server."""
    renamed = [tool for tool in catalog.values() if tool.listed_name not in (None, tool.name)]
    why = _Reasons(catalog)
    found = [
        Notice("tool_renamed", f"{of}: {listed}")
        for of, listed in _by_server(renamed, lambda tool: tool.server, why.of)
    ]
    found += [
        Notice("tool_refused", f"{of}: listed more than once, the first counts: {listed}")
        for of, listed in _by_server(catalog.repeated, lambda s: s[0], lambda s: _quote(s[1]))
    ]
    found += [
        Notice("definition_cut", f"{of}: texts longer than the limit are cut: {listed}")
        for of, listed in _by_server(_cut(catalog), lambda tool: tool.server, _name_of)
    ]
    return tuple(found)


def copy_notices(catalog: ToolCatalog) -> tuple[Notice, ...]:
    """Return one notice if servers repeat older tools of other servers.

    Compares the texts of all tools, once for each catalog.
    """
    copies = copies_of(catalog)
    if not copies:
        return ()
    pairs = [(catalog[name], catalog[older]) for name, older in list(copies.items())[:_MAX_NAMED]]
    said = "; ".join(f"{_whose(tool)} repeats {_whose(older)}" for tool, older in pairs)
    more = f"; and {len(copies) - len(pairs)} more" if len(copies) > len(pairs) else ""
    return (Notice("tool_copied", f"found after the older tools that they repeat: {said}{more}"),)


def _whose(tool: Tool) -> str:
    return _quote(tool.name) + ("" if tool.server is None else f" of server {_quote(tool.server)}")


def _cut(catalog: ToolCatalog) -> list[Tool]:
    """Return the tools whose texts are too long for a model to be sent in full."""
    whole = catalog.given.by_source if catalog.given is not catalog else {}
    pairs = ((tool, whole.get(tool.source, tool)) for tool in catalog.values())
    return [
        tool for tool, given in pairs if given is not tool and given.shown[1:] != tool.shown[1:]
    ]


def _name_of(tool: Tool) -> str:
    return _quote(tool.name)


def _by_server(
    items: Iterable[_T], server: Callable[[_T], str | None], said: Callable[[_T], str]
) -> Iterable[tuple[str, str]]:
    """Yield each server that has some of the items, with a text about the first of them."""
    listed = sorted(items, key=lambda item: server(item) or "")
    for name, group in groupby(listed, key=server):
        of_server = list(group)
        texts = [said(item) for item in of_server[:_MAX_NAMED]]
        more = len(of_server) - len(texts)
        of = "tools without a server" if name is None else f"server {_quote(name)}"
        yield of, "; ".join(texts) + (f"; and {more} more" if more else "")


class _Reasons:
    """The reasons why tools have other names than their servers gave them.

    Args:
        catalog: The tools.
    """

    def __init__(self, catalog: ToolCatalog) -> None:
        self._catalog = catalog
        self._owners: Mapping[str, Source] = catalog.book.owners
        self._loose: Mapping[str, Source] = catalog.book.loose_owners

    def of(self, tool: Tool) -> str:
        """Return a sentence that names the tool, its name here, and the cause."""
        listed = tool.source[1]
        plain = clean_name(listed)
        said = f"tool {_quote(listed)} is named {_quote(tool.name)}"
        if plain == tool.name:
            return f"{said}: it has invisible characters"
        keys = (*name_keys(plain), *look_alike_keys(plain))
        owner = next((self._owners[key] for key in keys if key in self._owners), None)
        if owner in (None, tool.source):
            owner = self._loose.get(loose_key(plain))
        if owner is None or owner == tool.source:
            return f"{said}: the name is reserved, or is one of another server's"
        name = self._catalog.book.held[owner]
        whose = "" if owner[0] is None else f" of server {_quote(owner[0])}"
        how = "the name of" if name == plain else "like"
        return f"{said}: it is {how} {_quote(name)}{whose}"


def _quote(text: str) -> str:
    return repr(text if len(text) <= _MAX_NAME_CHARS else f"{text[: _MAX_NAME_CHARS - 3]}...")
