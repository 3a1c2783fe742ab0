"""What a stand-in server holds between two resets."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from tool_search.testing.server.faults import FaultPlan
from tool_search.testing.server.memory import ReplyMemory
from tool_search.testing.server.prompt_cache import PromptCache

if TYPE_CHECKING:
    from tool_search.testing.models.scripted import StandInModel
    from tool_search.testing.server.captured import CapturedRequest
    from tool_search.testing.server.endpoint import Endpoint
    from tool_search.testing.violations import Violation

__all__ = ["ServerState"]


class ServerState:
    """Model, faults and captured requests.

    A reset replaces the whole state, so an exchange that was still waiting
    then ends in the state it began in and takes nothing from the new one.

    Attributes:
        model: What answers valid requests.
        endpoint: Whose rules hold.
        faults: What is to go wrong.
        memory: What of the replies later requests may refer to.
        cache: What of the prompts was read before.
        over: Set when the state was replaced or the server closed: ends delays.
    """

    def __init__(self, model: StandInModel, endpoint: Endpoint) -> None:
        self.model = model
        self.endpoint = endpoint
        self.faults = FaultPlan()
        self.memory = ReplyMemory()
        self.cache = PromptCache()
        self.over = threading.Event()
        self._requests: list[CapturedRequest] = []
        self._lock = threading.Lock()

    @property
    def requests(self) -> tuple[CapturedRequest, ...]:
        """The requests in the order they arrived."""
        with self._lock:
            return tuple(self._requests)

    def arrived(self, request: CapturedRequest) -> CapturedRequest:
        """Captures a request; returns it with its number."""
        with self._lock:
            numbered = replace(request, number=len(self._requests))
            self._requests.append(numbered)
        return numbered

    def answered(self, number: int, status: int) -> None:
        """Notes the status a request is answered with, before the client can see it."""
        with self._lock:
            self._requests[number] = replace(self._requests[number], status=status)

    def violated(self, number: int, violation: Violation) -> None:
        """Notes the rule that a request broke."""
        with self._lock:
            self._requests[number] = replace(self._requests[number], violation=violation)
