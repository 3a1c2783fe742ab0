"""Tools that change files: exact replacements and whole contents.

A conversation must have read a file before it changes it. The tools are therefore not marked
destructive, and the permission mode `accept` allows them, as Kode's `acceptEdits` does.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tool_search.runner.execution import ExecutableTool, ToolContext, tool_from_function
from tool_search.sources.workspace.texts import ReadFiles, TextFile, snippet
from tool_search.sources.workspace.workspace import StoredFile, Workspace, WorkspaceError

__all__ = ["Edit", "EditDesk", "check_before", "editing_tools"]

_CHANGES = {"read_only": False, "destructive": False, "concurrency_safe": False}


class Edit(BaseModel):
    """One replacement."""

    model_config = ConfigDict(extra="forbid")

    old_string: str = Field(description="The exact text to replace; once in the file.")
    new_string: str = Field(description="What stands there afterwards.")
    replace_all: bool = Field(default=False, description="Replace every occurrence.")


@dataclass(slots=True)
class EditDesk:
    """The state for changes of a workspace, which are made one at a time.

    Attributes:
        workspace: The workspace.
        seen: The files that conversations have read.
        lock: Held during a change.
    """

    workspace: Workspace
    seen: ReadFiles
    lock: threading.Lock

    def fresh(self, path: str, conversation: str) -> tuple[StoredFile, TextFile]:
        """Return a file that this conversation may change.

        Raises:
            WorkspaceError: The file was not read, has changed since, or is not text.
        """
        file = self.workspace.read(path)
        self.seen.require_current(conversation, file)
        return file, TextFile.of(file)

    def replace(self, old: StoredFile, content: bytes, conversation: str) -> None:
        """Write a file, and note that the conversation knows its content."""
        self.seen.note(conversation, self.workspace.replace(old, content))


def check_before(
    check: Callable[..., object],
) -> Callable[[Mapping[str, Any], ToolContext], Awaitable[str | None]]:
    """Return a `validate_input` from a check that reads the disk.

    Args:
        check: Raises a WorkspaceError; takes the arguments by name and `conversation`, and
            is called in a thread.
    """

    async def complaint(arguments: Mapping[str, Any], context: ToolContext) -> str | None:
        try:
            await asyncio.to_thread(check, **arguments, conversation=context.conversation)
        except WorkspaceError as exc:
            return str(exc)
        return None

    return complaint


def editing_tools(desk: EditDesk) -> tuple[ExecutableTool, ...]:
    """Return the tools that change text files."""
    return (_edit(desk), _multi_edit(desk), _write(desk))


def _change(
    desk: EditDesk, function: Callable[..., str], check: Callable[..., None], **definition: Any
) -> ExecutableTool:
    """Return a tool that changes one file, and checks that before it asks for permission."""
    return tool_from_function(
        function,
        tags=("files",),
        annotations=_CHANGES,
        needs_permission=True,
        subjects=desk.workspace.subjects("file_path"),
        validate_input=check_before(check),
        **definition,
    )


def _edit(desk: EditDesk) -> ExecutableTool:
    def edit_file(
        file_path: str,
        old_string: str,
        new_string: str,
        context: ToolContext,
        replace_all: bool = False,
    ) -> str:
        """Replace an exact text in a file of the workspace that was read before.

        Args:
            file_path: The file, relative to the workspace.
            old_string: The exact text to replace, without line numbers. It must occur once:
                take in the lines around it where it does not.
            new_string: What stands there afterwards.
            context: Where it is called.
            replace_all: Replace every occurrence.
        """
        edit = Edit(old_string=old_string, new_string=new_string, replace_all=replace_all)
        return _apply_edits(desk, file_path, [edit], context.conversation)

    def check(file_path: str, conversation: str, **edit: Any) -> None:
        file, text = desk.fresh(file_path, conversation)
        _replace_texts(text, [Edit(**edit)], file.path)

    return _change(desk, edit_file, check, aliases=("Edit",))


def _multi_edit(desk: EditDesk) -> ExecutableTool:
    def multi_edit_file(file_path: str, edits: list[Edit], context: ToolContext) -> str:
        """Make several exact replacements in one file of the workspace, all of them or none.

        Each works on what those before it have left.

        Args:
            file_path: The file, relative to the workspace; it was read before.
            edits: The replacements, in order.
            context: Where it is called.
        """
        return _apply_edits(desk, file_path, edits, context.conversation)

    def check(file_path: str, edits: list[dict[str, Any]], conversation: str) -> None:
        file, text = desk.fresh(file_path, conversation)
        _replace_texts(text, [Edit(**edit) for edit in edits], file.path)

    return _change(desk, multi_edit_file, check, aliases=("MultiEdit",))


def _write(desk: EditDesk) -> ExecutableTool:
    workspace = desk.workspace

    def write_file(file_path: str, content: str, context: ToolContext) -> str:
        """Write a whole text file of the workspace; an existing one must have been read.

        Folders that are missing are made. To change a part of a file, use edit_file.

        Args:
            file_path: The file, relative to the workspace.
            content: The whole content.
            context: Where it is called.
        """
        with desk.lock:
            if not workspace.exists(file_path):
                created = workspace.create(file_path, TextFile(text="").encode_text(content))
                desk.seen.note(context.conversation, created)
                return f"Created {created.path} with {_count(content)}."
            file, text = desk.fresh(file_path, context.conversation)
            desk.replace(file, text.encode_text(content), context.conversation)
            return f"Wrote {file.path} with {_count(content)}."

    def check(file_path: str, content: str, conversation: str) -> None:
        if workspace.exists(file_path):
            _, text = desk.fresh(file_path, conversation)
            text.encode_text(content)

    return _change(
        desk,
        write_file,
        check,
        aliases=(
            "Write",
            "Replace",
        ),
    )


def _count(content: str) -> str:
    lines = len(content.splitlines())
    return "1 line" if lines == 1 else f"{lines:,} lines"


def _apply_edits(desk: EditDesk, path: str, edits: Sequence[Edit], conversation: str) -> str:
    with desk.lock:
        file, text = desk.fresh(path, conversation)
        after, place, count = _replace_texts(text, edits, file.path)
        desk.replace(file, text.encode_text(after), conversation)
    times = "1 replacement" if count == 1 else f"{count:,} replacements"
    last = text.with_own_line_ends(edits[-1].new_string)
    return f"Made {times} in {file.path}. It now reads:\n{snippet(after, place, len(last))}"


def _replace_texts(text: TextFile, edits: Sequence[Edit], path: str) -> tuple[str, int, int]:
    """Return the text after replacements, the place of the last one, and their number.

    Raises:
        WorkspaceError: A text does not occur, occurs more than once, or nothing changes.
    """
    if not edits:
        raise WorkspaceError("edits is empty: give at least one replacement")
    now, place, total = text.text, 0, 0
    for number, edit in enumerate(edits, 1):
        old = text.with_own_line_ends(edit.old_string)
        new = text.with_own_line_ends(edit.new_string)
        which = f"edit {number}: " if len(edits) > 1 else ""
        if not old:
            raise WorkspaceError(f"{which}old_string is empty: to make a file, use write_file")
        if old == new:
            raise WorkspaceError(f"{which}old_string and new_string are the same")
        count = now.count(old)
        if count == 0:
            mixed = " The file's lines end in different ways." if not text.newline else ""
            raise WorkspaceError(
                f"{which}old_string does not occur in {path!r}: copy it from the file exactly, "
                f"without line numbers.{mixed}"
            )
        if count > 1 and not edit.replace_all:
            raise WorkspaceError(
                f"{which}old_string occurs {count:,} times in {path!r}: add the lines around the "
                "one that is meant, or set replace_all"
            )
        place = now.index(old)
        now = now.replace(old, new)
        total += count
    return now, place, total
