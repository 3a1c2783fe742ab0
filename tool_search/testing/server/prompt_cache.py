"""The prompt cache of a stand-in service.

A cache is a prefix: the tools in the model's context, the system text, the
messages, in this order; a revealed definition is at its reference. A change of an
early part causes everything after it to be billed again.

Source: Anthropic, Prompt caching (breakpoints, 1,024 tokens at least, a look-back of
20 blocks, one block a tool or message here); OpenAI, Prompt caching (automatic, from
1,024 tokens on, in steps of 128).
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tool_search.testing.view import ModelView, ViewMessage, VisibleTool

__all__ = ["CHARACTERS_PER_TOKEN", "Cached", "PromptCache", "PromptPart", "prompt_parts"]

CHARACTERS_PER_TOKEN = 4
_LEAST = 1024
_STEP = 128
_LOOK_BACK = 20


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A piece of a prompt; the cache may end after it or not."""

    text: str
    breakpoint: bool = False


@dataclass(frozen=True, slots=True)
class Cached:
    """Input tokens of one request that came from the cache, and that went into it."""

    read: int = 0
    written: int = 0


class PromptCache:
    """The prefixes that a service has read, by dialect and model; they never expire.

    Args:
        least: The tokens of the shortest prefix that an automatic cache reads.
        step: The tokens by which such a prefix grows.
    """

    def __init__(self, *, least: int = _LEAST, step: int = _STEP) -> None:
        self._least = least
        self._step = step
        self._known: dict[tuple[str, str], set[bytes]] = {}
        self._lock = threading.Lock()

    def charge(self, view: ModelView) -> Cached:
        """Return the cached tokens of a request, and cache its prefixes."""
        parts = list(prompt_parts(view))
        with self._lock:
            known = self._known.setdefault((view.dialect, view.model), set())
            if view.dialect == "anthropic":
                return _explicit(parts, known)
            return _automatic(parts, known, least=self._least, step=self._step)


def prompt_parts(view: ModelView) -> Iterator[PromptPart]:
    """Yield the prompt that a model reads, in the order that it is cached in."""
    for tool in view.tools:
        if not tool.is_late:
            yield PromptPart(_definition(tool), tool.cache_breakpoint)
    waiting = {tool.name: tool for tool in view.tools if tool.is_late}
    for message in view.messages:
        brought = [waiting.pop(name) for name in message.revealed if name in waiting]
        text = _message(message) + "".join(map(_definition, brought))
        yield PromptPart(text, message.cache_breakpoint)


def _definition(tool: VisibleTool) -> str:
    return f"{tool.name}{tool.description}{json.dumps(tool.parameters)}"


def _message(message: ViewMessage) -> str:
    calls = "".join(f"{call.name}{json.dumps(call.arguments)}" for call in message.calls)
    return f"{message.text}{calls}{''.join(result.text for result in message.results)}"


def _automatic(parts: list[PromptPart], known: set[bytes], *, least: int, step: int) -> Cached:
    read = size = 0
    unbroken = True
    for digest, part in _prefixes(parts):
        size += len(part.text)
        unbroken = unbroken and digest in known
        if unbroken:
            read = size // CHARACTERS_PER_TOKEN
        known.add(digest)
    return Cached(read=read // step * step if read >= least else 0)


def _explicit(parts: list[PromptPart], known: set[bytes]) -> Cached:
    sizes: list[int] = []
    found: list[int] = []
    ends: list[tuple[int, bytes]] = []
    for index, (digest, part) in enumerate(_prefixes(parts)):
        sizes.append((sizes[-1] if sizes else 0) + len(part.text))
        if digest in known:
            found.append(index)
        if part.breakpoint:
            ends.append((index, digest))
    near = [at for at in found if any(0 <= end - at <= _LOOK_BACK for end, _ in ends)]
    read = sizes[near[-1]] // CHARACTERS_PER_TOKEN if near else 0
    most = read
    for index, digest in ends:
        size = sizes[index] // CHARACTERS_PER_TOKEN
        if size >= _LEAST:
            known.add(digest)
            most = max(most, size)
    return Cached(read=read, written=most - read)


def _prefixes(parts: list[PromptPart]) -> Iterator[tuple[bytes, PromptPart]]:
    digest = hashlib.sha256()
    for part in parts:
        raw = part.text.encode("utf-8", "replace")
        digest.update(len(raw).to_bytes(8, "big") + raw)
        yield digest.digest(), part
