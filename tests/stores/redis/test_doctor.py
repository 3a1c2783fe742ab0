"""`tool-search doctor --live` on real servers of Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stores.contents import record
from tests.stores.redis.servers import NO_SERVER, RedisServer, cluster, has_server, running
from tool_search.cli.doctor.examine import examine_bot
from tool_search.cli.doctor.findings import Finding

pytest.importorskip("redis", reason="redis-py is not installed: pip install '.[redis]'")

from tool_search.stores.redis import RedisStore

Examine = Callable[[str], list[Finding]]


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    """Return the findings of a bot whose store is at an address."""

    def findings(url: str) -> list[Finding]:
        path = tmp_path / "bot.yaml"
        path.write_text(f'store: {{type: redis, url: "{url}"}}\n', encoding="utf-8")
        found = asyncio.run(examine_bot(path, environment={}, live=True))
        return [each for each in found.findings if each.code.startswith("store_")]

    return findings


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that one test may set up."""
    if not has_server():
        pytest.skip(NO_SERVER)
    with running(tmp_path / "own") as started:
        yield started


def test_nothing_is_found_in_a_server_that_keeps_all(
    own_server: RedisServer, examine: Examine
) -> None:
    assert examine(own_server.url) == []
    own_server.ask("CONFIG", "SET", "appendfsync", "everysec")
    own_server.ask("CONFIG", "SET", "maxmemory", "100mb")
    assert examine(own_server.url) == []


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ({"appendonly": "no"}, "store_not_durable", "appendonly no"),
        ({"appendfsync": "no"}, "store_not_durable", "appendfsync no"),
        ({"maxmemory-policy": "allkeys-lru", "maxmemory": "100mb"}, "store_evicts", "allkeys-lru"),
    ],
)
def test_a_setting_that_loses_conversations_is_found(
    own_server: RedisServer, examine: Examine, settings: dict[str, str], code: str, said: str
) -> None:
    for name, value in settings.items():
        assert own_server.ask("CONFIG", "SET", name, value) == b"+OK"
    (found,) = examine(own_server.url)
    assert found.code == code
    assert said in found.message("en-US")
    assert found.place.key == "store.url"
    assert found.place.line == 1


def test_a_server_that_is_nearly_full_is_found(own_server: RedisServer, examine: Examine) -> None:
    own_server.ask("CONFIG", "SET", "maxmemory", "1mb")
    (found,) = examine(own_server.url)
    assert found.code == "store_full"


def test_a_copy_that_accepts_no_writes_is_found(own_server: RedisServer, examine: Examine) -> None:
    own_server.ask("REPLICAOF", "127.0.0.1", "1")
    own_server.ask("CONFIG", "SET", "replica-serve-stale-data", "yes")
    (found,) = examine(own_server.url)
    assert found.code == "store_read_only"


def test_a_server_that_does_not_answer_is_found(own_server: RedisServer, examine: Examine) -> None:
    own_server.kill()
    (found,) = examine(own_server.url)
    assert found.code == "store_unreachable"
    assert f"127.0.0.1:{own_server.port}" in found.message("en-US")


def test_a_store_of_a_newer_version_is_found(own_server: RedisServer, examine: Examine) -> None:
    own_server.ask("SET", "tool-search:{store}:version", "9")
    (found,) = examine(own_server.url)
    assert found.code == "store_unreachable"
    assert "newer version" in found.message("en-US")


def test_a_user_without_rights_is_found_and_no_password_shown(
    own_server: RedisServer, examine: Examine
) -> None:
    own_server.ask("ACL", "SETUSER", "bot", "on", ">hunter2", "~*", "&*", "+@all", "-@admin")
    found = examine(own_server.url.replace("//", "//bot:hunter2@"))
    # Rented servers have no CONFIG: the rest is examined.
    assert [each.code for each in found] == ["store_secret"]
    found = examine(own_server.url.replace("//", "//bot:hunter3@"))
    assert [each.code for each in found] == ["store_unreachable", "store_secret"]
    assert "hunter" not in str([each.to_dict() for each in found])


@pytest.mark.parametrize(
    "rights", [("~*", "+@all", "-@write"), ("%R~*", "+@all"), ("~*", "+@all", "-time")]
)
def test_a_user_who_may_not_save_is_found(
    own_server: RedisServer, examine: Examine, rights: tuple[str, ...]
) -> None:
    own_server.ask("ACL", "SETUSER", "reader", "on", ">hunter2", *rights)
    found = examine(own_server.url.replace("//", "//reader:hunter2@"))
    assert [each.code for each in found] == ["store_unreachable", "store_secret"]
    assert "refused this user" in found[0].message("en-US")
    assert own_server.ask_all("KEYS", "*") == b"*0\r\n"


def test_each_primary_of_a_cluster_is_examined(tmp_path: Path, examine: Examine) -> None:
    if not has_server():
        pytest.skip(NO_SERVER)
    with cluster(tmp_path / "nodes") as nodes:
        assert examine(nodes[0].url) == []
        nodes[1].ask("CONFIG", "SET", "appendonly", "no")
        (found,) = examine(nodes[0].url)
        assert found.code == "store_not_durable"
        assert str(nodes[1].port) in found.message("en-US")


async def test_an_examination_changes_no_conversation(
    own_server: RedisServer, examine: Examine
) -> None:
    async with RedisStore(own_server.url) as store:
        await store.save("a", record("tool_003"))
        before = own_server.ask_all("KEYS", "*")
        await asyncio.to_thread(examine, own_server.url)
        assert own_server.ask_all("KEYS", "*") == before
        assert await store.load("a") == record("tool_003")
