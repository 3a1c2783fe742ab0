"""Warnings of servers that cannot be reached, for the turns of a bot."""

from __future__ import annotations

from collections.abc import Iterable

from tool_search.runner.events import RunnerWarning
from tool_search.sources.base import ServerStatus, ToolSource

__all__ = ["ServerFailures"]


class ServerFailures:
    """The failures of servers, each to be reported once.

    Args:
        sources: The sources; one without `status` has no servers.
    """

    def __init__(self, sources: Iterable[ToolSource]) -> None:
        self._sources = tuple(sources)
        self._reported: set[tuple[int, str]] = set()

    def take(self) -> list[RunnerWarning]:
        """Return a warning for each server that failed since it was connected last."""
        found = []
        for number, source in enumerate(self._sources):
            states: tuple[ServerStatus, ...] = getattr(source, "status", ())
            for status in states:
                key = number, status.server
                if status.state == "connected":
                    self._reported.discard(key)
                elif status.state == "failed" and key not in self._reported:
                    self._reported.add(key)
                    found.append(_warning(status))
        return found


def _warning(status: ServerStatus) -> RunnerWarning:
    message = f"server {status.server!r}: {status.error}; its tools are hidden until it answers"
    return RunnerWarning(code="server_failed", message=message)
