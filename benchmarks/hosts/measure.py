"""Measure the tool searches of one framework; write one line of JSON for each.

Run by benchmarks/frameworks.py in the framework's own environment, which has this library too.
A module `with_NAME.py` has `PACKAGE` and `SYSTEMS`. Rankings are those of the first ten tools,
asked in the way that the framework asks them.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

from tool_search.core.catalog.tool import estimate_tokens
from tool_search.testing import ModelCall, ModelReply, ModelView, StandInServer

Row = Mapping[str, Any]
Search = Callable[[str], Sequence[str]]
FOUND = 5
PASSES = 3
PROMPT = "You are the assistant of a group chat. Answer briefly."


@dataclass(frozen=True, slots=True)
class Need:
    """A user's question, and the call that a good model makes of it."""

    text: str
    query: str
    tool: str
    arguments: Mapping[str, Any]


TURNS = (
    Need("Count these words.", "count words in a text", "count_words", {"text": "to be or not"}),
    Need(
        "How many kilometres are 3 miles?",
        "convert length units",
        "convert_length",
        {"value": 3, "from_unit": "mile", "to_unit": "km"},
    ),
    Need("Count words once more.", "count words in a text", "count_words", {"text": "that is it"}),
    Need("Is 2028 a leap year?", "leap year", "is_leap_year", {"year": 2028}),
    Need("我的 BMI 是多少？", "计算身体质量指数", "bmi", {"weight_kg": 70, "height_cm": 175}),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One tool search inside a framework.

    Attributes:
        name: Its name in the tables.
        own: True for the framework's own search.
        rank: Makes the ranking of a set's tools; None: it cannot be asked alone.
        converse: Holds the conversation with a provider; None: it has no conversations.
        dialect: The dialect of the conversation.
    """

    name: str
    own: bool
    rank: Callable[[Sequence[Row]], Search] | None = None
    converse: Callable[[StandInServer], Awaitable[None]] | None = None
    dialect: str = "openai_chat"


class GoodModel:
    """A model that knows the tool of each turn, and searches if it does not see that tool.

    Attributes:
        right: The number of turns in which it could call the tool.
    """

    def __init__(self) -> None:
        self.right = 0

    def reply(self, view: ModelView) -> ModelReply:
        """Return a call of the needed tool, a search for it, or an answer."""
        need = next(each for each in TURNS if each.text == view.last_user_text)
        called = [call.name for call in view.calls]
        inner = [call.arguments.get("name") for call in view.calls if call.name == "call_tool"]
        if need.tool in (*called, *inner):
            self.right += 1
            return ModelReply(text="Here it is.")
        if view.tool(need.tool) is not None:
            return _calling(need.tool, need.arguments)
        # A host without a list that grows: what was found is called through a tool of its own.
        shown = " ".join(r.text for message in view.messages for r in message.results)
        if view.tool("call_tool") is not None and f'"{need.tool}"' in shown:
            given = {"name": need.tool, "arguments": dict(need.arguments)}
            return _calling("call_tool", given)
        search = view.tool("tool_search") or view.tool("search_tools")
        if search is None or search.name in called:
            return ModelReply(text="I have no tool for that.")
        return _calling(search.name, _search_arguments(search.parameters, need.query))


def _calling(name: str, arguments: Mapping[str, Any]) -> ModelReply:
    return ModelReply(calls=(ModelCall(name=name, arguments=arguments),))


def _search_arguments(schema: Mapping[str, Any], query: str) -> Mapping[str, Any]:
    properties = schema.get("properties") or {}
    if "queries" in properties:
        return {"queries": [query]}
    return {"pattern": "|".join(query.split())} if "pattern" in properties else {"query": query}


async def conversation(
    name: str, converse: Callable[[StandInServer], Awaitable[None]]
) -> dict[str, Any]:
    """Return the figures of the conversation with a system."""
    model = GoodModel()
    with StandInServer(model=model) as server:
        await converse(server)
        if server.violations:
            raise SystemExit(f"{name}: {server.violations[0]}")
        bodies: list[Any] = [request.body for request in server.requests]
    lists = [body.get("tools", []) for body in bodies]
    return {
        "requests": len(bodies),
        "entries": [len(each) for each in lists],
        "declared": [_declared_tokens(each) for each in lists],
        "shown": [
            _declared_tokens(body.get("tools", [])) + _tokens(_rest(body)) for body in bodies
        ],
        "prefix": all(late[: len(early)] == early for early, late in pairwise(lists)),
        "right": model.right,
    }


def _declared_tokens(tools: Sequence[Any]) -> int:
    # The service shows a deferred definition to the model where a reference names it.
    return sum(_tokens(tool) for tool in tools if not tool.get("defer_loading"))


def _rest(body: Any) -> Any:
    found = _referenced(body["messages"])
    expanded = [tool for tool in body.get("tools", ()) if tool.get("name") in found]
    return [body.get("system"), body["messages"], expanded]


def _referenced(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["tool_name"]} if value.get("type") == "tool_reference" else set[str]()
        return own.union(*map(_referenced, value.values()))
    return set[str]().union(*map(_referenced, value)) if isinstance(value, list) else set()


def _tokens(value: Any) -> int:
    return estimate_tokens(json.dumps(value, ensure_ascii=False))


def read(path: Path) -> list[Row]:
    """Return the rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def sample(queries: Sequence[Any], count: int) -> list[Any]:
    """Return the queries that are asked: the same for every system."""
    return random.Random(7).sample(list(queries), min(count, len(queries)))


def timed(search: Search, queries: Sequence[str]) -> float:
    """Microseconds of the median query, each by its best of the passes."""
    best = [float("inf")] * len(queries)
    for _ in range(PASSES):
        for place, query in enumerate(queries):
            start = time.perf_counter()
            search(query)
            best[place] = min(best[place], time.perf_counter() - start)
    return 1e6 * statistics.median(best)


def main() -> None:
    """Write a line for each system, each set and the conversation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", action="append", required=True)
    parser.add_argument("--timed-set", required=True)
    parser.add_argument("--queries", type=int, required=True)
    options = parser.parse_args()
    module = importlib.import_module(options.module)
    about = {"framework": module.PACKAGE, "version": version(module.PACKAGE)}
    for system in module.SYSTEMS:
        line: dict[str, Any] = {**about, "system": system.name, "own": system.own}
        print(f"{module.PACKAGE}: {system.name}", file=sys.stderr, flush=True)
        if system.rank is not None:
            line["rankings"] = {}
            for each in options.set:
                search = system.rank(read(options.data / each / "tools.jsonl"))
                rows = sample(read(options.data / each / "queries.jsonl"), options.queries)
                asked = [str(row["query"]) for row in rows]
                line["rankings"][each] = [list(search(query))[:FOUND] for query in asked]
                if each == options.timed_set:
                    line["median_us"] = timed(search, asked[:30])
        if system.converse is not None:
            line["conversation"] = asyncio.run(conversation(system.name, system.converse))
            line["dialect"] = system.dialect
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
