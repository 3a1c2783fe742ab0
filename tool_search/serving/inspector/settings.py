"""The `inspector` section of a proxy's and of a gateway's settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tool_search.config.settings import Settings

__all__ = ["InspectorSettings"]


class InspectorSettings(Settings):
    """The `inspector` section: the page that shows requests.

    Attributes:
        enabled: False: there is no page.
        keep_requests: The number of requests that it shows.
        bodies: True if it keeps whole requests and replies, keys masked.
        path: A file of JSON Lines that each request is written to, for
            `tool-search inspect-log`; null: none.
        max_log_bytes: The size of the file from which on a new one is begun; the one before it
            has the ending `.1`.
    """

    enabled: bool = True
    keep_requests: Annotated[int, Field(ge=1, le=100_000)] = 500
    bodies: bool = False
    path: str | None = None
    max_log_bytes: Annotated[int, Field(ge=100_000, le=100_000_000_000)] = 50_000_000
