"""The `limits` section: bounds of what comes in over a network, or from a server's process."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tool_search.config.search import Settings

__all__ = ["LimitSettings"]

_Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False)]


class LimitSettings(Settings):
    """The `limits` section: bounds of what comes in, whoever sends it.

    Attributes:
        max_bytes: Bytes of one body, message of an MCP server, or event of a stream, unpacked.
        max_items: Values in its JSON.
        max_depth: Levels of its JSON.
        body_timeout_s: Seconds for one body, from its first byte on; a stream of events and a
            download that is passed on may last.
        silence_s: Seconds of silence in a stream of an MCP server.
    """

    max_bytes: Annotated[int, Field(ge=10_000, le=2_000_000_000)] = 32_000_000
    max_items: Annotated[int, Field(ge=1_000, le=100_000_000)] = 500_000
    max_depth: Annotated[int, Field(ge=10, le=400)] = 400
    body_timeout_s: _Seconds = 300.0
    silence_s: _Seconds = 86_400.0
