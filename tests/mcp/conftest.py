"""Tests with real MCP servers; `make test-mcp` runs them on SDK 1.26 and on the newest."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("mcp") else ["test_*.py"]
