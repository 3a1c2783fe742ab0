"""Tools for the model's own work: thoughts, a todo list, and tasks for a sub-agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tool_search.runner.execution import (
    ExecutableTool,
    ToolContext,
    stateful_tool,
    tool_from_function,
)
from tool_search.sources.workspace.workspace import WorkspaceError

__all__ = ["RunSubAgent", "SubAgentTask", "thinking_tools"]

_NOTHING = {"read_only": True, "concurrency_safe": True}
_SIGNS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class TodoItem(BaseModel):
    """One thing to do."""

    model_config = ConfigDict(extra="forbid")

    content: Annotated[str, Field(min_length=1, max_length=500, description="What to do.")]
    status: Literal["pending", "in_progress", "completed"] = "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentTask:
    """A task for a sub-agent.

    Attributes:
        description: The task in a few words.
        prompt: The whole task; the sub-agent does not see the conversation.
        tools: The tools that it may use, for a loop that runs them itself.
        context: The context of the call, for progress and cancellation.
    """

    description: str
    prompt: str
    tools: tuple[ExecutableTool, ...]
    context: ToolContext

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """Return the value of one of its tools, checked and permitted as in the conversation.

        Raises:
            ToolCallError: The call failed or was denied.
            WorkspaceError: The sub-agent has no such tool.
        """
        names = [item.tool.name for item in self.tools]
        if name not in names:
            raise WorkspaceError(f"a sub-agent has no tool {name!r}; it has: {', '.join(names)}")
        return await self.context.call(name, **arguments)


RunSubAgent = Callable[[SubAgentTask], Awaitable[str]]
"""Runs a task and returns its result, in a loop of its own with or without a model."""


def thinking_tools(
    tools: Sequence[ExecutableTool], sub_agent: RunSubAgent | None
) -> tuple[ExecutableTool, ...]:
    """Return the tools that change nothing, and the one that delegates a task.

    Args:
        tools: All tools; a sub-agent may use those that only read.
        sub_agent: Runs tasks; None: no tool for tasks.
    """
    own = (_think(), _todo())
    reading = tuple(item for item in tools if item.tool.annotations.get("read_only") is True)
    return own if sub_agent is None else (*own, _task(sub_agent, reading))


def _think() -> ExecutableTool:
    def think(thought: str) -> str:  # noqa: ARG001  # writing it is the effect
        """Write a thought down before going on: it changes nothing and shows nothing new.

        Args:
            thought: The thought.
        """
        return "Noted."

    return tool_from_function(think, aliases=("Think",), annotations=_NOTHING)


class TodoList:
    """Keep the list of what is to do in this conversation: give the whole list each time.

    Args:
        todos: All items, in order; at most one is in progress.
    """

    def __init__(self, _: ToolContext) -> None:
        self._todos: list[TodoItem] = []

    def __call__(self, todos: Annotated[list[TodoItem], Field(max_length=100)]) -> str:
        """Replace the list, and report the changes."""
        if sum(item.status == "in_progress" for item in todos) > 1:
            raise WorkspaceError("more than one item is in_progress: finish one first")
        before = {item.content for item in self._todos if item.status == "completed"}
        finished = [
            item.content
            for item in todos
            if item.status == "completed" and item.content not in before
        ]
        self._todos = todos
        done = sum(item.status == "completed" for item in todos)
        lines = [f"{done} of {len(todos)} done."]
        lines += [f"{_SIGNS[item.status]} {item.content}" for item in todos]
        lines += [f"Finished just now: {'; '.join(finished)}"] if finished else []
        return "\n".join(lines)


def _todo() -> ExecutableTool:
    return stateful_tool(
        TodoList,
        name="todo_write",
        aliases=("TodoWrite",),
        annotations={"read_only": True, "concurrency_safe": False},
    )


def _task(run: RunSubAgent, tools: tuple[ExecutableTool, ...]) -> ExecutableTool:
    async def task(description: str, prompt: str, context: ToolContext) -> str:
        """Give a task to a sub-agent that can read and search the workspace, but change nothing.

        Args:
            description: The task in three to five words.
            prompt: All it has to know: it sees nothing of this conversation.
            context: Where it is called.
        """
        context.progress(description)
        return await run(
            SubAgentTask(description=description, prompt=prompt, tools=tools, context=context)
        )

    return tool_from_function(
        task, aliases=("Task",), tags=("agents",), annotations=_NOTHING, timeout_s=600.0
    )
