"""Mechanical corrections of a bot's file: one word in one line each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tool_search.cli.doctor.findings import Finding
from tool_search.config.loading import read_yaml
from tool_search.core.values.files import replace_file
from tool_search.errors import ConfigurationError

__all__ = ["corrected", "write_corrections"]


def corrected(content: str, findings: Iterable[Finding]) -> tuple[str, tuple[Finding, ...]]:
    """Return a file's text with its corrections, and the findings that are corrected.

    A word is replaced only if its line has it once; comments and the rest stay as they are.
    """
    lines, done = content.splitlines(keepends=True), []
    for finding in findings:
        correction = finding.correction
        if correction is None or not 1 <= correction.line <= len(lines):
            continue
        word = re.compile(rf"(?<![\w.-]){re.escape(correction.old)}(?![\w.-])")
        line, comment = _without_comment(lines[correction.line - 1])
        if len(word.findall(line)) == 1:
            lines[correction.line - 1] = word.sub(lambda _: correction.new, line) + comment  # noqa: B023
            done.append(finding)
    return "".join(lines), tuple(done)


def _without_comment(line: str) -> tuple[str, str]:
    """Return a line, and the comment at its end; a `#` in quotes only splits too early."""
    place = line.find(" #")
    return (line, "") if place < 0 else (line[:place], line[place:])


def write_corrections(path: Path, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Correct a bot's file in place; return the findings that are corrected.

    The file is replaced as a whole, and only by one that can be read.

    Raises:
        ConfigurationError: The file cannot be read or written.
    """
    try:
        # As bytes: reading as text would make a file with CRLF one with LF.
        before = path.read_bytes().decode("utf-8")
        after, done = corrected(before, findings)
        if not done:
            return ()
        mode = path.stat().st_mode & 0o777
        replace_file(path.resolve(), after.encode(), mode=mode, check=read_yaml)
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be corrected: {exc.strerror or exc}") from exc
    return done
