"""Thoughts, the todo list, and tasks for a sub-agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.workspace.calling import Desk
from tool_search import ToolCallError
from tool_search.config.permissions import PermissionSettings
from tool_search.sources.workspace import SubAgentTask, WorkspaceError, workspace_tools


async def test_a_thought_is_noted(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert await desk.said("think", thought="so") == "Noted."
    assert desk.asked == []


async def test_the_list_is_kept_by_conversation(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    todos: list[dict[str, Any]] = [{"content": "a", "status": "completed"}, {"content": "b"}]
    first = await desk.said("todo_write", todos=todos)
    assert first == "1 of 2 done.\n[x] a\n[ ] b\nFinished just now: a"
    todos[1]["status"] = "in_progress"
    assert await desk.said("todo_write", todos=todos) == "1 of 2 done.\n[x] a\n[>] b"
    assert "Finished just now: a" in await desk.said("todo_write", todos=todos, conversation="d")


async def test_no_more_than_one_item_is_in_progress(tmp_path: Path) -> None:
    todos = [{"content": name, "status": "in_progress"} for name in "ab"]
    assert "more than one" in await Desk(tmp_path).refused("todo_write", todos=todos)


async def test_without_a_sub_agent_there_is_no_task(tmp_path: Path) -> None:
    names = {item.tool.name for item in workspace_tools(tmp_path)}
    assert "task" not in names


async def test_a_sub_agent_reads_with_the_tools_it_has(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha\n")

    async def agent(task: SubAgentTask) -> str:
        found = await task.call("grep", pattern="alpha")
        return f"{task.prompt}: {found}"

    said = await Desk(tmp_path, sub_agent=agent).said("task", description="d", prompt="look")
    assert said == "look: a.txt\n[1 matching lines in 1 files]"


async def test_a_sub_agent_changes_nothing_and_gives_no_task_away(tmp_path: Path) -> None:
    """It has only tools that read."""
    seen: list[SubAgentTask] = []

    async def agent(task: SubAgentTask) -> str:
        seen.append(task)
        for name in ("write_file", "task"):
            with pytest.raises(WorkspaceError, match=f"has no tool '{name}'"):
                await task.call(name, file_path="a", content="b")
        return "done"

    assert await Desk(tmp_path, sub_agent=agent).said("task", description="d", prompt="p") == "done"
    names = {item.tool.name for item in seen[0].tools}
    assert names == {"read_file", "ls", "glob", "grep", "web_fetch", "web_search"}


async def test_what_is_denied_to_the_conversation_is_denied_to_its_sub_agent(
    tmp_path: Path,
) -> None:
    async def agent(task: SubAgentTask) -> str:
        with pytest.raises(ToolCallError, match="not allowed"):
            await task.call("read_file", file_path=".env")
        return "refused"

    rules = PermissionSettings(deny=("read_file(*.env)",))
    desk = Desk(tmp_path, rules=rules, sub_agent=agent)
    assert await desk.said("task", description="d", prompt="p") == "refused"
