"""A parser of shell lines: the commands that a line would run.

A line is split at `;`, `&`, `|` and line ends, as in bash. Substitutions, whose result only
running them shows, and syntax that bash may read differently (groups, comments,
here-documents, ANSI quotes) are refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from dataclasses import dataclass, field

from tool_search.sources.workspace.workspace import WorkspaceError

__all__ = [
    "ANY_COMMAND",
    "READ_ONLY_COMMANDS",
    "Command",
    "commands_in",
    "denial_reason",
    "subjects_of",
]

ANY_COMMAND = "*"
"""An entry of allowed commands that allows every line."""

READ_ONLY_COMMANDS = (
    "cat", "cd", "cmp", "cut", "du", "echo", "false", "grep", "head", "ls", "nl", "pwd", "stat",
    "tail", "tr", "true", "uname", "wc", "whoami",
)  # fmt: skip
"""Commands that write nothing and run no other program, with any arguments."""

_UNREADABLE = "(what this runs cannot be said)"
_REDIRECTION = re.compile(r"(?:[0-9]+|&)?(?P<sign>>>|>\||<>|>|<)(?P<dup>&?)")
_TARGET = re.compile(r"[ \t]*(?P<to>[^ \t\n;&|()<>\"'\\$`*?\[{~]+)(?=[ \t\n;&|<>]|\Z)")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:\[.*\])?\+?=", re.DOTALL)
_PLAIN_NAME = re.compile(r"\$\{[A-Za-z_][A-Za-z_0-9]*\}")
_HARMLESS = re.compile(r"(?:[<>]|>>|>\|)/dev/null|[<>]&(?:[0-9]+|-)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One simple command of a line.

    Attributes:
        words: The name and arguments without quotes, variables unexpanded.
        redirections: The redirections, such as `>out.txt` or `>&1`.
    """

    words: tuple[str, ...]
    redirections: tuple[str, ...] = ()

    @property
    def is_harmless(self) -> bool:
        """True if all redirections are to `/dev/null` or existing streams."""
        return all(_HARMLESS.fullmatch(one) for one in self.redirections)


def commands_in(line: str) -> tuple[Command, ...]:
    """Return the commands of a line, in order.

    Raises:
        WorkspaceError: The line cannot be parsed for certain; the message says why.

    >>> [command.words for command in commands_in("cd a && ls -l | wc -l")]
    [('cd', 'a'), ('ls', '-l'), ('wc', '-l')]
    """
    return _Scan(line).commands()


def denial_reason(line: str, allowed: Collection[str]) -> str | None:
    """Return why a line may not be run, or None if it may.

    Args:
        line: The line for the shell.
        allowed: Commands, each with the first arguments that it must have: `git status`.
    """
    if ANY_COMMAND in allowed:
        return None
    try:
        commands = commands_in(line)
    except WorkspaceError as exc:
        return str(exc)
    known = [tuple(one.split()) for one in allowed]
    for command in commands:
        words = command.words
        if words and _ASSIGNMENT.match(words[0]):
            return f"{words[0]!r}: variables cannot be set here"
        if not any(words[: len(one)] == one for one in known if one):
            named = words[0] if words else "a redirection alone"
            return f"{named!r} is not allowed; allowed are: {', '.join(sorted(allowed)) or 'none'}"
        if not command.is_harmless:
            listed = ", ".join(command.redirections)
            return f"the redirection {listed} is not allowed: use the tools that write files"
    return None


def subjects_of(line: str) -> tuple[str, ...]:
    """Return the subjects for permission rules: each command and each redirection of a file.

    A line that cannot be parsed has a second subject that no rule for one command matches, so
    only a rule that allows everything allows it.
    """
    try:
        commands = commands_in(line)
    except WorkspaceError:
        return line, _UNREADABLE
    found = []
    for command in commands:
        found += [" ".join(command.words)] if command.words else []
        found += [one for one in command.redirections if not _HARMLESS.fullmatch(one)]
    return tuple(found) or (line, _UNREADABLE)


@dataclass(slots=True)
class _Scan:
    """A scan of a line from left to right."""

    line: str
    at: int = 0
    text: str = ""
    redirections: list[str] = field(default_factory=list)
    found: list[Command] = field(default_factory=list)

    def commands(self) -> tuple[Command, ...]:
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", self.line):
            raise WorkspaceError("the command has control characters: leave them out")
        while self.at < len(self.line):
            self._step()
        self._end()
        if not self.found:
            raise WorkspaceError("the command is empty")
        return tuple(self.found)

    def _step(self) -> None:
        line, char = self.line, self.line[self.at]
        starts_word = not self.text or self.text[-1] in " \t"
        if line.startswith("\\\n", self.at):
            self.at += 2
        elif char == "\\":
            self._keep(2)
        elif char == "'":
            self._keep(self._close("'", self.at + 1) + 1 - self.at)
        elif char == '"':
            self._double()
        elif char in "`$":
            self._expansion(char)
            self._keep(1)
        elif char in "()":
            raise WorkspaceError("brackets are not read here: write the commands one by one")
        elif char == "#" and starts_word:
            raise WorkspaceError("comments are not read here: leave them out")
        elif (char in "<>&" or (starts_word and char.isdigit())) and self._redirection():
            pass
        elif char in ";&|\n":
            self._end()
            self.at += 1
        else:
            self._keep(1)

    def _keep(self, count: int) -> None:
        self.text += self.line[self.at : self.at + count]
        self.at += count

    def _close(self, quote: str, start: int) -> int:
        end = self.line.find(quote, start)
        if end < 0:
            raise WorkspaceError(f"a quote {quote} is not closed")
        return end

    def _double(self) -> None:
        """Keep a text in double quotes, in which `$` and backquotes are still special."""
        self._keep(1)
        while self.at < len(self.line) and self.line[self.at] != '"':
            if self.line.startswith("\\\n", self.at):
                self.at += 2
                continue
            if self.line[self.at] == "\\":
                self._keep(2)
                continue
            if self.line[self.at] in "`$":
                self._expansion(self.line[self.at], quoted=True)
            self._keep(1)
        if self.at >= len(self.line):
            self._close('"', len(self.line))
        self._keep(1)

    def _expansion(self, char: str, *, quoted: bool = False) -> None:
        """Raise an error for an expansion that may run something."""
        after = self.line[self.at + 1 : self.at + 2]
        is_plain = after != "{" or _PLAIN_NAME.match(self.line, self.at)
        if char == "`" or after in ("(", "[") or not is_plain:
            raise WorkspaceError("substitutions are not read here: write plain arguments")
        if not quoted and after in ("'", '"') and after:
            raise WorkspaceError("the quotes $'…' and $\"…\" are not read here: use plain ones")

    def _redirection(self) -> bool:
        found = _REDIRECTION.match(self.line, self.at)
        if not found:
            return False
        after = self.line[found.end() : found.end() + 1]
        target = _TARGET.match(self.line, found.end())
        if found["sign"] == "<>" or after in ("<", "(", "&") or not target:
            raise WorkspaceError(
                "this redirection is not read here: use a plain file name, and no here-document"
            )
        self.redirections.append(f"{found['sign']}{found['dup']}{target['to']}")
        self.text += " "
        self.at = target.end()
        return True

    def _end(self) -> None:
        """End the current command, if there is one."""
        try:
            words = tuple(shlex.split(self.text))
        except ValueError as exc:
            raise WorkspaceError(f"the command cannot be read: {exc}") from exc
        if words or self.redirections:
            self.found.append(Command(words=words, redirections=tuple(self.redirections)))
        self.text, self.redirections = "", []
