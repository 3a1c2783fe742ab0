"""The start of every test of execution."""

from __future__ import annotations

import pytest

from tests.execution.calling import forget_earlier_threads


@pytest.fixture(autouse=True)
def _own_threads() -> None:
    """Count only the threads of this test."""
    forget_earlier_threads()
