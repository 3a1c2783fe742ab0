"""Postings on disk, so that a restart does not read every definition again.

A file has one catalog's postings, under a hash of everything that they depend on. It is
written aside and then renamed, so processes that share the folder meet whole files alone,
and is mapped into memory as it is: processes share that, too. The format holds numbers and
words, nothing that is executed.
"""

from __future__ import annotations

import logging
import math
import mmap
import os
import stat
import sys
import time
from array import array
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b, sha256
from itertools import accumulate, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from tool_search.core.catalog.tool import Tool
from tool_search.core.values.files import replace_file
from tool_search.search.index.storage import FlatPostings, uses_numpy
from tool_search.search.text.documents import tool_terms
from tool_search.search.text.tokenizer import Segmenter

__all__ = ["IndexFiles", "KeptIndex", "catalog_key"]

_log = logging.getLogger(__name__)

# With the checksum a multiple of eight bytes, as the numbers are read where they lie.
_MAGIC = b"tool-search index 3    \n"
_CHECK_BYTES = 32
_COUNTS = 4
_MAX_FILES = 8
_MAX_BYTES = 2**31
_SUFFIX = ".index"
_OLD_PART = ".part"  # of earlier versions
_MAX_WRITING_S = 3_600.0
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


_CANARY: Mapping[str, Any] = {
    "name": "listGitHub_issues_v2",
    "server": "tracker",
    "tags": ["code-review"],
    "aliases": ["查詢議題"],
    "description": "Lists closing issues. Удалённые задачи. 查询天气预报 of Café №5.",
    "parameters": {"properties": {"ownerName": {"description": "Names of owners", "enum": ["a1"]}}},
}


class KeptIndex(NamedTuple):
    """The parts of an index that are kept.

    Attributes:
        postings: The postings.
        scripts: The scripts of the tools by document id.
    """

    postings: FlatPostings
    scripts: array[int] | memoryview[int]


class _DamagedError(Exception):
    """A file that is not one of ours as it was written."""


class IndexFiles:
    """Postings of catalogs in a folder, which processes may share.

    Never raises: a file that cannot be read is missing, one that cannot be written is lost.
    A damaged file is removed with a warning, and is then made anew. Of more than 8 files the
    oldest are dropped. Files are for their owner alone, as they have words of definitions.

    Args:
        folder: The folder; it is created when it is needed.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)

    def load(self, key: str, size: int) -> KeptIndex | None:
        """Return what is kept of a catalog; None if there is nothing.

        Args:
            key: The key of the catalog; see `catalog_key`.
            size: The number of its tools.
        """
        path = self._path(key)
        try:
            kept = _unpack(_map_own(path), size)
        except FileNotFoundError:
            return None
        except OSError as exc:
            _log.warning("the index file %s cannot be read: %s", path, exc)
            return None
        except _DamagedError as exc:
            _log.warning("the index file %s is damaged (%s) and is made anew", path, exc)
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(path)
        return kept

    def save(self, key: str, kept: KeptIndex) -> None:
        """Keep the index of a catalog."""
        path = self._path(key)
        try:
            replace_file(path, _pack(kept))
            self._trim()
        except (OSError, _DamagedError) as exc:
            _log.warning("the index file %s cannot be written: %s", path, exc)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}{_SUFFIX}"

    def _trim(self) -> None:
        """Drop the files that were used longest ago; another process may do the same."""
        times: dict[Path, float] = {}
        for path in self._folder.glob(f"*{_SUFFIX}"):
            with suppress(FileNotFoundError):
                times[path] = path.stat().st_mtime
        for path in sorted(times, key=lambda path: -times[path])[_MAX_FILES:]:
            path.unlink(missing_ok=True)
        # A process that was killed while it wrote leaves its part.
        for path in (*self._folder.glob(f".*{_SUFFIX}-*"), *self._folder.glob(f"*{_OLD_PART}")):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < time.time() - _MAX_WRITING_S:
                    path.unlink()


def catalog_key(tools: Iterable[Tool], recipe: str, segmenter: Segmenter | None = None) -> str:
    """Return a hash of everything that postings depend on.

    Args:
        tools: The tools, in the order of their document ids.
        recipe: The engine and its settings.
        segmenter: Cuts Chinese; None for characters and bigrams.
    """
    # Another stemmer, table or weight reads this tool differently.
    canary = tool_terms(Tool(**_CANARY), segmenter)
    digest = sha256(f"{_MAGIC!r} {recipe} {sys.byteorder} {canary!r}".encode())
    digest.update("".join(map(attrgetter("fingerprint"), tools)).encode())
    return digest.hexdigest()[:40]


def _map_own(path: Path) -> memoryview:
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        # A file that somebody else can write may say what they like of the tools.
        if hasattr(os, "geteuid") and (
            found.st_uid != os.geteuid() or found.st_mode & _WRITABLE_BY_OTHERS
        ):
            raise PermissionError("it belongs to another user, or others may write it")
        if not 0 < found.st_size <= _MAX_BYTES:
            raise _DamagedError(f"it has {found.st_size} bytes")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _pack(kept: KeptIndex) -> bytes:
    (terms, starts, entries), scripts = kept
    if any("\n" in term for term in terms):
        raise _DamagedError("a term has a line break")
    words = "\n".join(terms).encode()
    counts = len(terms), len(entries), len(scripts), len(words)
    numbers = array("q", (*counts, *starts)).tobytes()
    payload = b"".join((numbers, entries, scripts, words))
    return _MAGIC + _checksum(payload) + payload


def _unpack(content: memoryview, size: int) -> KeptIndex:
    payload = content[len(_MAGIC) + _CHECK_BYTES :]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : -len(payload)] != _checksum(
        payload
    ):
        raise _DamagedError("its checksum is wrong")
    try:
        terms, many, tools, length = payload[: 8 * _COUNTS].cast("q")
        bounds = tuple(accumulate((8 * _COUNTS, 8 * (terms + 1), 8 * many, 2 * tools, length)))
        starts, entries, scripts, words = (payload[begin:end] for begin, end in pairwise(bounds))
        listed = bytes(words).decode().split("\n") if terms else []
        flat = FlatPostings(listed, starts.cast("q"), entries.cast("d"))
    except (ValueError, TypeError) as exc:
        raise _DamagedError(f"{type(exc).__name__}: {exc}") from exc
    if bounds[-1] != len(payload) or len(listed) != terms or len(scripts) != 2 * tools:
        raise _DamagedError("its parts do not fit together")
    if tools != size or not _is_within(flat, size):
        raise _DamagedError("it names documents that the catalog does not have")
    return KeptIndex(flat, scripts.cast("H"))


def _is_within(flat: FlatPostings, size: int) -> bool:
    """Return True if no posting is empty or has a document beyond the last."""
    _, starts, entries = flat
    if starts[0] != 0 or starts[-1] != len(entries):
        return False
    if uses_numpy(size):
        import numpy as np  # noqa: PLC0415 - only large catalogs pay for it

        values = np.asarray(entries)
        is_sound = bool((np.diff(np.asarray(starts)) > 0).all())
        return is_sound and (not len(values) or bool(values.min() >= 0 and values.max() < size))
    is_sound = all(start < end for start, end in pairwise(starts))
    if not entries:
        return is_sound
    return is_sound and math.isfinite(sum(entries)) and min(entries) >= 0 and max(entries) < size


def _checksum(payload: bytes | memoryview) -> bytes:
    return blake2b(payload, digest_size=_CHECK_BYTES).digest()
