"""Redis under the contract of a store: one node, and a cluster of three."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from tests.stores.redis.servers import NO_SERVER, RedisServer, cluster, has_server
from tool_search.testing.store_contract import StoreContract

pytest.importorskip("redis", reason="redis-py is not installed: pip install '.[redis]'")

from tool_search.stores.redis import RedisStore  # redis-py may be missing


class _OnRedis(StoreContract):
    url: str
    prefix: str

    @asynccontextmanager
    async def open_store(self) -> AsyncIterator[RedisStore]:
        async with RedisStore(self.url, prefix=self.prefix) as store:
            yield store


class TestRedis(_OnRedis):
    """One node."""

    @pytest.fixture(autouse=True)
    def _server(self, server: RedisServer, prefix: str) -> None:
        self.url, self.prefix = server.url, prefix


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    if not has_server():
        pytest.skip(NO_SERVER)
    with cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


class TestRedisCluster(_OnRedis):
    """Three nodes, each with a third of the slots."""

    @pytest.fixture(autouse=True)
    def _server(self, nodes: list[RedisServer], prefix: str) -> None:
        self.url, self.prefix = nodes[0].url, prefix
