"""Measure this library's own CPU time for a turn while a conversation grows.

Run::

    python -m benchmarks.long_conversation [--turns 200] [--repeat 3] [--json]

One conversation for each row, with a catalog of 60 tools. A turn has three requests: a
call with a result of about 660 characters, another, an answer; every tenth searches first and
discovers a tool. The providers are the adapters without their SDK: a plan is encoded to the
bytes of its request, and a reply is read from parsed JSON, so that what the SDK, HTTP and
its JSON cost is left out. The store keeps every turn.

The figures are CPU milliseconds of the whole process a turn, the lowest of the repetitions:
the median of turns 1 to 10 (the 5th), of 96 to 105 (the 100th) and of the last ten, none of
which searches but one; and the turns that search, the 11th and the last of them. The command
fails if the last plain turn takes more than 1.5 times the 5th.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tool_search import MemoryStore, SQLiteStore, Tool, ToolSearchConfig, ToolSearchRunner
from tool_search.adapters.anthropic import reply as anthropic_reply
from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.adapters.openai_chat import reply as openai_chat_reply
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.adapters.openai_responses import reply as openai_responses_reply
from tool_search.adapters.openai_responses import wire as openai_responses_wire
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.messages import RequestPlan, ToolCall
from tool_search.core.profiles import ProviderProfile
from tool_search.core.settings import Dialect
from tool_search.providers.base import ReplyEnd, ReplyEvent
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.execution import ExecutionEvent, ExecutionResult, ToolContext

_TOOLS = 60

_RESULT = "A line of a report, with numbers such as 3.14 and names of people. " * 10
_WINDOW = 10
_MAX_GROWTH = 1.5
_MODELS: Mapping[str, tuple[Dialect, str, bool]] = {
    "anthropic, references": ("anthropic", "claude-sonnet-4-6", False),
    "anthropic, bound thinking": ("anthropic", "claude-opus-5-5", False),
    "openai_chat, filtered list": ("openai_chat", "gpt-5.4", False),
    "openai_chat, reasoning": ("openai_chat", "deepseek-v4-flash", False),
    "openai_responses, tool search": ("openai_responses", "gpt-5.5", False),
    "openai_responses, kept replies": ("openai_responses", "gpt-5.5", True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The CPU times of the turns of one conversation, in milliseconds."""

    provider: str
    store: str
    at_5: float
    at_100: float
    at_end: float
    first_search: float
    last_search: float
    body_bytes: int

    @property
    def growth(self) -> float:
        """The last turns in relation to the first."""
        return self.at_end / self.at_5


class OfflineProvider:
    """An adapter without its SDK: it encodes a request, and reads a fixed reply."""

    def __init__(self, profile: ProviderProfile) -> None:
        self.profile = profile
        self.step = 0
        self.turn = 0
        self.body_bytes = 0

    async def stream(self, plan: RequestPlan) -> AsyncIterator[ReplyEvent]:
        """Yield the whole reply at once."""
        encode, read = _ADAPTERS[self.profile.dialect]
        self.body_bytes = len(encode(plan, self.profile))
        number = f"{self.turn:04}{self.step}"
        reply = _REPLIES[self.profile.dialect](number, *self._answer_parts(number))
        self.step += 1
        yield read(reply, plan, self.profile)

    def _answer_parts(self, number: str) -> tuple[str, str, Mapping[str, Any] | None]:
        """Return the text, and the call with its arguments."""
        if self.step == 2:
            return f"Here is what I found, by number {number}. " * 6, "", None
        if self.step == 0 and self.turn % 10 == 0:
            return "", "tool_search", {"query": f"gadget {self.turn // 10 % _TOOLS:02}"}
        return "", f"gadget_{self.turn // 10 % _TOOLS:02}", {"part": number}


class Reports:
    """An executor whose tools all give the same report."""

    async def run(self, call: ToolCall, context: ToolContext) -> AsyncIterator[ExecutionEvent]:  # noqa: ARG002 - any call
        """Yield the one result."""
        yield ExecutionResult(content=_RESULT)


def _anthropic(number: str, text: str, name: str, arguments: Mapping[str, Any] | None) -> Any:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    thinking = f"The user wants number {number}. " * 8
    content.insert(0, {"type": "thinking", "thinking": thinking, "signature": number * 30})
    if arguments is not None:
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": dict(arguments)}
        content.append(use)
    return {"content": content, "stop_reason": "tool_use" if name else "end_turn"}


def _chat(number: str, text: str, name: str, arguments: Mapping[str, Any] | None) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    message["reasoning_content"] = f"The user wants number {number}. " * 8
    if arguments is not None:
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": f"call_{number}", "function": function}]
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


def _responses(number: str, text: str, name: str, arguments: Mapping[str, Any] | None) -> Any:
    item: dict[str, Any] = {"call_id": f"call_{number}", "arguments": arguments}
    if not name:
        part = {"type": "output_text", "text": text}
        item = {"type": "message", "role": "assistant", "content": [part]}
    elif name == "tool_search":
        item |= {"type": "tool_search_call", "execution": "client"}
    else:
        item |= {"type": "function_call", "name": name, "arguments": json.dumps(arguments)}
    thinking = {"type": "reasoning", "summary": [], "encrypted_content": number * 60}
    return {"id": f"resp_{number}", "output": [thinking, item]}


_Encode = Callable[[RequestPlan, ProviderProfile], bytes]
_Read = Callable[[object, RequestPlan, ProviderProfile], ReplyEnd]
_ADAPTERS: Mapping[str, tuple[_Encode, _Read]] = {
    "anthropic": (anthropic_wire.encode, anthropic_reply.from_wire),
    "openai_chat": (openai_chat_wire.encode, openai_chat_reply.from_wire),
    "openai_responses": (openai_responses_wire.encode, openai_responses_reply.from_wire),
}
_REPLIES = {"anthropic": _anthropic, "openai_chat": _chat, "openai_responses": _responses}


def catalog() -> ToolCatalog:
    """Return tools that are found by their number."""
    schema = {"type": "object", "properties": {"part": {"type": "string"}}, "required": ["part"]}
    return ToolCatalog(
        Tool(name=f"gadget_{n:02}", description=f"Runs the gadget {n:02}.", parameters=schema)
        for n in range(_TOOLS)
    )


async def conversation(name: str, store: MemoryStore | SQLiteStore, turns: int) -> Row:
    """Return one conversation from its first turn to its last."""
    dialect, model, keeps = _MODELS[name]
    provider = OfflineProvider(profile_for(dialect, model, keeps_replies=keeps))
    runner = ToolSearchRunner(
        providers={"p": provider},
        catalog=catalog(),
        executor=Reports(),
        config=ToolSearchConfig(tool_schema_mode="tool_search"),
        system_prompt="You are the assistant of a group chat. Answer briefly.",
        store=store,
    )
    spent = []
    for number in range(turns):
        provider.turn, provider.step = number, 0
        began = time.process_time()
        async with aclosing(runner.run(f"And number {number}, please. " * 6)) as events:
            async for _ in events:
                pass
        spent.append(1e3 * (time.process_time() - began))
    middle = spent[turns // 2 - _WINDOW // 2 : turns // 2 + _WINDOW // 2]
    return Row(
        provider=name,
        store=type(store).__name__.removesuffix("Store"),
        at_5=statistics.median(spent[:_WINDOW]),
        at_100=statistics.median(middle),
        at_end=statistics.median(spent[-_WINDOW:]),
        first_search=spent[10],
        last_search=spent[(turns - 1) // 10 * 10],
        body_bytes=provider.body_bytes,
    )


async def measured(name: str, store: str, turns: int, repeat: int) -> Row:
    """Return the lowest figures of several conversations."""
    rows = []
    for _ in range(repeat + 1):
        async with AsyncExitStack() as stack:
            kept: MemoryStore | SQLiteStore = MemoryStore()
            if store == "SQLite":
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                kept = await stack.enter_async_context(SQLiteStore(Path(folder) / "kept.db"))
            gc.collect()
            rows.append(await conversation(name, kept, turns))
    return Row(
        provider=name,
        store=store,
        at_5=min(row.at_5 for row in rows[1:]),
        at_100=min(row.at_100 for row in rows[1:]),
        at_end=min(row.at_end for row in rows[1:]),
        first_search=min(row.first_search for row in rows[1:]),
        last_search=min(row.last_search for row in rows[1:]),
        body_bytes=rows[0].body_bytes,
    )


def main() -> int:
    """Print the table; return 1 if a row grows beyond its limit."""
    parser = argparse.ArgumentParser(description="Measures our own CPU time a turn.")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [
        asyncio.run(measured(name, store, options.turns, options.repeat))
        for name in _MODELS
        for store in ("Memory", "SQLite")
    ]
    if options.json:
        print(json.dumps([{**asdict(row), "growth": row.growth} for row in rows], indent=1))
    else:
        print("| provider | store | 5th | 100th | last | growth | searching | last | body |")
        print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
        for row in rows:
            figures = (
                row.at_5, row.at_100, row.at_end, row.growth, row.first_search, row.last_search,
            )  # fmt: skip
            listed = " | ".join(f"{figure:.2f}" for figure in figures)
            print(f"| {row.provider} | {row.store} | {listed} | {row.body_bytes:,} |")
    return int(any(row.growth > _MAX_GROWTH for row in rows))


if __name__ == "__main__":
    sys.exit(main())
