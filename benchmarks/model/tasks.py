"""The tasks of a run: requests with the tools that answer them, and the catalogs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tool_search.catalog.formats import parse_tools
from tool_search.core.catalog.tool import Tool
from tool_search.runner.execution import executable_tools
from tool_search.sources.toolbox import TOOLBOX

__all__ = ["NO_SET", "OWN_TASKS", "TOOLBOX_SET", "Task", "TaskSet", "read_tasks"]

OWN_TASKS = Path(__file__).parent / "requests.jsonl"
TOOLBOX_SET = "toolbox"
"""The set whose catalog is the toolbox of the demo."""
NO_SET = "none"
"""The set of requests that need no tool; each gets one of the other catalogs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One request of a user.

    Attributes:
        set: The name of its catalog.
        id: Its name in the set.
        request: The text.
        relevant: The names of the tools that answer it; empty: it needs none.
    """

    set: str
    id: str
    request: str
    relevant: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its name in a whole run."""
        return f"{self.set}/{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSet:
    """The tasks of a run and the tools of each catalog."""

    tasks: tuple[Task, ...]
    catalogs: Mapping[str, Sequence[Tool]]

    @property
    def fingerprint(self) -> str:
        """A hash of the tasks and of every definition."""
        content = [
            [asdict(task) for task in self.tasks],
            {
                name: [[tool.name, tool.description, tool.parameters_json] for tool in tools]
                for name, tools in sorted(self.catalogs.items())
            },
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def read_tasks(path: Path = OWN_TASKS, *, limit: int | None = None) -> TaskSet:
    """Return the tasks of a file, and the catalogs that they name.

    A line is `{"set", "id", "request", "relevant"}`. The catalog of a set is
    `SET/tools.jsonl` in the file's folder or beside that folder; that of `toolbox` is the
    toolbox of the demo. A request of the set `none` gets one of the others, in turn.

    Args:
        path: The file, or a folder that has it as `queries.jsonl`.
        limit: The most tasks, spread over the file; None: all.

    Raises:
        SystemExit: A file is missing or wrong.
    """
    file = path / "queries.jsonl" if path.is_dir() else path
    try:
        lines = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
        read = [
            Task(
                set=line["set"],
                id=str(line["id"]),
                request=line["request"],
                relevant=tuple(line["relevant"]),
            )
            for line in lines
        ]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise SystemExit(f"{file}: cannot be read as tasks: {type(exc).__name__}: {exc}") from exc
    if limit is not None and limit < len(read):
        read = [read[index * len(read) // limit] for index in range(limit)]
    sets = sorted({task.set for task in read} - {NO_SET}) or [TOOLBOX_SET]
    catalogs = {name: _catalog(name, file) for name in sets}
    return TaskSet(tasks=tuple(_placed(read, sets)), catalogs=catalogs)


def _placed(tasks: Sequence[Task], sets: Sequence[str]) -> list[Task]:
    """Return the tasks with a catalog for those of no set."""
    placed = []
    for place, task in enumerate(tasks):
        name = sets[place % len(sets)] if task.set == NO_SET else task.set
        placed.append(Task(set=name, id=task.id, request=task.request, relevant=task.relevant))
    return placed


def _catalog(name: str, file: Path) -> Sequence[Tool]:
    if name == TOOLBOX_SET:
        return [item.tool for item in executable_tools(TOOLBOX)]
    for folder in (file.parent, file.parent.parent):
        path = folder / name / "tools.jsonl"
        if path.is_file():
            return parse_tools(path.read_text("utf-8"), source=str(path))
    raise SystemExit(
        f"{file}: no catalog of the set {name!r}; put it at {file.parent / name / 'tools.jsonl'}"
    )
