"""Compare a thousand conversations in one process with the same turns of a bare SDK loop.

Run it with `python benchmarks/load.py` (about five minutes; `--write` keeps the table in
load.md). A server in a process of its own answers over HTTP on loopback: a user's message
with a call of a tool, its result with an answer; 5 % of its replies fail (503, 429, a stream
that breaks off). Both loops use the openai SDK, streams, and the same 40 tools: the bare one
declares them all and runs the call itself, the runner searches for them.

It prints the time of a turn as a ratio to the bare loop's, the longest time that a single
callback kept the event loop's thread busy (`time.thread_time`), the memory after 2,000 and
after 4,000 conversations, and the tasks and threads left at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import threading
import time
from asyncio import events as asyncio_events
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import openai

from tool_search import (
    AllProvidersFailedError,
    Done,
    ExecutableTool,
    MemoryStore,
    ProviderConfig,
    Tool,
    ToolSearchConfig,
    ToolSearchRunner,
)
from tool_search.adapters import build_provider

_TOOLS = 40
_FAULTS = 0.05
_AT_ONCE = 16
_PAGE = 4096


# -- the service, in a process of its own ------------------------------------------------------


def serve(pipe: Any, seed: int) -> None:
    """Answer until the process is ended; send the port first."""
    asyncio.run(_serve(pipe, seed))


async def _serve(pipe: Any, seed: int) -> None:
    chance = Random(seed)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await _exchange(reader, writer, chance):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, limit=1 << 24)
    pipe.send(server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chance: Random
) -> bool:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.split("content-length:")[1].split("\r\n")[0])
    body = json.loads(await reader.readexactly(length))
    faulty = chance.random() < _FAULTS
    kind = chance.choice(("unavailable", "limited", "broken")) if faulty else ""
    if kind in ("unavailable", "limited"):
        status = "503 Service Unavailable" if kind == "unavailable" else "429 Too Many Requests"
        data = b'{"error":{"message":"not now","type":"server_error"}}'
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
        writer.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
        await writer.drain()
        return True
    data = _reply(body)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
    writer.write(b"content-length: %d\r\n\r\n" % len(data))
    writer.write(data[: len(data) // 2] if kind else data)
    await writer.drain()
    return not kind


def _reply(body: dict[str, Any]) -> bytes:
    declared = [tool["function"]["name"] for tool in body["tools"]]
    last = body["messages"][-1]
    if last["role"] == "tool" and "matches" not in last["content"]:
        deltas: list[dict[str, Any]] = [{"content": word} for word in ("It ", "is ", "done.")]
        reason = "stop"
    else:
        wanted = str(_last_user(body)).rpartition(" ")[2]
        name = wanted if wanted in declared else "tool_search"
        arguments = {"part": "x"} if name == wanted else {"query": wanted.replace("_", " ")}
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call_{len(body['messages'])}", "type": "function"}
        deltas, reason = [{"tool_calls": [{**call, "function": function}]}], "tool_calls"
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    lines = [f"data: {json.dumps({'id': 'c', **chunk})}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def _last_user(body: dict[str, Any]) -> object:
    return next(m["content"] for m in reversed(body["messages"]) if m["role"] == "user")


@contextmanager
def service(seed: int) -> Iterator[str]:
    """Run the server during the block, and yield its base address."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=serve, args=(theirs, seed), daemon=True
    )
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/v1"
    finally:
        process.terminate()
        process.join()


# -- the two loops -----------------------------------------------------------------------------


def tools() -> list[Tool]:
    """Definitions that both loops have."""
    schema = {"type": "object", "properties": {"part": {"type": "string"}}, "required": ["part"]}
    return [
        Tool(name=f"gadget_{n:03}", description=f"Runs gadget {n:03}.", parameters=schema)
        for n in range(_TOOLS)
    ]


def message(conversation: int, turn: int) -> str:
    """Return a user's message, which asks for one of the tools."""
    return f"Please run gadget_{(conversation * 7 + turn) % _TOOLS:03}"


@dataclass
class Bare:
    """The simplest bot: the SDK, a list of messages, a loop; three tries a request."""

    client: openai.AsyncOpenAI
    histories: dict[int, list[Any]] = field(default_factory=dict)
    definitions: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        for tool in tools():
            function: dict[str, Any] = {"name": tool.name, "description": tool.description}
            function |= {"parameters": dict(tool.parameters)}
            self.definitions.append({"type": "function", "function": function})

    async def turn(self, conversation: int, turn: int) -> bool:
        """Return True if there was an answer."""
        history = self.histories.setdefault(conversation, [])
        history.append({"role": "user", "content": message(conversation, turn)})
        while True:
            text, calls = await self._asked(history)
            history.append({"role": "assistant", "content": text, "tool_calls": calls or None})
            if not calls:
                return bool(text)
            for call in calls:
                arguments = json.loads(call["function"]["arguments"])
                result = {"role": "tool", "tool_call_id": call["id"], "content": f"ok {arguments}"}
                history.append(result)

    async def _asked(self, history: list[Any]) -> tuple[str, list[Any]]:
        for tries in range(3):
            try:
                return await self._reply(history)
            except (openai.APIError, RuntimeError):
                if tries == 2:
                    raise
        raise AssertionError

    async def _reply(self, history: list[Any]) -> tuple[str, list[Any]]:
        text, calls, reason = "", [], None
        stream: Any = await self.client.chat.completions.create(
            model="m", messages=history, tools=self.definitions, stream=True
        )
        async for chunk in stream:
            choice = chunk.choices[0]
            text += choice.delta.content or ""
            calls += [call.model_dump(exclude={"index"}) for call in choice.delta.tool_calls or ()]
            reason = choice.finish_reason or reason
        if reason is None:
            raise RuntimeError("the stream broke off")
        return text, calls


@dataclass
class Ours:
    """The runner, the service as its primary and as its fallback."""

    runner: ToolSearchRunner

    async def turn(self, conversation: int, turn: int) -> bool:
        """Return True if there was an answer."""
        said = message(conversation, turn)
        answered = False
        async for event in self.runner.run(said, conversation=f"c{conversation}"):
            answered |= isinstance(event, Done) and bool(event.answer)
        return answered


@asynccontextmanager
async def ours(address: str) -> AsyncIterator[Ours]:
    """Yield a runner with two providers at the service."""
    configs = [
        ProviderConfig(
            id=name, type="openai_chat", model="m", base_url=address, api_key_env=None, cooldown_s=0
        )
        for name in ("first", "second", "third")
    ]
    providers = {c.id: build_provider(c, api_key="unused", fallbacks=True) for c in configs}

    def run(part: str) -> str:
        return f"ok {part}"

    runner = ToolSearchRunner(
        providers=providers,
        tools=[ExecutableTool(tool=tool, function=_asynchronous(run)) for tool in tools()],
        config=ToolSearchConfig(tool_schema_mode="tool_search"),
        store=MemoryStore(),
        cooldown_s=0,
        max_concurrent_turns=_AT_ONCE,
    )
    try:
        yield Ours(runner)
    finally:
        await runner.aclose()
        for provider in providers.values():
            await provider.aclose()


def _asynchronous(function: Callable[..., str]) -> Callable[..., Awaitable[str]]:
    async def run(part: str) -> str:
        return function(part)

    return run


# -- what is measured --------------------------------------------------------------------------


@dataclass
class Holds:
    """The longest times that single callbacks kept the loop's thread busy, in seconds.

    Attributes:
        longest: Each with its callback, garbage collection taken off.
        longest_collection: Of Python's garbage collection, which any callback may begin.
    """

    longest: list[tuple[float, str]] = field(default_factory=list)
    longest_collection: float = 0.0
    _collected: float = 0.0
    _began: float = 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Time every callback of every loop of this thread."""
        plain = asyncio_events.Handle._run  # noqa: SLF001 - the loop has no public hook for it

        def timed(handle: asyncio_events.Handle) -> None:
            began, collected = time.thread_time(), self._collected
            plain(handle)
            took = time.thread_time() - began - (self._collected - collected)
            if took > 0.002:
                self.longest.append((took, repr(handle)[:160]))

        gc.callbacks.append(self._on_collection)
        asyncio_events.Handle._run = timed  # type: ignore[method-assign,assignment]  # noqa: SLF001
        try:
            yield
        finally:
            asyncio_events.Handle._run = plain  # type: ignore[method-assign]  # noqa: SLF001
            gc.callbacks.remove(self._on_collection)

    def _on_collection(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
            return
        took = time.thread_time() - self._began
        self._collected += took
        self.longest_collection = max(self.longest_collection, took)


async def timed_turns(
    turn: Callable[[int, int], Awaitable[bool]], first: int, conversations: int, turns: int
) -> tuple[list[float], int]:
    """Return the seconds of each turn and the number without an answer, 16 at once."""
    seconds: list[float] = []
    failed = 0
    waiting = iter(range(first, first + conversations))

    async def worker() -> None:
        nonlocal failed
        for conversation in waiting:
            for number in range(turns):
                began = time.perf_counter()
                try:
                    answered = await turn(conversation, number)
                except (openai.APIError, RuntimeError, AllProvidersFailedError):
                    answered = False
                seconds.append(time.perf_counter() - began)
                failed += not answered

    await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))
    return seconds, failed


def percentile(seconds: list[float], share: float) -> float:
    """Return a percentile in milliseconds."""
    return sorted(seconds)[int(share * (len(seconds) - 1))] * 1000


def resident_mib() -> float:
    """Return the memory that this process uses."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 2**20


async def measure(conversations: int, turns: int) -> list[str]:
    """Run both loops; return the lines of the table."""
    lines = [
        "| loop | turns | p50 ms | p99 ms | CPU ms a turn | without an answer |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    rows: dict[str, tuple[list[float], float]] = {}
    holds = Holds()
    with service(1) as address:
        async with openai.AsyncOpenAI(api_key="x", base_url=address, max_retries=0) as client:
            for name, limit in (("warm-up", 20), ("bare SDK loop", conversations)):
                began = time.process_time()
                seconds, failed = await timed_turns(Bare(client).turn, 0, limit, turns)
                rows[name] = seconds, (time.process_time() - began) / len(seconds) * 1000
        lines.append(_row("bare SDK loop", *rows["bare SDK loop"], failed))
        async with ours(address) as bot:
            await timed_turns(bot.turn, 0, 20, turns)
            with holds.watched():
                began = time.process_time()
                seconds, failed = await timed_turns(bot.turn, 100, conversations, turns)
                rows["runner"] = seconds, (time.process_time() - began) / len(seconds) * 1000
            lines.append(_row("runner", *rows["runner"], failed))
            lines += _comparison(rows, holds)
            lines += await _memory(bot, conversations)
        await asyncio.sleep(0.1)
    left = len(asyncio.all_tasks()) - 1
    working = [t.name for t in threading.enumerate() if t.name.startswith("tool-")]
    busy = [name for name in working if name != "tool-idle"]
    return [*lines, "", f"Left running: {left} tasks, {len(busy)} threads of tools."]


def _row(name: str, seconds: list[float], cpu: float, failed: int) -> str:
    p50, p99 = percentile(seconds, 0.5), percentile(seconds, 0.99)
    return f"| {name} | {len(seconds):,} | {p50:.1f} | {p99:.1f} | {cpu:.1f} | {failed} |"


def _comparison(rows: dict[str, tuple[list[float], float]], holds: Holds) -> list[str]:
    (bare, bare_cpu), (own, own_cpu) = rows["bare SDK loop"], rows["runner"]
    ratios = [percentile(own, share) / percentile(bare, share) for share in (0.5, 0.99)]
    longest = sorted(holds.longest, reverse=True)
    worst = longest[0][0] * 1000 if longest else 0.0
    turn = (
        f"A turn of the runner takes {ratios[0]:.2f} times the bare one's at the median, "
        f"{ratios[1]:.2f} times at p99, and {own_cpu / bare_cpu:.2f} times its CPU."
    )
    hold = (
        f"The longest hold of the event loop: {worst:.1f} ms of CPU in one callback "
        f"({sum(took > 0.02 for took, _ in longest)} above 20 ms), garbage collection apart: "
        f"its longest run took {holds.longest_collection * 1000:.1f} ms."
    )
    return ["", turn, hold]


async def _memory(bot: Ours, conversations: int) -> list[str]:
    marks: list[str] = []
    have = 100 + conversations
    for thousands in (2, 4):
        more = max(0, 100 + thousands * 1_000 - have)
        await timed_turns(bot.turn, have, more, 1)
        have += more
        marks.append(f"{resident_mib():.0f} MiB after {thousands},000 conversations")
    return [f"Memory: {', '.join(marks)}."]


def main() -> None:
    """Measure, print, and keep the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--conversations", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--write", action="store_true", help="keep the table in load.md")
    given = parser.parse_args()
    lines = asyncio.run(measure(given.conversations, given.turns))
    text = "\n".join(lines)
    print(text)
    if given.write:
        command = f"python benchmarks/load.py --conversations {given.conversations}"
        head = f"# Load\n\nMade by `{command} --turns {given.turns} --write`.\n\n"
        Path(__file__).with_suffix(".md").write_text(f"{head}{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
