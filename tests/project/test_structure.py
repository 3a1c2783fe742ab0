"""The layers of the source, and the room that a folder and a file may take."""

from __future__ import annotations

from tests.project.structure import (
    LAYERS,
    WIDE_FOLDERS,
    cycle,
    folder_sizes,
    modules,
    top_level,
    upward_imports,
)


def test_every_part_has_a_layer() -> None:
    files, folders = top_level()
    parts = {name.removesuffix(".py") for name in (*files, *folders)} - {"__init__"}
    assert parts == {part for layer in LAYERS for part in layer}


def test_no_module_imports_from_a_higher_layer() -> None:
    assert upward_imports() == []


def test_no_modules_import_each_other_in_a_cycle() -> None:
    assert cycle() == []


def test_a_reader_sees_a_folder_at_once() -> None:
    files, folders = top_level()
    assert len(files) <= 12
    assert len(files) + len(folders) <= 32
    sizes = folder_sizes()
    assert {name for name, size in sizes.items() if size > 15} <= WIDE_FOLDERS


def test_a_module_over_600_lines_says_why() -> None:
    long = [
        name
        for name, path in modules().items()
        if len(lines := path.read_text(encoding="utf-8").splitlines()) > 600
        and not any(line.startswith("# Longer than 600 lines: ") for line in lines)
    ]
    assert long == []
