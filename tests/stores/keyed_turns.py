"""Workers of one bot that answer messages under keys, and are killed at any moment."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import time
from collections import Counter
from contextlib import aclosing
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from tests.runner.bench import KEY, SEARCHING, assert_paired, call, calling, say, tool
from tests.stores.writers import Notes, read_notes
from tool_search import (
    Done,
    ExecutableTool,
    ProviderConfig,
    SessionError,
    ToolFinished,
    ToolSearchRunner,
)
from tool_search.adapters import build_provider
from tool_search.runner import conversations as turn_lock
from tool_search.stores import SQLiteStore
from tool_search.stores.redis import RedisStore
from tool_search.testing import ModelReply, ModelView, StandInServer

_LEASE_S = 1.0  # a killed worker's conversation waits for so long on Redis
_PATIENCE_S = 120.0
_CONVERSATIONS = 5
# Importing these takes a worker longer than its turn.
_USED = (
    "openai.resources.chat.completions",
    "tool_search.adapters.openai_chat.provider",
    "tool_search.search.engines.bm25",
)

Place = tuple[str, str]
"""The address of a Redis server and a prefix, or the path of a file and an empty text."""


class Charging:
    """A model that charges once for a user's message, and says what came of it."""

    def reply(self, view: ModelView) -> ModelReply:
        if view.results:
            return say(f"Result: {view.results[-1].text}")
        return calling(call("charge", {"whom": view.last_user_text}))


def open_store(place: Place) -> RedisStore | SQLiteStore:
    """Return the store of the workers."""
    address, prefix = place
    return RedisStore(address, prefix=prefix) if prefix else SQLiteStore(address, patience_s=30)


def answer(place: Place, base_url: str, notes: str, message: str, key: str) -> None:
    """Answer one message; note its effect, its results and its end."""
    turn_lock._LEASE_S = _LEASE_S
    asyncio.run(_answer(place, base_url, Notes(notes), message, key))


async def _answer(place: Place, base_url: str, notes: Notes, message: str, key: str) -> None:
    async def charge(whom: str) -> str:
        await asyncio.sleep(random.random() * 0.05)
        notes.add("charged", whom)
        await asyncio.sleep(random.random() * 0.1)
        return f"charged {whom}"

    provider = build_provider(
        ProviderConfig(
            id="gpt", type="openai_chat", model="gpt-5.4", base_url=base_url, api_key_env=None
        ),
        api_key=KEY,
    )
    defined = tool("charge", "Charge somebody.", "whom", always_load=True)
    tools = [ExecutableTool(tool=defined, function=charge)]
    async with open_store(place) as store:
        runner = ToolSearchRunner(
            providers={"gpt": provider}, tools=tools, config=SEARCHING, store=store
        )
        notes.add("ready", message)
        while not await _run(runner, notes, message, key):
            pass
        await runner.aclose()
    await provider.aclose()


async def _run(runner: ToolSearchRunner, notes: Notes, message: str, key: str) -> bool:
    """Return True if the turn came to its end, False if its client has to ask again."""
    turn = runner.run(message, conversation=key, user="ann", idempotency_key=message)
    try:
        async with aclosing(turn) as events:
            async for event in events:
                if isinstance(event, ToolFinished):
                    notes.add("result", event.content)
                elif isinstance(event, Done):
                    notes.add("answer", event.answer)
    except SessionError as exc:
        # On a busy machine a worker may stand still for longer than its short lease.
        if "run the turn again" not in str(exc):
            raise
        return False
    return True


class Trial:
    """Turns whose first worker is killed, and that another one is asked for again."""

    def __init__(self, place: Place, folder: Path) -> None:
        self._place, self._folder = place, folder
        self._context: ForkServerContext = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.stores.keyed_turns", *_USED])
        self.killed = self.uncertain = 0

    def run(self, turns: int) -> None:
        """Run all turns, then look at effects, answers and histories."""
        with StandInServer(model=Charging()) as server:
            for number in range(turns):
                self._turn(number, server.openai_base_url)
        asyncio.run(self._check(turns))

    def _turn(self, number: int, base_url: str) -> None:
        chance, message = random.Random(number), f"m{number}"
        key = f"c{number % _CONVERSATIONS}"
        first, second = (self._folder / f"{message}.{side}" for side in "ab")

        def start(notes: Path) -> ForkServerProcess:
            arguments = (self._place, base_url, str(notes), message, key)
            worker = self._context.Process(target=answer, args=arguments)
            worker.start()
            return worker

        workers = [start(first)]
        # The moments that matter are near the effect: half of the kills wait for it.
        _wait_for(first, chance.choice((("ready",), ("charged", "answer"))), workers[0])
        time.sleep(chance.random() * 0.05)
        if chance.random() < 0.9:
            workers[0].kill()
            self.killed += not any(kind == "answer" for kind, _ in read_notes(first))
        workers.append(start(second))
        for worker in workers:
            worker.join(_PATIENCE_S)
            worker.close()

    async def _check(self, turns: int) -> None:
        """Each effect happened once or may have happened, and no message is there twice."""
        messages = [f"m{number}" for number in range(turns)]
        for message in messages:
            first, second = (read_notes(self._folder / f"{message}.{side}") for side in "ab")
            charged = Counter(text for kind, text in first + second if kind == "charged")
            (said,) = [text for kind, text in second if kind == "answer"]
            *_, result = [text for kind, text in second if kind == "result"]
            assert said == f"Result: {result}"
            if "may have run" in result:
                self.uncertain += 1
                assert charged[message] <= 1
            else:
                assert (result, charged) == (f"charged {message}", {message: 1})
        heard: list[str] = []
        async with open_store(self._place) as store:
            for number in range(min(turns, _CONVERSATIONS)):
                record = await store.load(f"c{number}")
                assert record is not None
                assert_paired(record.history)
                heard += [said.text for said in record.history if said.role == "user"]
        assert sorted(heard) == sorted(messages)


def _wait_for(notes: Path, kinds: tuple[str, ...], worker: ForkServerProcess) -> None:
    ended = time.monotonic() + _PATIENCE_S
    while not any(kind in kinds for kind, _ in read_notes(notes)):
        assert worker.exitcode is None, f"a worker ended by itself: {worker.exitcode}"
        assert time.monotonic() < ended, f"{notes}: no {kinds} within {_PATIENCE_S} s"
        time.sleep(0.001)
