"""Problems with a store's file, and their remedies.

Sources: SQLite, "Result and Error Codes"; POSIX, <errno.h>.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from tool_search.errors import StoreFault

__all__ = ["fault_of"]

_ADVICE: dict[StoreFault, str] = {
    "disk_full": "cannot grow, the disk or the quota is full ({error}); make room there",
    "locked": "is locked by another process ({error}); end that process, or try again",
    "read_only": "is read-only ({error}); make the file and its folder writable, or the file "
    "system they are on",
    "missing": "cannot be opened, its folder is missing or is not a folder ({error}); create the "
    "folder, or name another store.path",
    "no_permission": "may not be opened by this user ({error}); give the user the file and its "
    "folder, or name another store.path",
    "damaged": "is damaged ({error}); move it away, and restore what `sqlite3 FILE .recover` finds",
    "foreign": "is damaged or is not a store ({error}); move it away, or name another store.path",
    "disk_failed": "cannot be read or written ({error}); check the limit on the size of files "
    "(ulimit -f) and the disk",
    "unknown": "cannot be used ({error}); check its folder, or name another store.path",
}
_OF_SQLITE: dict[int, StoreFault] = {
    sqlite3.SQLITE_FULL: "disk_full",
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_PERM: "no_permission",
    sqlite3.SQLITE_AUTH: "no_permission",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "foreign",
    # A table is missing although the file has the marks of this library.
    sqlite3.SQLITE_ERROR: "damaged",
    sqlite3.SQLITE_IOERR: "disk_failed",
}
_OF_SYSTEM: dict[int, StoreFault] = {
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EROFS: "read_only",
    errno.EACCES: "no_permission",
    errno.EPERM: "no_permission",
    errno.ENOENT: "missing",
    errno.ENOTDIR: "missing",
    errno.EEXIST: "missing",
    errno.EIO: "disk_failed",
    errno.EFBIG: "disk_failed",
}


def fault_of(error: sqlite3.Error | OSError, path: Path) -> tuple[StoreFault, str]:
    """Return the problem of a store's file, and a message with its remedy.

    Args:
        error: The failure.
        path: The store's file.
    """
    fault = _fault(error, path)
    return fault, _ADVICE[fault].format(error=error)


def _fault(error: sqlite3.Error | OSError, path: Path) -> StoreFault:
    if isinstance(error, OSError):
        return _OF_SYSTEM.get(error.errno or 0, "unknown")
    # The lowest byte is the primary result code; the others are details.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CANTOPEN:
        return _cannot_open_fault(path)
    return _OF_SQLITE.get(code, "unknown")


def _cannot_open_fault(path: Path) -> StoreFault:
    """Return why a file could not be opened; SQLite's error does not say."""
    if not path.parent.is_dir():
        return "missing"
    if not os.access(path.parent, os.W_OK | os.X_OK) or not os.access(path, os.R_OK | os.W_OK):
        return "no_permission"
    return "unknown"
