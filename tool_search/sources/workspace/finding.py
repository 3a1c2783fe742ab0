"""Tools that find files by name and by content."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from tool_search.runner.execution import ExecutableTool, ToolContext, tool_from_function
from tool_search.sources.workspace.matching import LineMatcher, TurnBudgets, line_matcher
from tool_search.sources.workspace.texts import TextFile
from tool_search.sources.workspace.walking import Walk, glob_matcher
from tool_search.sources.workspace.workspace import Workspace, WorkspaceError

__all__ = ["finding_tools"]

Limit = Annotated[int, Field(ge=1, le=1_000)]
OutputMode = Literal["content", "files_with_matches", "count"]
_READS = {"read_only": True, "concurrency_safe": True}
_BATCH_CHARACTERS = 2_000_000
_MAX_LINE_CHARS = 400
_KINDS = ((stat.S_ISDIR, "/"), (stat.S_ISLNK, "@"), (stat.S_ISFIFO, "|"), (stat.S_ISSOCK, "="))


def finding_tools(workspace: Workspace) -> tuple[ExecutableTool, ...]:
    """Return the tools that find files."""
    return (_ls(workspace), _glob(workspace), _grep(workspace))


def _ls(workspace: Workspace) -> ExecutableTool:
    def ls(context: ToolContext, path: str = ".", limit: Limit = 200) -> str:
        """List a folder of the workspace: names in order, folders with a slash, files with size.

        Args:
            context: Where it is called.
            path: The folder, relative to the workspace.
            limit: The most entries to show.
        """
        base = workspace.locate(path)
        prefix = "" if base == "." else f"{base}/"
        guard = _Guard(context)
        entries = [e for e in workspace.entries(path) if guard.shows(f"{prefix}{e[0]}")]
        lines = []
        for name, found in entries[:limit]:
            mark = next((sign for is_it, sign in _KINDS if is_it(found.st_mode)), None)
            lines.append(f"{name}  {found.st_size:,} bytes" if mark is None else f"{name}{mark}")
        listed = _format_list(lines, len(entries) - len(lines), "The folder is empty.")
        return listed + guard.left_out()

    return tool_from_function(
        ls,
        aliases=("LS",),
        tags=("files",),
        annotations=_READS,
        subjects=workspace.subjects("path"),
    )


def _glob(workspace: Workspace) -> ExecutableTool:
    def glob(pattern: str, context: ToolContext, path: str = ".", limit: Limit = 200) -> str:
        """Find files of the workspace by name, those changed last first.

        What .gitignore names is left out.

        Args:
            pattern: Such as *.py, src/**/*.ts or {a,b}.txt; ** is any number of folders.
            context: Where it is called.
            path: The folder to look in; the pattern is relative to it.
            limit: The most files to show.
        """
        fits = glob_matcher(pattern)
        walk = Walk(workspace, path, lambda: context.is_cancelled)
        base = workspace.locate(path)
        start = 0 if base == "." else len(base) + 1
        guard = _Guard(context)
        found = [f for f in walk.files() if fits(f.path[start:]) and guard.shows(f.path)]
        found.sort(key=lambda file: (-file.changed_ns, file.path))
        shown = [file.path for file in found[:limit]]
        listed = _format_list(shown, len(found) - len(shown), "No file fits.")
        return listed + guard.left_out() + _cut_note(walk)

    return tool_from_function(glob, aliases=("Glob",), tags=("files",), annotations=_READS)


def _grep(workspace: Workspace) -> ExecutableTool:
    budgets = TurnBudgets()

    def grep(  # noqa: PLR0917  # called by name
        pattern: str,
        context: ToolContext,
        path: str = ".",
        glob: str | None = None,
        output_mode: OutputMode = "files_with_matches",
        ignore_case: bool = False,
        context_lines: Annotated[int, Field(ge=0, le=10)] = 0,
        head_limit: Limit = 100,
    ) -> str:
        """Search the files of the workspace with a regular expression, line by line.

        Binary files, very large ones and what .gitignore names are left out.

        Args:
            pattern: The regular expression.
            context: Where it is called.
            path: The folder or file to search.
            glob: Only files with such names, such as *.py or src/**/*.ts.
            output_mode: Matching lines, only the files' names, or how many lines in each.
            ignore_case: Whether upper and lower case are one.
            context_lines: Lines shown before and after a match, in the mode content.
            head_limit: The most lines or files to show.
        """
        budget = budgets.of(context.cancellation)
        matcher = line_matcher(pattern, ignore_case=ignore_case, budget=budget)
        walk = Walk(workspace, path, lambda: context.is_cancelled)
        guard = _Guard(context)
        search = _Search(workspace, walk, glob, guard)
        report = _Report(output_mode, context_lines, head_limit)
        for batch in search.batches():
            for (name, text), numbers in zip(batch, _match_lines(matcher, batch), strict=True):
                if numbers:
                    report.add(name, text, numbers)
        return report.text() + search.left_out() + guard.left_out() + _cut_note(walk)

    return tool_from_function(
        grep, aliases=("Grep",), tags=("files", "search"), annotations=_READS, timeout_s=60.0
    )


def _match_lines(matcher: LineMatcher, batch: list[tuple[str, str]]) -> list[list[int]]:
    return matcher([text for _, text in batch])


class _Guard:
    """A filter of files by the permission rules of `read_file`.

    Without it, a search would show files that a rule hides from the user.

    Args:
        context: The context of the search.
    """

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._left_out = 0

    def shows(self, path: str) -> bool:
        """Return True if the user may read a file without a question; count it if not."""
        if self._context.allows("read_file", file_path=path):
            return True
        self._left_out += 1
        return False

    def left_out(self) -> str:
        """Return a note with the number of hidden files, without their names."""
        if not self._left_out:
            return ""
        return f"\n[{self._left_out:,} left out: the rules do not let you read them]"


class _Search:
    """The texts that grep searches."""

    def __init__(self, workspace: Workspace, walk: Walk, glob: str | None, guard: _Guard) -> None:
        self._workspace = workspace
        self._guard = guard
        self._walk = walk
        self._fits = glob_matcher(glob, anywhere=True) if glob else None
        base = workspace.locate(walk.start)
        self._start = 0 if base == "." else len(base) + 1
        self._too_large = 0

    def batches(self) -> Iterator[list[tuple[str, str]]]:
        """Yield batches of paths and texts with about 2 million characters each."""
        batch: list[tuple[str, str]] = []
        characters = 0
        for file in self._walk.files():
            inside = file.path[self._start :] or file.path.rpartition("/")[2]
            if self._fits is not None and not self._fits(inside):
                continue
            text = self._text(file.path) if self._guard.shows(file.path) else None
            if text is None:
                continue
            batch.append((file.path, text))
            characters += len(text)
            if characters > _BATCH_CHARACTERS:
                yield batch
                batch, characters = [], 0
        if batch:
            yield batch

    def _text(self, path: str) -> str | None:
        workspace = self._workspace
        try:
            stored = workspace.read(path)
            if len(stored.content) > workspace.limits.searched_bytes:
                self._too_large += 1
                return None
            return TextFile.of(stored).text
        except WorkspaceError:
            return None  # binary, removed, or not readable

    def left_out(self) -> str:
        """Return a note with the number of files that were too large."""
        return f"\n[{self._too_large:,} files were too large to search]" if self._too_large else ""


class _Report:
    """The output of grep."""

    def __init__(self, mode: OutputMode, context_lines: int, limit: int) -> None:
        self._mode = mode
        self._context = context_lines
        self._limit = limit
        self._lines: list[str] = []
        self._shown = 0
        self._files = 0
        self._matches = 0

    def add(self, path: str, text: str, numbers: list[int]) -> None:
        """Add the matching lines of a file."""
        self._files += 1
        self._matches += len(numbers)
        room = self._limit - self._shown
        if room <= 0:
            return
        if self._mode == "content":
            self._lines += self._content(path, text.split("\n"), numbers[:room])
            self._shown += len(numbers[:room])
        else:
            self._lines.append(f"{path}:{len(numbers)}" if self._mode == "count" else path)
            self._shown += 1

    def _content(self, path: str, lines: list[str], numbers: list[int]) -> Iterator[str]:
        matching, last = set(numbers), -1
        for number in numbers:
            first = max(last + 1, number - self._context)
            if self._context and self._lines and first > last + 1:
                yield "--"
            for at in range(first, min(len(lines), number + self._context + 1)):
                sign = ":" if at in matching else "-"
                yield f"{path}{sign}{at + 1}{sign}{_cut_line(lines[at])}"
                last = at

    def text(self) -> str:
        """Return the whole output, with notes on omissions."""
        total = self._matches if self._mode == "content" else self._files
        listed = _format_list(self._lines, total - self._shown, "Nothing matches.")
        if not self._files:
            return listed
        return f"{listed}\n[{self._matches:,} matching lines in {self._files:,} files]"


def _cut_line(line: str) -> str:
    line = line.removesuffix("\r")
    if len(line) <= _MAX_LINE_CHARS:
        return line
    return f"{line[:_MAX_LINE_CHARS]}... [{len(line) - _MAX_LINE_CHARS:,} characters left out]"


def _format_list(lines: list[str], left: int, otherwise: str) -> str:
    if not lines:
        return otherwise
    return "\n".join([*lines, *([f"[{left:,} more left out]"] if left > 0 else [])])


def _cut_note(walk: Walk) -> str:
    if not walk.is_cut:
        return ""
    most = walk.workspace.limits.entries
    return f"\n[stopped after {most:,} files and folders: look in a smaller folder]"
