"""Make the screenshots of the inspector: a conversation through the proxy, seen by Chromium.

The provider is the stand-in of `tool_search.testing`, so that no key is needed.

Run: python docs/pictures/inspector.py
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

ROOT = Path(__file__).resolve().parents[2]
# The library of this checkout, whatever is installed.
sys.path.insert(0, str(ROOT))

from tool_search import tool_from_function  # noqa: E402
from tool_search.serving.proxy.app import ToolSearchProxy  # noqa: E402
from tool_search.serving.proxy.settings import ClientRule, ProxyConfig, UpstreamSettings  # noqa: E402
from tool_search.sources.toolbox import TOOLBOX  # noqa: E402
from tool_search.testing import KeywordModel, StandInServer  # noqa: E402

FOLDER = Path(__file__).resolve().parent
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
SIZE = {"width": 1280, "height": 760}
QUESTIONS = (
    'Count the words of "to be or not to be".',
    "Convert 10 km to miles",
    "帮我把 3.5 公斤换算成磅",
    "Convert 100 US dollars to euros at 0.9",
    "Count the words of 'one two'",
)
# Each with its name, language and theme, and the place that it shows.
SHOTS = (
    ("inspector-light.png", "en-US", "light", "request"),
    ("inspector-dark.png", "en-US", "dark", "list"),
    ("inspector-zh.png", "zh-CN", "light", "figures"),
)


def ask(address: str, tools: dict[str, Any], questions: tuple[str, ...]) -> None:
    """Send the requests of a client that knows no search."""
    definitions = [
        {
            "name": name,
            "description": each.tool.description,
            "input_schema": dict(each.tool.parameters) or {"type": "object", "properties": {}},
        }
        for name, each in tools.items()
    ]
    messages: list[Any] = []
    for question in questions:
        messages.append({"role": "user", "content": question})
        while True:
            body = {
                "model": "claude-sonnet-4-6",
                "max_tokens": 2_000,
                "tools": definitions,
                "messages": messages,
            }
            headers = {"x-api-key": "x", "anthropic-version": "2023-06-01"}
            reply = httpx2.post(f"{address}/v1/messages", json=body, headers=headers)
            content = reply.raise_for_status().json()["content"]
            messages.append({"role": "assistant", "content": content})
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": block["id"],
                    "content": str(tools[block["name"]].function(**block["input"])),
                }
                for block in content
                if block["type"] == "tool_use"
            ]
            if not results:
                break
            messages.append({"role": "user", "content": results})


@contextmanager
def serve(server: StandInServer) -> Iterator[str]:
    """Serve a proxy before a provider on a free port, and give its address."""
    upstream = UpstreamSettings(
        id="claude",
        base_url=server.anthropic_base_url.removesuffix("/v1"),
        dialects=("anthropic",),
        strategy="generic",
    )
    rule = ClientRule(name="mybot", core=("percentage_of",))
    proxy = ToolSearchProxy(ProxyConfig(upstreams=(upstream,), clients=(rule,)))
    running = uvicorn.Server(uvicorn.Config(proxy.asgi(), port=0, log_level="critical"))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    running.should_exit = True
    thread.join(10)


def take_pictures(address: str, chromium: str) -> None:
    """Write the screenshots of the page at an address."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # of the development group

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        page = browser.new_page(viewport=SIZE)
        for name, language, theme, place in SHOTS:
            page.goto(f"{address}/inspector/")
            page.select_option("#language", language)
            page.select_option("#theme", theme)
            page.locator("#rows tr").last.wait_for()
            if place == "request":
                page.locator("#rows tr").last.locator("a").click()
                page.locator("#detail h2").wait_for()
            elif place == "figures":
                page.click("#to-figures")
                page.locator("#sums h2").wait_for()
            page.screenshot(path=FOLDER / name)
        browser.close()


def main() -> int:
    """Make the screenshots."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.stderr.write("the inspector's pictures need Chromium: apt-get install chromium\n")
        return 1
    tools = {each.tool.name: each for each in map(tool_from_function, TOOLBOX)}
    with StandInServer(model=KeywordModel(search_tool="tool_search")) as server:
        with serve(server) as address:
            ask(address, tools, QUESTIONS)
            take_pictures(address, chromium)
        if server.violations:
            sys.stderr.write(f"violations: {server.violations}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
