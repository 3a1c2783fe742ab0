"""A tool that reads files: text by lines, notebooks by cells, pictures as pictures."""

from __future__ import annotations

import base64
from typing import Annotated

from pydantic import Field

from tool_search.core.messages import ImagePart, TextPart
from tool_search.runner.execution import ExecutableTool, ToolContext, tool_from_function
from tool_search.sources.workspace.notebooks import NotebookFile
from tool_search.sources.workspace.texts import ReadFiles, TextFile, number_lines
from tool_search.sources.workspace.workspace import StoredFile, Workspace, WorkspaceError

__all__ = ["reading_tools"]

_PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def reading_tools(workspace: Workspace, seen: ReadFiles) -> tuple[ExecutableTool, ...]:
    """Return the tool that reads files and notes them as read."""
    limits = workspace.limits

    def read_file(
        file_path: str,
        context: ToolContext,
        offset: Annotated[int, Field(ge=1)] = 1,
        limit: Annotated[int, Field(ge=1)] = limits.lines,
    ) -> str | list[TextPart | ImagePart]:
        """Read a file of the workspace: text with line numbers, a notebook's cells, a picture.

        A file must be read before it is edited. The line numbers, and the tab behind
        them, are not part of the file.

        Args:
            file_path: The file, relative to the workspace.
            context: Where it is called.
            offset: The first line to show, counted from 1.
            limit: The most lines to show.
        """
        file = workspace.read(file_path)
        picture = _picture(file)
        if picture:
            if len(file.content) > limits.picture_bytes:
                raise WorkspaceError(
                    f"{file_path!r} is a picture of {len(file.content):,} bytes, more than the "
                    f"{limits.picture_bytes:,} that can be shown"
                )
            seen.note(context.conversation, file)
            data = base64.b64encode(file.content).decode()
            return [TextPart(f"{file.path}, {picture}"), ImagePart(f"data:{picture};base64,{data}")]
        text = TextFile.of(file)
        if file.path.endswith(".ipynb"):
            shown = NotebookFile.of(file.path, text).preview(limits.characters)
        else:
            shown = _lines(workspace, text, file.path, offset, min(limit, limits.lines))
        seen.note(context.conversation, file)
        return shown

    return (
        tool_from_function(
            read_file,
            aliases=("Read", "View"),
            tags=("files",),
            annotations={"read_only": True, "concurrency_safe": True},
            subjects=workspace.subjects("file_path"),
            forget=seen.forget,
        ),
    )


def _lines(workspace: Workspace, text: TextFile, path: str, offset: int, limit: int) -> str:
    """Return numbered lines, and a note with the number of further lines."""
    if not text.text:
        return f"{path!r} is empty."
    lines = text.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if offset > len(lines):
        raise WorkspaceError(f"{path!r} has {len(lines):,} lines: line {offset:,} is not there")
    limits = workspace.limits
    chosen: list[str] = []
    characters = 0
    for line in lines[offset - 1 : offset - 1 + limit]:
        characters += min(len(line), limits.line_characters)
        if chosen and characters > limits.characters:
            break
        chosen.append(line)
    shown = number_lines(chosen, offset, longest=limits.line_characters)
    after = len(lines) - (offset - 1 + len(chosen))
    if not after:
        return shown
    return f"{shown}\n[{after:,} more lines: go on with offset {offset + len(chosen)}]"


def _picture(file: StoredFile) -> str | None:
    """Return the media type of a picture that models accept, or None, by its first bytes."""
    content = file.content
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _PICTURES.items() if content.startswith(start)), None)
