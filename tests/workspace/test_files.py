"""Reading and changing files of a workspace."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.workspace.calling import Desk
from tool_search.core.messages import ImagePart
from tool_search.sources.workspace import Limits

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def notebook(*cells: dict[str, Any]) -> str:
    """A notebook's JSON, as Jupyter writes it."""
    content = {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def code(name: str, source: str) -> dict[str, Any]:
    """A code cell with an output."""
    output = {"output_type": "stream", "name": "stdout", "text": ["said\n"]}
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {"tags": ["kept"]},
        "execution_count": 3,
        "outputs": [output],
        "source": [source],
    }


async def test_read_shows_numbered_lines_and_how_many_are_left(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    said = await Desk(tmp_path).said("read_file", file_path="a.txt", offset=4, limit=2)
    assert said == "     4\tline 4\n     5\tline 5\n[5 more lines: go on with offset 6]"


async def test_read_cuts_long_lines_and_says_by_how_much(tmp_path: Path) -> None:
    """One line of a minified file must not fill the context."""
    (tmp_path / "a.txt").write_text("x" * 30)
    desk = Desk(tmp_path, limits=Limits(line_characters=10))
    assert await desk.said("read_file", file_path="a.txt") == (
        f"     1\t{'x' * 10}... [20 characters left out]"
    )


async def test_read_beyond_the_end_says_how_long_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "empty").write_text("")
    desk = Desk(tmp_path)
    assert "has 1 lines" in await desk.refused("read_file", file_path="a.txt", offset=2)
    assert await desk.said("read_file", file_path="empty") == "'empty' is empty."


async def test_a_picture_is_given_as_one(tmp_path: Path) -> None:
    (tmp_path / "shot.dat").write_bytes(PNG)
    finished = await Desk(tmp_path).call("read_file", file_path="shot.dat")
    (picture,) = [part for part in finished.parts if isinstance(part, ImagePart)]
    assert picture.url == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


async def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\x7fELF\0\0")
    assert "binary" in await Desk(tmp_path).refused("read_file", file_path="a.bin")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\n", b"a\r\nX\r\nY\r\n"),
        (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\nX\nY\n"),
        ("\ufeffa\nb\n".encode("utf-16-le"), "\ufeffa\nX\nY\n".encode("utf-16-le")),
        ("中文\nb\n".encode("gb18030"), "中文\nX\nY\n".encode("gb18030")),
        (b"a\r\nz\nb\n", b"a\r\nz\nX\nY\n"),
        (b"b", b"X\nY"),
    ],
    ids=["crlf", "utf8_mark", "utf16", "gb18030", "mixed", "no_last_line_end"],
)
async def test_an_edit_keeps_encoding_and_line_ends(
    tmp_path: Path, before: bytes, after: bytes
) -> None:
    (tmp_path / "a.txt").write_bytes(before)
    desk = Desk(tmp_path)
    await desk.said("read_file", file_path="a.txt")
    await desk.said("edit_file", file_path="a.txt", old_string="b", new_string="X\nY")
    assert (tmp_path / "a.txt").read_bytes() == after


@pytest.mark.parametrize(
    ("old", "more", "told"),
    [
        ("gone", {}, "does not occur"),
        ("a", {}, "occurs 3 times"),
        ("", {}, "old_string is empty"),
        ("b", {"new_string": "b"}, "are the same"),
    ],
)
async def test_an_edit_that_is_not_clear_changes_nothing(
    tmp_path: Path, old: str, more: dict[str, str], told: str
) -> None:
    (tmp_path / "a.txt").write_text("a a a b\n")
    desk = Desk(tmp_path)
    await desk.said("read_file", file_path="a.txt")
    given = {"file_path": "a.txt", "old_string": old, "new_string": "x", **more}
    assert told in await desk.refused("edit_file", **given)
    assert (tmp_path / "a.txt").read_text() == "a a a b\n"
    assert desk.asked == []


async def test_every_occurrence_is_replaced_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a a a b\n")
    desk = Desk(tmp_path)
    await desk.said("read_file", file_path="a.txt")
    given = {"old_string": "a", "new_string": "c", "replace_all": True}
    assert "3 replacements" in await desk.said("edit_file", file_path="a.txt", **given)
    assert (tmp_path / "a.txt").read_text() == "c c c b\n"


async def test_several_edits_are_made_in_order_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    desk = Desk(tmp_path)
    await desk.said("read_file", file_path="a.txt")
    first = {"old_string": "one", "new_string": "two"}
    wrong = [first, {"old_string": "one", "new_string": "three"}]
    told = await desk.refused("multi_edit_file", file_path="a.txt", edits=wrong)
    assert "edit 2: old_string does not occur" in told
    assert (tmp_path / "a.txt").read_text() == "one\n"
    right = [first, {"old_string": "two", "new_string": "three"}]
    await desk.said("multi_edit_file", file_path="a.txt", edits=right)
    assert (tmp_path / "a.txt").read_text() == "three\n"


EDITS = [
    ("edit_file", {"file_path": "a.ipynb", "old_string": "print", "new_string": "x"}),
    ("multi_edit_file", {"file_path": "a.ipynb", "edits": [{"old_string": "p", "new_string": ""}]}),
    ("write_file", {"file_path": "a.ipynb", "content": "x"}),
    ("edit_notebook", {"notebook_path": "a.ipynb", "cell": "0", "edit_mode": "delete"}),
]


@pytest.mark.parametrize(("name", "given"), EDITS)
async def test_what_was_not_read_in_this_conversation_is_not_changed(
    tmp_path: Path, name: str, given: dict[str, Any]
) -> None:
    before = notebook(code("c1", "print"))
    (tmp_path / "a.ipynb").write_text(before)
    desk = Desk(tmp_path)
    await desk.said("read_file", file_path="a.ipynb", conversation="another")
    assert "was not read in this conversation" in await desk.refused(name, **given)
    assert (tmp_path / "a.ipynb").read_text() == before
    assert desk.asked == []


@pytest.mark.parametrize(("name", "given"), EDITS)
async def test_what_changed_since_it_was_read_is_not_changed(
    tmp_path: Path, name: str, given: dict[str, Any]
) -> None:
    """By its content: a change that keeps size and time is seen, too."""
    path = tmp_path / "a.ipynb"
    path.write_text(notebook(code("c1", "print")))
    desk = Desk(tmp_path)
    await desk.said("read_file", file_path="a.ipynb")
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    path.write_text(notebook(code("c1", "Print")))
    os.utime(path, ns=times)
    assert "has changed since it was read" in await desk.refused(name, **given)
    assert "Print" in path.read_text()


async def test_a_file_that_was_only_touched_counts_as_unchanged(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    desk = Desk(tmp_path)
    await desk.said("read_file", file_path="a.txt")
    os.utime(tmp_path / "a.txt", (1, 1))
    await desk.said("edit_file", file_path="a.txt", old_string="a", new_string="b")
    await desk.said("edit_file", file_path="a.txt", old_string="b", new_string="c")
    assert (tmp_path / "a.txt").read_text() == "c\n"


async def test_a_new_file_is_written_with_its_folders(tmp_path: Path) -> None:
    """And may be edited at once: the model knows what is in it."""
    desk = Desk(tmp_path)
    await desk.said("write_file", file_path="x/y/new.txt", content="one\n")
    await desk.said("edit_file", file_path="x/y/new.txt", old_string="one", new_string="two")
    assert (tmp_path / "x" / "y" / "new.txt").read_text() == "two\n"


async def test_a_forgotten_conversation_has_read_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    desk = Desk(tmp_path)
    await desk.said("read_file", file_path="a.txt")
    await desk.runner.forget("c")
    assert "was not read" in await desk.refused("write_file", file_path="a.txt", content="b")


async def test_without_permission_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    desk = Desk(tmp_path, allows=False)
    await desk.said("read_file", file_path="a.txt")
    finished = await desk.call("write_file", file_path="a.txt", content="b")
    assert (finished.outcome, desk.asked) == ("denied", ["write_file"])
    assert (tmp_path / "a.txt").read_text() == "a\n"


async def test_a_notebook_is_read_and_changed_by_cells(tmp_path: Path) -> None:
    """Ids and metadata stay, outputs of a changed cell go, the file's form is kept."""
    path = tmp_path / "a.ipynb"
    path.write_text(notebook(code("first", "print('said')"), code("second", "2")))
    desk = Desk(tmp_path)
    said = await desk.said("read_file", file_path="a.ipynb")
    assert "[cell 0 id=first code]\nprint('said')\n[output] said" in said
    given = {"notebook_path": "a.ipynb", "cell": "first"}
    await desk.said("edit_notebook", **given, new_source="a = '中'\nb")
    await desk.said("edit_notebook", **given, edit_mode="insert", cell_type="markdown")
    await desk.said("edit_notebook", **{**given, "cell": "2"}, edit_mode="delete")
    first, second = json.loads(path.read_text())["cells"]
    assert (first["id"], first["metadata"], first["outputs"]) == ("first", {"tags": ["kept"]}, [])
    assert first["source"] == ["a = '中'\n", "b"]
    assert (second["cell_type"], second["source"]) == ("markdown", [])
    assert path.read_text().startswith('{\n "cells": [\n  {\n')
    assert "中" in path.read_text()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"cell": "9"}, "has no cell '9'"),
        ({}, "cell is missing"),
        ({"edit_mode": "insert"}, "cell_type is missing"),
    ],
)
async def test_a_notebook_edit_that_is_not_clear_is_refused(
    tmp_path: Path, given: dict[str, str], told: str
) -> None:
    (tmp_path / "a.ipynb").write_text(notebook(code("c1", "1")))
    desk = Desk(tmp_path)
    await desk.said("read_file", file_path="a.ipynb")
    assert told in await desk.refused("edit_notebook", notebook_path="a.ipynb", **given)


async def test_what_is_no_notebook_is_not_read_as_one(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text("[" * 100_000)
    assert "not the JSON of a notebook" in await Desk(tmp_path).refused(
        "read_file", file_path="a.ipynb"
    )
