"""Limits of a server's texts: others write them, and the bot pays for them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tool_search.core.values.clean_text import cut_schema, cut_text

if TYPE_CHECKING:
    from tool_search.core.catalog.tool import Tool

__all__ = ["TextLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLimits:
    """The longest texts of a definition that a server wrote.

    Attributes:
        description: Characters of a tool's description.
        schema_text: Characters of each title, description, or example in its schema.
    """

    description: int = 8_000
    schema_text: int = 2_000

    def cut(self, tool: Tool) -> Tool:
        """Return the tool with its texts cut; the same object if none is too long.

        The operator's own tools are never cut.
        """
        if not tool.is_third_party:
            return tool
        parameters = None
        if len(tool.parameters_json) > self.schema_text:
            copy = json.loads(tool.parameters_json)
            parameters = copy if cut_schema(copy, self.schema_text) else None
        if parameters is None and len(tool.description) <= self.description:
            return tool
        return replace(
            tool,
            description=cut_text(tool.description, self.description),
            parameters=tool.parameters if parameters is None else parameters,
        )
