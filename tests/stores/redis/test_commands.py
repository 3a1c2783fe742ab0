"""`tool-search learned`, `forget` and `replay` on Redis."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.stores.contents import record
from tests.stores.redis.servers import NO_SERVER, RedisServer, cluster, has_server, running
from tests.stores.redis.test_redis import said
from tool_search.cli.application import app
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.core.services import Lesson
from tool_search.errors import StoreError
from tool_search.runner.learning import Learning
from tool_search.runner.session.session import ToolSearchSession
from tool_search.stores import Grant
from tool_search.stores.conversations import Selection
from tool_search.stores.record import exported_history

pytest.importorskip("redis", reason="redis-py is not installed: pip install '.[redis]'")

from tool_search.stores.redis import RedisStore

_SECRET = "umbrella-of-ann"
_PASSWORD = "hunter2"


def run(*arguments: object, status: int = 0) -> Any:
    """Return what a command prints, as JSON if it succeeds."""
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.output + result.stderr
    return json.loads(result.stdout) if not status else result.stderr


async def fill(store: RedisStore) -> None:
    """Keep two conversations, the evidence of two users and two grants."""
    await store.save("group:1", said(record("tool_003"), _SECRET))
    await store.save("group:2", said(record(), "other"))
    await store.save_permission_mode("group:1", "plan")
    learning = Learning(store, clock=lambda: 4.0e9)
    lesson = Lesson(query=_SECRET, tool="get_forecast")
    await learning.learn([lesson], user="ann", conversation="group:1")
    await learning.learn([lesson], user="bo", conversation="group:2")
    await store.add_grants(
        [
            Grant(rule="send_mail", user="ann", fingerprint="f1"),
            Grant(rule="run", user="bo", conversation="group:1"),
        ]
    )


@pytest.fixture
def address(server: RedisServer, prefix: str) -> tuple[str, ...]:
    """Return the options of a filled store."""

    async def work() -> None:
        async with RedisStore(server.url, prefix=prefix) as store:
            await fill(store)

    asyncio.run(work())
    return "--store", server.url, "--prefix", prefix


def test_what_was_learned_is_shown(address: tuple[str, ...], server: RedisServer) -> None:
    found = run("learned", *address)
    assert found["store"] == server.url
    assert found["prefix"] == address[-1]
    assert found["conversations"] == ["group:1", "group:2"]
    assert [entry["tool"] for entry in found["evidence"]] == ["get_forecast"] * 2
    assert len({entry["source"] for entry in found["evidence"]}) == 2


def test_the_store_of_a_bot_is_read(
    address: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", address[1])
    bot = tmp_path / "bot.yaml"
    bot.write_text(f"store: {{type: redis, prefix: {address[-1]}}}\n")
    assert run("learned", "--config", bot)["conversations"] == ["group:1", "group:2"]


@pytest.mark.parametrize(
    ("named", "evidence", "conversations", "grants"),
    [
        (("--conversation", "group:1"), 1, ["group:2"], 1),
        (("--conversation", "none"), 0, ["group:1", "group:2"], 0),
        (("--user", "ann"), 1, ["group:1", "group:2"], 1),
        (("--learned",), 2, ["group:1", "group:2"], 0),
        (("--tool", "get_forecast"), 2, ["group:1", "group:2"], 0),
        (("--all",), 2, [], 2),
    ],
)
def test_forget_erases_what_is_named(
    address: tuple[str, ...],
    named: tuple[str, ...],
    evidence: int,
    conversations: list[str],
    grants: int,
) -> None:
    erased = run("forget", *address, *named)
    assert (erased["evidence"], erased["grants"]) == (evidence, grants)
    assert erased["conversations"] == 2 - len(conversations)
    left = run("learned", *address)
    assert left["conversations"] == conversations
    assert len(left["evidence"]) == 2 - evidence


def test_what_is_forgotten_is_exported_before(address: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "export.json"
    wanted = ("--conversation", "group:1", "--conversation", "none", "--user", "ann")
    assert run("forget", *address, *wanted, "--export", file)["exported"] == str(file)
    assert file.stat().st_mode & 0o077 == 0
    content = json.loads(file.read_text(encoding="utf-8"))
    assert content["grants"] == [{"rule": "send_mail", "user": "ann", "fingerprint": "f1"}]
    assert len(content["evidence"]) == 1
    (kept,) = content["conversations"]
    assert kept["key"] == "group:1"
    assert kept["permission_mode"] == "plan"
    assert [tool["name"] for tool in kept["discoveries"]] == ["tool_003"]
    assert kept["grants"] == [{"rule": "run", "user": "bo", "conversation": "group:1"}]
    session = ToolSearchSession(ToolCatalog([Tool(name="get_forecast")]))
    session.adopt_history(exported_history(kept))
    assert [message.text for message in session.history] == [_SECRET]


async def test_what_cannot_be_read_is_exported_and_erased(
    server: RedisServer, prefix: str, tmp_path: Path
) -> None:
    async with RedisStore(server.url, prefix=prefix) as store:
        await fill(store)
        await store.set_aside("group:1")
        await store.save("group:1", said(record(), "anew"))
        server.ask("HSET", store._keys.conversation("group:2")[0], "record", "{")
        server.ask("HSET", store._keys.evidence[0], "odd", "{")
        server.ask("HSET", store._keys.grants[0], "odd", "1 1")
        file = tmp_path / "export.json"
        options = ("--store", server.url, "--prefix", prefix, "--all", "--export", file)
        erased = await asyncio.to_thread(run, "forget", *options)
        left = server.ask_all("KEYS", f"{prefix}:*").decode()
    assert erased["conversations"] == 2
    one, two = json.loads(file.read_text(encoding="utf-8"))["conversations"]
    if one["key"] != "group:1":
        one, two = two, one
    (aside,) = one["set_aside"]
    assert [message["content"] for message in aside["history"]] == [_SECRET]
    assert [tool["name"] for tool in aside["discoveries"]] == ["tool_003"]
    assert two["record"] == "{"
    # The numbers of changes and the salt are nobody's.
    parts = {key.rpartition(":")[2] for key in left.split("\r\n") if key.startswith(prefix)}
    assert parts == {"version", "meta", "sources"} & parts
    assert {"entries", "times", "head", "messages", "found", "mode", "aside"}.isdisjoint(parts)


def test_an_export_that_fails_erases_nothing(address: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "there.json").write_text("mine")
    outcome = run("forget", *address, "--all", "--export", tmp_path / "there.json", status=2)
    assert "name a new file" in outcome
    assert run("learned", *address)["conversations"] == ["group:1", "group:2"]


async def test_a_conversation_that_goes_on_while_it_is_exported_is_not_erased(
    server: RedisServer, prefix: str
) -> None:
    loop = asyncio.get_running_loop()
    async with RedisStore(server.url, prefix=prefix) as store:
        await fill(store)

        def export(parts: Any) -> None:
            for entries in parts.values():
                list(entries)
            work = store.save("group:1", said(record(), "meanwhile"))
            asyncio.run_coroutine_threadsafe(work, loop).result()

        with pytest.raises(StoreError, match="1 of the conversations went on"):
            await store.erase(Selection(conversations=("group:1", "group:2")), export=export)
        assert await store.conversations() == ("group:1",)
        kept = await store.load("group:1")
        assert kept is not None
        assert [message.text for message in kept.history] == ["meanwhile"]


@pytest.mark.parametrize("persistence", [("--appendonly", "yes"), ("--save", "3600 1")])
def test_erased_words_are_not_left_in_the_servers_files(
    tmp_path: Path, persistence: tuple[str, ...]
) -> None:
    if not has_server():
        pytest.skip(NO_SERVER)

    async def work(url: str) -> None:
        async with RedisStore(url) as store:
            await fill(store)
            # A worker was killed while it sent a long message.
            server.ask("RPUSH", store._keys.staged("group:1", 7), _SECRET)

    off = () if "--appendonly" in persistence else ("--appendonly", "no")
    with running(tmp_path / "own", (*off, *persistence)) as server:
        asyncio.run(work(server.url))
        if off:
            server.ask("SAVE")
        assert _SECRET.encode() in files_of(server)
        run("forget", "--store", server.url, "--conversation", "group:1", "--learned")
        ended = time.monotonic() + 20
        # Redis removes the former file in the background.
        while _SECRET.encode() in files_of(server):
            assert time.monotonic() < ended
            time.sleep(0.05)


def files_of(server: RedisServer) -> bytes:
    """Return the content of a server's files."""
    content = b""
    for path in server.folder.rglob("*"):
        try:
            content += path.read_bytes() if path.is_file() else b""
        except FileNotFoundError:
            continue  # Redis has just removed it
    return content


def test_a_password_is_shown_by_no_command(tmp_path: Path) -> None:
    if not has_server():
        pytest.skip(NO_SERVER)
    with running(tmp_path / "locked", password=_PASSWORD) as server:
        right = f"redis://:{_PASSWORD}@127.0.0.1:{server.port}/0"
        catalog = tmp_path / "tools.json"
        catalog.write_text('[{"name": "t", "description": "A tool."}]')
        for command in (
            ("learned",), ("forget", "--all", "--export", tmp_path / "e.json"),
            ("replay", "--catalog", catalog),
        ):  # fmt: skip
            printed = run(*command, "--store", right)
            assert printed["store"] == server.url
            assert _PASSWORD not in json.dumps(printed)
            wrong = run(*command, "--store", right.replace("2@", "3@"), status=1)
            assert "refused this user" in wrong
            assert "hunter" not in wrong
        assert _PASSWORD not in (tmp_path / "e.json").read_text()
    assert "hunter" not in run("learned", "--store", "redis://:hunter2/3@host", status=2)


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    path = tmp_path / "tools.jsonl"
    tools = [Tool(name="convert_length", description="Convert a length to miles.")]
    tools += [Tool(name=f"tool_{n}", description=f"Measure the {n}.") for n in range(9)]
    path.write_text("\n".join(json.dumps(tool.to_dict()) for tool in tools))
    return path


def test_conversations_are_replayed(address: tuple[str, ...], catalog: Path) -> None:
    found = run("replay", *address, "--catalog", catalog)
    assert [each["key"] for each in found["conversations"]] == ["group:1", "group:2"]
    assert [each["turns"] for each in found["conversations"]] == [1, 1]


def test_conversations_of_the_last_days_are_replayed(
    address: tuple[str, ...], catalog: Path, server: RedisServer
) -> None:
    store = RedisStore(server.url, prefix=address[-1])
    old, unknown = (store._keys.conversation(key)[0] for key in ("group:1", "group:2"))
    server.ask("HSET", old, "at", "1000")
    server.ask("HDEL", unknown, "at")
    found = run("replay", *address, "--catalog", catalog)
    assert [each["key"] for each in found["conversations"]] == ["group:2"]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    if not has_server():
        pytest.skip(NO_SERVER)
    with cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def test_a_cluster_forgets_on_all_its_nodes(
    nodes: list[RedisServer], prefix: str, tmp_path: Path
) -> None:
    async def work() -> None:
        async with RedisStore(nodes[0].url, prefix=prefix) as store:
            for number in range(30):
                await store.save(f"c{number}", said(record("tool_003"), _SECRET))

    asyncio.run(work())
    where = ("--store", nodes[1].url, "--prefix", prefix)
    assert len(run("learned", *where)["conversations"]) == 30
    file = tmp_path / "export.json"
    assert run("forget", *where, "--all", "--export", file)["conversations"] == 30
    assert len(json.loads(file.read_text())["conversations"]) == 30
    assert run("learned", *where)["conversations"] == []
    left = [node.ask_all("KEYS", f"{prefix}:*head*") for node in nodes]
    assert left == [b"*0\r\n"] * 3


_READERS = {
    "without commands that write": ("~*", "+@all", "-@write"),
    "with keys to read alone": ("%R~*", "+@read", "+@scripting", "+@connection", "+info"),
}


@pytest.mark.parametrize("rights", _READERS.values(), ids=_READERS)
@pytest.mark.parametrize("conversations", [[], ["group:1", "group:2"]], ids=["empty", "filled"])
def test_commands_that_read_need_no_right_to_write(
    rights: tuple[str, ...],
    conversations: list[str],
    address: tuple[str, ...],
    catalog: Path,
    server: RedisServer,
) -> None:
    prefix = address[-1] if conversations else "nobody"
    server.ask("ACL", "SETUSER", "reader", "reset", "on", ">secret", *rights)
    before = server.ask_all("KEYS", f"{prefix}:*")
    where = ("--store", server.url.replace("//", "//reader:secret@"), "--prefix", prefix)
    assert run("learned", *where)["conversations"] == conversations
    replayed = run("replay", *where, "--catalog", catalog)["conversations"]
    assert [each["key"] for each in replayed] == conversations
    refused = run("forget", *where, "--conversation", "group:1", status=1)
    assert "refused this user" in refused
    assert server.ask_all("KEYS", f"{prefix}:*") == before


# As in docs/stores.md.
_WORKER = ("~{}:*", "+@read", "+@write", "+@scripting", "+@connection", "+info", "+time")
_FORGET = (*_WORKER, "+config|get", "+bgsave", "+bgrewriteaof")


@pytest.mark.parametrize("rights", [_WORKER, _FORGET])
async def test_the_rights_of_the_documentation_are_enough(
    rights: tuple[str, ...], server: RedisServer, prefix: str
) -> None:
    needed = [right.format(prefix) for right in rights]
    server.ask("ACL", "SETUSER", "worker", "reset", "on", ">secret", *needed)
    url = server.url.replace("//", "//worker:secret@")
    async with RedisStore(url, prefix=prefix, keep_days=1) as store:
        await store.try_write()
        await fill(store)
        await store.append_discoveries("group:1", ())
        await store.set_aside("group:2")
        assert await store.lock_turn("group:1", holder="one", lease_s=5)
        await store.unlock_turn("group:1", holder="one")
        await store.revoke_grants([Grant(rule="send_mail", user="ann")])
        everything = Selection(conversations=None, tools=None, users=None)
        assert (await store.erase(everything)).conversations == 2
        left = await store.rewrite_files()
    assert ("config|get" in left) is (rights == _WORKER)


def test_commands_that_read_accept_a_replica(
    address: tuple[str, ...], catalog: Path, server: RedisServer
) -> None:
    server.ask("REPLICAOF", "127.0.0.1", "1")
    try:
        for empty in (False, True):
            where = (*address[:3], "nobody" if empty else address[3])
            kept = run("learned", *where)["conversations"]
            assert bool(kept) is not empty
            replayed = run("replay", *where, "--catalog", catalog)["conversations"]
            assert [each["key"] for each in replayed] == kept
    finally:
        server.ask("REPLICAOF", "NO", "ONE")
