"""Tests with real MCP servers; `make test-mcp` runs them on SDK 1.26 and on the newest."""

from __future__ import annotations

import os
from importlib.util import find_spec

# `make test` has no SDK; the packaged servers are where `make test-mcp` installs them.
collect_ignore_glob = [] if find_spec("mcp") else ["test_*.py"]
if "MCP_NODE_BIN" not in os.environ:
    collect_ignore_glob.append("test_real_servers.py")
