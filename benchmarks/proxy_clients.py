"""The size of requests of Claude Code and Codex, with and without the proxy.

Run after `make test-proxy`, which installs both from npm::

    python benchmarks/proxy_clients.py [--counts 61 300 1000] [--json]

Each client has an MCP server of so many tools and asks one question, which needs one of them.
Its model is the stand-in provider's, with its rules on. A row is a client in one mode: the entries
of the tool list, the bytes of the request, and the estimated tokens of its definitions, in the
first request and in the last one that has tools. `tokens` counts definitions that are in the
prompt: deferred ones of Claude's own search are not.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tests.proxy.conftest import serve, upstreams
from tests.proxy.test_command_line import Counting, ask_claude, ask_codex
from tool_search.core.catalog.tool import estimate_tokens
from tool_search.core.values.json import compact_json
from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import ClientRule, ProxyConfig
from tool_search.testing import CapturedRequest, StandInServer

ALL_DEFERRED = (ClientRule(name="all-deferred"),)


def modes(client: str) -> dict[str, tuple[dict[str, Any] | None, str]]:
    """Return the settings of a proxy by the name of a mode, and the client's own search."""
    generic: dict[str, Any] = {"strategy": "generic"}
    found: dict[str, tuple[dict[str, Any] | None, str]] = {
        "no proxy": (None, "false"),
        "proxy, the client's own tools core": (generic, "false"),
        "proxy, everything deferred": ({**generic, "clients": ALL_DEFERRED}, "false"),
        "proxy, a list that never moves (bridge)": ({"strategy": "bridge"}, "false"),
    }
    if client == "Claude Code":
        found["proxy, deferred at the service (claude)"] = {"strategy": "claude"}, "false"
        found["no proxy, its own search"] = None, "true"
        found["proxy, its own search emulated"] = {**generic, "mode": "emulate"}, "true"
    else:
        found["proxy, OpenAI's own search"] = {"strategy": "openai_responses"}, "false"
    return found


def ask(client: str, settings: dict[str, Any] | None, own: str) -> list[CapturedRequest]:
    """Return the requests with tools that the provider got for one question."""
    with StandInServer(model=Counting()) as server, tempfile.TemporaryDirectory() as folder:
        if settings is None:
            base = server.anthropic_base_url if client == "Claude Code" else server.openai_base_url
            place: Any = nullcontext(base.removesuffix("/v1"))
        else:
            strategy = settings["strategy"]
            rest = {key: value for key, value in settings.items() if key != "strategy"}
            config = ProxyConfig(upstreams=upstreams(server, strategy=strategy), **rest)
            place = serve(ToolSearchProxy(config))
        with place as address:
            home = Path(folder)
            answer = (
                ask_claude(address, home, own_search=own)
                if client == "Claude Code"
                else ask_codex(address, home)
            )
        if "six words" not in answer or server.violations:
            raise SystemExit(f"{client}: {answer[:300]} {server.violations}")
        return [request for request in server.requests if body_of(request).get("tools")]


def body_of(request: CapturedRequest) -> dict[str, Any]:
    """Return the body of a request."""
    body: dict[str, Any] = json.loads(request.raw_body)
    return body


def figures(request: CapturedRequest) -> tuple[int, int, int]:
    """Return the entries, the bytes, and the tokens of definitions in the prompt."""
    tools = body_of(request)["tools"]
    shown = [tool for tool in tools if not tool.get("defer_loading")]
    return len(tools), len(request.raw_body), sum(estimate_tokens(compact_json(t)) for t in shown)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=[61, 300, 1_000])
    parser.add_argument("--clients", nargs="+", default=["Claude Code", "Codex"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    show: Callable[..., None] = (lambda *_: None) if options.json else print
    show("| client | tools of its server | mode | requests | first: entries, KB, tokens | last |")
    show("|---|--:|---|--:|--:|--:|")
    for client in options.clients:
        for count in options.counts:
            os.environ["TOOLBOX_COUNT"] = str(count)
            for mode, (settings, own) in modes(client).items():
                requests = ask(client, settings, own)
                first, last = figures(requests[0]), figures(requests[-1])
                rows.append([client, count, mode, len(requests), first, last])
                cells = (f"{e}, {size / 1e3:.1f}, {tokens:,}" for e, size, tokens in (first, last))
                show("|", client, "|", count, "|", mode, "|", len(requests), "|", *cells_of(cells))
    if options.json:
        print(json.dumps(rows))


def cells_of(cells: Any) -> list[str]:
    """Return the last cells of a row."""
    return [" | ".join(cells) + " |"]


if __name__ == "__main__":
    main()
