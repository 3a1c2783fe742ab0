"""Calls of an embedder: in time, again after a passing failure, and not while it is down.

A search may block, an embedder may hang. Each call of an embedder that is not local runs
in a thread of its own, which is left alone when its time is over. An asynchronous
embedder is driven on an event loop of this module, never on the caller's.
"""

from __future__ import annotations

import inspect
import logging
import math
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from tool_search.core.values.aside import LoopThread, run_in_daemon
from tool_search.errors import SearchError
from tool_search.search.vectors.embedder import Embedder, EmbeddingError
from tool_search.search.vectors.vectors import Matrix, embed_texts

__all__ = ["CallLimits", "EmbedderCalls", "Role", "Waiting", "run_in_time"]

_log = logging.getLogger(__name__)

Role = Literal["query", "document"]
"""The side of a search that a text is on: some models embed the two differently."""
Waiting = Literal["search", "turn", "nobody"]
"""The one who waits for vectors: a search; a turn, which can go on without; or nobody."""

# After a failure the embedder rests for so many times as long as the failure took: at most
# a twentieth of the time is spent on an embedder that hangs. A quick failure costs nothing.
_REST_FACTOR = 20.0
_QUICK_S = 0.1
_FIRST_PAUSE_S = 0.1
# A server that asks for a longer rest is asked again after this time.
_MAX_REST_S = 300.0
_MAX_LEFT_ALONE = 16
# A turn waits for a new catalog. Beyond this time its tools are searched by words meanwhile.
_MAX_WAIT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """The time that calls of an embedder may take.

    Attributes:
        query_s: Seconds for the vectors of one search, retries included.
        batch_s: Seconds for the vectors of one batch of tools, for each try.
        retries: Number of further tries after a failure that may pass.
        rest_s: The longest time, in seconds, that a failed embedder is not called.
    """

    query_s: float = 2.0
    batch_s: float = 60.0
    retries: int = 2
    rest_s: float = 30.0


class _Health:
    """The state of one embedder, which all indexes that use it share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rests_until = 0.0
        self._left_alone: list[Future[Any]] = []
        self.failure: str | None = None

    @property
    def is_resting(self) -> bool:
        return time.monotonic() < self._rests_until

    def is_free(self) -> bool:
        """Return True if few earlier calls still hang."""
        with self._lock:
            self._left_alone = [each for each in self._left_alone if not each.done()]
            return len(self._left_alone) < _MAX_LEFT_ALONE

    def leave_alone(self, running: Future[Any]) -> None:
        with self._lock:
            self._left_alone.append(running)

    def note_failure(self, exc: SearchError, rest_s: float) -> None:
        with self._lock:
            is_first, self.failure = self.failure is None, str(exc)
            self._rests_until = max(self._rests_until, time.monotonic() + rest_s)
        if is_first:
            _log.warning("%s; hybrid searches by words until the embedder answers", exc)

    def note_success(self, identity: str) -> None:
        with self._lock:
            had_failed, self.failure = self.failure is not None, None
            self._rests_until = 0.0
        if had_failed:
            _log.info("the embedder %r answers again", identity)


class EmbedderCalls:
    """The calls of one embedder.

    Args:
        embedder: Makes the vectors.
        limits: The time that the calls may take.
    """

    def __init__(self, embedder: Embedder, limits: CallLimits | None = None) -> None:
        self.embedder = embedder
        self._limits = limits or CallLimits()
        self._health = _health_of(embedder)

    @property
    def failure(self) -> str | None:
        """The reason of the last failure; None if the last call succeeded."""
        return self._health.failure

    @property
    def is_resting(self) -> bool:
        """True if the embedder has failed and is not called at this moment."""
        return self._health.is_resting

    def embed(self, texts: Sequence[str], role: Role, *, waiting: Waiting = "nobody") -> Matrix:
        """Return unit vectors of the texts; see `embed_texts`.

        Args:
            texts: The texts.
            role: The side of a search that they are on.
            waiting: All tries together have `query_s` seconds if a search waits, and 10 if a
                turn does.

        Raises:
            SearchError: The embedder failed, took too long, or rests after a failure.
        """
        if self.is_resting:
            raise EmbeddingError(
                f"the embedder {self.embedder.identity!r} is not asked again yet after a "
                f"failure: {self.failure}"
            )
        began = time.monotonic()
        try:
            matrix = self._try(texts, role, waiting)
        except SearchError as exc:
            self._health.note_failure(exc, self._rest_after(exc, time.monotonic() - began))
            raise
        self._health.note_success(self.embedder.identity)
        return matrix

    def _rest_after(self, exc: SearchError, seconds: float) -> float:
        """Return the seconds in which the embedder is not called after a failure."""
        cause = _embedding_error(exc)
        asked = min(cause.retry_after_s or 0.0, _MAX_REST_S) if cause else 0.0
        rest = min(seconds * _REST_FACTOR, self._limits.rest_s) if seconds > _QUICK_S else 0.0
        return max(rest, asked)

    def _try(self, texts: Sequence[str], role: Role, waiting: Waiting) -> Matrix:
        """Return the vectors, by further tries if a failure may pass."""
        seconds = {"search": self._limits.query_s, "turn": _MAX_WAIT_S, "nobody": math.inf}
        end = time.monotonic() + seconds[waiting]
        number = 0
        while True:
            try:
                return self._call(
                    texts, role, min(self._limits.batch_s, max(end - time.monotonic(), 0.0))
                )
            except SearchError as exc:
                pause = _pause(exc, number)
                number += 1
                is_over = pause is None or number > self._limits.retries
                if pause is None or is_over or time.monotonic() + pause >= end:
                    raise
            time.sleep(pause)

    def _call(self, texts: Sequence[str], role: Role, seconds: float) -> Matrix:
        driven = _Driven(self.embedder, role, seconds)
        if getattr(self.embedder, "is_local", False):
            return embed_texts(driven, texts)
        if not self._health.is_free():
            raise EmbeddingError(
                f"{_MAX_LEFT_ALONE} earlier calls of the embedder {self.embedder.identity!r} "
                "still hang"
            )
        running = run_in_daemon(partial(embed_texts, driven, texts), "tool-search-embedding")
        try:
            return running.result(seconds)
        except TimeoutError as exc:
            self._health.leave_alone(running)
            raise EmbeddingError(
                f"the embedder {self.embedder.identity!r} gave no vectors in {seconds:.1f} s"
            ) from exc


class _Driven:
    """An embedder in one role whose asynchronous calls are driven on a loop aside."""

    def __init__(self, embedder: Embedder, role: Role, seconds: float) -> None:
        self.identity, self.dimensions = embedder.identity, embedder.dimensions
        self._seconds = seconds
        own = getattr(embedder, "embed_queries", None) if role == "query" else None
        self._embed: Callable[[Sequence[str]], Any] = own or embedder.embed

    def embed(self, texts: Sequence[str]) -> Any:
        return run_in_time(self._embed, texts, seconds=self._seconds)


def run_in_time(call: Callable[..., Any], *args: Any, seconds: float) -> Any:
    """Return the result of a function, which may be asynchronous.

    Blocks. A coroutine runs on an event loop of this module, so the caller may be in any
    thread, and a client keeps its one loop. It is cancelled when its time is over.

    Args:
        call: A function of the embedder, or of a reranker.
        *args: Its arguments.
        seconds: The time that a coroutine may take.
    """
    result = call(*args)
    if not inspect.isawaitable(result):
        return result
    if _loop_aside.is_here:
        raise SearchError("an asynchronous embedder must not search: it would wait for itself")
    running = _loop_aside.submit(_wait_for(result))
    try:
        return running.result(max(seconds, 0.0))
    except TimeoutError:
        running.cancel()
        raise


async def _wait_for(result: Awaitable[Any]) -> Any:
    try:
        return await result
    except (SystemExit, KeyboardInterrupt) as exc:
        # It would end the loop, on which other embedders wait.
        raise EmbeddingError(f"the embedder ended with {exc!r}") from exc


_loop_aside = LoopThread("tool-search-embedder")


def _embedding_error(exc: SearchError) -> EmbeddingError | None:
    """Return what an embedder said of its failure, if it said something."""
    cause = exc if isinstance(exc, EmbeddingError) else exc.__cause__
    return cause if isinstance(cause, EmbeddingError) else None


def _pause(exc: SearchError, number: int) -> float | None:
    """Return the seconds before the next try; None if another try cannot help."""
    usual, cause = _FIRST_PAUSE_S * 2**number, _embedding_error(exc)
    if cause is not None:
        return max(usual, cause.retry_after_s or 0.0) if cause.is_passing else None
    return usual if isinstance(exc.__cause__, OSError) else None


_healths: weakref.WeakKeyDictionary[Embedder, _Health] = weakref.WeakKeyDictionary()
_healths_lock = threading.Lock()


def _health_of(embedder: Embedder) -> _Health:
    """Return the health of an embedder: the same object for the same embedder."""
    with _healths_lock:
        try:
            return _healths.setdefault(embedder, _Health())
        except TypeError:  # it has slots or no hash, and so a health in each index
            return _Health()
