"""The state of a stand-in server between two resets."""

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

    A reset replaces the whole state, so an exchange that is waiting ends in its
    old state and changes nothing in the new one.

    Attributes:
        model: The model that answers valid requests.
        endpoint: The endpoint whose rules apply.
        faults: The faults to come.
        memory: The kept replies.
        cache: The prompt cache.
        over: Set when the state is replaced or the server closes; it ends delays.
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

    def capture(self, request: CapturedRequest) -> CapturedRequest:
        """Capture a request; return it with its number."""
        with self._lock:
            numbered = replace(request, number=len(self._requests))
            self._requests.append(numbered)
        return numbered

    def record_status(self, number: int, status: int) -> None:
        """Record the status of an answer, before the client can see it."""
        with self._lock:
            self._requests[number] = replace(self._requests[number], status=status)

    def record_violation(self, number: int, violation: Violation) -> None:
        """Record the rule that a request broke."""
        with self._lock:
            self._requests[number] = replace(self._requests[number], violation=violation)
