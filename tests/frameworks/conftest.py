"""Tests on real frameworks, each in an environment of its own; they exclude each other."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tool_search.testing import StandInServer

# `make test-frameworks` runs each file in the environment that has its framework.
FRAMEWORKS = {
    "fastmcp": "fastmcp",
    "langchain": "langchain",
    "litellm": "litellm",
}
collect_ignore_glob = [
    f"test_{name}.py" for name, package in FRAMEWORKS.items() if not find_spec(package)
]


@pytest.fixture
def server() -> Iterator[StandInServer]:
    """A stand-in provider with its rules on; a test ends without a violation."""
    with StandInServer() as running:
        yield running
        assert running.violations == ()
