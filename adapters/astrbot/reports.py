"""Warnings where an operator of AstrBot reads them: the WebUI's log page, and `status`.

The log page shows the loggers `astrbot` and `astrbot.plugin.*` alone, and the log level that the
WebUI sets for a plugin acts on that plugin's own logger.
"""

from __future__ import annotations

import logging
import time

from tool_search.errors import ToolSearchError

__all__ = ["MISTAKES", "Reports", "Savings", "WarnOnce"]

MISTAKES: tuple[type[Exception], ...] = (
    ToolSearchError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""The kinds of our own mistakes, and of an AstrBot that is not as it was read.

They are caught where a bot's turn would end otherwise. Failures of a provider, of the network
and of a database are of other kinds, and cancellations are none.
"""

_LIBRARY = __name__.partition(".")[0]
_MAX_KEPT = 10
_MAX_CHARS = 300
_MAX_KNOWN = 1_000


class Savings:
    """The tokens of definitions that were not sent, since the start and today."""

    def __init__(self) -> None:
        self.total = 0
        self.requests = 0
        self._today = 0
        self._day = ""

    @property
    def today(self) -> int:
        """The tokens of this day, by the clock of the machine."""
        return self._today if self._day == _today() else 0

    def add(self, tokens: int) -> None:
        """Add one request."""
        self._today = self.today + tokens
        self._day = _today()
        self.total += tokens
        self.requests += 1


def _today() -> str:
    return time.strftime("%Y-%m-%d")


class WarnOnce:
    """Warnings that come once each: most facts are met again with every message.

    Args:
        log: The log that gets them.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._known: set[str] = set()

    def __call__(self, said: str) -> None:
        """Log a warning, unless it was logged before."""
        if said in self._known:
            return
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known.add(said)
        self._log.warning("%s", said)


class Reports(logging.Handler):
    """The log of the library, passed on to the plugin's logger.

    Args:
        target: The plugin's logger in AstrBot; None: the log goes where logging sends it.
    """

    def __init__(self, target: logging.Logger | None = None) -> None:
        super().__init__()
        self._target = target
        self._kept: dict[str, tuple[float, int]] = {}
        self._before: tuple[int, bool] | None = None

    @property
    def last(self) -> tuple[str, ...]:
        """The last ten warnings, oldest first, with the last time and the number of each."""
        return tuple(
            f"{time.strftime('%m-%d %H:%M:%S', time.localtime(at))} {said}"
            + (f" ({count} times)" if count > 1 else "")
            for said, (at, count) in list(self._kept.items())
        )

    def install(self) -> None:
        """Take the library's log; it may be called again."""
        log = logging.getLogger(_LIBRARY)
        if self in log.handlers:
            return
        log.addHandler(self)
        if self._target is not None:
            self._before = log.level, log.propagate
            # The plugin's logger decides on the level.
            log.setLevel(logging.DEBUG)
            log.propagate = False

    def remove(self) -> None:
        """Leave the library's log as it was."""
        log = logging.getLogger(_LIBRARY)
        log.removeHandler(self)
        if self._before is not None:
            log.level, log.propagate = self._before
            log.setLevel(log.level)
            self._before = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning, and pass every record on."""
        if record.levelno >= logging.WARNING:
            said = " ".join(record.getMessage().split())
            if record.exc_info and record.exc_info[1] is not None:
                said = f"{said}: {type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
            self._keep(said[:_MAX_CHARS], record.created)
        if self._target is not None and self._target.isEnabledFor(record.levelno):
            self._target.handle(record)

    def _keep(self, said: str, at: float) -> None:
        """Keep a warning once: one that comes with every message would displace all others."""
        _, count = self._kept.pop(said, (at, 0))
        self._kept[said] = at, count + 1
        if len(self._kept) > _MAX_KEPT:
            del self._kept[next(iter(self._kept))]
