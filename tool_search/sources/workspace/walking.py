"""Walks over the files of a workspace, with `.gitignore` and globs."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Protocol

from tool_search.sources.workspace.workspace import Workspace, WorkspaceError

__all__ = ["FoundFile", "Walk", "glob_matcher"]

_MAX_BRACES = 64
_MAX_GLOB_CHARS = 500
_MAX_IGNORE_CHARS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A regular file that a walk found.

    Attributes:
        path: The path relative to the workspace.
        size: The size in bytes.
        changed_ns: The time of the last change, in nanoseconds since 1970.
    """

    path: str
    size: int
    changed_ns: int


class _Ignored(Protocol):
    def match_file(self, file: str, /) -> bool: ...


@dataclass(slots=True)
class Walk:
    """A walk over the regular files below a folder; links are not followed.

    `.git` is skipped, and the files that `.gitignore` names if pathspec is installed.

    Attributes:
        workspace: The workspace.
        start: The folder, or one file.
        is_cancelled: Returns True if the walk should stop.
        visited: The number of visited entries.
        is_cut: True if the walk ended at the limit of entries.
    """

    workspace: Workspace
    start: str
    is_cancelled: Callable[[], bool] = lambda: False
    visited: int = 0
    is_cut: bool = False
    _rules: dict[str, list[tuple[str, _Ignored]]] = field(default_factory=dict)

    def files(self) -> Iterator[FoundFile]:
        """Yield the files, folder by folder.

        Raises:
            WorkspaceError: The start does not exist.
        """
        workspace, place = self.workspace, self.workspace.locate(self.start)
        full = workspace.folder / place
        if stat.S_ISREG(full.lstat().st_mode) if full.exists() else False:
            found = full.lstat()
            yield FoundFile(path=place, size=found.st_size, changed_ns=found.st_mtime_ns)
            return
        pending = [place]
        self._read_rules_above(place)
        while pending and not self.is_cut and not self.is_cancelled():
            folder = pending.pop()
            try:
                entries = workspace.entries(folder)
            except WorkspaceError:
                if folder == place:
                    raise
                continue  # removed, or not readable
            inner: list[str] = []
            yield from self._visit(folder, entries, inner)
            pending.extend(reversed(inner))

    def _visit(
        self, folder: str, entries: list[tuple[str, os.stat_result]], inner: list[str]
    ) -> Iterator[FoundFile]:
        if folder != ".":
            above = folder.rpartition("/")[0] or "."
            self._rules.setdefault(folder, self._rules.get(above, []))
        self._add_rules(folder, {name for name, _ in entries})
        for name, found in entries:
            self.visited += 1
            if self.visited > self.workspace.limits.entries:
                self.is_cut = True
                return
            path = name if folder == "." else f"{folder}/{name}"
            is_folder = stat.S_ISDIR(found.st_mode)
            if name == ".git" or self._is_ignored(folder, path, is_folder=is_folder):
                continue
            if is_folder:
                inner.append(path)
            elif stat.S_ISREG(found.st_mode):
                yield FoundFile(path=path, size=found.st_size, changed_ns=found.st_mtime_ns)

    def _read_rules_above(self, place: str) -> None:
        """Read the rules of the folders above the start."""
        parts = place.split("/") if place != "." else []
        above = "."
        for depth in range(len(parts)):
            folder = "/".join(parts[:depth]) or "."
            self._rules.setdefault(folder, self._rules.get(above, []))
            self._add_rules(folder, {".gitignore"})
            above = folder

    def _add_rules(self, folder: str, names: set[str]) -> None:
        if ".gitignore" not in names:
            return
        path = ".gitignore" if folder == "." else f"{folder}/.gitignore"
        try:
            written = self.workspace.read(path, most=_MAX_IGNORE_CHARS).content
        except WorkspaceError:
            return  # too large, a link out of the workspace, or removed: no rules
        rules = _ignore_rules(written.decode("utf-8", "replace"))
        if rules is not None:
            self._rules[folder] = [*self._rules.get(folder, []), (folder, rules)]

    def _is_ignored(self, folder: str, path: str, *, is_folder: bool) -> bool:
        """Return True if a `.gitignore` above names it; one below cannot revert that."""
        shown = f"{path}/" if is_folder else path
        return any(
            rules.match_file(shown if home == "." else shown.removeprefix(f"{home}/"))
            for home, rules in self._rules.get(folder, ())
        )


def _ignore_rules(written: str) -> _Ignored | None:
    try:
        from pathspec import GitIgnoreSpec  # noqa: PLC0415  # optional
    except ImportError:
        return None
    kept: list[Any] = []
    for line in written.splitlines()[:2_000]:
        try:
            kept.extend(GitIgnoreSpec.from_lines([line]).patterns)
        except ValueError:
            continue  # git also skips lines that it cannot read
    rules: _Ignored = GitIgnoreSpec(kept)
    return rules


def glob_matcher(pattern: str, *, anywhere: bool = False) -> Callable[[str], bool]:
    """Return a function that is True for paths that fit a glob: `*`, `?`, `[…]`, `**`, `{a,b}`.

    Args:
        pattern: The glob for relative paths; `**` is any number of folders.
        anywhere: True if a glob without a slash matches names in any folder.

    Raises:
        WorkspaceError: The glob is too long, or has too many alternatives.

    >>> glob_matcher("src/**/*.{py,pyi}")("src/a/b/c.py")
    True
    """
    if not pattern or len(pattern) > _MAX_GLOB_CHARS:
        raise WorkspaceError(f"a glob must have 1 to {_MAX_GLOB_CHARS} characters")
    choices = []
    for choice in _expand_braces(pattern):
        parts = tuple(part for part in choice.split("/") if part not in ("", "."))
        choices.append(("**", *parts) if anywhere and len(parts) == 1 else parts)
    return lambda path: any(_fits(choice, tuple(path.split("/"))) for choice in choices)


def _expand_braces(pattern: str) -> list[str]:
    done, pending = [], [pattern]
    while pending:
        one = pending.pop()
        end = one.find("}")
        start = one.rfind("{", 0, end) if end >= 0 else -1
        if start < 0:
            done.append(one)
            continue
        pending += [
            one[:start] + choice + one[end + 1 :] for choice in one[start + 1 : end].split(",")
        ]
        if len(done) + len(pending) > _MAX_BRACES:
            raise WorkspaceError(f"{pattern!r} has more than {_MAX_BRACES} alternatives")
    return done


def _fits(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    @cache
    def fits(at: int, of: int) -> bool:
        if at == len(pattern):
            return of == len(path)
        if pattern[at] == "**":
            return fits(at + 1, of) or (of < len(path) and fits(at, of + 1))
        return of < len(path) and fnmatchcase(path[of], pattern[at]) and fits(at + 1, of + 1)

    return fits(0, 0)
