"""The `tool-search` command, as `python -m tool_search`."""

from __future__ import annotations

from tool_search.cli import main

if __name__ == "__main__":
    main()
