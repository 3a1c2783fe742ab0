"""Fingerprints of tool definitions, to which lasting grants are pinned.

A server may list another tool under a name that a user has already allowed. A lasting grant
therefore counts only for the definition that the user allowed.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache

from tool_search.core.catalog.tool import Tool

__all__ = ["definition_pin"]


@lru_cache(maxsize=4096)
def definition_pin(tool: Tool) -> str:
    """Return 32 hexadecimal digits over the parts of a definition that people or models read.

    The canonical name is not included, because a catalog may rename a tool. The order of keys
    does not matter.
    """
    content = [
        [tool.is_third_party, *tool.source],
        [tool.title, tool.summary, tool.description],
        [tool.parameters, tool.output_schema, tool.annotations],
    ]
    written = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(written.encode("ascii")).hexdigest()[:32]
