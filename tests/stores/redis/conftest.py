"""Redis servers of the tests: one for a module, each test with keys of its own."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.runner.bench import Bench
from tests.stores.redis.servers import NO_SERVER, RedisServer, has_server, running
from tool_search.testing import ScriptedModel, StandInServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave these tests to `make test-stores`."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker("redis")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server that is on while the tests of a module run."""
    if not has_server():
        pytest.skip(NO_SERVER)
    with running(tmp_path_factory.mktemp("redis")) as started:
        yield started


@pytest.fixture
def prefix() -> str:
    """The prefix of one test."""
    return f"test-{secrets.token_hex(4)}"


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A bench with a server of providers."""
    with StandInServer(model=ScriptedModel()) as providers:
        async with AsyncExitStack() as stack:
            yield Bench(server=providers, stack=stack)
