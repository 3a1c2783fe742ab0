"""A server as a child process, with limits on what it may write.

The SDK's own transport reads a line of any length, in quadratic time, and gives the
server's log to this process's standard error.

Source: Model Context Protocol, 2025-11-25, "Transports" (stdio) and "Lifecycle" (shutdown:
close its input, wait, SIGTERM, SIGKILL).
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio

from tool_search.adapters.mcp.protocol import (
    LARGE_BYTES,
    parse_message,
    set_definitions_aside,
    written_message,
)
from tool_search.errors import SourceError
from tool_search.values.clean_text import clean_line
from tool_search.values.redaction import redacted_text

__all__ = ["MAX_MESSAGE_BYTES", "ServerProcess"]

MAX_MESSAGE_BYTES = 16_000_000
"""Bytes of one message of a server; a larger one ends its connection."""

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
        on_end: Callable[[], None],
    ) -> None:
        self._server = server
        self._command = command
        self._args = tuple(args)
        kept = {key: inherited[key] for key in _INHERITED if key in inherited}
        self._environment = {**kept, **variables}
        self._cwd = cwd or None
        self._on_end = on_end
        self._log_lines: deque[str] = deque(maxlen=_LOG_LINES)
        self._process: Process | None = None
        self._problem = ""
        self._has_ended = self._is_closing = False
        self._foreign_lines = 0

    @property
    def cause(self) -> str:
        """The reason why it ended by itself: its status and its last lines; else ""."""
        if self._problem or not self._has_ended:
            return self._problem
        status = None if self._process is None else self._process.returncode
        if status is None:
            return ""
        ended = f"its process ended with status {status}"
        if status < 0:
            with suppress(ValueError):
                ended = f"its process was ended by {signal.Signals(-status).name}"
        last = "; ".join(list(self._log_lines)[-3:])
        return f"{ended}; its last lines: {last}" if last else ended

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
            group.start_soon(self._read, process, send)
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

    async def _start(self) -> Process:
        path = self._environment.get("PATH", os.defpath)
        program = shutil.which(self._command, path=path)
        if program is None:
            raise SourceError(
                f"the program {self._command!r} is not in PATH; install it, or write its whole "
                "path in command",
                server=self._server,
            )
        try:
            return await asyncio.create_subprocess_exec(
                program,
                *self._args,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE if sys.platform != "win32" else DEVNULL,
                env=self._environment,
                cwd=self._cwd,
                limit=MAX_MESSAGE_BYTES,
                start_new_session=True,
            )
        except (OSError, ValueError) as exc:
            raise SourceError(
                f"the program {self._command!r} cannot be started: {exc}", server=self._server
            ) from exc

    async def _read(self, process: Process, messages: Any) -> None:
        output = process.stdout
        if output is None:  # never: it was started with a pipe
            return
        try:
            async with messages:
                while line := await output.readline():
                    # A last line without its end was cut off by the end of the process.
                    if not line.endswith(b"\n"):
                        continue
                    if len(line) > LARGE_BYTES:
                        message = await asyncio.to_thread(self._message, line)
                    else:
                        message = self._message(line)
                    if message is not None:
                        await messages.send(message)
        except ValueError:
            self._problem = f"it wrote a message of more than {MAX_MESSAGE_BYTES:,} bytes"
            _kill(process, signal.SIGTERM)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
            return  # the session is over
        finally:
            self._has_ended = not self._is_closing
            self._on_end()

    def _message(self, line: bytes) -> Any:
        try:
            return set_definitions_aside(parse_message(line))
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

    async def _write(self, process: Process, messages: Any) -> None:
        pipe = process.stdin
        if pipe is None:  # never: it was started with a pipe
            return
        try:
            async with messages:
                async for message in messages:
                    pipe.write(written_message(message))
                    await pipe.drain()
        except (ConnectionError, anyio.ClosedResourceError):
            self._on_end()

    async def _read_log(self, process: Process) -> None:
        log = process.stderr
        if log is None:
            return
        while chunk := await log.read(65_536):
            for line in chunk.decode("utf-8", "replace").splitlines():
                if line.strip():
                    self._log_lines.append(redacted_text(clean_line(line, _LOG_CHARS)))


async def _end(process: Process) -> None:
    """End a process and its children: close its input, wait, then by signals."""
    if process.stdin is not None:
        process.stdin.close()
    steps = ((None, _EXIT_S), (signal.SIGTERM, _KILL_S), (signal.SIGKILL, _KILL_S))
    try:
        for number, patience in steps:
            if number is not None:
                _kill(process, number)
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await process.wait()
                break
    finally:
        # Children that outlive their parent are in its group; and anyio's shield does not hold
        # back asyncio's own cancellation, of a source that is closed in this very moment.
        _kill(process, signal.SIGKILL)


def _kill(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.send_signal(number)
        else:
            os.killpg(process.pid, number)
