"""The making of records, in a thread: nobody's request waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from tool_search.core.values.redaction import log_failure
from tool_search.serving.inspector.log import RecordLog
from tool_search.serving.inspector.recorder import Recorder
from tool_search.serving.inspector.settings import InspectorSettings

__all__ = ["Recording"]

# Requests that wait for their record; a process under such a load has no time for more.
_MAX_WAITING = 200
_log = logging.getLogger(__name__)


class Recording:
    """A recorder, and the one thread that makes its records, in order.

    Args:
        settings: The settings.

    Attributes:
        recorder: The records.
        with_bodies: True if they keep bodies.
    """

    def __init__(self, settings: InspectorSettings) -> None:
        log = RecordLog(settings.path, settings.max_log_bytes) if settings.path else None
        self.recorder = Recorder(settings.keep_requests, log)
        self.with_bodies = settings.bodies
        self._thread: ThreadPoolExecutor | None = None
        self._lock = Lock()
        self._waiting = 0

    def submit(self, work: Callable[[], None]) -> bool:
        """Make a record in the thread; if too many wait, leave it out with a warning.

        Returns:
            False if it is left out.
        """
        with self._lock:
            if self._waiting >= _MAX_WAITING:
                _log.warning("the inspector leaves out a request: %d wait", self._waiting)
                return False
            self._waiting += 1
            self._thread = self._thread or ThreadPoolExecutor(1, "inspector")
            self._thread.submit(self._run, work)
            return True

    def settle(self) -> None:
        """Wait until the records that were submitted are made."""
        with self._lock:
            waiting = self._thread.submit(int) if self._thread else None
        if waiting is not None:
            waiting.result()

    def close(self) -> None:
        """End the thread, after the records that wait; a later one begins another."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # noqa: BLE001  # a request that ended well is not ours to break
            log_failure(_log, "the inspector leaves out a request")
        finally:
            with self._lock:
                self._waiting -= 1
