"""Measure how a model uses tool search, at any endpoint, small local ones included.

Run: python benchmarks/bench_model.py --base-url URL --model NAME [--key-env VARIABLE]
     python benchmarks/bench_model.py --stand-in

Every task is asked once in each arm, as a conversation of its own. The arms and the tasks are
written into the folder of the run before the first request. A run that was ended goes on with the
same command. Without --tasks it asks our own requests of benchmarks/model/requests.jsonl.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from model.arms import Arm, choose_arms
from model.asking import EndpointFailedError, ask
from model.folder import Budget, RunFolder
from model.page import page
from model.summary import TokenPrice, summarize
from model.tasks import OWN_TASKS, TaskSet, read_tasks

from tool_search import __version__
from tool_search.adapters import build_provider
from tool_search.config.bot import ProviderConfig
from tool_search.config.providers import ProfileMatch, ProfileSettings
from tool_search.providers.base import ConnectedProvider
from tool_search.testing import Endpoint, KeywordModel, StandInServer

MAX_STEPS = 8
RESUME = "what is done is kept in {folder}; the same command goes on from there"


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask the tasks, and write the result and its page; 0 if every task is done."""
    options = parsed(arguments)
    tasks = read_tasks(options.tasks, limit=options.limit)
    named = [name for name in options.arms.split(";") if name.strip()]
    arms, left_out = choose_arms(named, peers=options.peers)
    for name, reason in left_out.items():
        print(f"the arm {name!r} is left out: {reason}", file=sys.stderr)
    with ExitStack() as stack:
        url = options.base_url
        if options.stand_in:
            server = StandInServer(model=KeywordModel(), endpoint=Endpoint(max_tools=None))
            url = stack.enter_context(server).openai_base_url
        plan = plan_of(options, tasks, arms, left_out)
        folder = RunFolder(options.out, plan)
        stopped = asyncio.run(run(options, url, tasks, arms, folder))
    write_result(folder, plan, tasks, options.price, stopped)
    print(stopped or f"done: {folder.path / 'index.html'}", file=sys.stderr if stopped else None)
    return 1 if stopped else 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", help="the endpoint; its key is in --key-env")
    parser.add_argument("--model", help="the model's name in requests")
    parser.add_argument("--stand-in", action="store_true", help="ask a model of ours, without key")
    parser.add_argument("--key-env", help="the variable with the key; a local endpoint needs none")
    parser.add_argument("--type", default="openai_chat", help="openai_chat, anthropic, ...")
    parser.add_argument("--strategy", default="auto", help="generic, bridge, ...")
    parser.add_argument("--tasks", type=Path, default=OWN_TASKS, help="a file, or its folder")
    parser.add_argument("--arms", default="", help="names, with ; between them")
    parser.add_argument("--peers", action="store_true", help="add FastMCP's search and rank_bm25's")
    parser.add_argument("--limit", type=int, help="the most tasks")
    parser.add_argument("--out", type=Path, default=Path("bench-model"))
    parser.add_argument("--max-requests", type=int)
    parser.add_argument("--max-usd", type=float, help="needs --price")
    parser.add_argument(
        "--price", type=price_of, help="dollars a million: INPUT,READ,WRITTEN,OUTPUT"
    )
    options = parser.parse_args(arguments)
    if options.stand_in:
        options.model = options.model or "keyword-model"
    elif not (options.base_url and options.model):
        parser.error("--base-url and --model are needed, or --stand-in")
    if options.max_usd is not None and options.price is None:
        parser.error("--max-usd needs --price")
    if options.limit is not None and options.limit < 1:
        parser.error("--limit must be at least 1")
    if options.key_env and not os.environ.get(options.key_env):
        parser.error(f"the variable {options.key_env} of --key-env is not set")
    return options


def price_of(text: str) -> TokenPrice:
    """Return the price list of four numbers."""
    try:
        given, read, written, output = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be four numbers with commas: INPUT,READ,WRITTEN,OUTPUT"
        ) from None
    return TokenPrice(input=given, read=read, written=written, output=output)


def plan_of(
    options: argparse.Namespace, tasks: TaskSet, arms: Sequence[Arm], left_out: Mapping[str, str]
) -> dict[str, Any]:
    """Return what decides a run; a key is never in it."""
    return {
        "model": options.model,
        "endpoint": "stand-in" if options.stand_in else plain_url(options.base_url),
        "type": options.type,
        "strategy": options.strategy,
        "version": __version__,
        "tasks": len(tasks.tasks),
        "tools": {name: len(tools) for name, tools in tasks.catalogs.items()},
        "fingerprint": tasks.fingerprint,
        "max_steps": MAX_STEPS,
        "arms": [
            {
                "name": arm.name,
                "kind": arm.kind,
                **arm.settings,
                **({"package": arm.package} if arm.package else {}),
            }
            for arm in arms
        ],
        **({"left_out": dict(left_out)} if left_out else {}),
    }


def plain_url(url: str) -> str:
    """Return an address without user, password and query, which may be keys."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


async def run(
    options: argparse.Namespace,
    url: str,
    tasks: TaskSet,
    arms: Sequence[Arm],
    folder: RunFolder,
) -> str:
    """Ask what is not done yet; return why it ended early, or an empty text.

    A task is asked in every arm before the next one, so that a part of a run compares its arms.
    """
    budget = Budget(requests=options.max_requests, usd=options.max_usd)
    kept = RESUME.format(folder=folder.path)
    async with AsyncExitStack() as stack:
        providers = {
            arm.name: await stack.enter_async_context(connected(options, url, arm)) for arm in arms
        }
        for task, arm in ((task, arm) for task in tasks.tasks for arm in arms):
            if folder.has(arm.name, task.key):
                continue
            used = sum(record.requests for record in folder.records)
            steps = budget.steps(MAX_STEPS, requests=used, usd=dollars(folder, options.price))
            if not steps:
                return f"the budget is spent; {kept}, with more of it"
            tools = tasks.catalogs[task.set]
            try:
                folder.add(await ask(providers[arm.name], arm, task, tools, max_steps=steps))
            except EndpointFailedError as exc:
                cause = str(exc).replace(key_of(options), "***")
                return f"the endpoint failed at {task.key} in {arm.name!r}: {cause}; {kept}"
    return ""


def connected(options: argparse.Namespace, url: str, arm: Arm) -> ConnectedProvider:
    """Return the endpoint as an arm sees it: with every tool, no limit of a list is known."""
    fields = {
        "id": "endpoint",
        "type": options.type,
        "model": options.model,
        "base_url": url,
        "strategy": options.strategy,
    }
    match = ProfileMatch(type=options.type)
    unlimited = {"all tools": ProfileSettings(match=match, max_tools=None)}
    return build_provider(
        ProviderConfig.model_validate(fields),
        api_key=key_of(options),
        profiles=unlimited if arm.kind == "all" else None,
    )


def key_of(options: argparse.Namespace) -> str:
    """Return the key, which goes to the endpoint and nowhere else."""
    return os.environ[options.key_env] if options.key_env else "no-key"


def dollars(folder: RunFolder, price: TokenPrice | None) -> float:
    """Return what the run has cost; 0 without a price list."""
    return sum(price.dollars(record) for record in folder.records) if price else 0.0


def write_result(
    folder: RunFolder,
    plan: Mapping[str, Any],
    tasks: TaskSet,
    price: TokenPrice | None,
    stopped: str,
) -> None:
    """Write `result.json` and `index.html` of all that is done."""
    by_key = {task.key: task for task in tasks.tasks}
    arms = summarize(folder.records, by_key, price)
    asked = len(tasks.tasks) * len(plan["arms"])
    state = f"{len(folder.records)} of {asked} conversations are done"
    result = {
        "plan": plan,
        "state": state,
        "stopped": stopped,
        "usd": round(dollars(folder, price), 4) if price else None,
        "requests": sum(record.requests for record in folder.records),
        "arms": arms,
        "records": [asdict(record) for record in folder.records],
    }
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    (folder.path / "result.json").write_text(text, "utf-8")
    (folder.path / "index.html").write_text(page(plan, arms, state=state), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
