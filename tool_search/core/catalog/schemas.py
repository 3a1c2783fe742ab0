"""Readers of tools' schemas, as a conversation is given them; JSON Schema itself is read elsewhere.

`tool_search.catalog.validation.SCHEMAS` reads and checks JSON Schema 2020-12.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from tool_search.core.catalog.tool import Tool
from tool_search.core.values.clean_text import cut_schema, cut_text
from tool_search.core.values.json import JSON
from tool_search.errors import ToolSearchError

if TYPE_CHECKING:
    from tool_search.core.catalog.tool import Tool

__all__ = ["Declared", "Schemas", "TextLimits", "TooComplexError"]


class TooComplexError(ToolSearchError):
    """Arguments whose keys cannot be translated within the work that a call may cause."""


class Declared(Protocol):
    """A tool's schema as models and providers read it, and the translation of arguments."""

    def __hash__(self) -> int:
        """Return the hash of the object: what is translated is kept by it."""
        ...

    @property
    def schema(self) -> JSON:
        """The schema as every provider takes it; read-only."""
        ...

    @property
    def json(self) -> str:
        """The same as compact JSON."""
        ...

    @property
    def is_renamed(self) -> bool:
        """True if keys on the wire are not the tool's own."""
        ...

    @property
    def left_out(self) -> Sequence[object]:
        """The parts that are not declared."""
        ...

    @property
    def incomplete(self) -> str:
        """The same parts, for an operator; empty: there are none."""
        ...

    def canonical(
        self, arguments: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], Sequence[tuple[str, str]]]:
        """Return arguments under the tool's own keys, and which were given twice.

        Raises:
            TooComplexError: They take too much work.
        """
        ...

    def on_wire(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return arguments under the keys on the wire.

        Raises:
            TooComplexError: They take too much work.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Schemas:
    """The readers of schemas that a conversation is given.

    Attributes:
        declared: Returns a tool's schema as it is declared; the same object each time.
        complaints: Returns what is wrong with arguments under a tool's own keys, in sentences
            with the keys that the model reads; empty: the arguments are valid.
    """

    declared: Callable[[Tool], Declared]
    complaints: Callable[[Tool, Mapping[str, Any]], Sequence[str]]


# Limits of a server's texts: others write them, and the bot pays for them.


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
