"""What every test of execution begins with."""

from __future__ import annotations

import pytest

from tests.execution.calling import forget_earlier_threads


@pytest.fixture(autouse=True)
def _own_threads() -> None:
    """Only the threads of this test count as its own."""
    forget_earlier_threads()
