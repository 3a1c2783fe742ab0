"""Vectors kept on disk: shared, damaged and unwritable files."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tool_search.search.vectors.cache import SqliteVectorCache, default_cache_path


def test_get_returns_what_was_put_in_another_instance(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "vectors.sqlite"
    SqliteVectorCache(path).put({"a": b"1", "b": b"2"})
    assert SqliteVectorCache(path).get(["b", "a", "c"]) == {"a": b"1", "b": b"2"}


def test_get_without_a_file_makes_none(tmp_path: Path) -> None:
    assert SqliteVectorCache(tmp_path / "vectors.sqlite").get(["a"]) == {}
    assert list(tmp_path.iterdir()) == []


def test_get_more_keys_than_a_statement_takes(tmp_path: Path) -> None:
    cache = SqliteVectorCache(tmp_path / "vectors.sqlite")
    entries = {f"key {number}": b"%d" % number for number in range(5_000)}
    cache.put(entries)
    assert cache.get(list(entries)) == entries


def test_get_of_a_file_that_is_no_database_warns_and_moves_it_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "vectors.sqlite"
    path.write_bytes(b"no database " * 500)
    cache = SqliteVectorCache(path)
    with caplog.at_level(logging.WARNING):
        assert cache.get(["a"]) == {}
    assert "cannot be read" in caplog.text
    assert path.with_name("vectors.sqlite.damaged").exists()
    cache.put({"a": b"1"})
    assert cache.get(["a"]) == {"a": b"1"}


def test_get_passes_over_a_damaged_entry(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    cache = SqliteVectorCache(path)
    cache.put({"a": b"1", "b": b"2"})
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE vectors SET content = x'09' WHERE key = 'a'")
    assert cache.get(["a", "b"]) == {"b": b"2"}


def test_get_of_a_database_with_another_table_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE vectors (name TEXT)")
    assert SqliteVectorCache(path).get(["a"]) == {}


def test_put_where_nothing_can_be_written_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A cache that cannot be written costs time, and nothing else."""
    (tmp_path / "file").write_text("in the way")
    cache = SqliteVectorCache(tmp_path / "file" / "vectors.sqlite")
    with caplog.at_level(logging.WARNING):
        cache.put({"a": b"1"})
    assert "cannot be written" in caplog.text
    assert cache.get(["a"]) == {}


def test_put_from_several_processes_at_once_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    code = (
        "import sys; from tool_search.search.vectors.cache import SqliteVectorCache;"
        "cache = SqliteVectorCache(sys.argv[1]);"
        "[cache.put({f'{sys.argv[2]} {n}': b'x'}) for n in range(20)]"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name])  # noqa: S603 - our own code
        for name in "abc"
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    keys = [f"{name} {number}" for name in "abc" for number in range(20)]
    assert SqliteVectorCache(path).get(keys).keys() == set(keys)


def test_default_cache_path_honours_the_users_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative `XDG_CACHE_HOME` is ignored."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_path() == tmp_path / "tool-search" / "vectors.sqlite"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for chosen in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", chosen)
        assert default_cache_path() == tmp_path / "home/.cache/tool-search/vectors.sqlite"
