"""Confinement to one folder: paths, links, devices, sizes, atomic writes.

A path is resolved first, links included, and must then be inside the folder. The resolved path
is opened component by component without following links, so that a link that appears in
between is refused. A hard link to a file outside cannot be detected: such a file can be read,
but a write replaces the name and leaves the file itself unchanged.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tool_search.errors import ConfigurationError, ToolSearchError

__all__ = ["PROTECTED", "Limits", "StoredFile", "Workspace", "WorkspaceError"]

PROTECTED = (
    ".git", ".hg", ".svn", ".jj", "HEAD", ".gitmodules", ".gitconfig", ".gitattributes",
    ".githooks", ".husky", ".pre-commit-config.yaml", ".github/workflows", ".gitlab-ci.yml",
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".inputrc", ".zshrc",
    ".zshenv", ".zprofile", ".zlogin", ".envrc", ".env", ".config", ".local", ".ssh", ".gnupg",
    ".netrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".pip", ".cargo", ".vscode", ".idea",
    ".devcontainer", ".claude", ".cursor", ".mcp.json", ".ripgreprc", ".wgetrc", ".curlrc",
)  # fmt: skip
"""Files and folders that other programs execute or read as configuration.

The shell's home is the workspace, so the next command would use a profile, a configuration of
git or an ssh key there. `HEAD` makes a folder a repository, whose configuration names programs.
Names match at any depth, in upper and lower case."""


def _flags(*names: str) -> int:
    """Return flags of `os.open`; `Workspace` refuses a system that lacks some."""
    return sum(getattr(os, f"O_{name}", 0) for name in names)


_FOLDER = _flags("RDONLY", "DIRECTORY", "NOFOLLOW", "CLOEXEC")
_FILE = _flags("RDONLY", "NOFOLLOW", "NONBLOCK", "CLOEXEC")
_NEW = _flags("WRONLY", "CREAT", "EXCL", "NOFOLLOW", "CLOEXEC")
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class WorkspaceError(ToolSearchError):
    """A workspace tool cannot do what the call asks; the model reads the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on reading, showing and writing in a workspace.

    Attributes:
        file_bytes: The largest file to read or write.
        picture_bytes: The largest picture to show.
        searched_bytes: The largest file that grep searches.
        lines: The number of lines that one read shows.
        line_characters: The number of characters to show of a line.
        characters: The number of characters in one result.
        entries: The number of files and folders that one search visits.
    """

    file_bytes: int = 10_000_000
    picture_bytes: int = 3_750_000
    searched_bytes: int = 2_000_000
    lines: int = 2_000
    line_characters: int = 2_000
    characters: int = 60_000
    entries: int = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """The content and state of a file at one time.

    Attributes:
        path: The path relative to the workspace, links resolved.
        content: The bytes.
        mode: The permission bits.
        stamp: Device, inode, size, and time of change in nanoseconds.
    """

    path: str
    content: bytes
    mode: int
    stamp: tuple[int, int, int, int]


class Workspace:
    """A folder to which tools are confined.

    Args:
        folder: The folder.
        limits: Limits on reading, showing and writing.
        protected: Names that are read but never written.

    Raises:
        ConfigurationError: The folder does not exist, or the system cannot open files
            relative to a folder.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        limits: Limits | None = None,
        protected: Collection[str] = PROTECTED,
    ) -> None:
        if os.open not in os.supports_dir_fd:
            raise ConfigurationError(
                "workspace tools need a system that opens files relative to a folder, such as "
                "Linux or macOS"
            )
        self.folder = Path(folder).expanduser().resolve()
        self.limits = limits or Limits()
        self._protected = tuple(tuple(_normalize(name).split("/")) for name in protected)
        if not self.folder.is_dir():
            raise ConfigurationError(
                f"the workspace {str(folder)!r} is not a folder: create it, or name another"
            )

    def locate(self, path: str) -> str:
        """Return the resolved path, relative to the workspace; "." is the workspace itself.

        Args:
            path: A path relative to the workspace, or an absolute path inside it.

        Raises:
            WorkspaceError: The path leads out of the workspace.
        """
        root = str(self.folder)
        try:
            real = os.path.realpath(self.folder / path)
            os.fsencode(real)
        except (ValueError, OSError) as exc:
            raise WorkspaceError(f"{path!r} cannot be a path: {exc}") from exc
        if real == root:
            return "."
        inside = root if root.endswith(os.sep) else root + os.sep
        if real.startswith(inside):
            return real.removeprefix(inside)
        written = os.path.normpath(self.folder / path)
        if written == root or written.startswith(inside):
            raise WorkspaceError(f"{path!r} leads out of the workspace by a link")
        raise WorkspaceError(f"{path!r} is outside of the workspace: use a path relative to it")

    def subjects(self, argument: str) -> Callable[[Mapping[str, Any]], tuple[str, ...]]:
        """Return a function that gives permission rules the resolved path of a call.

        Args:
            argument: The name of the argument with the path.
        """

        def leads_to(arguments: Mapping[str, Any]) -> tuple[str, ...]:
            path = arguments.get(argument, ".")
            try:
                return (self.locate(path),)
            except WorkspaceError:
                return (path,)  # the call itself will report the problem

        return leads_to

    def read(self, path: str, *, most: int | None = None) -> StoredFile:
        """Read a regular file.

        Args:
            path: The path.
            most: The largest size in bytes; default: `limits.file_bytes`.

        Raises:
            WorkspaceError: The file does not exist, is too large, or is not a regular file.
        """
        place = self.locate(path)
        most = self.limits.file_bytes if most is None else most
        with self._parent(place) as (folder, name):
            _require_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
            with os.fdopen(os.open(name, _FILE, dir_fd=folder), "rb") as file:
                found = os.fstat(file.fileno())
                _require_regular(found, path)
                content = file.read(most + 1) if found.st_size <= most else b""
        if found.st_size > most or len(content) > most:
            size = max(found.st_size, len(content))
            raise WorkspaceError(f"{path!r} has {size:,} bytes, more than the {most:,} allowed")
        return StoredFile(
            path=place, content=content, mode=stat.S_IMODE(found.st_mode), stamp=_stamp(found)
        )

    def exists(self, path: str) -> bool:
        """Return True if a path exists.

        Raises:
            WorkspaceError: The path leads out of the workspace.
        """
        place = self.locate(path)
        return place == "." or os.path.lexists(self.folder / place)

    def replace(self, old: StoredFile, content: bytes) -> StoredFile:
        """Replace the content of a file atomically.

        Raises:
            WorkspaceError: The file has changed since it was read, or the content is too
                large.
        """
        self._require_writable(old.path)
        self._require_size(old.path, content)
        with self._parent(old.path) as (folder, name), self._new(folder, content) as temporary:
            os.chmod(temporary, old.mode, dir_fd=folder)
            now = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if _stamp(now) != old.stamp:
                raise WorkspaceError(f"{old.path!r} changed while it was edited: read it again")
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        return self.read(old.path)

    def create(self, path: str, content: bytes) -> StoredFile:
        """Create a file atomically, with missing folders.

        Raises:
            WorkspaceError: The path exists already, or the content is too large.
        """
        place = self.locate(path)
        self._require_writable(place)
        self._require_size(path, content)
        with (
            self._parent(place, create=True) as (folder, name),
            self._new(folder, content) as temporary,
        ):
            # A rename would replace a file that appeared meanwhile; a link fails instead.
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        return self.read(place)

    def entries(self, path: str) -> list[tuple[str, os.stat_result]]:
        """Return the entries of a folder, sorted by name; links are not followed.

        Raises:
            WorkspaceError: The folder does not exist.
        """
        place = self.locate(path)
        with self._open_folder(place) as folder:
            found = []
            for name in sorted(os.listdir(folder)):  # noqa: PTH208  # a descriptor
                with suppress(FileNotFoundError):
                    found.append((name, os.stat(name, dir_fd=folder, follow_symlinks=False)))
        return found

    def _require_writable(self, place: str) -> None:
        parts = _normalize(place).split("/")
        for name in self._protected:
            if any(tuple(parts[n : n + len(name)]) == name for n in range(len(parts))):
                raise WorkspaceError(
                    f"{place!r} is not written: {'/'.join(name)!r} is what other programs execute "
                    "or take orders from; ask the user to change it"
                )

    def _require_size(self, path: str, content: bytes) -> None:
        if len(content) > self.limits.file_bytes:
            raise WorkspaceError(
                f"{path!r} would have {len(content):,} bytes, more than the "
                f"{self.limits.file_bytes:,} allowed"
            )

    @contextmanager
    def _parent(self, place: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder of a resolved path; yield it with the last name."""
        above, _, name = place.rpartition("/")
        if name in ("", "."):
            raise WorkspaceError("the workspace itself is a folder, not a file")
        with self._open_folder(above or ".", create=create) as folder, _translate_errors(place):
            yield folder, name

    @contextmanager
    def _open_folder(self, place: str, *, create: bool = False) -> Iterator[int]:
        """Open a folder component by component, without following links."""
        with _translate_errors(place):
            folder = os.open(self.folder, _FOLDER)
            try:
                for name in place.split("/") if place != "." else ():
                    if create:
                        with suppress(FileExistsError):
                            os.mkdir(name, dir_fd=folder)
                    inner = os.open(name, _FOLDER, dir_fd=folder)
                    os.close(folder)
                    folder = inner
                yield folder
            finally:
                os.close(folder)

    @contextmanager
    def _new(self, folder: int, content: bytes) -> Iterator[str]:
        """Write a temporary file; remove it at the end unless it was renamed."""
        temporary = f".{secrets.token_hex(8)}.tmp"
        try:
            with os.fdopen(os.open(temporary, _NEW, 0o666, dir_fd=folder), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)


def _normalize(path: str) -> str:
    """Return a path as file systems compare it that ignore case and Unicode composition."""
    return unicodedata.normalize("NFKC", path).casefold()


_REASONS = {
    errno.ENOENT: "there is no {path!r} in the workspace",
    errno.ENOTDIR: "{path!r} is in no folder, or is no folder itself",
    errno.ELOOP: "{path!r} is a link that leads nowhere, or became one just now",
    errno.EEXIST: "there is a {path!r} already",
    errno.EACCES: "{path!r} may not be opened",
    errno.ENAMETOOLONG: "{path!r} is too long for a path",
    errno.EXDEV: "{path!r} is on another file system",
}


@contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    """Replace OS errors with messages that contain no path of the machine."""
    try:
        yield
    except OSError as exc:
        reason = _REASONS.get(exc.errno or 0, "{path!r}: " + (exc.strerror or "it failed"))
        raise WorkspaceError(reason.format(path=path)) from exc


def _require_regular(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_it, name in _KINDS if is_it(found.st_mode)), "something else")
        raise WorkspaceError(f"{path!r} is {kind}, not a file")


def _stamp(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
