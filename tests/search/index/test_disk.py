"""Indexes on disk: equal results after a restart, damage, several processes."""

from __future__ import annotations

import hashlib
import logging
import mmap
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tool_search import SearchSettings, Tool
from tool_search.search import ToolSearchIndex, build_index
from tool_search.search.build import _recent
from tool_search.search.engines import bm25
from tool_search.search.index.disk import IndexFiles, KeptIndex
from tool_search.search.index.storage import Postings

QUERIES = (
    "gadget 007",
    "удалить виджет 12",
    "查询 天气 33",
    '"number 40" gadget',
    "nothing at all",
)


def tools(count: int = 600, text: str = "") -> list[Tool]:
    return [
        Tool(
            name=f"gadget_{n:03}",
            description=f"Number {n} of the gadgets{text}. Удаляет виджет {n}. 查询天气 {n}",
            parameters={"properties": {f"size{n % 7}": {"description": "The size."}}},
        )
        for n in range(count)
    ]


def started(folder: Path, listed: list[Tool]) -> ToolSearchIndex:
    """An index as a process that has just started makes it."""
    _recent._indexes.clear()
    return build_index(listed, SearchSettings(index_cache=str(folder)))


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The number of catalogs whose definitions were read."""
    found: list[int] = []
    read = bm25._read_postings

    def counted(*arguments: object) -> object:
        found.append(1)
        return read(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(bm25, "_read_postings", counted)
    yield found
    _recent._indexes.clear()


def test_a_restart_reads_no_definition_and_finds_the_same(
    tmp_path: Path, readings: list[int]
) -> None:
    first = started(tmp_path, tools())
    before = len(readings)
    again = started(tmp_path, tools()[::-1])
    assert first is not again
    assert len(readings) == before == 1
    new = [Tool(name="new_gadget")]
    changed = [index.updated(added=new, removed=["gadget_007"]) for index in (first, again)]
    for one, other in ((first, again), changed):
        for query in QUERIES:
            assert one.search(query, limit=10) == other.search(query, limit=10)


def test_another_catalog_has_another_file(tmp_path: Path, readings: list[int]) -> None:
    started(tmp_path, tools())
    found = started(tmp_path, tools(text=" of steel")).search("steel", limit=5)
    assert found.total_found > 0
    assert len(readings) == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_small_catalogs_and_the_default_settings_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _recent._indexes.clear()
    build_index(tools())
    started(tmp_path, tools(20))
    assert list(tmp_path.iterdir()) == []


def test_auto_is_in_the_cache_folder_of_the_user_for_the_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _recent._indexes.clear()
    build_index(tools(), SearchSettings(index_cache="auto"))
    (file,) = (tmp_path / "tool-search" / "indexes").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def kept_of(tools: list[Tool]) -> KeptIndex:
    engine = bm25.Bm25Engine(tools)
    return KeptIndex(engine.postings.flat(), engine.scripts.found)


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flipped(content: bytes) -> bytes:
    return content[:-9] + bytes((content[-9] ^ 1,)) + content[-8:]


def _empty(_: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [_cut, _flipped, _empty])
def test_a_damaged_file_is_made_anew_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: object
) -> None:
    first = started(tmp_path, tools())
    (file,) = tmp_path.iterdir()
    sound = file.read_bytes()
    file.write_bytes(damage(sound))  # type: ignore[operator]
    for _ in range(3):
        again = started(tmp_path, tools())
        assert again.search(QUERIES[0], limit=9) == first.search(QUERIES[0], limit=9)
    assert file.read_bytes() == sound
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 1
    assert "is damaged" in said[0]


def test_a_sound_file_of_other_documents_is_damage(tmp_path: Path) -> None:
    """A checksum does not say that the content is true."""
    files = IndexFiles(tmp_path)
    kept = kept_of(tools())
    files.save("key", kept)
    loaded = files.load("key", 600)
    assert loaded is not None
    assert loaded.scripts == kept.scripts
    before, after = (Postings.of_flat(each.postings).by_term() for each in (kept, loaded))
    assert before == after
    files.save("key", kept)
    assert files.load("key", 10) is None


def test_a_file_of_an_earlier_version_is_made_anew(tmp_path: Path, readings: list[int]) -> None:
    first = started(tmp_path, tools())
    (file,) = tmp_path.iterdir()
    sound = file.read_bytes()
    payload = b'{"terms": 1, "words": 6}\ngadget' + struct.pack("=Qd", 1, 0.5)
    checksum = hashlib.blake2b(payload, digest_size=32).digest()
    file.write_bytes(b"tool-search index 2\n" + checksum + payload)
    again = started(tmp_path, tools())
    assert again.search(QUERIES[0], limit=9) == first.search(QUERIES[0], limit=9)
    assert len(readings) == 2
    assert file.read_bytes() == sound


def test_an_index_is_read_where_it_lies(tmp_path: Path) -> None:
    """Processes that use one file share its memory."""
    files = IndexFiles(tmp_path)
    files.save("key", kept_of(tools()))
    loaded = files.load("key", 600)
    assert loaded is not None
    assert isinstance(loaded.postings.entries.obj, mmap.mmap)


def test_a_file_that_others_may_write_is_not_read(
    tmp_path: Path, readings: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    started(tmp_path, tools())
    (file,) = tmp_path.iterdir()
    file.chmod(0o666)
    started(tmp_path, tools())
    assert len(readings) == 2
    assert "others may write it" in caplog.text


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert started(blocked / "indexes", tools()).search("gadget 007", limit=1).matches
    assert "cannot be" in caplog.text


def test_few_files_are_kept(tmp_path: Path) -> None:
    files = IndexFiles(tmp_path)
    kept = kept_of(tools(3))
    for number in range(12):
        files.save(f"key{number}", kept)
    assert len(list(tmp_path.iterdir())) == 8


PROCESS = """
import sys
from tool_search import SearchSettings, Tool, build_index
from tests.search.index.test_disk import tools
settings = SearchSettings(index_cache=sys.argv[1])
for round in range(4):
    index = build_index(tools(text=f" of round {round}"), settings)
    print([match.name for match in index.search("gadget 007", limit=5).matches])
"""


def test_part_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    left, current = tmp_path / "left.part", tmp_path / "current.part"
    for path in (left, current):
        path.write_bytes(b"half")
    os.utime(left, (0.0, 0.0))
    started(tmp_path, tools())
    assert not left.exists()
    assert current.exists()


def test_processes_that_write_at_once_leave_whole_files(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROCESS, str(tmp_path)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603
        for _ in range(2)
    ]
    said = [process.communicate(timeout=120) for process in running]
    assert said[0] == said[1]
    assert not said[0][1]
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".index"] * 4
