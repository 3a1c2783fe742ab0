"""The SQLite file: versions, erasure, revisions, faults."""

from __future__ import annotations

import errno
import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conversations import Chat, toolbox
from tests.stores.contents import KEPT, all_in, discoveries, kept_in, loaded_names, record, success
from tool_search import ConversationRecord, Message, StoreError
from tool_search.stores import Grant, SQLiteStore
from tool_search.stores.conversations import Selection
from tool_search.stores.sqlite import file as sqlite_file
from tool_search.stores.sqlite.faults import fault_of
from tool_search.stores.sqlite.file import SQLiteFile

# As versions before the grants made it.
VERSION_1 = """
CREATE TABLE conversation (key TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE discovery (key TEXT NOT NULL, place INTEGER NOT NULL, name TEXT NOT NULL,
    tool TEXT NOT NULL, via TEXT NOT NULL, PRIMARY KEY (key, name)) WITHOUT ROWID;
CREATE TABLE evidence (tool TEXT NOT NULL, words TEXT NOT NULL, at REAL NOT NULL,
    strength REAL NOT NULL, level REAL NOT NULL, PRIMARY KEY (tool, words)) WITHOUT ROWID;
CREATE INDEX evidence_by_level ON evidence (level);
CREATE TABLE revision (number INTEGER NOT NULL);
INSERT INTO revision VALUES (7);
PRAGMA application_id = 1953460076;
PRAGMA user_version = 1
"""

# As commit 029e69e made it.
VERSION_2 = (
    VERSION_1.replace("PRAGMA user_version = 1", "PRAGMA user_version = 2;")
    + """
CREATE TABLE permission_grant (
    place INTEGER PRIMARY KEY, entry TEXT NOT NULL UNIQUE, conversation TEXT);
CREATE INDEX grant_by_conversation ON permission_grant (conversation);
CREATE TABLE grant_source (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE grant_revision (number INTEGER NOT NULL);
INSERT INTO grant_revision VALUES (3);
CREATE TABLE used (
    key TEXT PRIMARY KEY, at REAL NOT NULL, revision INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX used_by_time ON used (at);
CREATE TABLE set_aside (key TEXT NOT NULL, at REAL NOT NULL, record TEXT,
    discoveries TEXT NOT NULL);
CREATE INDEX set_aside_by_key ON set_aside (key)
"""
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def raw(path: Path) -> bytes:
    """All bytes of a store's files."""
    return b"".join(each.read_bytes() for each in path.parent.iterdir())


def talked(count: int, *words: str) -> ConversationRecord:
    """A conversation of so many turns, in which these words were said."""
    chat = Chat(toolbox(9))
    for number in range(count):
        chat.begin(text=f"Turn {number} {' '.join(words)}")
        chat.find("tool_003")
        chat.answer()
    return chat.session.record()


async def test_a_file_of_the_first_version_goes_on(path: Path) -> None:
    """Conversations, discoveries and evidence stay; the version is the current one."""
    old = talked(3)
    content = {**old.to_dict(), "discoveries": []}
    del content["version"]
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1)
    tool = json.dumps(old.discoveries[0].tool.to_dict())
    with connection:
        connection.execute("INSERT INTO conversation VALUES ('a', ?)", (json.dumps(content),))
        connection.execute(
            "INSERT INTO discovery VALUES ('a', 0, 'tool_003', ?, 'search')", (tool,)
        )
        connection.execute("INSERT INTO evidence VALUES ('t', 'w', 2e9, 1.0, 1.0)")
    connection.close()
    for _ in range(2):
        async with SQLiteStore(path) as store:
            assert await store.load("a") == old
            revision = await store.revision("a")
            assert revision is not None
            assert await store.save_over("a", old, expected=revision, new=revision + 2)
            assert await kept_in(store) == {success("t", "w", at=2e9)}
            assert await store.evidence_revision() == 7
            assert await store.conversations() == ("a",)


async def test_a_file_of_the_second_version_goes_on(path: Path) -> None:
    old = talked(3)
    content = {**old.to_dict(), "discoveries": []}
    grant = Grant(rule="send_mail", user="ann")
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_2)
    with connection:
        connection.execute("INSERT INTO conversation VALUES ('a', ?)", (json.dumps(content),))
        connection.execute(
            "INSERT INTO discovery VALUES ('a', 0, 'tool_003', ?, 'search')",
            (json.dumps(old.discoveries[0].tool.to_dict()),),
        )
        connection.execute("INSERT INTO used VALUES ('a', 1e9, 5)")
        connection.execute(
            "INSERT INTO permission_grant (entry) VALUES (?)",
            (json.dumps(grant.to_dict(), sort_keys=True),),
        )
    connection.close()
    for revision in (5, 9):
        async with SQLiteStore(path) as store:
            assert await store.load("a") == old
            assert await store.revision("a") == revision
            assert await store.save_over("a", old, expected=revision, new=9)
            assert (await store.load_grants()).entries == (grant,)
            assert await store.load_permission_mode("a") is None


async def test_evidence_of_version_3_goes_on_without_a_source(path: Path) -> None:
    """What was set aside since version 3 stays, too."""
    async with SQLiteStore(path) as store:
        await store.save("a", talked(1))
        await store.set_aside("a")
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        DROP TABLE turn_lock; DROP TABLE salt; DROP TABLE evidence;
        CREATE TABLE evidence (
            tool TEXT NOT NULL, words TEXT NOT NULL, at REAL NOT NULL, strength REAL NOT NULL,
            level REAL NOT NULL, PRIMARY KEY (tool, words)
        ) WITHOUT ROWID;
        CREATE INDEX evidence_by_level ON evidence (level);
        INSERT INTO evidence VALUES ('t', 'v' || char(10) || 'w', 2e9, 1.5, 1.0);
        PRAGMA user_version = 3;
        """
    )
    connection.close()
    for _ in range(2):
        async with SQLiteStore(path) as store:
            assert await kept_in(store) == {success("t", "v", "w", at=2e9, strength=1.5)}
            assert len(await store.evidence_salt()) == 32
    async with SQLiteStore(path) as store:
        await store.add_evidence([replace(success("t", "v", "w", at=2e9), source="one")])
        assert len(await kept_in(store)) == 2
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM set_aside").fetchone()
    assert count > 0


async def test_a_file_of_version_4_goes_on(path: Path) -> None:
    """It had no locks."""
    learned = replace(success("t", "w", at=2e9), source="one", conversation="two")
    async with SQLiteStore(path) as store:
        await store.save("a", talked(2))
        await store.add_evidence([learned])
        salt = await store.evidence_salt()
    connection = sqlite3.connect(path)
    connection.executescript(
        "ALTER TABLE evidence DROP COLUMN first; ALTER TABLE evidence DROP COLUMN definition;"
        "ALTER TABLE evidence DROP COLUMN vector; DROP TABLE turn_lock; PRAGMA user_version = 4"
    )
    connection.close()
    for _ in range(2):
        async with SQLiteStore(path) as store:
            assert await store.load("a") == talked(2)
            assert await kept_in(store) == {learned}
            assert await store.evidence_salt() == salt
            assert await store.lock_turn("a", holder="h", lease_s=60)


async def test_a_kept_file_of_version_5_is_read(path: Path) -> None:
    """As the library wrote it before its stores had one core; a conversation goes on."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((KEPT / "sqlite_5.sql").read_text("utf-8"))
    expected = json.loads((KEPT / "sqlite_5.json").read_text("utf-8"))
    async with SQLiteStore(path) as store:
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


async def test_a_damaged_salt_is_replaced(path: Path) -> None:
    async with SQLiteStore(path) as store:
        first = await store.evidence_salt()
    for damage in ("UPDATE salt SET value = 'x'", "DELETE FROM salt", "UPDATE salt SET value = 5"):
        other = sqlite3.connect(path)
        with other:
            other.execute(damage)
        other.close()
        async with SQLiteStore(path) as store:
            salt = await store.evidence_salt()
            assert await store.evidence_salt() == salt != first


async def test_a_turn_writes_what_it_added(path: Path) -> None:
    """Not the whole history; after a change in the middle, the rest is written."""
    whole = talked(40)
    async with SQLiteStore(path) as store:
        await store.save("a", replace(whole, history=whole.history[:-4]))
        before = await _writes(store)
        await store.save("a", whole)
        assert await _writes(store) - before < 20
        changed = list(whole.history)
        changed[100] = Message(role=changed[100].role, content="x", name="t", tool_call_id="c")
        before = await _writes(store)
        other = replace(whole, history=tuple(changed[:100]))
        await store.save("a", other)
        assert await store.load("a") == replace(other, discoveries=whole.discoveries)
        await store.save("a", whole)
        assert await store.load("a") == whole
    async with SQLiteStore(path) as store:
        loaded = await store.load("a")
        assert loaded == whole
        before = await _writes(store)
        await store.save("a", loaded)
        assert await _writes(store) - before < 20


async def _writes(store: SQLiteStore) -> int:
    return await store._file.read(lambda connection: connection.total_changes)


async def test_a_save_over_another_revision_changes_nothing(path: Path) -> None:
    one, two = talked(1, "one"), talked(1, "two")
    async with SQLiteStore(path) as store, SQLiteStore(path) as other:
        assert await store.revision("a") is None
        assert await store.save_over("a", one, expected=None, new=11)
        assert not await other.save_over("a", two, expected=None, new=12)
        assert await other.revision("a") == 11
        assert await other.save_over("a", two, expected=11, new=13)
        assert not await store.save_over("a", one, expected=11, new=14)
        assert await store.load("a") == two
        await other.save("a", one)
        assert await store.revision("a") not in (None, 11, 13)
        await other.forget("a")
        assert await store.revision("a") is None
        assert not await store.save_over("a", one, expected=13, new=15)
        await store.append_discoveries("a", discoveries("tool_001"))
        assert await store.revision("a") is None
        assert await store.save_over("a", one, expected=None, new=16)


async def test_discoveries_that_another_store_erased_are_written_again(path: Path) -> None:
    """Unchanged discoveries are written only if the file lacks them."""
    kept = record("tool_003")
    async with SQLiteStore(path) as store, SQLiteStore(path) as other:
        await store.save("a", kept)
        await other.forget("a")
        await other.append_discoveries("a", discoveries("tool_005"))
        await store.save("a", kept)
        assert await loaded_names(store, "a") == ["tool_005", "tool_003"]
        await other.append_discoveries("a", discoveries("tool_007"))
        await store.save("a", kept)
        assert await loaded_names(store, "a") == ["tool_005", "tool_003", "tool_007"]


async def test_two_stores_that_write_one_conversation_never_mix_it(path: Path) -> None:
    first, second = talked(5, "first"), talked(3, "second")
    async with SQLiteStore(path) as store, SQLiteStore(path) as other:
        for _ in range(2):
            await store.save("a", first)
            assert await other.load("a") == first
            await other.save("a", second)
            assert await store.load("a") == second


async def test_what_cannot_be_read_is_set_aside_until_it_is_forgotten(path: Path) -> None:
    async with SQLiteStore(path) as store:
        for words in ("planted-one", "planted-two"):
            await store.save("a", talked(1, words))
            await store.set_aside("a")
            assert await store.load("a") is None
            assert await store.append_discoveries("a", ()) == ()
        assert await store.conversations() == ()
        assert raw(path).count(b"planted-one") > 0
        assert await store.forget_conversations("a") == 1
        assert b"planted" not in raw(path)


@pytest.mark.parametrize("how", ["forget", "all"])
async def test_erased_is_erased(path: Path, how: str) -> None:
    """No byte of it is in the file or its write-ahead log, while the store is open."""
    chance = random.Random(7)
    async with SQLiteStore(path) as store, SQLiteStore(path) as reader:
        for number in range(30):
            mark = "planted" if number % 3 else "staying"
            words = [f"{mark}-{chance.randrange(10**9)}" * chance.choice((1, 20, 900))]
            key = f"{mark}-key-{number}"
            for turns in (1, chance.randrange(1, 6)):
                await store.save(key, talked(turns, *words))
            await store.append_discoveries(key, discoveries(f"{mark}_tool"))
            await store.add_grants([Grant(rule=f"{mark}-rule", conversation=key)])
            await reader.load(key)
        await store.add_evidence([success("planted_tool", "planted-word")])
        assert raw(path).count(b"planted") > 500
        if how == "all":
            assert await store.forget_conversations() == 30
        else:
            for key in await store.conversations():
                if key.startswith("planted"):
                    await store.forget(key)
            assert len(await reader.conversations()) == 10
            assert b"staying" in raw(path)
        assert await store.forget_evidence("planted_tool") == 1
        left = raw(path)
        assert left.count(b"planted") == 0


async def test_of_a_large_file_traces_are_gone_soon(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its users do not wait for it to be rewritten each time that one of them is forgotten."""
    monkeypatch.setattr(sqlite_file, "_SMALL_BYTES", 0)
    swept: list[None] = []
    sweep = SQLiteFile._sweep

    def counted(file: SQLiteFile) -> None:
        swept.append(None)
        sweep(file)

    monkeypatch.setattr(SQLiteFile, "_sweep", counted)
    async with SQLiteStore(path) as store:
        for number in range(9):
            await store.save(f"planted-{number}", talked(3, "planted" * 99))
        for number in range(9):
            await store.forget(f"planted-{number}")
        assert await store.conversations() == ()
    assert 0 < len(swept) < 9
    assert b"planted" not in raw(path)


async def test_what_a_reader_keeps_from_being_erased_is_said(path: Path) -> None:
    """Later readers do not see it; only traces in the log remain."""
    async with SQLiteStore(path, patience_s=0.01) as store:
        await store.save("a", talked(1, "planted"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN")
        other.execute("SELECT * FROM conversation").fetchall()
        with pytest.raises(StoreError, match=r"may have traces .* erase again") as caught:
            await store.forget("a")
        assert caught.value.fault == "locked"
        assert await store.load("a") is None
        other.close()
        await store.forget("a")
        assert b"planted" not in raw(path)


async def test_traces_that_could_not_be_removed_are_removed_by_the_next_try(path: Path) -> None:
    async with SQLiteStore(path) as store:
        await store.save("a", talked(3, "planted" * 99))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SQLiteFile, "_connect", _full_for_vacuum(SQLiteFile._connect))
            with pytest.raises(StoreError, match=r"erased, but traces .* make room .* again"):
                await store.forget("a")
        assert await store.load("a") is None
        await store.forget("a")
        assert b"planted" not in raw(path)


class _NoVacuum:
    """A connection that has no room to rewrite its file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Return the connection; fail for VACUUM."""
        if sql == "VACUUM":
            raise _sqlite(sqlite3.SQLITE_FULL)
        return self._connection.execute(sql, *values)


def _full_for_vacuum(current: Callable[[SQLiteFile], sqlite3.Connection]) -> Any:
    return lambda file: _NoVacuum(current(file))


@pytest.mark.parametrize("level", ["full", "normal", "off"])
async def test_synchronous_is_as_it_was_set(path: Path, level: Any) -> None:
    """`full` also counts for revocations and erasures."""
    numbers = {"off": 0, "normal": 1, "full": 2}
    async with SQLiteStore(path, synchronous=level) as store:
        seen: list[int] = []

        def look(connection: sqlite3.Connection) -> None:
            seen.extend(connection.execute("PRAGMA synchronous").fetchone())

        await store._file.write(look)
        await store._file.write(look, is_durable=True)
        await store._file.write(look)
    assert seen == [numbers[level], 2, numbers[level]]


async def test_a_file_that_is_removed_or_replaced_is_made_anew(path: Path) -> None:
    """Later writes go to the file that the next process opens."""
    async with SQLiteStore(path) as store:
        await store.save("a", record("tool_003"))
        path.unlink()  # noqa: ASYNC240  # a test's own
        assert await store.load("a") is None
        await store.save("b", record("tool_005"))
        async with SQLiteStore(path) as other:
            assert await other.conversations() == ("b",)
            assert await loaded_names(other, "b") == ["tool_005"]


async def test_a_commit_that_fails_leaves_the_store_usable(path: Path) -> None:
    async with SQLiteStore(path) as store:
        await store.save("a", record())

        def fill(connection: sqlite3.Connection) -> None:
            connection.execute("PRAGMA max_page_count = 1").fetchone()

        await store._file.read(fill)
        for _ in range(3):
            with pytest.raises(StoreError, match="make room") as caught:
                await store.save("b", talked(9, "x" * 5000))
            assert caught.value.fault == "disk_full"
        assert await store.conversations() == ("a",)


async def test_what_is_no_json_is_named_by_its_conversation(path: Path) -> None:
    """A text with an unpaired surrogate is repaired, because no file can contain it."""
    one = talked(1, "half \ud800 a character")
    async with SQLiteStore(path) as store:
        await store.save("a", replace(one, history=(Message(role="user", content="\ud800"),)))
        loaded = await store.load("a")
        assert loaded is not None
        assert loaded.history[0].text == "?"
        with pytest.raises(StoreError, match="unpaired surrogate"):
            await store.save("\ud800", one)


@pytest.mark.parametrize(
    "row",
        ["(5, 'w', '', '', 1.0, 1.0, 1.0)", "('t', x'00', '', '', 1.0, 1.0, 1.0)",
         "('t', 'w', '', '', 'x', 1.0, 1.0)", "('t', 'w', '', '', 1.0, 'x', 1.0)",
         "('t', 'w', '', '', 1.0, -1.0, 1.0)", "('t', 'w', '', '', 9e999, 1.0, 1.0)",
         "('t', 'w', '', '', 1e15, 1.0, 1.0)", "('t', 'w', x'00', '', 1.0, 1.0, 1.0)",
         "('t', 'w', '', x'00', 1.0, 1.0, 1.0)"],
)  # fmt: skip
async def test_evidence_of_somebody_else_is_passed_over(
    path: Path, row: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with SQLiteStore(path) as store:
        await store.add_evidence([success("t", "good")])
        other = sqlite3.connect(path)
        with other:
            columns = "tool, words, source, conversation, at, strength, level"
            other.execute(f"INSERT INTO evidence ({columns}) VALUES {row}")  # noqa: S608  # the test's own
        other.close()
        assert await kept_in(store) - {success("5", "w", at=1.0)} == {success("t", "good")}
        await store.add_evidence([success("t", "good")])
    assert "is skipped" in caplog.text or row.startswith("(5")


def _sqlite(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "fault", "advice"),
    [
        (_sqlite(sqlite3.SQLITE_FULL), "disk_full", "make room"),
        (OSError(errno.ENOSPC, "No space"), "disk_full", "make room"),
        (OSError(errno.EDQUOT, "Quota"), "disk_full", "quota"),
        (_sqlite(sqlite3.SQLITE_BUSY), "locked", "another process"),
        (_sqlite(sqlite3.SQLITE_BUSY | 2 << 8), "locked", "another process"),
        (_sqlite(sqlite3.SQLITE_READONLY), "read_only", "make the file and its folder writable"),
        (_sqlite(sqlite3.SQLITE_READONLY | 6 << 8), "read_only", "folder writable"),
        (OSError(errno.EROFS, "Read-only file system"), "read_only", "file system"),
        (PermissionError(errno.EACCES, "Permission denied"), "no_permission", "give the user"),
        (_sqlite(sqlite3.SQLITE_PERM), "no_permission", "give the user"),
        (_sqlite(sqlite3.SQLITE_CORRUPT), "damaged", ".recover"),
        (_sqlite(sqlite3.SQLITE_NOTADB), "foreign", "another store.path"),
        (_sqlite(sqlite3.SQLITE_IOERR | 3 << 8), "disk_failed", "ulimit -f"),
        (OSError(errno.EFBIG, "File too large"), "disk_failed", "limit on the size"),
        (FileNotFoundError(errno.ENOENT, "No such"), "missing", "create the folder"),
        (NotADirectoryError(errno.ENOTDIR, "Not a"), "missing", "is not a folder"),
        (_sqlite(sqlite3.SQLITE_NOMEM), "unknown", "check its folder"),
        (OSError("odd"), "unknown", "check its folder"),
    ],
)
def test_advice_fits_the_fault(
    path: Path, error: sqlite3.Error | OSError, fault: str, advice: str
) -> None:
    found, message = fault_of(error, path)
    assert found == fault
    assert advice in message
    assert ("writable" in message) == (fault == "read_only")


def test_why_a_file_cannot_be_opened_is_looked_for(tmp_path: Path) -> None:
    error = _sqlite(sqlite3.SQLITE_CANTOPEN)
    assert fault_of(error, tmp_path / "none" / "store.db")[0] == "missing"
    (tmp_path / "there.db").touch()
    assert fault_of(error, tmp_path / "there.db")[0] == "unknown"


async def test_a_read_only_store_says_so(path: Path) -> None:
    async with SQLiteStore(path) as store:
        await store.save("a", record("tool_003"))
        await store._file.read(lambda c: c.execute("PRAGMA query_only = 1").fetchone())
        with pytest.raises(StoreError, match="is read-only") as caught:
            await store.save("b", record())
        assert caught.value.fault == "read_only"
        assert await loaded_names(store, "a") == ["tool_003"]
