"""AstrBot's tools under the names that a catalog gives them; loads nothing of AstrBot."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from tool_search.catalog.catalog import ToolCatalog
from tool_search.catalog.naming import name_keys
from tool_search.catalog.tool import Tool

__all__ = ["tools_by_name"]

# What every provider takes; a tool that has no definition is sent under AstrBot's own name.
_WIRE_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_log = logging.getLogger(__name__)


def tools_by_name(
    catalog: ToolCatalog, definitions: Mapping[str, Tool], tools: Mapping[str, Any]
) -> dict[str, Any]:
    """Return AstrBot's tools by canonical name, those without a definition by their own.

    A tool without a definition is left out if its name is, or looks like, another's, or
    if no provider would take a request that has it.

    Args:
        catalog: What the definitions are named in.
        definitions: By AstrBot's own names.
        tools: AstrBot's tools, by the same names.
    """
    named = {}
    for name, tool in tools.items():
        definition = definitions.get(name)
        if definition is not None:
            known = catalog.by_source.get(definition.source)
            if known is not None:
                named[known.name] = tool
        elif _can_be_sent(name, catalog):
            named[name] = tool
        else:
            _log.warning("tool %r is left out: no request can have its name", str(name)[:80])
    return named


def _can_be_sent(name: object, catalog: ToolCatalog) -> bool:
    return (
        isinstance(name, str)
        and _WIRE_NAME.fullmatch(name) is not None
        and catalog.book.owners.keys().isdisjoint(name_keys(name))
    )
