"""Fingerprints of definitions, to which a person's permission is pinned.

A server may list another tool under a name that somebody has allowed already. So a
permission that outlives its call holds for the definition that was allowed.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache

from tool_search.catalog.tool import Tool

__all__ = ["definition_pin"]


@lru_cache(maxsize=4096)
def definition_pin(tool: Tool) -> str:
    """Return 32 hexadecimal digits over all that a tool's definition says to people and models.

    Its canonical name is not in it: a catalog may rename a tool. The order of keys counts for
    nothing.
    """
    content = [
        [tool.is_third_party, *tool.source],
        [tool.title, tool.summary, tool.description],
        [tool.parameters, tool.output_schema, tool.annotations],
    ]
    written = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(written.encode("ascii")).hexdigest()[:32]
