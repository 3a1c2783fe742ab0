"""Changing a notebook, cell by cell."""

from __future__ import annotations

from typing import Any, Literal

from tool_search.execution import ExecutableTool, ToolContext, tool_from_function
from tool_search.workspace.editing import EditDesk, checked_before
from tool_search.workspace.notebook_files import CellKind, NotebookFile
from tool_search.workspace.workspace import WorkspaceError

__all__ = ["notebook_tools"]

EditMode = Literal["replace", "insert", "delete"]


def notebook_tools(desk: EditDesk) -> tuple[ExecutableTool, ...]:
    """The tool that edits notebooks."""

    def edit_notebook(  # noqa: PLR0917  # called by name
        notebook_path: str,
        context: ToolContext,
        new_source: str = "",
        cell: str | None = None,
        cell_type: CellKind | None = None,
        edit_mode: EditMode = "replace",
    ) -> str:
        """Replace, insert or delete one cell of a Jupyter notebook that was read before.

        Args:
            notebook_path: The .ipynb file, relative to the workspace.
            context: Where it is called.
            new_source: The cell's source.
            cell: The cell's id, or its number from 0. A new cell comes behind it, or first
                where none is named.
            cell_type: Of a new cell, or what a replaced one becomes.
            edit_mode: What to do with the cell.
        """
        with desk.lock:
            file, text = desk.fresh(notebook_path, context.conversation)
            notebook = NotebookFile.of(file.path, text)
            done = _changed(notebook, edit_mode, cell, new_source, cell_type)
            content = text.encoded(notebook.written(text.text))
            desk.replaced(file, content, context.conversation)
        return f"{done} in {file.path}, which has {len(notebook.cells)} cells."

    def check(notebook_path: str, conversation: str, **given: Any) -> None:
        file, text = desk.fresh(notebook_path, conversation)
        notebook = NotebookFile.of(file.path, text)
        mode = given.get("edit_mode", "replace")
        source, kind = given.get("new_source", ""), given.get("cell_type")
        _changed(notebook, mode, given.get("cell"), source, kind)

    return (
        tool_from_function(
            edit_notebook,
            aliases=("NotebookEdit",),
            tags=("files",),
            annotations={"read_only": False, "destructive": False, "concurrency_safe": False},
            needs_permission=True,
            subjects=desk.workspace.subjects("notebook_path"),
            validate_input=checked_before(check),
        ),
    )


def _changed(
    notebook: NotebookFile, mode: EditMode, cell: str | None, source: str, kind: CellKind | None
) -> str:
    """Changes a notebook; says what was done."""
    if not notebook.path.endswith(".ipynb"):
        raise WorkspaceError(f"{notebook.path!r} is no .ipynb file: use edit_file")
    if mode == "insert":
        if kind is None:
            raise WorkspaceError("cell_type is missing: a new cell needs it")
        place = 0 if cell is None else notebook.index(cell) + 1
        notebook.cells.insert(place, notebook.new_cell(kind, source))
        return f"Inserted cell {place}"
    if cell is None:
        raise WorkspaceError(f"cell is missing: say which cell to {mode}")
    place = notebook.index(cell)
    if mode == "delete":
        del notebook.cells[place]
        return f"Deleted cell {place}"
    old = notebook.cells[place]
    made = notebook.new_cell(kind or old.get("cell_type", "code"), source)
    made.pop("id", None)
    made.update((key, old[key]) for key in ("id", "metadata", "attachments") if key in old)
    notebook.cells[place] = made
    return f"Replaced cell {place}"
