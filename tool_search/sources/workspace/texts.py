"""Files as text; changes keep the encoding and the line ends of a file."""

from __future__ import annotations

import codecs
import hashlib
from collections import OrderedDict
from dataclasses import dataclass

from tool_search.sources.workspace.workspace import StoredFile, WorkspaceError

__all__ = ["ReadFiles", "TextFile", "number_lines", "snippet"]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAX_CONVERSATIONS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    r"""The text of a file, with its encoding.

    Attributes:
        text: The text, with `\n` as line ends unless they differ.
        encoding: UTF-8, UTF-16 with a byte order mark, or else GB 18030.
        mark: The byte order mark, if any.
        newline: The line end; "" if they differ, and they stay as they are.
    """

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""
    newline: str = "\n"

    @classmethod
    def of(cls, file: StoredFile) -> TextFile:
        """Return the text of a file.

        Raises:
            WorkspaceError: The file is not text, or its encoding is unknown.
        """
        content = file.content
        mark, encoding = next((m for m in _MARKS if content.startswith(m[0])), (b"", ""))
        body = content[len(mark) :]
        if not encoding and b"\0" in body[:8192]:
            raise WorkspaceError(f"{file.path!r} is a binary file of {len(content):,} bytes")
        for candidate in (encoding,) if encoding else ("utf-8", "gb18030"):
            try:
                text = body.decode(candidate)
            except UnicodeDecodeError:
                continue
            # An encoding that does not round-trip byte for byte is not the file's.
            if text.encode(candidate) == body:
                return cls._with_lines(text, candidate, mark)
        raise WorkspaceError(f"{file.path!r} is not text in UTF-8, UTF-16 or GB 18030")

    @classmethod
    def _with_lines(cls, text: str, encoding: str, mark: bytes) -> TextFile:
        ends, both = text.count("\n"), text.count("\r\n")
        newline = "\n" if not both else "\r\n" if both == ends else ""
        shown = text.replace("\r\n", "\n") if newline == "\r\n" else text
        return cls(text=shown, encoding=encoding, mark=mark, newline=newline)

    def with_own_line_ends(self, written: str) -> str:
        """Return a model's text with the line ends of `text`."""
        return written.replace("\r\n", "\n") if self.newline == "\r\n" else written

    def encode_text(self, text: str) -> bytes:
        """Return another text as bytes in this file's encoding.

        Raises:
            WorkspaceError: The encoding lacks a character.
        """
        if self.newline == "\r\n":
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as exc:
            wrong = text[exc.start : exc.end]
            raise WorkspaceError(f"the character {wrong!r} cannot be written as text") from exc


class ReadFiles:
    """The files that each conversation has read, with hashes of their content.

    A file is unchanged as long as its content is the same; its time does not matter.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[str, dict[str, bytes]] = OrderedDict()

    def note(self, conversation: str, file: StoredFile) -> None:
        """Remember that a conversation knows a file's content."""
        known = self._seen.setdefault(conversation, {})
        known[file.path] = _digest(file)
        self._seen.move_to_end(conversation)
        if len(self._seen) > _MAX_CONVERSATIONS:
            self._seen.popitem(last=False)

    def require_current(self, conversation: str, file: StoredFile) -> None:
        """Raise an error unless a conversation knows a file's current content.

        Raises:
            WorkspaceError: The conversation has to read the file first.
        """
        known = self._seen.get(conversation, {}).get(file.path)
        if known is None:
            raise WorkspaceError(
                f"{file.path!r} was not read in this conversation: read it with read_file first"
            )
        if known != _digest(file):
            raise WorkspaceError(
                f"{file.path!r} has changed since it was read: read it again with read_file"
            )

    async def forget(self, conversation: str) -> None:
        """Drop the state of a conversation."""
        self._seen.pop(conversation, None)


def _digest(file: StoredFile) -> bytes:
    return hashlib.sha256(file.content).digest()


def number_lines(lines: list[str], first: int, *, longest: int) -> str:
    """Return lines with their numbers, each cut to `longest` characters."""
    shown = []
    for number, line in enumerate(lines, first):
        left = len(line) - longest
        cut = f"... [{left:,} characters left out]" if left > 0 else ""
        shown.append(f"{number:>6}\t{line[:longest].removesuffix(chr(13))}{cut}")
    return "\n".join(shown)


def snippet(text: str, start: int, length: int, *, longest: int = 300) -> str:
    """Return the numbered lines around a place of a text, at most 20.

    Args:
        text: The whole text.
        start: The start of the place, in characters.
        length: The length of the place, in characters.
        longest: The number of characters to show of a line.
    """
    lines = text.split("\n")
    first = max(0, text.count("\n", 0, start) - 3)
    last = text.count("\n", 0, start + length) + 4
    return number_lines(lines[first : min(last, first + 20)], first + 1, longest=longest)
