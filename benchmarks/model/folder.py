"""A run's folder: its plan, fixed before the first request, and a record of each task."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from model.asking import Record

__all__ = ["Budget", "RunFolder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that a run may use, what an earlier part of it used included.

    Attributes:
        requests: Requests; None: no limit.
        usd: Dollars; None: no limit.
    """

    requests: int | None = None
    usd: float | None = None

    def steps(self, most: int, *, requests: int, usd: float) -> int:
        """Return the steps of a turn that may follow, of at most so many; 0: none may.

        A turn may need one more request than its steps, for its answer.
        """
        if self.usd is not None and usd >= self.usd:
            return 0
        return most if self.requests is None else max(0, min(most, self.requests - requests - 1))


class RunFolder:
    """The files of one run.

    `plan.json` has the arms and the tasks' hash, `records.jsonl` a line for each task and arm
    that is done. A run of the same plan goes on where the last one ended.

    Args:
        path: The folder.
        plan: What decides the run, without a key.

    Raises:
        SystemExit: The folder has the run of another plan, or a record cannot be read.
    """

    def __init__(self, path: Path, plan: dict[str, Any]) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._records = path / "records.jsonl"
        text = json.dumps(plan, indent=1, ensure_ascii=False) + "\n"
        file = path / "plan.json"
        if not file.exists():
            file.write_text(text, "utf-8")
        elif file.read_text("utf-8") != text:
            raise SystemExit(
                f"{file} is the plan of another run: it has other arms, tasks, or another model; "
                "name another folder by --out, or the same options"
            )
        self.records = self._read()

    def add(self, record: Record) -> None:
        """Keep a record, at once."""
        with self._records.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record), ensure_ascii=False) + "\n")
        self.records.append(record)

    def has(self, arm: str, task: str) -> bool:
        """True if a task is done in an arm."""
        return any((record.arm, record.task) == (arm, task) for record in self.records)

    def _read(self) -> list[Record]:
        if not self._records.exists():
            return []
        text = self._records.read_text("utf-8")
        # A process that was killed may leave half a line, whose task is asked again.
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self._records.write_text(whole, "utf-8")
        read = []
        for line in whole.splitlines():
            try:
                content = json.loads(line)
                read.append(Record(**{**content, "called": tuple(content["called"])}))
            except (ValueError, TypeError, KeyError) as exc:
                raise SystemExit(f"{self._records}: not a record: {line[:100]!r}") from exc
        return read
