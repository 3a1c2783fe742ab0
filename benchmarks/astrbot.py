"""Tools and tokens in each request of a real AstrBot, alone and with the plugin.

    .venv-astrbot/bin/python benchmarks/astrbot.py

Needs the environment that `make test-astrbot` makes. A bot with 30, 120 and 500 tools
gets one message; a stand-in server on loopback answers as the providers do.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from runpy import run_path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.astrbot.bot import AstrBot, BotSetup  # noqa: E402 - the checkout's own
from tool_search.core.catalog.tool import estimate_tokens  # noqa: E402
from tool_search.testing import CapturedRequest, KeywordModel, StandInServer  # noqa: E402

SIZES = (30, 120, 500)
BRING = ("tool_search_output", "additional_tools")
MESSAGE = "convert a length from metres to feet"


def shown(request: CapturedRequest) -> list[Mapping[str, Any]]:
    """Return the definitions in the model's view; deferred ones once they are referenced.

    With OpenAI Responses, definitions in the input are included.
    """
    body = request.raw_body.decode()
    items = request.body.get("input") or ()
    return [
        *(
            tool
            for tool in request.body.get("tools") or ()
            if not tool.get("defer_loading") or f'"tool_name":"{tool["name"]}"' in body
        ),
        *(tool for item in items if item.get("type") in BRING for tool in item["tools"]),
    ]


def tokens(tools: list[Mapping[str, Any]]) -> int:
    """Return the estimated tokens of the definitions."""
    return sum(estimate_tokens(json.dumps(tool, ensure_ascii=False)) for tool in tools)


def rows(server: StandInServer, size: int, plugin: Path | None) -> Iterator[str]:
    """Yield one row for each provider and request."""
    setup = BotSetup(
        server=server,
        plugin_zip=plugin,
        providers=("openai", "responses", "claude"),
        tools=size,
        settings={"native_claude": "on", "native_openai": "on"},
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        bot = AstrBot(Path(folder), setup)
        bot.start()
        try:
            for provider in setup.providers:
                bot.set_runner(provider=provider, fallbacks=[])
                server.reset(model=KeywordModel())
                bot.say(MESSAGE, user=provider)
                for number, request in enumerate(server.requests, 1):
                    tools = shown(request)
                    yield (
                        f"| {size} | {'plugin' if plugin else 'alone'} | {request.dialect} "
                        f"| {number} | {len(request.body['tools'])} | {len(tools)} "
                        f"| {tokens(tools):,} | {request.status} |"
                    )
        finally:
            bot.stop()


def main() -> None:
    """Print the table."""
    build = run_path(str(ROOT / ".ci" / "astrbot_plugin.py"))["build"]
    print("| tools | AstrBot | provider | request | declared | shown | tokens of tools | status |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, StandInServer(model=KeywordModel()) as server:
        plugin = Path(folder) / "plugin.zip"
        build(plugin)
        for size in SIZES:
            for installed in (None, plugin):
                for row in rows(server, size, installed):
                    print(row, flush=True)


if __name__ == "__main__":
    main()
