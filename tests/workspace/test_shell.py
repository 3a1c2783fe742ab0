"""The shell: state, end, allowed commands and environment."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.workspace.calling import Desk, opened
from tool_search import ConfigurationError, ToolCall, ToolContext
from tool_search.config.permissions import PermissionSettings
from tool_search.runner.execution import Cancellation
from tool_search.sources.workspace import ANY_COMMAND, READ_ONLY_COMMANDS, ShellOptions
from tool_search.sources.workspace.commands import denial_reason, subjects_of

BASH = shutil.which("bash") or ""
pytestmark = pytest.mark.skipif(not BASH, reason="needs bash")
PATIENCE_S = 30.0
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """A shell that may run anything."""
    async with opened(tmp_path, shell=ShellOptions(commands=[ANY_COMMAND])) as made:
        yield made


def runs(sign: str) -> bool:
    """Return True if a process has this argument; its id differs outside its namespace."""
    done = subprocess.run(
        ["ps", "-A", "-o", "stat=,args="],  # noqa: S607  # wherever it is
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (line.split(None, 1) for line in done.stdout.splitlines())
    return any(sign in args for stat, *rest in lines if stat[:1] != "Z" for args in rest)


async def gone(sign: str) -> bool:
    """Return True if a process ends soon; else kill it."""
    for _ in range(200):
        if not runs(sign):
            return True
        await asyncio.sleep(0.05)
    return False


async def test_a_workspace_has_no_shell_unless_asked_for(tmp_path: Path) -> None:
    assert "There is no tool named bash" in await Desk(tmp_path).refused("bash", command="ls")


async def test_folder_and_variables_last_within_a_conversation(desk: Desk) -> None:
    (desk.folder / "sub").mkdir()
    assert await desk.said("bash", command="cd sub; x=kept") == "[in sub]"
    assert await desk.said("bash", command='echo "$x"; pwd') == f"kept\n{desk.folder}/sub\n[in sub]"
    assert await desk.said("bash", command="echo ${x:-none}", conversation="d") == "none"


async def test_a_result_has_output_errors_and_exit_status(desk: Desk) -> None:
    said = await desk.said("bash", command="echo out; echo err >&2; (exit 3)")
    assert said == "out\nerr\n[exit status 3]"


@pytest.mark.parametrize("command", ["echo 'open", "if", "cat <<E"])
async def test_a_command_that_bash_cannot_read_ends_nothing(desk: Desk, command: str) -> None:
    await desk.said("bash", command=command)
    assert await desk.said("bash", command="echo next") == "next"


async def test_a_shell_that_was_left_begins_anew(desk: Desk) -> None:
    assert "begins anew" in await desk.refused("bash", command="x=1; exit 4")
    assert await desk.said("bash", command="echo ${x:-none}") == "none"


async def test_a_command_does_not_wait_for_input(desk: Desk) -> None:
    assert await desk.said("bash", command="cat; echo done") == "done"


async def test_a_command_that_leaves_the_workspace_is_brought_back(desk: Desk) -> None:
    assert "back in it" in await desk.said("bash", command="cd /")
    assert await desk.said("bash", command="pwd") == str(desk.folder)


async def test_a_command_above_its_time_is_ended_with_all_it_started(desk: Desk) -> None:
    started = "sleep 300.125 & echo $!; sleep 300.125"
    finished = await desk.call("bash", command=started, timeout_s=1)
    assert finished.is_error
    assert "[ended after 1 s: the shell begins anew" in finished.content
    assert await gone("300.125")
    assert await desk.said("bash", command="echo next") == "next"


async def test_a_cancelled_command_is_ended_and_what_it_wrote_survives(desk: Desk) -> None:
    cancellation = Cancellation()
    context = ToolContext(conversation="c", language="en-US", cancellation=cancellation)
    call = ToolCall(
        id="1", name="bash", arguments='{"command": "echo early; sleep 300.25 & sleep 300.25"}'
    )
    seen = ""
    async with asyncio.timeout(PATIENCE_S):
        async for event in desk.runner.run([call], context):
            seen += getattr(event, "content", "")
            if "early" in seen:
                cancellation.cancel()
            last = event
    assert getattr(last, "outcome", "") == "cancelled"
    assert "early" in getattr(last, "content", "")
    assert await gone("300.25")


async def test_forgetting_a_conversation_ends_its_shell(desk: Desk) -> None:
    await desk.said("bash", command="sleep 300.5 & echo $!")
    assert runs("300.5")
    await desk.runner.forget("c")
    assert await gone("300.5")


async def test_what_is_left_running_does_not_hold_a_command_up(desk: Desk) -> None:
    await desk.said("bash", command="{ while [ ! -e go ]; do sleep 0.02; done; echo late; } &")
    said = await desk.said("bash", command="touch go; wait; echo now")
    assert said.split() == ["late", "now"]


async def test_long_output_keeps_its_ends(tmp_path: Path) -> None:
    options = ShellOptions(commands=[ANY_COMMAND], longest_output=20)
    async with opened(tmp_path, shell=options) as desk:
        said = await desk.said("bash", command="echo first; seq 1 1000; echo last")
    assert said.startswith("first\n")
    assert said.endswith("last")
    assert "bytes left out" in said
    assert len(said) < 80


async def test_nothing_of_the_bots_environment_is_inherited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-key")
    options = ShellOptions(commands=[ANY_COMMAND], environment={"GIVEN": "yes"})
    async with opened(tmp_path, shell=options) as desk:
        said = await desk.said("bash", command="env")
    assert "secret-key" not in said
    assert "GIVEN=yes" in said
    assert f"HOME={tmp_path}" in said


async def test_what_is_not_allowed_is_refused_before_the_user_is_asked(tmp_path: Path) -> None:
    async with opened(tmp_path, shell=ShellOptions(commands=["ls", "git status"])) as desk:
        told = await desk.refused("bash", command="git push")
        assert "'git' is not allowed; allowed are: git status, ls" in told
        assert desk.asked == []
        (tmp_path / "seen").touch()
        assert await desk.said("bash", command="ls") == "seen"
        assert desk.asked == ["bash"]


@pytest.mark.parametrize(
    "line",
    [
        "rm x", "ls; rm x", "ls && rm x", "ls | rm", "ls & rm x", "ls\nrm x", "ls || rm x",
        "ls $(rm x)", "ls `rm x`", 'ls "$(rm x)"', 'ls "`rm x`"', "ls <(rm x)", "ls >(rm x)",
        "ls > x", "ls >> x", "ls 2> x", "ls &> x", "ls >| x", "ls >&x", "ls < /etc/passwd",
        "ls <> x", "cat <<E\n$(rm x)\nE", "cat <<< x", "> x", "ls 2>'x'", "ls > $x",
        "PATH=. ls", "x=1", "a[$(rm)]=1", "ls ${x@P}", "ls ${x:=1}", "ls $[1]", "ls $((1))",
        "(rm x)", "{ rm x; }", "if true; then rm x; fi", "! rm x", "time rm x",
        "ls() { rm x; }", "function ls { rm x; }", "ls # '\nrm x\n# '", "# '\nrm x #'",
        "ls $'\\'' ; rm x #'", "ls 'a", 'ls "a', "ls \\", "ls \\\n; rm x", "l\\\ns; r\\\nm x",
        "eval rm x", "command rm x", "./ls", "/bin/ls", "$x", '"$x"', "l?", "", " ", ";",
        "ls\x00", "ls\rrm x", "{ls,rm} x", "\\rm x", "'rm' x", "r'm' x",
        "ls >/dev/null\u00a0x", "ls 3>x",
    ],
)  # fmt: skip
def test_a_line_that_does_more_than_is_allowed_is_refused(line: str) -> None:
    assert denial_reason(line, READ_ONLY_COMMANDS) is not None


@pytest.mark.parametrize(
    "line",
    [
        "ls", "ls -la sub | wc -l", "cd a && cat b; pwd", "grep -n 'a;b|c' x", 'echo "a & b"',
        "ls 2>/dev/null", "ls >/dev/null 2>&1", "ls &>/dev/null", 'echo "$HOME" ${HOME}',
        "echo a\\;b", "head -n 5 *.txt\nls", "echo it\\'s", 'echo "it\'s"', "ls a#b", "echo 2>&-",
        "l's'", "ls \\\n -l", "echo '$(x)' '`x`'", "ls;", "ls &", 'echo "a\\"b"', "echo 中文",
    ],
)  # fmt: skip
def test_a_line_of_allowed_commands_passes(line: str) -> None:
    assert denial_reason(line, READ_ONLY_COMMANDS) is None


def test_an_entry_of_several_words_allows_what_begins_with_them() -> None:
    assert denial_reason("git log --oneline", ["git log"]) is None
    assert denial_reason("git -c a=b log", ["git log"]) is not None


PIECES = (
    "ok", "bad", "bad ok", " ", "\n", "\t", ";", "&", "|", "&&", "||", ">", "<", ">>", "2>", "&>",
    "/dev/null", "'", '"', "\\", "`", "$", "$(", "(", ")", "{", "}", "#", "!", "=", "*", "~", "[",
    "$x", "${x}", "\\\n", "<<", "$'", "'bad'", "\\;", " #", "2>&1 ", "\u00a0", "if ", "then ", "fi",
    "eval ", "time ", "function ", "() ", "case ", "for ", "do ", "done ",
)  # fmt: skip
TOLD = 'command_not_found_handle() { echo "RAN $1" >&9; }; ok() { :; }; exec 9>&1; '


@settings(max_examples=40)
@given(line=st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
def test_a_line_that_passes_runs_nothing_but_what_is_allowed(
    line: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Bash itself runs no other command and writes no file."""
    line = f"ok {line}"
    assume(denial_reason(line, ["ok"]) is None)
    folder = tmp_path_factory.mktemp("any")
    done = subprocess.run(  # noqa: S603  # its commands do not exist
        [BASH, "--noprofile", "--norc", "-c", f"{TOLD}eval {shlex.quote(line)}"],
        capture_output=True,
        check=False,
        cwd=folder,
        env={"PATH": "/nonexistent", "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
    )
    assert b"RAN" not in done.stdout
    assert list(folder.iterdir()) == []
    assert all(subjects_of(line))


@pytest.mark.parametrize(
    ("rule", "command", "outcome"),
    [
        ("bash(git:*)", "git status", "finished"),
        ("bash(git:*)", "git status; touch made", "denied"),
        ("bash(git:*)", "git status $(touch made)", "denied"),
        ("bash(git:*)", "git status > made", "denied"),
        ("bash(echo:*)", "echo a > made", "denied"),
        ("bash", "touch made", "finished"),
    ],
)
async def test_a_rule_allows_a_line_only_where_it_allows_all_of_it(
    tmp_path: Path, rule: str, command: str, outcome: str
) -> None:
    more: dict[str, Any] = {"rules": PermissionSettings(allow=(rule,)), "allows": False}
    async with opened(tmp_path, shell=ShellOptions(commands=[ANY_COMMAND]), **more) as desk:
        finished = await desk.call("bash", command=command)
    assert finished.outcome == outcome
    assert (tmp_path / "made").exists() is (rule == "bash")


async def test_in_plan_mode_only_what_reads_is_run(tmp_path: Path) -> None:
    rules = PermissionSettings(mode="plan")
    async with opened(tmp_path, rules=rules, shell=ShellOptions(commands=[ANY_COMMAND])) as desk:
        assert await desk.said("bash", command="echo a | wc -l") == "1"
        assert "only reading is allowed" in await desk.refused("bash", command="touch made")
        assert "only reading" in await desk.refused("write_file", file_path="made", content="")


async def test_accepting_edits_does_not_accept_commands(tmp_path: Path) -> None:
    rules = PermissionSettings(mode="accept")
    async with opened(tmp_path, rules=rules, shell=ShellOptions(commands=["ls"])) as desk:
        await desk.said("write_file", file_path="made", content="x")
        assert desk.asked == []
        assert await desk.said("bash", command="ls") == "made"
        assert desk.asked == ["bash"]


def test_commands_must_be_a_list() -> None:
    """A text would be a list of letters."""
    with pytest.raises(ConfigurationError, match="give a list of commands"):
        ShellOptions(commands="ls")


@pytest.mark.parametrize(
    "command",
    [
        "cat /proc/self/environ",
        "cat /proc/*/environ",
        "cat /proc/$PPID/environ",
        "tr '\\0' ' ' < /proc/1/environ",
        "ps eww -A",
        "env; export -p; declare -p",
    ],
)
async def test_no_command_reads_the_keys_that_the_bot_was_started_with(
    tmp_path: Path, command: str
) -> None:
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from tests.workspace.calling import opened\n"
        "from tool_search.sources.workspace import ShellOptions\n"
        "async def main():\n"
        "    shell = ShellOptions(commands=['*'])\n"
        "    async with opened(Path(sys.argv[1]), shell=shell) as desk:\n"
        "        print((await desk.call('bash', command=sys.argv[2])).content)\n"
        "asyncio.run(main())\n"
    )
    planted = "sk-planted-0123456789"
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", program, str(tmp_path), command],
        env={**os.environ, "ANTHROPIC_API_KEY": planted},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip()
    assert planted not in done.stdout
