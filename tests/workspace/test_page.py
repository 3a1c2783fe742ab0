"""The page on the workspace tools: its program runs, and its tables are complete."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from tool_search.sources.workspace import (
    FetchOptions,
    Limits,
    ShellOptions,
    SubAgentTask,
    workspace_tools,
)

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "workspace.md").read_text(encoding="utf-8")


def test_the_program_of_the_page_runs() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    done = subprocess.run(  # our own program
        [sys.executable, "-"],
        input=program, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False,
        cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    read, outside, written = done.stdout.splitlines()
    assert read.endswith("Buy milk.")
    assert outside.startswith("failed")
    assert written.startswith("denied")


def test_the_page_lists_every_tool_with_its_aliases_and_permission(tmp_path: Path) -> None:
    async def sub_agent(task: SubAgentTask) -> str:
        return task.prompt

    made = workspace_tools(tmp_path, shell=ShellOptions(commands=["ls"]), sub_agent=sub_agent)
    rows = [
        (name, re.findall(r"`(\w+)`", aliases), permission)
        for name, aliases, permission in re.findall(
            r"^\| `(\w+)` \| (.*?) \| (\w+) \|", PAGE, re.MULTILINE
        )
        if not name.isupper()
    ]
    assert sorted(rows) == sorted(
        (item.tool.name, list(item.tool.aliases), "asked" if item.needs_permission else "none")
        for item in made
    )


def test_the_page_lists_every_setting() -> None:
    settings = {
        f"{kind.__name__}.{field.name}"
        for kind in (Limits, ShellOptions, FetchOptions)
        for field in fields(kind)
    }
    assert set(re.findall(r"^\| `(\w+\.\w+)`", PAGE, re.MULTILINE)) == settings
