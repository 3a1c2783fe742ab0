"""Isolation of the shell from the bot's own processes.

A clean environment is not enough: on Linux a process can read the initial environment of
others of its user in `/proc/<pid>/environ`, keys included. The shell therefore gets a PID
namespace with its own `/proc`. If the system offers none, this process is closed to others of
its user (`PR_SET_DUMPABLE`, prctl(2)), and a shell of root loses the capabilities that would
open it again. That does not hide other processes of the same user, such as the shell that
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
    """Return the command line that starts a program isolated from this process.

    The first call tries each way, and blocks for some milliseconds.
    """
    if not sys.platform.startswith("linux"):
        return ()
    for candidate in _CANDIDATES:
        if _works(candidate):
            return candidate
    hidden = _close_this_process()
    _log.warning(
        "the shell sees the bot's processes, because namespaces (unshare) do not work here; the "
        "bot's own process is %s, and the environment of other processes of this user can be "
        "read; use a container or `launcher`",
        "closed to it" if hidden else "open to it",
    )
    if os.geteuid() == 0 and _works(_WITHOUT_CAPABILITIES):
        return _WITHOUT_CAPABILITIES
    return ()


def _works(launcher: tuple[str, ...]) -> bool:
    if shutil.which(launcher[0]) is None:
        return False
    try:
        done = subprocess.run(  # noqa: S603  # fixed arguments
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
