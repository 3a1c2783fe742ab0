"""Tests on real frameworks, each in an environment of its own; they exclude each other."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tool_search.testing import StandInServer

# `make test-frameworks` runs each file in the environment that has its framework.
FRAMEWORKS = {
    "fastmcp": "fastmcp",
    "google_genai": "google.genai",
    "langchain": "langchain",
    "litellm": "litellm",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
}


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


collect_ignore_glob = [
    f"test_{name}.py" for name, package in FRAMEWORKS.items() if not _is_installed(package)
]


@pytest.fixture
def server() -> Iterator[StandInServer]:
    """A stand-in provider with its rules on; a test ends without a violation."""
    with StandInServer() as running:
        yield running
        assert running.violations == ()
