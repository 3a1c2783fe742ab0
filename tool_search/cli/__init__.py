"""The `tool-search` command, one file a command."""

from __future__ import annotations

import sys

__all__ = ["main"]

_NEEDED = ("typer", "rich")


def main() -> None:
    """Run the command that the arguments name, and end the process with its status."""
    try:
        from tool_search.cli.application import app  # noqa: PLC0415  # typer may be missing

        _speak_utf8()
        app(prog_name="tool-search")
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] not in _NEEDED:
            raise
        sys.stderr.write(
            f"tool-search needs {' and '.join(_NEEDED)}, and {exc.name} is not installed: "
            "pip install 'tool-search-middleware[cli]'; in a clone: pip install '.[cli]'\n"
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def _speak_utf8() -> None:
    """Use UTF-8 for JSON and pipes, whatever the locale; a terminal keeps its own."""
    for stream in (sys.stdin, sys.stdout):
        encoding = None if stream.isatty() else "utf-8"
        # A terminal of another encoding shows what it has no letter for as `?`.
        stream.reconfigure(encoding=encoding, errors="replace")  # type: ignore[union-attr]
