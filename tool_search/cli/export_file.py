"""The file that `tool-search forget --export` writes: whole on the disk, or not there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tool_search.catalog.schema.plain import encodable
from tool_search.errors import ConfigurationError, StoreError

__all__ = ["write_export"]


def write_export(path: Path, store: Path, parts: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
    """Write a new JSON file, readable by its owner alone, one entry a line.

    Raises:
        ConfigurationError: There is a file of this name already, or no such folder.
        StoreError: The file cannot be written; it is removed.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as exc:
        raise ConfigurationError(
            f"--export {path}: {exc.strerror}; name a new file in a folder that is there"
        ) from exc
    try:
        with os.fdopen(file, "w", encoding="utf-8") as written:
            written.writelines(_lines(store, parts))
            written.flush()
            # What is erased next must be nowhere but here.
            os.fsync(written.fileno())
    except BaseException as exc:
        path.unlink(missing_ok=True)
        if not isinstance(exc, OSError):
            raise
        raise StoreError(
            f"--export {path} cannot be written ({exc}); nothing was erased", fault="disk_full"
        ) from exc


def _lines(store: Path, parts: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterator[str]:
    yield f'{{"store": {_encoded(str(store))}'
    for kind, entries in parts.items():
        yield f",\n{_encoded(kind)}: ["
        separator = "\n"
        for entry in entries:
            yield f"{separator}{_encoded(entry)}"
            separator = ",\n"
        yield "\n]"
    yield "}\n"


def _encoded(value: object) -> str:
    return encodable(json.dumps(value, ensure_ascii=False))
