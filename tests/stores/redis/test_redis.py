"""Redis in particular: failures of the server, bounds, odd contents, and what is sent."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.runner.bench import Bench, named, turn
from tests.stores.contents import KEPT, all_in, discoveries, record, success
from tests.stores.redis.servers import NO_SERVER, RedisServer, has_server, running
from tests.stores.writers import Talk
from tool_search import ConfigurationError, ConversationRecord, Done, StoreError, open_bot
from tool_search.core.messages import user_message
from tool_search.errors import UnreadableRecordError
from tool_search.stores import Grant
from tool_search.stores.conversations import Selection
from tool_search.stores.keeping import Backlog
from tool_search.testing import ModelReply, ModelView

pytest.importorskip("redis", reason="redis-py is not installed: pip install '.[redis]'")

from redis import Redis

from tool_search.stores.redis import RedisStore
from tool_search.stores.redis.scripts import STAGE, Script

_PASSWORD = "s3cret/#@"
_WRITTEN_PASSWORD = "s3cret%2F%23%40"


def keys_of(server: RedisServer, prefix: str) -> set[str]:
    """Return the names of a store's keys, with stars for digests."""
    answer = server.ask_all("KEYS", f"{prefix}:*").decode()
    return {re.sub(r"[0-9a-f]{32}", "*", key) for key in re.findall(rf"{prefix}:(\S+)", answer)}


def said(before: ConversationRecord, *texts: str) -> ConversationRecord:
    """Return a record with these messages as its history."""
    return replace(before, history=tuple(map(user_message, texts)))


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that one test may break."""
    if not has_server():
        pytest.skip(NO_SERVER)
    with running(tmp_path / "own") as started:
        yield started


class Echo:
    """A model that repeats what the user said last."""

    def reply(self, view: ModelView) -> ModelReply:
        return ModelReply(text=f"You said {view.last_user_text}")


async def test_a_bot_of_a_configuration_goes_on_in_another_worker(
    server: RedisServer, prefix: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.server.reset(model=Echo())
    settings = {
        "providers": [
            {
                "id": "a",
                "type": "openai_chat",
                "model": "gpt-5.4",
                "base_url": bench.server.openai_base_url,
            }
        ],
        "store": {"type": "redis", "url": server.url, "prefix": prefix, "keep_days": 1},
    }
    for number in range(2):
        async with open_bot(settings, environment={"OPENAI_API_KEY": "k"}) as bot:
            answer = await bot.ask(f"message {number}", conversation="c")
        assert answer == f"You said message {number}"
    async with RedisStore(server.url, prefix=prefix) as store:
        kept = await store.load("c")
    assert kept is not None
    assert [m.text for m in kept.history if m.role == "user"] == ["message 0", "message 1"]


async def test_two_workers_answer_one_conversation_in_turn(
    server: RedisServer, prefix: str, bench: Bench
) -> None:
    bench.server.reset(model=Echo())
    stores = [RedisStore(server.url, prefix=prefix) for _ in range(2)]
    workers = [await bench.runner("gpt", store=store) for store in stores]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(turn(workers[n % 2], f"message {n}")) for n in range(6)]
    assert all(len(named(task.result(), Done)) == 1 for task in tasks)
    kept = await stores[0].load("default")
    assert kept is not None
    texts = [message.text for message in kept.history]
    assert sorted(texts[::2]) == [f"message {n}" for n in range(6)]
    assert texts[1::2] == [f"You said {text}" for text in texts[::2]]
    for store in stores:
        await store.aclose()


async def test_a_turn_sends_its_new_messages_only(server: RedisServer, prefix: str) -> None:
    def received() -> int:
        found = re.search(rb"total_net_input_bytes:(\d+)", server.ask_all("INFO", "stats"))
        assert found is not None
        return int(found[1])

    async with RedisStore(server.url, prefix=prefix) as store:
        large = said(record("tool_003"), *("x" * 10_000 for _ in range(50)))
        await store.save("a", large)
        before = received()
        longer = replace(large, history=(*large.history, user_message("new")))
        await store.save("a", longer)
        assert received() - before < 20_000
        assert await store.load("a") == longer


async def test_a_conversation_of_50_megabytes_is_kept_whole(
    server: RedisServer, prefix: str
) -> None:
    large = said(record(), *(f"{number} {'字' * 4_000}" for number in range(4_200)))
    async with RedisStore(server.url, prefix=prefix) as store:
        await store.save("a", large)
        assert await store.load("a") == large
        await store.forget("a")


async def test_any_text_is_a_key_with_unpaired_surrogates_too(
    server: RedisServer, prefix: str
) -> None:
    odd = ["\ud800", "{", "}", "{}", "a:{b}:head", "*", "\x00\r\n", "字" * 5_000]
    async with RedisStore(server.url, prefix=prefix) as store:
        for key in odd:
            await store.save(key, said(record(), f"in {key!r}"))
        assert await store.conversations() == tuple(sorted(odd))
        for key in odd:
            kept = await store.load(key)
            assert kept is not None
            assert kept.history[0].text == f"in {key!r}"


async def test_a_forgotten_conversation_leaves_no_key(server: RedisServer, prefix: str) -> None:
    async with RedisStore(server.url, prefix=prefix) as store:
        await store.save("a", record("tool_003"))
        await store.set_aside("a")
        await store.save("a", record("tool_003"))
        await store.append_discoveries("a", discoveries("tool_005"))
        await store.save_permission_mode("a", "plan")
        await store.add_grants([Grant(rule="x", conversation="a")])
        await store.forget("a")
        left = keys_of(server, prefix)
    assert left == {"{store}:version", "{grants}:meta"}


async def test_a_conversation_ends_with_all_its_keys_by_the_servers_clock(
    server: RedisServer, prefix: str
) -> None:
    day_s = 86_400
    async with RedisStore(server.url, prefix=prefix, keep_days=0.3 / day_s) as store:
        await store.save("a", record("tool_003"))
        await store.save_permission_mode("a", "plan")
        assert await store.load("a") is not None
        await asyncio.sleep(0.5)
        assert await store.load("a") is None
        assert await store.load_permission_mode("a") is None
        assert keys_of(server, prefix) == {"{store}:version"}
    async with RedisStore(server.url, prefix=prefix, keep_days=1) as store:
        await store.save("a", record())
    async with RedisStore(server.url, prefix=prefix) as store:
        await store.append_discoveries("a", discoveries("tool_001"))
        key = store._keys.conversation("a")[0]
        assert server.ask("PTTL", key) == b":-1"


async def test_grants_of_an_ended_conversation_go_with_the_next_grant(
    server: RedisServer, prefix: str
) -> None:
    day_s = 86_400
    of_user, ended = Grant(rule="x", user="ann"), Grant(rule="x", conversation="ended")
    async with RedisStore(server.url, prefix=prefix, keep_days=0.2 / day_s) as store:
        await store.save("ended", record())
        await store.add_grants([of_user, ended])
        assert (await store.load_grants()).entries == (of_user, ended)
        await asyncio.sleep(0.3)
        young = Grant(rule="x", conversation="not yet saved")
        await store.add_grants([young])
        assert (await store.load_grants()).entries == (of_user, young)


async def test_a_full_server_accepts_all_of_a_save_or_nothing(own_server: RedisServer) -> None:
    async with RedisStore(own_server.url) as store:
        before = said(record("tool_003"), "before")
        await store.save("a", before)
        own_server.ask("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(StoreError, match="maxmemory") as caught:
            await store.save("a", said(record("tool_005"), "after"))
        assert caught.value.fault == "out_of_memory"
        with pytest.raises(StoreError):
            await store.add_grants([Grant(rule="x")])
        assert await store.load("a") == before
        assert await store.lock_turn("a", holder="h", lease_s=1)
        await store.forget("a")
        assert await store.load("a") is None
        own_server.ask("CONFIG", "SET", "maxmemory", "0")
        await store.save("a", before)


async def test_a_failover_loses_no_turn(own_server: RedisServer) -> None:
    """The former primary refuses to write; the turn waits, and is written once."""
    async with RedisStore(own_server.url) as store:
        talk = Talk(store, "a", Backlog())
        assert await talk.turn("first")
        own_server.ask("REPLICAOF", "127.0.0.1", "1")
        with pytest.raises(StoreError, match="read-only") as caught:
            await store.save("b", record())
        assert caught.value.fault == "read_only"
        assert not await talk.turn("second")
        own_server.ask("REPLICAOF", "NO", "ONE")
        assert await talk.turn("third")
        kept = await store.load("a")
        assert kept is not None
        texts = [m.text for m in kept.history if m.role == "user"]
        assert texts == ["first", "second", "third"]
        await talk.close()


@pytest.mark.parametrize("way", ["failover", "loss"])
async def test_a_failover_in_the_middle_of_a_large_save_changes_nothing(
    own_server: RedisServer, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with RedisStore(own_server.url) as store:
        before, large = said(record("tool_003"), "before"), said(record(), *["x" * 200_000] * 8)
        await store.save("a", before)
        run, sent = store._connection.run, []

        async def run_and_fail(script: Script, keys: Sequence[str], *args: Any) -> Any:
            result = await run(script, keys, *args)
            if script is STAGE:
                sent.append(keys[0])
            if len(sent) == 4:
                # The new primary did not yet have what was sent, or does not accept the rest.
                lost = ("DEL", sent[0]) if way == "loss" else ("REPLICAOF", "127.0.0.1", "1")
                own_server.ask(*lost)
            return result

        monkeypatch.setattr(store._connection, "run", run_and_fail)
        with pytest.raises(StoreError) as caught:
            await store.save("a", large)
        assert caught.value.fault == ("unreachable" if way == "loss" else "read_only")
        monkeypatch.undo()
        own_server.ask("REPLICAOF", "NO", "ONE")
        assert await store.load("a") == before
        await store.save("a", large)
        kept = await store.load("a")
        assert kept is not None
        assert kept.history == large.history


async def test_workers_whose_clocks_differ_by_an_hour_agree(
    server: RedisServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times of a conversation and of a lock are the server's."""
    now = time.time()
    async with (
        RedisStore(server.url, prefix=prefix, keep_days=0.5 / 24) as one,
        RedisStore(server.url, prefix=prefix, keep_days=0.5 / 24) as other,
    ):
        await one.save("a", record())
        assert await one.lock_turn("a", holder="one", lease_s=60)
        await one.add_evidence([success("t", "w", at=now)])
        monkeypatch.setattr(time, "time", lambda: now + 3600)
        assert await other.load("a") == record()
        assert not await other.lock_turn("a", holder="other", lease_s=60)
        assert await other.conversations(since=now - 60) == ("a",)
        await other.add_evidence([success("t", "w", at=now + 3600), success("u", "w", at=now)])
        assert {entry.tool for entry in (await one.load_evidence()).entries} == {"t", "u"}
        monkeypatch.setattr(time, "time", lambda: now - 3600)
        assert await other.load("a") == record()
        assert not await other.lock_turn("a", holder="other", lease_s=60)


async def test_a_server_that_starts_again_is_met_again(own_server: RedisServer) -> None:
    async with RedisStore(own_server.url, patience_s=20) as store:
        await store.save("a", record("tool_003"))
        own_server.kill()
        waiting = asyncio.create_task(store.save("a", record("tool_005")))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(own_server.start)
        await waiting
        kept = await store.load("a")
        assert kept is not None
        assert [entry.name for entry in kept.discoveries] == ["tool_003", "tool_005"]


async def test_a_server_that_stays_away_is_named_and_met_later(own_server: RedisServer) -> None:
    async with RedisStore(own_server.url, patience_s=0.2) as store:
        await store.save("a", record())
        own_server.kill()
        for _ in range(3):
            with pytest.raises(StoreError, match="does not answer") as caught:
                await store.load("a")
            assert caught.value.fault == "unreachable"
        await asyncio.to_thread(own_server.start)
        while True:
            try:
                assert await store.load("a") == record()
                break
            except StoreError:
                await asyncio.sleep(0.05)


async def test_a_cancelled_request_does_not_go_on(server: RedisServer, prefix: str) -> None:
    """asyncio.wait_for, which redis-py uses, lost cancellations before Python 3.12."""
    for steps in range(60):
        async with RedisStore(server.url, prefix=prefix) as store:
            # The second request opens another connection.
            both = [store.lock_turn(f"{n}", holder="h", lease_s=5) for n in range(2)]
            tasks = [asyncio.create_task(each) for each in both]
            for _ in range(steps):
                await asyncio.sleep(0)
            are_cancelled = [task.cancel() for task in tasks]
            await asyncio.wait(tasks)
            assert [task.cancelled() for task in tasks] == are_cancelled


async def test_nothing_is_written_before_there_is_something_to_keep(
    server: RedisServer, prefix: str
) -> None:
    async with RedisStore(server.url, prefix=prefix) as store:
        await store.try_write()
        assert await store.load("a") is None
        assert (await store.load_evidence()).entries == ()
        await store.forget("a")
        await store.erase(Selection(conversations=None, tools=None, users=None))
        assert keys_of(server, prefix) == set()
        await store.save("a", record())
        assert "{store}:version" in keys_of(server, prefix)


async def test_a_newer_worker_that_begins_a_store_meanwhile_is_left_alone(
    server: RedisServer, prefix: str
) -> None:
    async with RedisStore(server.url, prefix=prefix) as store:
        assert await store.load("a") is None
        server.ask("SET", f"{prefix}:{{store}}:version", "2")
        with pytest.raises(StoreError, match="its format is 2") as caught:
            await store.save("a", record())
        assert caught.value.fault == "newer"
        assert keys_of(server, prefix) == {"{store}:version"}


async def test_a_kept_store_of_version_1_is_read(own_server: RedisServer) -> None:
    """As the library wrote it before its stores had one core; a conversation goes on."""
    expected = json.loads((KEPT / "redis_1.json").read_text("utf-8"))
    with Redis.from_url(own_server.url) as client:
        for command in json.loads((KEPT / "redis_1.commands.json").read_text("utf-8")):
            client.execute_command(*(part.encode("latin-1") for part in command))
    async with RedisStore(own_server.url, prefix="kept") as store:
        assert await all_in(store) == expected
        rich, revision = await store.load("rich"), await store.revision("rich")
        assert rich is not None
        assert await store.save_over("rich", rich, expected=revision, new=7)
        assert await all_in(store) == expected
        erased: dict[str, Any] = {}
        everything = Selection(conversations=None, tools=None, users=None)
        await store.erase(
            everything, export=lambda p: erased.update({k: list(v) for k, v in p.items()})
        )
    by_key = {one["key"]: one for one in erased["conversations"]}
    assert by_key["rich"]["permission_mode"] == "plan"
    assert by_key["aside"]["set_aside"][0]["history"][0]["content"] == "Odd"


async def test_a_store_of_a_newer_version_is_left_alone(server: RedisServer, prefix: str) -> None:
    assert server.ask("SET", f"{prefix}:{{store}}:version", "2") == b"+OK"
    with pytest.raises(StoreError, match="its format is 2, this version reads 1") as caught:
        async with RedisStore(server.url, prefix=prefix):
            pytest.fail("a newer store was opened")
    assert caught.value.fault == "newer"


async def test_a_conversation_of_a_newer_worker_is_left_alone(
    server: RedisServer, prefix: str
) -> None:
    async with RedisStore(server.url, prefix=prefix) as store:
        await store.save("a", record("tool_003"))
        head = store._keys.conversation("a")[0]
        server.ask("HSET", head, "version", "2")
        for work in (
            store.load("a"),
            store.save("a", record()),
            store.append_discoveries("a", discoveries("tool_005")),
            store.save_permission_mode("a", "plan"),
        ):
            with pytest.raises(StoreError, match="newer version") as caught:
                await work
            assert caught.value.fault == "newer"
        server.ask("HSET", head, "version", "1")
        assert await store.load("a") == record("tool_003")


async def test_data_of_another_program_is_named(server: RedisServer, prefix: str) -> None:
    async with RedisStore(server.url, prefix=prefix) as store:
        server.ask("SET", store._keys.conversation("a")[0], "something else")
        with pytest.raises(StoreError, match=r"store\.prefix") as caught:
            await store.save("a", record())
        assert caught.value.fault == "foreign"


@pytest.mark.parametrize("part", ["record", "message", "discovery"])
async def test_what_cannot_be_read_is_set_aside_until_it_is_forgotten(
    server: RedisServer, prefix: str, part: str
) -> None:
    async with RedisStore(server.url, prefix=prefix) as store:
        await store.save("a", said(record("tool_003"), "hello"))
        head, messages, found, *_ = store._keys.conversation("a")
        damage = {
            "record": ("HSET", head, "record", "{"),
            "message": ("LSET", messages, "0", '{"role": 5}'),
            "discovery": ("HSET", found, "tool_003", "0 search []"),
        }
        server.ask(*damage[part])
        with pytest.raises(UnreadableRecordError, match="'a'"):
            await store.load("a")
        talk = Talk(store, "a", Backlog())
        assert await talk.turn("anew")
        assert await talk.heard() == ["anew"]
        aside = store._keys.conversation("a")[4]
        assert server.ask("EXISTS", aside) == b":1"
        await store.forget("a")
        assert server.ask("EXISTS", aside) == b":0"


async def test_an_odd_revision_is_set_aside_with_its_conversation(
    server: RedisServer, prefix: str
) -> None:
    async with RedisStore(server.url, prefix=prefix) as store:
        await store.save("a", said(record(), "hello"))
        server.ask("HSET", store._keys.conversation("a")[0], "revision", "")
        with pytest.raises(UnreadableRecordError, match="revision must be a whole number"):
            await store.revision("a")
        talk = Talk(store, "a", Backlog())
        assert await talk.turn("anew")
        assert await talk.heard() == ["anew"]


@pytest.mark.parametrize("odd", ["", "abc", "nan", "-inf", "9" * 400])
async def test_odd_numbers_of_changes_and_times_stop_nothing(
    server: RedisServer, prefix: str, odd: str
) -> None:
    async with RedisStore(server.url, prefix=prefix) as store:
        await store.save("a", record())
        await store.add_evidence([success("t", "w")])
        await store.add_grants([Grant(rule="x")])
        for meta in (store._keys.evidence[2], store._keys.grants[2]):
            server.ask("HSET", meta, "revision", odd)
        server.ask("HSET", store._keys.conversation("a")[0], "at", odd)
        assert await store.conversations(since=5.0) == ("a",)
        assert await store.evidence_revision() == await store.grant_revision() == 0
        assert await store.forget_evidence("t") == await store.revoke_grants([Grant(rule="x")]) == 1
        assert min(await store.evidence_revision(), await store.grant_revision()) > 1e15


async def test_evidence_of_another_program_is_passed_over(
    server: RedisServer, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with RedisStore(server.url, prefix=prefix) as store:
        await store.add_evidence([success("good", "w")])
        for number, value in enumerate(("{", "[5]", '[[["w"], 1.0, 1.0, 5, ""]]', "7")):
            server.ask("HSET", store._keys.evidence[0], f"bad{number}", value)
        assert set((await store.load_evidence()).entries) == {success("good", "w")}
    assert "it is skipped" in caplog.text


class TestPassword:
    """Addresses with a password, which nobody gets to see."""

    @pytest.fixture
    def locked(self, tmp_path: Path) -> Iterator[RedisServer]:
        if not has_server():
            pytest.skip(NO_SERVER)
        with running(tmp_path / "locked", password=_PASSWORD) as started:
            yield started

    async def test_the_right_password_opens_the_store(self, locked: RedisServer) -> None:
        url = f"redis://:{_WRITTEN_PASSWORD}@127.0.0.1:{locked.port}/0"
        async with RedisStore(url) as store:
            assert _PASSWORD not in repr(store)
            assert _WRITTEN_PASSWORD not in repr(store)
            await store.save("a", record())

    @pytest.mark.parametrize("password", ["wr0ng", ""])
    async def test_a_wrong_password_is_said_and_not_shown(
        self, locked: RedisServer, password: str
    ) -> None:
        with pytest.raises(StoreError, match="refused this user") as caught:
            async with RedisStore(f"redis://:{password}@127.0.0.1:{locked.port}"):
                pytest.fail("it was opened")
        assert caught.value.fault == "no_permission"
        assert f"127.0.0.1:{locked.port}" in str(caught.value)
        assert "wr0ng" not in f"{caught.value!r} {caught.value.__cause__!r}"

    @pytest.mark.parametrize(
        "url",
        [
            "redis://:s3cret/x@host:1", "redis://:s3#cret@host", "redis://:s3cret", "s3cret",
            "http://:s3cret@host", "redis://u:s3cret@host:port/0", "redis://u:s3cret@/0",
            "redis://:s3cret@host/0/1", "redis://:s3cret@host/name", "unix://:s3cret@",
        ],
    )  # fmt: skip
    def test_a_wrong_address_is_an_error_that_does_not_show_it(self, url: str) -> None:
        with pytest.raises(ConfigurationError, match=r"redis://HOST:PORT") as caught:
            RedisStore(url)
        assert "s3" not in f"{caught.value!r} {caught.value.__cause__!r}"
