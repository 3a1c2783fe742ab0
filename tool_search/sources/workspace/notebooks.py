"""Jupyter notebooks: their cells, and a tool that edits them.

Source: nbformat, "The Notebook file format", version 4.
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass
from typing import Any, Literal

from tool_search.runner.execution import ExecutableTool, ToolContext, tool_from_function
from tool_search.sources.workspace.editing import EditDesk, check_before
from tool_search.sources.workspace.texts import TextFile
from tool_search.sources.workspace.workspace import WorkspaceError

__all__ = [
    "CellKind",
    "NotebookFile",
    "notebook_tools",
    "source_lines",
]


CellKind = Literal["code", "markdown", "raw"]
_MAX_OUTPUT_CHARS = 4_000


@dataclass(slots=True)
class NotebookFile:
    """A parsed notebook.

    Attributes:
        path: The path, for messages.
        content: The JSON object.
        indent: The indentation of the file: a number of spaces, or a text such as a tab.
    """

    path: str
    content: dict[str, Any]
    indent: int | str

    @classmethod
    def of(cls, path: str, text: TextFile) -> NotebookFile:
        """Return the notebook in a file.

        Raises:
            WorkspaceError: The file is not a notebook of version 4.
        """
        try:
            content = json.loads(text.text)
        except (ValueError, RecursionError) as exc:
            raise WorkspaceError(f"{path!r} is not the JSON of a notebook: {exc}") from exc
        cells = content.get("cells") if isinstance(content, dict) else None
        if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
            raise WorkspaceError(f"{path!r} is no notebook of version 4: it has no list of cells")
        found = re.match(r"\{\r?\n([ \t]+)\"", text.text)
        return cls(path, content, (found[1] if "\t" in found[1] else len(found[1])) if found else 1)

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The cells, in order."""
        cells: list[dict[str, Any]] = self.content["cells"]
        return cells

    def to_json(self, before: str) -> str:
        """Return the notebook as JSON text.

        Args:
            before: The old text; its final line end, or the lack of one, is kept.
        """
        end = "\n" if before.endswith("\n") else ""
        return json.dumps(self.content, ensure_ascii=False, indent=self.indent) + end

    def preview(self, most: int) -> str:
        """Return the cells and the text of their outputs.

        Args:
            most: The number of characters; a note replaces the rest.
        """
        parts = [_cell(number, cell) for number, cell in enumerate(self.cells)]
        whole = "\n".join(parts) or f"{self.path!r} has no cells."
        if len(whole) <= most:
            return whole
        return f"{whole[:most]}\n[{len(whole) - most:,} characters left out]"

    def index(self, cell: str) -> int:
        """Return the index of a cell.

        Args:
            cell: The cell's id, or its number from 0.

        Raises:
            WorkspaceError: There is no such cell.
        """
        ids = [item.get("id") for item in self.cells]
        if cell in ids:
            return ids.index(cell)
        if re.fullmatch(r"[0-9]{1,6}", cell) and int(cell) < len(ids):
            return int(cell)
        raise WorkspaceError(
            f"{self.path!r} has no cell {cell!r}: give an id, or a number below {len(ids)}"
        )

    def new_cell(self, kind: CellKind, source: str) -> dict[str, Any]:
        """Return a new cell in the form of this notebook's version."""
        made: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source_lines(source)}
        version = (self.content.get("nbformat"), self.content.get("nbformat_minor"))
        if version[0] == 4 and isinstance(version[1], int) and version[1] >= 5:
            made = {"id": secrets.token_hex(4), **made}
        if kind == "code":
            made.update(execution_count=None, outputs=[])
        return made


def source_lines(source: str) -> list[str]:
    """Return a source as a list of lines with their ends, as notebooks store it."""
    lines = source.split("\n")
    kept = [f"{line}\n" for line in lines[:-1]]
    return [*kept, lines[-1]] if lines[-1] else kept


def _cell(number: int, cell: dict[str, Any]) -> str:
    named = f" id={cell['id']}" if isinstance(cell.get("id"), str) else ""
    lines = [f"[cell {number}{named} {cell.get('cell_type')}]", _join(cell.get("source"))]
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        shown = _output(output) if isinstance(output, dict) else ""
        if shown:
            left = len(shown) - _MAX_OUTPUT_CHARS
            cut = f" [{left:,} characters left out]" if left > 0 else ""
            lines.append(f"[output] {shown[:_MAX_OUTPUT_CHARS]}{cut}")
    return "\n".join(lines)


def _output(output: dict[str, Any]) -> str:
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    data = output.get("data")
    if isinstance(data, dict):
        text = _join(data.get("text/plain"))
        others = [kind for kind in data if kind != "text/plain"]
        return text or f"({', '.join(map(str, others))})"
    return _join(output.get("text"))


def _join(value: Any) -> str:
    if isinstance(value, list):
        return "".join(item for item in value if isinstance(item, str)).rstrip("\n")
    return value.rstrip("\n") if isinstance(value, str) else ""


EditMode = Literal["replace", "insert", "delete"]


def notebook_tools(desk: EditDesk) -> tuple[ExecutableTool, ...]:
    """Return the tool that edits notebooks."""

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
            done = _change_cell(notebook, edit_mode, cell, new_source, cell_type)
            content = text.encode_text(notebook.to_json(text.text))
            desk.replace(file, content, context.conversation)
        return f"{done} in {file.path}, which has {len(notebook.cells)} cells."

    def check(notebook_path: str, conversation: str, **given: Any) -> None:
        file, text = desk.fresh(notebook_path, conversation)
        notebook = NotebookFile.of(file.path, text)
        mode = given.get("edit_mode", "replace")
        source, kind = given.get("new_source", ""), given.get("cell_type")
        _change_cell(notebook, mode, given.get("cell"), source, kind)

    return (
        tool_from_function(
            edit_notebook,
            aliases=("NotebookEdit",),
            tags=("files",),
            annotations={"read_only": False, "destructive": False, "concurrency_safe": False},
            needs_permission=True,
            subjects=desk.workspace.subjects("notebook_path"),
            validate_input=check_before(check),
        ),
    )


def _change_cell(
    notebook: NotebookFile, mode: EditMode, cell: str | None, source: str, kind: CellKind | None
) -> str:
    """Change a notebook; return a report of the change."""
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
