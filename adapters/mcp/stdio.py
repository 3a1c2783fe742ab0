"""A server as a child process, with limits on what it may write.

The SDK's own transport reads a line of any length, in quadratic time, and gives the
server's log to this process's standard error.

Source: Model Context Protocol, 2025-11-25, "Transports" (stdio) and "Lifecycle" (shutdown:
close its input, wait, SIGTERM, SIGKILL); mcp 1.26 and 2.3, `os/win32/utilities.py` (a job
object for a process and its children, where there are no groups of processes).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.streams.file import FileReadStream
from mcp.os.win32 import utilities as windows

from tool_search.adapters.mcp.protocol import (
    parse_message,
    refusal_of,
    set_definitions_aside,
    written_message,
)
from tool_search.adapters.wire.incoming import DEFAULT_LIMITS, LARGE_BYTES, LineDecoder
from tool_search.config.limits import LimitSettings
from tool_search.core.values.clean_text import clean_line
from tool_search.core.values.redaction import redacted_text
from tool_search.errors import SourceError

__all__ = ["ServerProcess"]

# The variables that the SDK lets a server have, so that it never sees the bot's keys.
_INHERITED = (
    ("APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE SYSTEMDRIVE "
    "SYSTEMROOT TEMP USERNAME USERPROFILE")
    if sys.platform == "win32"
    else "HOME LANG LC_ALL LOGNAME PATH SHELL TERM TMPDIR USER"
).split()  # fmt: skip
_EXIT_S, _KILL_S = 1.0, 1.0
_LOG_LINES, _LOG_CHARS = 20, 300
_log = logging.getLogger(__name__)


class ServerProcess:
    """A server's process and the last lines of its log.

    Args:
        server: The server's name.
        command: The program.
        args: Its arguments.
        variables: Its own environment variables.
        inherited: The variables of this process, of which it gets a few.
        cwd: Its working folder; empty: that of this process.
        limits: The bounds of its messages.
        on_end: Called when its output ends.
    """

    def __init__(
        self,
        server: str,
        *,
        command: str,
        args: Sequence[str],
        variables: Mapping[str, str],
        inherited: Mapping[str, str],
        cwd: str = "",
        limits: LimitSettings = DEFAULT_LIMITS,
        on_end: Callable[[], None],
    ) -> None:
        self._limits = limits
        self._server = server
        self._command = command
        self._args = tuple(args)
        kept = {key: inherited[key] for key in _INHERITED if key in inherited}
        self._environment = {**kept, **variables}
        self._cwd = cwd or None
        self._on_end = on_end
        self._log_lines: deque[str] = deque(maxlen=_LOG_LINES)
        self._process: Any = None
        self._has_ended = self._is_closing = False
        self._foreign_lines = 0

    @property
    def cause(self) -> str:
        """The reason why it ended by itself, without what it wrote; else ""."""
        status = self._process.returncode if self._process is not None and self._has_ended else None
        if status is None:
            return ""
        if status < 0:
            with suppress(ValueError):
                return f"its process was ended by {signal.Signals(-status).name}"
        return f"its process ended with status {status}"

    @property
    def last_lines(self) -> str:
        """The last lines of its standard error, for its operator alone: others' data is there."""
        return "; ".join(list(self._log_lines)[-3:])

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[tuple[Any, Any], None]:
        """Start the process; give the streams of messages that the SDK reads and writes.

        Raises:
            SourceError: The program cannot be started.
        """
        process = self._process = await self._start()
        send, read = anyio.create_memory_object_stream[Any](0)
        write, receive = anyio.create_memory_object_stream[Any](0)
        async with anyio.create_task_group() as group:
            group.start_soon(self._read_output, process, send)
            group.start_soon(self._write, process, receive)
            group.start_soon(self._read_log, process)
            try:
                yield read, write
            finally:
                self._is_closing = True
                for stream in (read, write):
                    stream.close()
                with anyio.CancelScope(shield=True):
                    await _end(process)
                group.cancel_scope.cancel()
                for stream in (send, receive):
                    stream.close()

    async def _start(self) -> Any:
        path = self._environment.get("PATH", os.defpath)
        program = shutil.which(self._command, path=path)
        if program is None:
            raise SourceError(
                f"the program {self._command!r} is not in PATH; install it, or write its whole "
                "path in command",
                server=self._server,
            )
        pipe: Any = subprocess.PIPE
        command = [program, *self._args]
        try:
            if not _has_groups():
                return await windows.create_windows_process(
                    program, command[1:], self._environment, pipe, self._cwd
                )
            return await anyio.open_process(
                command, env=self._environment, cwd=self._cwd, start_new_session=True
            )
        except (OSError, ValueError) as exc:
            raise SourceError(
                f"the program {self._command!r} cannot be started: {exc}", server=self._server
            ) from exc

    async def _read_output(self, process: Any, messages: Any) -> None:
        lines = LineDecoder(max_bytes=self._limits.max_bytes)
        try:
            async with messages:
                # A last line without its end was cut off by the end of the process.
                async for chunk in process.stdout:
                    for line, is_cut in lines.feed(chunk):
                        if is_cut:
                            message = self._refusal(line)
                        elif len(line) > LARGE_BYTES:
                            message = await asyncio.to_thread(self._message, line)
                        else:
                            message = self._message(line)
                        if message is not None:
                            await messages.send(message)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
            return  # the session is over
        finally:
            self._has_ended = not self._is_closing
            self._on_end()

    def _message(self, line: bytes) -> Any:
        try:
            return set_definitions_aside(parse_message(line, self._limits))
        except ValueError:
            self._foreign_lines += 1
            if self._foreign_lines == 1 and line.strip():
                shown = clean_line(line[:1000].decode("utf-8", "replace"), 200)
                _log.warning(
                    "mcp_output: server %r writes text that is not a message to its standard "
                    "output, which is passed over: %r",
                    self._server,
                    shown,
                )
            return None

    def _refusal(self, head: bytes) -> Any:
        """Return an error in place of an answer that is too long; the server goes on."""
        problem = f"it has more than {self._limits.max_bytes:,} bytes (max_bytes)"
        refused = refusal_of(head, problem)
        return self._message(head if refused is None else json.dumps(refused).encode())

    async def _write(self, process: Any, messages: Any) -> None:
        try:
            async with messages:
                async for message in messages:
                    await process.stdin.send(written_message(message))
        except (ConnectionError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._on_end()

    async def _read_log(self, process: Any) -> None:
        # The SDK's own class, for loops without subprocesses, has no stream for it.
        popen = getattr(process, "popen", None)
        log = process.stderr if popen is None else FileReadStream(popen.stderr)
        with suppress(anyio.ClosedResourceError, OSError):
            async for chunk in log:
                for line in chunk.decode("utf-8", "replace").splitlines():
                    if line.strip():
                        self._log_lines.append(redacted_text(clean_line(line, _LOG_CHARS)))


def _has_groups() -> bool:
    """True on systems with groups of processes, and signals that end them."""
    return hasattr(os, "killpg") and hasattr(signal, "SIGKILL")


async def _end(process: Any) -> None:
    """End a process and its children: close its input, wait, then by signals."""
    try:
        for name, patience in ((None, _EXIT_S), ("SIGTERM", _KILL_S), ("SIGKILL", _KILL_S)):
            if name is None:
                with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await process.stdin.aclose()
            else:
                await _kill(process, name)
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await process.wait()
                break
    finally:
        # Children that outlive their parent are in its group; and anyio's shield does not hold
        # back asyncio's own cancellation, of a source that is closed in this very moment.
        await _kill(process, "SIGKILL")


async def _kill(process: Any, name: str) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if _has_groups():
            os.killpg(process.pid, getattr(signal, name))
            return
        await windows.terminate_windows_process_tree(process)
        process.terminate()
