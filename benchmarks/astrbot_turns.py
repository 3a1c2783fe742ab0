"""A bot of 300 tools over 50 messages, and the time that the plugin adds to a message.

    .venv-astrbot/bin/python benchmarks/astrbot_turns.py turns
    .venv-astrbot/bin/python benchmarks/astrbot_turns.py times

`turns` runs the plugin's own classes, without AstrBot, and draws `docs/pictures/astrbot-turns.svg`.
`times` runs a real AstrBot, in the environment that `make test-astrbot` makes, before a stand-in
server on loopback. Both print a table of `astrbot.md`.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from runpy import run_path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.astrbot.bot import AstrBot, BotSetup, definitions  # noqa: E402 - the checkout's own
from tool_search.adapters.astrbot.run import LIMITED, AstrBotConversation, AstrBotRun  # noqa: E402
from tool_search.catalog.catalog import ToolCatalog  # noqa: E402
from tool_search.catalog.tool import Tool  # noqa: E402
from tool_search.config.bot import ToolSearchConfig  # noqa: E402
from tool_search.conversation.view import ToolView  # noqa: E402
from tool_search.discovery.modes import tool_tokens  # noqa: E402
from tool_search.testing import KeywordModel, StandInServer  # noqa: E402

PICTURE = ROOT / "docs" / "pictures" / "astrbot-turns.svg"
TOOLS, MESSAGES = 300, 50
SIZES = (25, 300, 3_000)
TIMED = 5
# Of the process, all threads: other programs on the machine do not count.
_TIMER = """
import functools, sys, time
plugin = bot._star().star_cls.tool_search
run = sys.modules["tool_search.adapters.astrbot.run"].AstrBotRun
bot.spent = {"prepare": [], "search": []}
prepare, search = plugin.prepare, run.search
async def timed(*given):
    began = time.process_time()
    await prepare(*given)
    bot.spent["prepare"].append(time.process_time() - began)
def searched(self, *given):
    began = time.process_time()
    found = search(self, *given)
    bot.spent["search"].append(time.process_time() - began)
    return found
plugin.prepare, run.search = timed, searched
"""


def messages(count: int) -> list[str]:
    """Return messages that each need another tool."""
    own = definitions(TOOLS)
    return [tool["description"].split(".")[0] for tool in own[:count]]


@contextmanager
def running(
    server: StandInServer, tools: int, plugin: Path | None, mode: str = "auto"
) -> Iterator[AstrBot]:
    """Start a bot, and end it."""
    setup = BotSetup(
        server=server,
        plugin_zip=plugin,
        providers=("responses",),
        tools=tools,
        mcp_share=0.0,
        settings={"tool_schema_mode": mode},
        config={"provider_settings": {"datetime_system_prompt": False}},
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        bot = AstrBot(Path(folder), setup)
        bot.start()
        try:
            bot.set_runner(provider="responses", fallbacks=[])
            yield bot
        finally:
            bot.stop()


def tokens_by_request() -> tuple[list[list[int]], list[list[int]]]:
    """Return the tokens of definitions in each request of each message: alone, with the plugin.

    A model that knows the tool which each message needs: it calls a declared one, and searches
    for another with the words of its description.
    """
    catalog = ToolCatalog([Tool(**each) for each in definitions(TOOLS)])
    view = ToolView(catalog, config=ToolSearchConfig(), profile=LIMITED, hidden="keep")
    conversation = AstrBotConversation(view)
    run = AstrBotRun(
        conversation,
        dict.fromkeys(tool.name for tool in catalog.active),
        search_tool_name="tool_search",
    )
    full = sum(map(tool_tokens, catalog.active))
    alone, ours = [], []
    for wanted in catalog.active[:: TOOLS // MESSAGES][:MESSAGES]:
        said = wanted.description.split(".")[0]
        view.begin_turn(catalog, history=(), profile=LIMITED)
        requests = [declared_tokens(run)]
        if wanted.name not in run.declared(LIMITED):
            run.search({"query": said})
            requests.append(declared_tokens(run))
        requests.append(declared_tokens(run))
        alone.append([full, full])
        ours.append(requests)
    return alone, ours


def declared_tokens(run: AstrBotRun) -> int:
    """Return the tokens of the definitions that the next request declares."""
    return sum(map(tool_tokens, run.plan(LIMITED).tools.loaded))


def times(server: StandInServer, size: int, plugin: Path) -> Mapping[str, list[float]]:
    """Return the seconds that the plugin takes for each message, and for each search."""
    with running(server, size, plugin, "tool_search") as bot:
        bot.ask("run", code=_TIMER)
        for message in messages(TIMED):
            bot.say("/new")
            server.reset(model=KeywordModel())
            bot.say(message)
        spent: Mapping[str, list[float]] = bot.ask("run", code="return bot.spent")
    return spent


def picture(alone: Sequence[Sequence[int]], ours: Sequence[Sequence[int]]) -> str:
    """Return the SVG of the tokens of each message's requests, with the plugin and without."""
    width, height, left, top, bottom = 720, 360, 70, 60, 310
    most = max(sum(each) for each in alone)
    step = (width - left - 20) / len(alone)

    def line(rows: Sequence[Sequence[int]]) -> str:
        points = (
            f"{left + step * (place + 0.5):.1f},{bottom - (bottom - top) * sum(each) / most:.1f}"
            for place, each in enumerate(rows)
        )
        return " ".join(points)

    marks = "".join(
        f'<text class="soft" x="{left - 8}" y="{bottom - (bottom - top) * share + 4:.0f}" '
        f'text-anchor="end">{round(most * share):,}</text>'
        for share in (0, 0.5, 1)
    )
    style = (
        "text{font:14px system-ui,sans-serif;fill:#1f2328}.soft{fill:#57606a}"
        ".back{fill:#fff}.alone{stroke:#b4bcc5}.ours{stroke:#0969da}"
        "polyline{fill:none;stroke-width:3}"
        "@media (prefers-color-scheme:dark){.back{fill:#161b22}text{fill:#f0f6fc}"
        ".soft{fill:#b1bac4}.alone{stroke:#545d68}.ours{stroke:#58a6ff}}"
    )
    total, saved = sum(map(sum, alone)), sum(map(sum, ours))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}"><style>{style}</style>'
        f'<rect class="back" width="{width}" height="{height}" rx="8"/>'
        f'<text x="{left}" y="28">{TOOLS} tools, {len(alone)} messages: tokens of definitions '
        f"in each message's requests</text>"
        f'<text class="soft" x="{left}" y="48">AstrBot alone {total:,} in all; '
        f"with the plugin {saved:,}</text>{marks}"
        f'<polyline class="alone" points="{line(alone)}"/>'
        f'<polyline class="ours" points="{line(ours)}"/>'
        f'<text class="soft" x="{left}" y="{height - 20}">message 1</text>'
        f'<text class="soft" x="{width - 20}" y="{height - 20}" text-anchor="end">'
        f"{len(alone)}</text></svg>\n"
    )


def print_turns(alone: Sequence[Sequence[int]], ours: Sequence[Sequence[int]]) -> None:
    """Print the tokens of some messages, and the sums."""
    print("| message | alone: requests | tokens | plugin: requests | tokens |")
    print("|--:|--:|--:|--:|--:|")
    for place in (0, 1, 4, 9, 19, 29, 39, 49):
        if place < len(alone):
            before, after = alone[place], ours[place]
            print(
                f"| {place + 1} | {len(before)} | {sum(before):,} | {len(after)} | {sum(after):,} |"
            )
    sums = (sum(map(len, alone)), sum(map(sum, alone)), sum(map(len, ours)), sum(map(sum, ours)))
    print("| all | {:,} | {:,} | {:,} | {:,} |".format(*sums))


def measure_turns() -> None:
    """Print the tokens of a long conversation, and draw them."""
    alone, ours = tokens_by_request()
    print_turns(alone, ours)
    PICTURE.write_text(picture(alone, ours), encoding="utf-8")


def measure_times(server: StandInServer, plugin: Path) -> None:
    """Print the time that the plugin adds to a message."""
    print("| tools | first message, ms | a new conversation, ms | a search, ms |")
    print("|--:|--:|--:|--:|")
    for size in SIZES:
        spent = times(server, size, plugin)
        prepare = [1_000 * each for each in spent["prepare"]]
        search = statistics.median(1_000 * each for each in spent["search"])
        later = statistics.median(prepare[1:])
        print(f"| {size:,} | {prepare[0]:.1f} | {later:.1f} | {search:.1f} |", flush=True)


def main() -> None:
    """Print one of the tables."""
    if sys.argv[1:] == ["turns"]:
        measure_turns()
        return
    build = run_path(str(ROOT / ".ci" / "astrbot_plugin.py"))["build"]
    with tempfile.TemporaryDirectory() as folder, StandInServer(model=KeywordModel()) as server:
        plugin = Path(folder) / "plugin.zip"
        build(plugin)
        measure_times(server, plugin)


if __name__ == "__main__":
    main()
