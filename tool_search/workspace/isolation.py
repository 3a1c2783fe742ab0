"""Keeps the bot's own processes out of the sight of its shell.

A clean environment is not enough: on Linux a process reads what another one of its user was
started with, in `/proc/<pid>/environ`, keys among it. So the shell gets processes of its own
to see (a PID namespace with a `/proc` of its own). A system that does not give one leaves two
things: this process is closed to others of its user (`PR_SET_DUMPABLE`, prctl(2)), and a
shell of root's loses the capabilities that would open it again. What the second way does not
hide is what other processes of the same user were started with, such as the shell that
started the bot.
"""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import subprocess
import sys
from functools import cache

__all__ = ["isolating_launcher"]

_log = logging.getLogger(__name__)
_PR_SET_DUMPABLE = 4
_PROBE_S = 5.0
_NAMESPACE = ("--pid", "--fork", "--mount-proc", "--kill-child")
_CANDIDATES = (
    ("unshare", "--user", "--map-current-user", *_NAMESPACE),
    ("unshare", *_NAMESPACE),
)
_WITHOUT_CAPABILITIES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")


@cache
def isolating_launcher() -> tuple[str, ...]:
    """Return the command line that starts a program out of sight of this process.

    Tries each way once a process. Blocks for as long as the trials take: milliseconds.
    """
    if not sys.platform.startswith("linux"):
        return ()
    for candidate in _CANDIDATES:
        if _works(candidate):
            return candidate
    hidden = _close_this_process()
    _log.warning(
        "the shell shares its view of processes with the bot: namespaces are not to be had here "
        "(unshare); the bot's own process is %s, but what other processes of this user were "
        "started with can be read",
        "closed to it" if hidden else "open to it",
    )
    if os.geteuid() == 0 and _works(_WITHOUT_CAPABILITIES):
        return _WITHOUT_CAPABILITIES
    return ()


def _works(launcher: tuple[str, ...]) -> bool:
    if shutil.which(launcher[0]) is None:
        return False
    try:
        done = subprocess.run(  # noqa: S603  # our own words
            [*launcher, "true"], capture_output=True, timeout=_PROBE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _close_this_process() -> bool:
    """Make this process unreadable to others of its user; return True if that worked."""
    try:
        status: int = ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (OSError, AttributeError):
        return False
    return status == 0
