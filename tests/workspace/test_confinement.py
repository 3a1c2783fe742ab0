"""Confinement to a workspace."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workspace.calling import Desk
from tool_search import (
    CallOptions,
    CallRunner,
    ConfigurationError,
    PermissionAnswer,
    Permissions,
    PermissionSettings,
    ToolCall,
    ToolContext,
)
from tool_search.bot import tools_from_modules
from tool_search.runner.execution import PermissionRequest
from tool_search.sources.workspace import Limits, workspace_tools
from tool_search.sources.workspace.configured import tools_from_environment
from tool_search.sources.workspace.workspace import StoredFile, Workspace, WorkspaceError

SECRET = "what nobody inside may read"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace next to a secret file."""
    (tmp_path / "secret.txt").write_text(SECRET)
    inside = tmp_path / "workspace"
    (inside / "sub").mkdir(parents=True)
    (inside / "sub" / "a.txt").write_text("alpha\n")
    return inside


@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "sub/../../secret.txt", "{outside}", "/etc/passwd", "out", "away/secret.txt"],
)
async def test_no_path_leads_out(folder: Path, path: str) -> None:
    (folder / "out").symlink_to(folder.parent / "secret.txt")
    (folder / "away").symlink_to(folder.parent)
    wanted = path.format(outside=folder.parent / "secret.txt")
    desk = Desk(folder)
    for told in (
        await desk.refused("read_file", file_path=wanted),
        await desk.refused("write_file", file_path=wanted, content="x"),
        await desk.refused("ls", path=wanted),
        await desk.refused("grep", pattern="nobody", path=wanted),
    ):
        assert "workspace" in told
        assert SECRET not in told
    assert (folder.parent / "secret.txt").read_text() == SECRET


@pytest.mark.parametrize("rule", ["read_file(sub/*)", "read_file(file_path=sub/*)"])
@pytest.mark.parametrize(
    "path", ["sub/a.txt", "./sub/a.txt", "sub/../sub//a.txt", "{folder}/sub/a.txt", "link"]
)
async def test_no_spelling_of_a_path_slips_past_a_rule(folder: Path, path: str, rule: str) -> None:
    (folder / "link").symlink_to("sub/a.txt")
    (folder / "b.txt").write_text("beta\n")
    desk = Desk(folder, rules=PermissionSettings(deny=(rule,)))
    assert "not allowed" in await desk.refused("read_file", file_path=path.format(folder=folder))
    assert "beta" in await desk.said("read_file", file_path="./b.txt")


async def test_a_file_that_was_granted_is_granted_in_every_spelling(folder: Path) -> None:
    suggested: list[str] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        suggested.append(request.suggestions[0])
        return PermissionAnswer(allow=True, scope="always", rule=request.suggestions[0])

    rules = PermissionSettings(ask=("read_file",))
    options = CallOptions(permissions=Permissions(rules, ask=ask))
    runner = CallRunner(workspace_tools(folder), options=options)
    context = ToolContext(conversation="c", language="en-US")
    for path in ("./sub/a.txt", "sub/a.txt", f"{folder}/sub/a.txt"):
        call = ToolCall(id="1", name="read_file", arguments=json.dumps({"file_path": path}))
        (done,) = await runner.results([call], context)
        assert not done.is_error
    assert suggested == ["read_file(sub/a.txt)"]


async def test_a_link_that_stays_inside_is_followed(folder: Path) -> None:
    (folder / "link").symlink_to("sub/a.txt")
    desk = Desk(folder)
    assert "alpha" in await desk.said("read_file", file_path="link")
    await desk.said("edit_file", file_path="sub/a.txt", old_string="alpha", new_string="beta")
    assert (folder / "link").is_symlink()


async def test_an_absolute_path_inside_is_the_relative_one(folder: Path) -> None:
    said = await Desk(folder).said("read_file", file_path=str(folder / "sub" / "a.txt"))
    assert said == "     1\talpha"


async def test_a_search_follows_no_link_out(folder: Path) -> None:
    (folder / "away").symlink_to(folder.parent)
    desk = Desk(folder)
    assert await desk.said("grep", pattern="nobody") == "Nothing matches."
    assert await desk.said("glob", pattern="**/secret.txt") == "No file fits."


class Swapped(Workspace):
    """A workspace whose folder `sub` becomes a link to the outside after the check of a path."""

    def locate(self, path: str) -> str:
        """Checks, and then swaps."""
        place = super().locate(path)
        (self.folder / "sub").rename(self.folder / "was")
        (self.folder / "sub").symlink_to(self.folder.parent)
        return place


def test_a_link_put_there_after_the_check_is_not_followed(folder: Path) -> None:
    (folder / "sub" / "secret.txt").write_text("inside")
    with pytest.raises(WorkspaceError, match="folder"):
        Swapped(folder).read("sub/secret.txt")


def test_a_file_that_changes_while_it_is_edited_is_not_overwritten(folder: Path) -> None:
    """A file that another program has written since stays."""
    workspace = Workspace(folder)
    old = workspace.read("sub/a.txt")
    (folder / "sub" / "a.txt").write_text("by somebody else")
    with pytest.raises(WorkspaceError, match="changed while it was edited"):
        workspace.replace(old, b"ours")
    assert (folder / "sub" / "a.txt").read_text() == "by somebody else"
    assert [path.name for path in (folder / "sub").iterdir()] == ["a.txt"]


def test_a_new_file_does_not_replace_one_that_came_before_it(folder: Path) -> None:
    """Even if it did not exist at the check."""
    with pytest.raises(WorkspaceError, match="already"):
        Workspace(folder).create("sub/a.txt", b"ours")
    assert (folder / "sub" / "a.txt").read_text() == "alpha\n"


def test_a_write_keeps_the_permission_bits(folder: Path) -> None:
    script = folder / "run.sh"
    script.write_text("true\n")
    script.chmod(0o750)
    workspace = Workspace(folder)
    assert isinstance(workspace.replace(workspace.read("run.sh"), b"false\n"), StoredFile)
    assert script.stat().st_mode & 0o777 == 0o750


async def test_a_pipe_a_socket_and_a_folder_are_no_files(folder: Path) -> None:
    """Opening some of them would block forever."""
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(folder)  # a socket's path has to be short
        try:
            listening.bind("socket")
        finally:
            os.chdir(here)
        desk = Desk(folder)
        assert "a named pipe" in await desk.refused("read_file", file_path="pipe")
        assert "a socket" in await desk.refused("read_file", file_path="socket")
        assert "a folder" in await desk.refused("read_file", file_path="sub")
        assert await desk.said("grep", pattern="alpha") == (
            "sub/a.txt\n[1 matching lines in 1 files]"
        )


async def test_a_file_above_the_limit_is_neither_read_nor_written(folder: Path) -> None:
    (folder / "big.txt").write_text("x" * 101)
    desk = Desk(folder, limits=Limits(file_bytes=100))
    assert "101 bytes" in await desk.refused("read_file", file_path="big.txt")
    told = await desk.refused("write_file", file_path="new.txt", content="x" * 101)
    assert "100 allowed" in told
    assert not (folder / "new.txt").exists()


@settings(max_examples=60)
@given(
    parts=st.lists(
        st.sampled_from(["..", ".", "sub", "in", "out", "loop", "a.txt", "", "~", "\0", "\udc80"])
        | st.text(max_size=8),
        max_size=6,
    ),
    absolute=st.booleans(),
)
def test_no_path_at_all_reads_what_is_outside(
    parts: list[str], absolute: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any path is in the workspace or refused."""
    top = tmp_path_factory.mktemp("any")
    inside = top / "workspace"
    (inside / "sub").mkdir(parents=True)
    for name, target in (("in", "sub"), ("out", ".."), ("loop", "loop")):
        (inside / name).symlink_to(target)
    for where in (top, inside, inside / "sub"):
        (where / "a.txt").write_text("out" if where == top else "in")
    path = ("/" if absolute else "") + "/".join(parts)
    try:
        read, told = Workspace(inside).read(path).content, ""
    except WorkspaceError as exc:
        read, told = b"in", str(exc)
    assert read == b"in"
    assert str(top) not in told


def test_a_workspace_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nowhere"):
        workspace_tools(tmp_path / "nowhere")


def test_without_a_folder_in_the_environment_there_are_no_tools(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TOOL_SEARCH_WORKSPACE", raising=False)
    with pytest.raises(ConfigurationError, match="TOOL_SEARCH_WORKSPACE is not set"):
        tools_from_modules(["tool_search.sources.workspace.configured"])
    monkeypatch.setenv("TOOL_SEARCH_WORKSPACE", str(tmp_path))
    made = tools_from_modules(["tool_search.sources.workspace.configured"])
    assert "read_file" in {item.tool.name for item in made}


def test_the_environment_names_the_folder_and_the_commands(tmp_path: Path) -> None:
    named = {"TOOL_SEARCH_WORKSPACE": str(tmp_path)}
    without = {item.tool.name for item in tools_from_environment(named)}
    commands = {"TOOL_SEARCH_WORKSPACE_COMMANDS": "ls, git status"}
    with_them = {item.tool.name: item.tool for item in tools_from_environment(named | commands)}
    assert set(with_them) - without == {"bash"}
    assert "git status, ls" in with_them["bash"].description


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/post-checkout", ".git/config", "sub/.GIT/config", "sub/.ｇｉｔ/config",
        ".gitmodules", "HEAD", "sub/head", ".bashrc", ".profile", ".ssh/authorized_keys",
        ".config/git/config",
        ".github/workflows/build.yml", ".envrc", ".vscode/tasks.json", "way/in/hooks/pre-commit",
    ],
)  # fmt: skip
async def test_no_tool_writes_what_other_programs_execute(folder: Path, path: str) -> None:
    """Neither by another case or Unicode composition, nor by a link."""
    (folder / ".git").mkdir()
    (folder / "way").mkdir()
    (folder / "way" / "in").symlink_to(folder / ".git")
    desk = Desk(folder)
    told = await desk.refused("write_file", file_path=path, content="echo taken over")
    assert "other programs execute" in told
    assert os.listdir(folder / ".git") == []  # noqa: PTH208  # a link leads here too
    assert not os.path.lexists(folder / path)  # noqa: ASYNC240  # a test may wait


async def test_what_is_protected_is_read_and_not_edited(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("[core]\n")
    desk = Desk(folder)
    assert "[core]" in await desk.said("read_file", file_path=".git/config")
    edit = {"old_string": "[core]", "new_string": "[core]\nfsmonitor = x"}
    told = await desk.refused("edit_file", file_path=".git/config", **edit)
    assert "other programs execute" in told
    assert (folder / ".git" / "config").read_text() == "[core]\n"


async def test_an_operator_may_protect_other_names(folder: Path) -> None:
    desk = Desk(folder, protected=["Makefile"])
    told = await desk.refused("write_file", file_path="Makefile", content="")
    assert "'makefile'" in told
    await desk.said("write_file", file_path=".envrc", content="x")
