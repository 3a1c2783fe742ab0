"""Questions of `tool-search chat` to the person at the terminal."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import unicodedata
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tool_search.cli.chat.screen import Screen
from tool_search.cli.terminal.language import named_language
from tool_search.i18n import text
from tool_search.runner.execution import PermissionAnswer, PermissionRequest
from tool_search.runner.execution.permissions.grants import Scope

__all__ = ["AskingPerson"]

_PROMPT = "? "
_MAX_SHOWN_CHARS = 2_000


class AskingPerson:
    """A question with a one-line answer; an answer that is not understood means no.

    A lasting yes grants the narrowest suggested rule.

    Args:
        screen: The screen of the chat.
        read: A function that returns the line; default: one from the terminal.
    """

    def __init__(self, screen: Screen, *, read: Callable[[], Awaitable[str]] | None = None) -> None:
        self._screen = screen
        self._read = read or _typed_line

    async def __call__(self, request: PermissionRequest) -> PermissionAnswer:
        """Return the person's answer."""
        language = self._screen.language = named_language() or request.language
        tool = request.tool.name
        if request.question:
            self._screen.say("chat.tool_asks", tool=tool, question=request.question)
        else:
            shown = _preview(request.arguments)
            rule = next(iter(request.suggestions), tool)
            self._screen.say("chat.ask", tool=tool, arguments=shown, rule=rule)
        self._screen.pause()
        try:
            letter = (await self._read()).strip().casefold()
        finally:
            self._screen.work()
        words = {
            word: name
            for name in ("yes", "conversation", "always")
            for word in text(f"chat.{name}", language).split()
        }
        meant = words.get(letter, "no")
        if meant == "yes" or (request.question and meant != "no"):
            return PermissionAnswer(allow=True)
        if meant == "no":
            return PermissionAnswer(allow=False)
        scope: Scope = "always" if meant == "always" else "conversation"
        narrowest = next(iter(request.suggestions), None)
        return PermissionAnswer(allow=True, scope=scope, rule=narrowest)


def _preview(arguments: Mapping[str, Any]) -> str:
    """Return the arguments as JSON, with the middle cut out if they are long.

    Invisible characters (controls, direction marks) are written as escapes, so that
    nothing can be hidden from the person who decides.
    """
    written = json.dumps(dict(arguments), ensure_ascii=False)
    seen = re.sub(r"[^\x20-\x7e]", lambda found: _escape(found[0]), written)
    if len(seen) <= _MAX_SHOWN_CHARS:
        return seen
    half = _MAX_SHOWN_CHARS // 2
    return f"{seen[:half]} …[{len(seen) - 2 * half}]… {seen[-half:]}"


def _escape(char: str) -> str:
    is_hidden = unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")
    return f"\\u{ord(char):04x}" if is_hidden else char


async def _typed_line() -> str:
    """Read one line from the terminal."""
    # Not in a thread: an abandoned one would take the next line that is typed.
    sys.stderr.write(_PROMPT)
    sys.stderr.flush()
    loop, typed = asyncio.get_running_loop(), sys.stdin.fileno()
    readable = asyncio.Event()
    try:
        loop.add_reader(typed, readable.set)
    except NotImplementedError:  # Windows has no such loop
        return await asyncio.to_thread(sys.stdin.readline)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(typed)
    return os.read(typed, 65_536).decode("utf-8", "replace")
