"""A tool with one bash for each conversation, so that the folder and variables last.

Protection: the operator's list of allowed commands, the user's permission, a clean
environment, a view of processes without the bot's own (`isolation.py`), a start folder to
which the shell is brought back, a timeout for each command, an end of the whole process group.

Limits: bash runs as the bot's user. An allowed command can read every file that this user can
read outside the workspace, reach the network, and leave its process group. If that matters,
run the bot in a container, or let `launcher` start bash in a sandbox.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import signal
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from tool_search.errors import ConfigurationError
from tool_search.runner.execution import (
    ExecutableTool,
    ExecutionResult,
    ToolContext,
    tool_from_function,
)
from tool_search.sources.workspace.commands import (
    ANY_COMMAND,
    READ_ONLY_COMMANDS,
    denial_reason,
    subjects_of,
)
from tool_search.sources.workspace.isolation import isolating_launcher
from tool_search.sources.workspace.workspace import Workspace, WorkspaceError

__all__ = ["ShellOptions", "shell_tools"]

_MAX_SECONDS = 600
_SHOWN_AT_ONCE = 20_000
_MAX_BYTES = 20_000_000
_CHUNK = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellOptions:
    """Options of the shell.

    Attributes:
        commands: The allowed commands, each with the first arguments that it must have, such
            as `git status`; `*` allows everything. A command that runs others (`env`,
            `xargs`, `find`, `python`, `git` with settings) allows those too.
        timeout_s: Seconds that a command may take, unless the model asks for another time.
        longest_output: Characters that the model reads; longer output keeps both ends.
        environment: Variables in addition to `PATH`, `HOME` and `LANG`; none is inherited.
        path: The `PATH` of the shell.
        launcher: The command line that starts bash, such as a sandbox; None: the one that
            hides the bot's own processes on this system.

    Raises:
        ConfigurationError: A command is empty, or a number is below 1.
    """

    commands: Collection[str]
    timeout_s: int = 120
    longest_output: int = 30_000
    environment: Mapping[str, str] = field(default_factory=dict)
    path: str = "/usr/local/bin:/usr/bin:/bin"
    launcher: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.commands, str) or not all(one.split() for one in self.commands):
            raise ConfigurationError(
                f"commands is {self.commands!r}: give a list of commands, such as ['ls', 'git log']"
            )
        if not 1 <= self.timeout_s <= _MAX_SECONDS or self.longest_output < 1:
            raise ConfigurationError(
                f"timeout_s is {self.timeout_s!r} and longest_output {self.longest_output!r}: "
                f"they must be 1 to {_MAX_SECONDS}, and at least 1"
            )


def shell_tools(workspace: Workspace, options: ShellOptions) -> tuple[ExecutableTool, ...]:
    """Return the tool that runs commands."""
    shells = _Shells(workspace, options)
    allowed = options.commands
    listed = "any" if ANY_COMMAND in allowed else ", ".join(sorted(allowed))

    async def bash(
        command: str,
        context: ToolContext,
        timeout_s: Annotated[int, Field(ge=1, le=_MAX_SECONDS)] = options.timeout_s,
    ) -> ExecutionResult:
        """Run a command in a bash that lasts for the conversation, in the workspace.

        Args:
            command: What to run.
            context: Where it is called.
            timeout_s: Seconds it may take; then it is ended, and the shell begins anew.
        """
        return await shells.run(command, context, timeout_s)

    made = tool_from_function(
        bash,
        aliases=("Bash",),
        tags=("shell",),
        annotations={"read_only": False, "destructive": True, "concurrency_safe": False},
        validate_input=lambda arguments, _: denial_reason(arguments["command"], allowed),
        needs_permission=True,
        is_read_only=lambda given: (
            denial_reason(given.get("command", ""), READ_ONLY_COMMANDS) is None
        ),
        subjects=lambda given: subjects_of(given.get("command", "")),
        timeout_s=_MAX_SECONDS + 30.0,
        close=shells.close,
        forget=shells.forget,
        description=(
            "Run a command in a bash that lasts for the conversation: the folder and variables "
            f"stay. It begins in the workspace. Allowed commands: {listed}."
        ),
    )
    return (made,)


class _Shells:
    """The shells of all conversations."""

    def __init__(self, workspace: Workspace, options: ShellOptions) -> None:
        self._workspace = workspace
        self._options = options
        self._shells: dict[str, _Shell] = {}

    async def run(self, command: str, context: ToolContext, seconds: int) -> ExecutionResult:
        """Run a command, and show its output at once."""
        key = context.conversation
        shell = self._shells.setdefault(key, _Shell(self._workspace, self._options))
        async with shell.lock:
            return await shell.run(command, context, seconds)

    async def forget(self, conversation: str) -> None:
        """End a conversation's shell and the processes it left running."""
        shell = self._shells.pop(conversation, None)
        if shell is not None:
            await shell.end()

    async def close(self) -> None:
        """End all shells."""
        for conversation in list(self._shells):
            await self.forget(conversation)


class _Shell:
    """One bash, started on demand."""

    def __init__(self, workspace: Workspace, options: ShellOptions) -> None:
        self._workspace = workspace
        self._options = options
        self._process: asyncio.subprocess.Process | None = None
        self._left = b""
        self.lock = asyncio.Lock()

    async def run(self, command: str, context: ToolContext, seconds: int) -> ExecutionResult:
        """Run one command to its end or its timeout."""
        output = _Output(context, self._options.longest_output)
        try:
            async with asyncio.timeout(seconds):
                status, folder = await self._execute(command, output)
        except TimeoutError:
            await self.end()
            content = output.text(
                f"[ended after {seconds} s: the shell begins anew, in the workspace]"
            )
            return ExecutionResult(content=content, is_error=True, failure="timed_out")
        except WorkspaceError as exc:
            await self.end()
            return ExecutionResult(content=output.text(f"[{exc}]"), is_error=True, failure="failed")
        except BaseException:
            # Cancelled: the output so far has been passed on.
            await self.end()
            raise
        notes = [] if status == 0 else [f"[exit status {status}]"]
        notes += [await self._return_to_workspace(folder)]
        return ExecutionResult(
            content=output.text(*notes), data={"exit_status": status, "output": output.text()}
        )

    async def end(self) -> None:
        """Kill bash and its process group."""
        process, self._process = self._process, None
        self._left = b""
        if process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        transport = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()

    async def _execute(self, command: str, output: _Output) -> tuple[int, str]:
        """Run a command; return its exit status and the shell's folder afterwards."""
        process = await self._start_if_needed()
        if process.stdin is None or process.stdout is None:
            raise WorkspaceError("the shell has no streams")
        mark = secrets.token_hex(16)
        # Quoted as one word, so that no open quote swallows what follows.
        line = (
            f"eval {shlex.quote(command)} </dev/null\n"
            f'builtin printf \'\\n{mark} %d %s\\n\' "$?" "$(builtin pwd -P)"\n'
        )
        try:
            process.stdin.write(line.encode("utf-8", "replace"))
            await process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as exc:
            raise WorkspaceError("the shell has ended: it begins anew with the next call") from exc
        return await self._read_until(process.stdout, f"\n{mark} ".encode(), output)

    async def _read_until(
        self, stream: asyncio.StreamReader, mark: bytes, output: _Output
    ) -> tuple[int, str]:
        held, self._left = self._left, b""
        while True:
            chunk = await stream.read(_CHUNK)
            if not chunk:
                output.add(held)
                raise WorkspaceError("the shell has ended: it begins anew with the next call")
            held += chunk
            before, found, after = held.partition(mark)
            if found and b"\n" in after:
                output.add(before)
                # Later output is from background programs: it belongs to the next command.
                report, _, self._left = after.partition(b"\n")
                status, _, folder = report.decode("utf-8", "replace").partition(" ")
                return int(status), folder
            if found:
                continue
            # A possible beginning of the mark is held back.
            keep = next((n for n in range(len(mark) - 1, 0, -1) if held.endswith(mark[:n])), 0)
            output.add(held[: len(held) - keep])
            held = held[len(held) - keep :]
            if output.bytes > _MAX_BYTES:
                raise WorkspaceError(f"ended after {_MAX_BYTES:,} bytes of output")

    async def _start_if_needed(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self.end()
        folder, options = str(self._workspace.folder), self._options
        environment = {
            "PATH": options.path,
            "HOME": folder,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "PAGER": "cat",
            "GIT_PAGER": "cat",
            "GIT_TERMINAL_PROMPT": "0",
            **options.environment,
        }
        launcher = options.launcher
        if launcher is None:
            launcher = await asyncio.to_thread(isolating_launcher)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *launcher,
                "bash",
                "--noprofile",
                "--norc",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        except OSError as exc:
            raise WorkspaceError(f"the shell cannot be started: {exc.strerror}") from exc
        return self._process

    async def _return_to_workspace(self, folder: str) -> str:
        """Bring the shell back if a command left the workspace; return a note."""
        root = str(self._workspace.folder)
        if folder == root:
            return ""
        if folder.startswith(f"{root}{os.sep}"):
            return f"[in {folder[len(root) + 1 :]}]"
        process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.write(f"cd -- {shlex.quote(root)}\n".encode())
            with suppress(BrokenPipeError, ConnectionResetError):
                await process.stdin.drain()
        return "[the command left the workspace: the shell is back in it]"


class _Output:
    """The output of a command: its start is shown at once, and both ends are kept."""

    def __init__(self, context: ToolContext, longest: int) -> None:
        self._context = context
        self._half = max(1, longest // 2)
        self._head = b""
        self._tail = b""
        self._shown = 0
        self.bytes = 0

    def add(self, piece: bytes) -> None:
        """Add a piece of output."""
        if not piece:
            return
        self.bytes += len(piece)
        if self._shown < _SHOWN_AT_ONCE:
            shown = piece[: _SHOWN_AT_ONCE - self._shown]
            self._shown += len(shown)
            self._context.partial(shown.decode("utf-8", "replace"))
        room = self._half - len(self._head)
        self._head += piece[:room]
        self._tail = (self._tail + piece[room:])[-self._half :]

    def text(self, *notes: str) -> str:
        """Return both ends of the output, the size of the gap, and the notes."""
        left = self.bytes - len(self._head) - len(self._tail)
        head, tail = (part.decode("utf-8", "replace") for part in (self._head, self._tail))
        middle = f"\n... [{left:,} bytes left out] ...\n" if left else ""
        parts = [(head + middle + tail).strip("\n"), *notes]
        return "\n".join(part for part in parts if part)
