"""The layers of the source, and the room that a folder and a file may take."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.project.structure import (
    CONVERSATION,
    ROWS,
    closure,
    cycle,
    folder_sizes,
    imports,
    modules,
    top_level,
    upward_imports,
)


def test_every_part_has_a_layer() -> None:
    files, folders = top_level()
    parts = {name.removesuffix(".py") for name in (*files, *folders)} - {"__init__"}
    assert parts == {part.partition(".")[0] for part in ROWS}


def test_no_module_imports_from_a_higher_layer() -> None:
    assert upward_imports() == []


def test_no_modules_import_each_other_in_a_cycle() -> None:
    assert cycle() == []


def test_a_conversation_is_given_what_it_does_not_know() -> None:
    """The core imports errors, texts and pure helpers alone, by string neither."""
    files = modules()
    helpers = "tool_search.core.values"
    core = {n for n in files if n.startswith("tool_search.core.") and not n.startswith(helpers)}
    parts = {name.split(".")[1] for name in closure(*core) if "." in name}
    assert parts == {"core", "errors", "i18n"}
    # All of it is of a conversation: what nothing there uses has another place.
    assert core <= closure(*CONVERSATION).keys()


def test_a_reader_sees_a_folder_at_once() -> None:
    files, folders = top_level()
    assert len(files) <= 12
    # Every room of docs/architecture.md, and the modules beside them.
    assert len(files) + len(folders) <= 17
    sizes = folder_sizes()
    assert not {name for name, size in sizes.items() if size > 15}


def test_a_module_over_600_lines_says_why() -> None:
    long = [
        name
        for name, path in modules().items()
        if len(lines := path.read_text(encoding="utf-8").splitlines()) > 600
        and not any(line.startswith("# Longer than 600 lines: ") for line in lines)
    ]
    assert long == []


@pytest.mark.parametrize(
    ("leaf", "users"),
    [
        # The command prints oh-my-pi's block for its preset.
        ("adapters.compat", {"cli"}),
        ("sources.workspace", set[str]()),
    ],
)
def test_a_leaf_is_imported_by_no_part_but_its_users(leaf: str, users: set[str]) -> None:
    leaf_name = f"tool_search.{leaf}"
    importers = {
        name.split(".")[1]
        for name, used in imports(modules()).items()
        if not name.startswith(leaf_name) and any(other.startswith(leaf_name) for other in used)
    }
    assert importers == users


def test_a_conversation_with_default_settings_loads_no_leaf() -> None:
    code = (
        "import sys; from tool_search import *;"
        "tools = [Tool(name=f'tool_{n}') for n in range(99)];"
        "session = ToolSearchSession(ToolCatalog(tools));"
        "profile = profile_for('openai_chat', 'gpt-5.4');"
        "session.begin_turn('tool', profile=profile); session.plan(profile);"
        "leaves = ('tool_search.adapters.compat', 'tool_search.sources.workspace');"
        "call = ToolCall(id='1', name='tool_search', arguments='{\"query\": \"tool\"}');"
        "assert session.decide(call).result.matches;"
        "print([name for name in sys.modules if name.startswith(leaves)])"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_no_other_part_of_the_library_imports_the_workspace_tools() -> None:
    """They can become a distribution of their own: only examples and configurations use them."""
    users = {
        name
        for name, used in imports(modules()).items()
        if any(other.startswith("tool_search.sources.workspace") for other in used)
    }
    assert users
    assert {name for name in users if not name.startswith("tool_search.sources.workspace")} == set()
