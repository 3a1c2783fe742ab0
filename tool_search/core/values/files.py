"""Files that several tasks or processes write: replaced whole, and changed under a lock."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp

__all__ = ["locked", "replace_file"]

_PATIENCE_S = 30.0
_PAUSE_S = 0.01


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, to read it and replace it with nobody between; not in a task.

    The lock is a file beside it, which stays; the system frees it when its process ends.

    Raises:
        OSError: The folder cannot be written, or others hold the lock for half a minute.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        ended = time.monotonic() + _PATIENCE_S
        while not _try_lock(lock):
            if time.monotonic() > ended:
                raise TimeoutError(f"another process has held the lock for {_PATIENCE_S:g} s")
            time.sleep(_PAUSE_S)
        yield
    finally:
        os.close(lock)  # which frees it


def _try_lock(lock: int) -> bool:
    # The lock is of the open file, not of the process: threads wait for each other too.
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415

            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415  # not on Windows

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def replace_file(
    path: Path,
    content: bytes,
    *,
    mode: int = 0o600,
    check: Callable[[Path], object] | None = None,
) -> None:
    """Write a file aside and rename it: readers see the old one or the new one, whole.

    Args:
        path: The file; its folder is made if it is missing.
        content: The new content.
        mode: The mode of the new file; until it is whole, its owner alone can read it.
        check: Reads the new file before it takes the place of the old one; raises to keep that.

    Raises:
        OSError: It cannot be written; the old file is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    number, name = mkstemp(dir=path.parent, prefix=f".{path.name}-")
    new = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if check is not None:
            check(new)
        new.chmod(mode)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
