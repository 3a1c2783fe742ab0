"""Regular expressions over lines in bounded time.

RE2 takes time linear in the text. Patterns that it does not support (look-around, back
references), and all patterns if it is not installed, run with Python's `re` in a separate
process with a timeout. All searches of a turn share one time budget, or a misled model could
use it up again and again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from tool_search.runner.execution.context import Cancellation
from tool_search.sources.workspace.workspace import WorkspaceError

__all__ = ["LineMatcher", "TimeBudget", "TurnBudgets", "line_matcher"]

LineMatcher = Callable[[Sequence[str]], list[list[int]]]
"""Returns for each text the numbers of its matching lines, from 0."""

_MAX_CHARS = 1_000
_SECONDS = 15.0
_MEMORY = 16 << 20
_PROGRAM = """
import json, re, sys
job = json.loads(sys.stdin.buffer.read())
try:
    search = re.compile(job["pattern"], re.IGNORECASE if job["ignore_case"] else 0).search
except (re.error, OverflowError, RecursionError) as error:
    print(json.dumps({"error": str(error)}))
else:
    print(json.dumps({"lines": [
        [n for n, line in enumerate(text.split("\\n")) if search(line)] for text in job["texts"]
    ]}))
"""


class TimeBudget:
    """Seconds that several runs share, one after another.

    Args:
        seconds: The total; None: 15.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = self._left = _SECONDS if seconds is None else seconds
        self._lock = threading.Lock()

    @contextmanager
    def spent(self) -> Iterator[float]:
        """Wait for earlier runs; yield the remaining seconds, and subtract the used time.

        Raises:
            WorkspaceError: No time is left.
        """
        with self._lock:
            if self._left <= 0:
                raise WorkspaceError(
                    f"the patterns of this turn have used up their {self._seconds:g} s: search "
                    "without look-around and back references"
                )
            began = time.monotonic()
            try:
                yield self._left
            finally:
                self._left -= time.monotonic() - began


class TurnBudgets:
    """A time budget for each running turn."""

    def __init__(self) -> None:
        self._budgets: WeakKeyDictionary[Cancellation, TimeBudget] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def of(self, cancellation: Cancellation) -> TimeBudget:
        """Return the budget of the turn of a call's cancellation."""
        with self._lock:
            return self._budgets.setdefault(cancellation.outermost, TimeBudget())


def line_matcher(pattern: str, *, ignore_case: bool, budget: TimeBudget) -> LineMatcher:
    """Return a function that finds the lines that match a pattern.

    Args:
        pattern: A regular expression for one line at a time.
        ignore_case: True ignores upper and lower case.
        budget: The time for a pattern that RE2 does not support.

    Raises:
        WorkspaceError: The pattern is empty or too long; an invalid one raises in use.
    """
    if not pattern or len(pattern) > _MAX_CHARS:
        raise WorkspaceError(f"a pattern must have 1 to {_MAX_CHARS:,} characters")
    compiled = _linear(pattern, ignore_case=ignore_case)
    if compiled is None:
        return _ProcessMatcher(pattern, ignore_case=ignore_case, budget=budget)

    def lines(texts: Sequence[str]) -> list[list[int]]:
        return [_lines(compiled, text) for text in texts]

    return lines


def _linear(pattern: str, *, ignore_case: bool) -> Any:
    """Return the compiled pattern, or None if RE2 is missing or does not support it."""
    try:
        import re2  # noqa: PLC0415  # optional
    except ImportError:
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(pattern.encode(), options)
    except (re2.error, UnicodeEncodeError):
        return None


def _lines(compiled: Any, text: str) -> list[int]:
    encoded = text.encode("utf-8", "replace").split(b"\n")
    return [number for number, line in enumerate(encoded) if compiled.search(line)]


class _ProcessMatcher:
    """A matcher with Python's `re` in a separate process."""

    def __init__(self, pattern: str, *, ignore_case: bool, budget: TimeBudget) -> None:
        self._job = {"pattern": pattern, "ignore_case": ignore_case}
        self._budget = budget

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        pattern = self._job["pattern"]
        with self._budget.spent() as seconds:
            done = self._run(texts, seconds)
        if done.returncode:
            error = done.stderr[-200:].decode("utf-8", "replace")
            raise WorkspaceError(f"the pattern {pattern!r} ended its process: {error}")
        answer: dict[str, Any] = json.loads(done.stdout)
        if "error" in answer:
            raise WorkspaceError(f"the pattern {pattern!r} is not valid: {answer['error']}")
        found: list[list[int]] = answer["lines"]
        return found

    def _run(self, texts: Sequence[str], seconds: float) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(  # noqa: S603  # a fixed program
                [sys.executable, "-I", "-S", "-c", _PROGRAM],
                input=json.dumps({**self._job, "texts": list(texts)}).encode(),
                capture_output=True,
                timeout=max(0.1, seconds),
                check=False,
                env={},
            )
        except subprocess.TimeoutExpired as exc:
            raise WorkspaceError(
                f"the pattern {self._job['pattern']!r} took longer than the {seconds:.1f} s that "
                "are left to this turn: avoid nested repeats like (a+)+, or search fewer files"
            ) from exc
