"""The bench that every test of the runner has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from tests.runner.bench import Bench
from tool_search.testing import Endpoint, ScriptedModel, StandInServer


@pytest.fixture(scope="module")
def _server() -> Iterator[StandInServer]:
    with StandInServer() as running:
        yield running


@pytest.fixture
async def bench(_server: StandInServer) -> AsyncIterator[Bench]:
    """A fresh bench; the test fails where the server refused what it did not mean."""
    _server.reset(model=ScriptedModel(), endpoint=Endpoint())
    async with AsyncExitStack() as stack:
        made = Bench(server=_server, stack=stack)
        yield made
    assert made.may_refuse or not _server.violations
