"""The form of a snapshot's files."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tool_search import ToolSearchError

_UNSTEADY = frozenset({"duration_s"})


class SnapshotError(ToolSearchError):
    """A conversation did not go as its script says, or a folder has no snapshot."""


def plain(value: Any) -> Any:
    """Return a value of an event as JSON has it, without durations."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {key: plain(inner) for key, inner in fields.items() if key not in _UNSTEADY}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items() if key not in _UNSTEADY}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, str):
        return re.sub(r"127\.0\.0\.1:\d+", "HOST", value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def write(path: Path, content: bytes) -> None:
    """Write a new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(content)


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write a new file of JSON values, one a line."""
    lines = (json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    # A text may hold half a character, which UTF-8 has no bytes for.
    write(path, "".join(lines).encode("utf-8", "backslashreplace"))
