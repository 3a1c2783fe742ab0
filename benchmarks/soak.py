"""Run thousands of conversations over eight workers on one Redis, with failures.

Run: PYTHONPATH=. python benchmarks/soak.py [--conversations 2000] [--turns 3] [--seconds 120]
(needs redis-server). Message n of conversation c goes to worker c + n, so that each conversation
moves between workers. A turn searches for a tool when its conversation has none, calls it, and
answers. The models answer in this process at once, so that what is measured is ours; the primary
fails in 5 % of its requests. While the turns go on, workers and the server are killed and started
again. A worker that was killed gets its messages again and answers those that are not kept.
Memory flattens once a worker has 1,024 conversations open: --conversations 40000 --turns 1.

It prints the turns a second, the time of a turn that is not spent in requests to Redis as a ratio
to the time of those requests, the memory of workers, and what was lost, doubled or mixed: the
program fails if anything was. Redis writes each change to the disk before it answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.stores.redis.servers import RedisServer, running
from tool_search import (
    Done,
    ExecutableTool,
    Message,
    ProviderError,
    RequestPlan,
    Tool,
    ToolCall,
    ToolSearchConfig,
    ToolSearchRunner,
    profile_for,
)
from tool_search.providers.base import ReplyEnd, Usage
from tool_search.runner import conversations as turn_lock
from tool_search.stores.redis import RedisStore

_WORKERS = 8
_AT_ONCE = 4
_FEW = 10
_TOOLS = 40
_FAULTS = 0.05
_LEASE_S = 5.0
_PATIENCE_S = 30.0
_KILL_EVERY_S = 6.0
_RESTART_EVERY_S = 17.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Job:
    """The order of a worker: the server, and its share of the messages."""

    url: str
    notes: Path
    worker: int
    conversations: int
    turns: int
    ends: float


class Model:
    """A model in this process that finds, calls and reports the tool of a conversation."""

    def __init__(self, name: str, faults: float, chance: random.Random) -> None:
        self.profile = profile_for("openai_chat", "gpt-5.4", strategy="generic")
        self._name, self._faults, self._chance = name, faults, chance

    async def stream(self, plan: RequestPlan) -> AsyncIterator[ReplyEnd]:
        """Yield the whole reply at once, or fail."""
        if self._chance.random() < self._faults:
            raise ProviderError("overloaded", provider=self._name, status=503)
        said = next(m.text for m in reversed(plan.messages) if m.role == "user")
        tool = f"gadget_{int(said.split()[0][1:]) % _TOOLS:02}"
        last, used = plan.messages[-1], {m.name for m in plan.messages if m.role == "tool"}
        if last.role == "tool" and last.name == tool:
            yield _reply(f"Answer to {said}.")
        elif tool in used or last.role == "tool":
            yield _reply("", tool, {"part": said})
        else:
            yield _reply("", "tool_search", {"query": tool.replace("_", " ")})


def _reply(text: str, name: str = "", arguments: dict[str, Any] | None = None) -> ReplyEnd:
    calls: tuple[ToolCall, ...] = ()
    if name:
        call_id = f"call_{random.getrandbits(64):x}"
        calls = (ToolCall(id=call_id, name=name, arguments=json.dumps(arguments)),)
    message = Message(role="assistant", content=text, tool_calls=calls)
    reason: Any = "calls" if name else "answer"
    return ReplyEnd(message=message, stop_reason=reason, usage=Usage())


class TimedStore(RedisStore):
    """A store that adds up the time of its requests, by task."""

    def __init__(self, url: str) -> None:
        super().__init__(url, patience_s=_PATIENCE_S)
        self.spent: dict[asyncio.Task[Any] | None, list[float]] = {}
        run = self._connection.run

        async def timed(*arguments: Any) -> Any:
            began = time.perf_counter()
            try:
                return await run(*arguments)
            finally:
                spent = self.spent.get(asyncio.current_task())
                if spent is not None:
                    spent.append(time.perf_counter() - began)

        self._connection.run = timed  # type: ignore[assignment,method-assign]


def work(job: Job) -> None:
    """Answer the messages of one worker; a line of notes for each that was answered."""
    turn_lock._LEASE_S = _LEASE_S  # noqa: SLF001  # a dead worker's lock ends soon
    asyncio.run(_work(job))


async def _work(job: Job) -> None:
    known = {line["message"] for line in _lines(job.notes)}
    waiting = [
        (c, n)
        for n in range(job.turns)
        for c in range(job.conversations)
        if (c + n) % _WORKERS == job.worker and f"c{c} message {n}" not in known
    ]
    chance = random.Random(job.worker)
    models = {"a": Model("a", _FAULTS, chance), "b": Model("b", 0.0, chance)}
    async with TimedStore(job.url) as store:
        runner = ToolSearchRunner(
            providers=models,
            tools=[_tool(number) for number in range(_TOOLS)],
            config=ToolSearchConfig(tool_schema_mode="tool_search"),
            store=store,
            cooldown_s=0.0,
        )
        left = iter(enumerate(waiting))

        async def answer() -> None:
            for place, (c, n) in left:
                if time.time() > job.ends:
                    return
                # The first ones may be kept and not noted: the last worker was killed.
                await _answer(runner, store, job, f"c{c}", n, is_new=place >= 2 * _AT_ONCE)

        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(answer())
        await runner.aclose()


async def _answer(
    runner: ToolSearchRunner, store: TimedStore, job: Job, key: str, n: int, *, is_new: bool
) -> None:
    message = f"{key} message {n}"
    kept = None if is_new else await store.load(key)
    is_kept = kept is not None and any(m.text == f"Answer to {message}." for m in kept.history)
    line: dict[str, Any] = {"message": message}
    if not is_kept:
        spent = store.spent[asyncio.current_task()] = []
        began = time.perf_counter()
        events = [event async for event in runner.run(message, conversation=key)]
        took = time.perf_counter() - began
        del store.spent[asyncio.current_task()]
        line["is_answered"] = (
            isinstance(events[-1], Done) and events[-1].answer == f"Answer to {message}."
        )
        line |= {"took": took, "store": sum(spent), "requests": len(spent), "memory": _memory()}
    with job.notes.open("a", encoding="utf-8") as notes:
        notes.write(json.dumps(line) + "\n")


def _tool(number: int) -> ExecutableTool:
    schema = {"type": "object", "properties": {"part": {"type": "string"}}, "required": ["part"]}
    name = f"gadget_{number:02}"
    tool = Tool(name=name, description=f"Runs the gadget {number:02}.", parameters=schema)

    async def run(part: str) -> str:
        return f"{name} ran for {part}"

    return ExecutableTool(tool=tool, function=run)


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    whole = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line) for line in whole]


def soak(server: RedisServer, folder: Path, conversations: int, turns: int, seconds: float) -> None:
    """Run the workers to their end, with kills; print and check what came of it."""
    ends, began = time.time() + seconds, time.monotonic()
    jobs = [
        Job(server.url, folder / f"{n}.notes", n, conversations, turns, ends)
        for n in range(_WORKERS)
    ]
    context = multiprocessing.get_context("spawn")
    workers: list[BaseProcess] = [context.Process(target=work, args=(job,)) for job in jobs]
    for worker in workers:
        worker.start()
    kills, restarts = _kill_until_done(server, jobs, workers)
    took = time.monotonic() - began
    lines = [line for job in jobs for line in _lines(job.notes)]
    asyncio.run(_check(server.url, lines, conversations))
    _report(lines, took, conversations * turns)
    print(f"kills of a worker: {kills}; kills and restarts of Redis: {restarts}")
    # The first worker is never killed: a new process would be smaller.
    memory = [line["memory"] for line in _lines(jobs[0].notes)]
    print(f"memory of the worker that was not killed: {_growth(memory)}")


def _kill_until_done(
    server: RedisServer, jobs: Sequence[Job], workers: list[BaseProcess]
) -> tuple[int, int]:
    chance = random.Random(1)
    kills = restarts = 0
    next_kill, next_restart = time.monotonic() + _KILL_EVERY_S, time.monotonic() + _RESTART_EVERY_S
    while any(worker.is_alive() for worker in workers):
        time.sleep(0.05)
        alive = [n for n, worker in enumerate(workers) if n and worker.is_alive()]
        if alive and time.monotonic() > next_kill:
            place = chance.choice(alive)
            workers[place].kill()
            workers[place].join()
            context = multiprocessing.get_context("spawn")
            workers[place] = context.Process(target=work, args=(jobs[place],))
            workers[place].start()
            kills, next_kill = kills + 1, time.monotonic() + _KILL_EVERY_S
        if alive and time.monotonic() > next_restart:
            server.kill()
            server.start()
            restarts, next_restart = restarts + 1, time.monotonic() + _RESTART_EVERY_S
    return kills, restarts


async def _check(url: str, lines: Sequence[dict[str, Any]], conversations: int) -> None:
    """Fail if a turn or a discovery was lost, doubled or mixed."""
    answered = {line["message"] for line in lines}
    _must(len(answered) == len(lines), "a message was answered twice")
    _must(all(line.get("is_answered", True) for line in lines), "a turn has another answer")
    heard: list[str] = []
    async with RedisStore(url) as store:
        for c in range(conversations):
            record = await store.load(f"c{c}")
            if record is None:
                continue
            texts = [m.text for m in record.history if m.role == "user"]
            _must(all(text.startswith(f"c{c} ") for text in texts), "conversations are mixed")
            found = {entry.name for entry in record.discoveries}
            _must(f"gadget_{c % _TOOLS:02}" in found, f"c{c} lost its discovery: {found}")
            heard += [m.text for m in record.history if m.text.startswith("Answer to ")]
    _must(len(set(heard)) == len(heard), "an answer is kept twice")
    lost = {f"Answer to {message}." for message in answered} - set(heard)
    _must(not lost, f"answers are lost: {sorted(lost)[:5]}")


def _must(condition: object, problem: str) -> None:
    if not condition:
        raise SystemExit(f"failed: {problem}")


def _report(lines: Sequence[dict[str, Any]], took: float, wanted: int) -> None:
    timed = [line for line in lines if "took" in line]
    own = sorted((line["took"] - line["store"]) / line["store"] for line in timed)
    requests = statistics.median(line["requests"] for line in timed)
    print(f"turns: {len(lines)} of {wanted}, all answered; {len(lines) / took:.0f} a second")
    print(f"requests to Redis a turn: {requests:g} (median)")
    store = statistics.median(line["store"] for line in timed)
    print(f"time in requests a turn: {store * 1e3:.1f} ms (median)")
    p50, p99 = own[len(own) // 2], own[len(own) * 99 // 100]
    print(f"other time a turn, as a ratio to them: p50 {p50:.2f}, p99 {p99:.2f}")


def _growth(memory: Sequence[int]) -> str:
    """Return the memory at each quarter of the worker's turns."""
    if len(memory) < 4 * _FEW:
        return "too few turns"
    ends = (len(memory) * quarter // 4 for quarter in range(1, 5))
    sizes = [f"{max(memory[end - _FEW : end]) / 2**20:.1f}" for end in ends]
    return f"{', '.join(sizes)} MiB after each quarter of its {len(memory)} turns"


def main() -> None:
    """Read the options, and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--conversations", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "redis") as server:
        soak(server, Path(folder), options.conversations, options.turns, options.seconds)


if __name__ == "__main__":
    main()
