"""Postings on disk, so that a restart does not read every definition again.

A file has one catalog's postings, under a hash of everything that they depend on. It is
written aside and then renamed, so processes that share the folder meet whole files alone.
The format holds numbers and words, nothing that is executed.
"""

from __future__ import annotations

import json
import logging
import math
import os
import stat
import sys
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from tool_search.core.catalog.tool import Tool
from tool_search.core.values.files import replace_file
from tool_search.search.index.storage import Posting
from tool_search.search.text.documents import tool_terms
from tool_search.search.text.tokenizer import Segmenter

__all__ = ["IndexFiles", "catalog_key"]

_log = logging.getLogger(__name__)

_MAGIC = b"tool-search index 2\n"
_CHECK_BYTES = 32
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

    def load(self, key: str, size: int) -> dict[str, Posting] | None:
        """Return the postings of a catalog; None if there are none.

        Args:
            key: The key of the catalog; see `catalog_key`.
            size: The number of its tools.
        """
        path = self._path(key)
        try:
            content = _read_own(path)
            postings = _unpack(content, size)
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
        return postings

    def save(self, key: str, postings: Mapping[str, Posting]) -> None:
        """Keep the postings of a catalog."""
        path = self._path(key)
        try:
            content = _pack(postings)
            replace_file(path, content)
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
    for tool in tools:
        digest.update(tool.fingerprint.encode())
    return digest.hexdigest()[:40]


def _read_own(path: Path) -> bytes:
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        # A file that somebody else can write may say what they like of the tools.
        if hasattr(os, "geteuid") and (
            found.st_uid != os.geteuid() or found.st_mode & _WRITABLE_BY_OTHERS
        ):
            raise PermissionError("it belongs to another user, or others may write it")
        if found.st_size > _MAX_BYTES:
            raise _DamagedError(f"it has {found.st_size} bytes")
        return file.read()


def _pack(postings: Mapping[str, Posting]) -> bytes:
    terms = list(postings)
    if any("\n" in term for term in terms):
        raise _DamagedError("a term has a line break")
    words = "\n".join(terms).encode()
    sizes = array("Q", map(len, postings.values()))
    head = json.dumps({"terms": len(terms), "words": len(words)}).encode() + b"\n"
    payload = b"".join((head, words, sizes.tobytes(), *(p.tobytes() for p in postings.values())))
    return _MAGIC + _checksum(payload) + payload


def _unpack(content: bytes, size: int) -> dict[str, Posting]:
    start = len(_MAGIC) + _CHECK_BYTES
    payload = memoryview(content)[start:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : start] != _checksum(payload):
        raise _DamagedError("its checksum is wrong")
    try:
        head = json.loads(content[start : content.index(b"\n", start)])
        count, length = int(head["terms"]), int(head["words"])
        begin = content.index(b"\n", start) + 1 - start
        words = bytes(payload[begin : begin + length]).decode()
        sizes, entries = array("Q"), array("d")
        end = begin + length + 8 * count
        sizes.frombytes(payload[begin + length : end])
        entries.frombytes(payload[end:])
    except (ValueError, KeyError, TypeError) as exc:
        raise _DamagedError(f"{type(exc).__name__}: {exc}") from exc
    return _slice(words.split("\n") if words else [], sizes, entries, size)


def _slice(
    terms: Sequence[str], sizes: Sequence[int], entries: Posting, size: int
) -> dict[str, Posting]:
    if len(terms) != len(sizes) or sum(sizes) != len(entries) or 0 in sizes:
        raise _DamagedError("its parts do not fit together")
    if entries and not (math.isfinite(sum(entries)) and min(entries) >= 0 and max(entries) < size):
        raise _DamagedError("it names documents that the catalog does not have")
    postings: dict[str, Posting] = {}
    place = 0
    for term, count in zip(terms, sizes, strict=True):
        postings[term] = entries[place : place + count]
        place += count
    return postings


def _checksum(payload: bytes | memoryview) -> bytes:
    return blake2b(payload, digest_size=_CHECK_BYTES).digest()
