"""A bot of 300 tools over 50 messages, and the time that the plugin adds to a message.

    .venv-astrbot/bin/python benchmarks/astrbot_turns.py turns
    .venv-astrbot/bin/python benchmarks/astrbot_turns.py times

Both run a real AstrBot, alone and with the plugin, in the environment that `make test-astrbot`
makes, before a stand-in server on loopback that records the requests. `turns` draws
`docs/pictures/astrbot-turns.svg`; both print a table of `astrbot.md`.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from runpy import run_path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.astrbot.bot import BUILTIN, AstrBot, BotSetup, definitions  # noqa: E402 - the checkout's
from tool_search.core.catalog.tool import estimate_tokens  # noqa: E402
from tool_search.testing import (  # noqa: E402
    ModelCall,
    ModelReply,
    ModelView,
    StandInServer,
)
from tool_search.testing.models.arguments import fill_arguments  # noqa: E402

PICTURE = ROOT / "docs" / "pictures" / "astrbot-turns.svg"
TOOLS, MESSAGES = 300, 50
SIZES = (25, 300, 3_000)
TIMED = 6
SHOWN = (1, 2, 5, 10, 20, 30, 40, 50)
# Of the process, all threads: other programs on the machine do not count.
_TIMER = """
import sys, time
plugins = [s.star_cls for s in bot.lifecycle.star_context.get_all_stars() if s.name == "PLUGIN"]
bot.spent = {"prepare": [], "search": []}
if plugins:
    (plugin,) = plugins
    run = sys.modules["tool_search.adapters.astrbot.run"].AstrBotRun
    prepare, search = plugin.tool_search.prepare, run.search
    async def timed(*given):
        began = time.process_time()
        await prepare(*given)
        bot.spent["prepare"].append(time.process_time() - began)
    def searched(self, *given):
        began = time.process_time()
        found = search(self, *given)
        bot.spent["search"].append(time.process_time() - began)
        return found
    plugin.tool_search.prepare, run.search = timed, searched
""".replace("PLUGIN", "astrbot_plugin_tool_search")
_CLOCK = "import time\nreturn time.process_time()"


@dataclass
class NeedingModel:
    """A model that knows the tool which each message needs.

    It calls the tool if the request declares it, and otherwise searches with the message's words.

    Attributes:
        needs: The tool's name by the text of the message.
        called: The messages whose tool was called.
    """

    needs: Mapping[str, str]
    called: set[str] = field(default_factory=set)

    def reply(self, view: ModelView) -> ModelReply:
        """Return a call of the tool, a search, or an answer."""
        said, name = next(each for each in self.needs.items() if each[0] in view.last_user_text)
        searches = [result for result in view.results if result.name == "tool_search"]
        if len(view.results) > len(searches):
            self.called.add(said)
            return ModelReply(text="done")
        tool = view.tool(name)
        if tool is not None:
            return _calling(name, fill_arguments(tool.parameters, said))
        if not searches:
            return _calling("tool_search", {"query": said})
        schema = next((s for r in searches for n, s in _schemas(r.text) if n == name), None)
        if schema is None or view.tool("call_tool") is None:
            return ModelReply(text="no tool was found")
        arguments = fill_arguments(schema, said)
        return _calling("call_tool", {"name": name, "arguments": arguments})


def _calling(name: str, arguments: Mapping[str, Any]) -> ModelReply:
    return ModelReply(calls=(ModelCall(name=name, arguments=arguments),))


def _schemas(result: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the names in a search's result, with the schemas of those that no request declares."""
    for match in json.loads(result)["matches"]:
        yield match["name"], match.get("parameters") or {}


def needs(tools: int, count: int) -> dict[str, str]:
    """Return messages that each need another tool of so many, with the tool's name.

    A message has the first sentence of the tool's description, and the last, which says for what
    place the tool is.
    """
    own = definitions(tools - len(BUILTIN) - 1)
    chosen = own[:: max(1, len(own) // count)][:count]
    return {_message(tool["description"]): tool["name"] for tool in chosen}


def _message(description: str) -> str:
    first, *rest = description.rstrip(".").split(".")
    place = rest[-1] if rest and "For region" in rest[-1] else ""
    return f"{first}{place}"


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


def tokens_by_request(server: StandInServer, plugin: Path | None) -> list[list[int]]:
    """Return the tokens of definitions in each request of each message of one conversation."""
    wanted = needs(TOOLS, MESSAGES)
    model = NeedingModel(wanted)
    sent = []
    with running(server, TOOLS, plugin) as bot:
        for message in wanted:
            server.reset(model=model)
            bot.say(message)
            refused = [request.status for request in server.requests if request.status != 200]
            if refused or not server.requests:
                raise RuntimeError(f"{message!r} got the answers {refused}: {bot.log[-2_000:]}")
            sent.append([_tokens(request.body["tools"]) for request in server.requests])
    found = len(model.called)
    print(f"{'with the plugin' if plugin else 'alone'}: {found} of {len(wanted)} tools were called")
    return sent


def _tokens(tools: Sequence[Mapping[str, Any]]) -> int:
    return sum(estimate_tokens(json.dumps(tool, ensure_ascii=False)) for tool in tools)


def times(server: StandInServer, size: int, plugin: Path | None) -> dict[str, list[float]]:
    """Return the seconds that the plugin takes for each message, and for each search.

    `message` has the seconds of each message as a whole.
    """
    wanted = needs(size, TIMED)
    whole = []
    with running(server, size, plugin, "tool_search") as bot:
        bot.ask("run", code=_TIMER)
        for message in wanted:
            bot.say("/new")
            server.reset(model=NeedingModel(wanted))
            began = bot.ask("run", code=_CLOCK)
            bot.say(message)
            whole.append(bot.ask("run", code=_CLOCK) - began)
        spent: dict[str, list[float]] = bot.ask("run", code="return bot.spent")
    return {**spent, "message": whole}


def picture(alone: Sequence[Sequence[int]], ours: Sequence[Sequence[int]]) -> str:
    """Return the SVG of the tokens of each request's definitions, with the plugin and without."""
    width, height, left, top, bottom = 720, 360, 70, 70, 310
    most = max(map(max, (*alone, *ours)))
    step = (width - left - 20) / len(alone)

    def line(rows: Sequence[Sequence[int]]) -> str:
        points = (
            (left + step * (message + (number + 0.5) / len(requests)), tokens)
            for message, requests in enumerate(rows)
            for number, tokens in enumerate(requests)
        )
        return " ".join(
            f"{across:.1f},{bottom - (bottom - top) * tokens / most:.1f}"
            for across, tokens in points
        )

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
    label = f"{TOOLS} tools, {len(alone)} messages: tokens of the definitions in each request"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{label}"><style>{style}</style>'
        f'<rect class="back" width="{width}" height="{height}" rx="8"/>'
        f'<text x="{left}" y="28">{label}</text>'
        f'<text class="soft" x="{left}" y="48">AstrBot alone (grey) {total:,} in all; '
        f"with the plugin (blue) {saved:,}</text>{marks}"
        f'<polyline class="alone" points="{line(alone)}"/>'
        f'<polyline class="ours" points="{line(ours)}"/>'
        f'<text class="soft" x="{left}" y="{height - 20}">message 1</text>'
        f'<text class="soft" x="{width - 20}" y="{height - 20}" text-anchor="end">'
        f"{len(alone)}</text></svg>\n"
    )


def print_turns(alone: Sequence[Sequence[int]], ours: Sequence[Sequence[int]]) -> None:
    """Print the tokens of the requests of some messages, and the sums."""
    print("| message | alone: requests | tokens of the last | plugin: requests | of the last |")
    print("|--:|--:|--:|--:|--:|")
    for number in SHOWN:
        before, after = alone[number - 1], ours[number - 1]
        print(f"| {number} | {len(before)} | {before[-1]:,} | {len(after)} | {after[-1]:,} |")
    print("| all messages | requests | tokens of all | requests | of all |")
    sums = (sum(map(len, alone)), sum(map(sum, alone)), sum(map(len, ours)), sum(map(sum, ours)))
    print("| 50 | {:,} | {:,} | {:,} | {:,} |".format(*sums))


def measure_turns(server: StandInServer, plugin: Path) -> None:
    """Print the tokens of a long conversation, and draw them."""
    alone, ours = tokens_by_request(server, None), tokens_by_request(server, plugin)
    print_turns(alone, ours)
    PICTURE.write_text(picture(alone, ours), encoding="utf-8")


def measure_times(server: StandInServer, plugin: Path) -> None:
    """Print the time that the plugin adds to a message."""
    print(
        "| tools | first message, ms | a new conversation, ms | a search, ms "
        "| a whole message, ms | the same, alone, ms |"
    )
    print("|--:|--:|--:|--:|--:|--:|")
    for size in SIZES:
        spent, alone = times(server, size, plugin), times(server, size, None)
        first = 1_000 * spent["prepare"][0]
        medians = (
            1_000 * statistics.median(each)
            for each in (
                spent["prepare"][1:],
                spent["search"],
                spent["message"][1:],
                alone["message"][1:],
            )
        )
        cells = " | ".join(f"{each:,.1f}" for each in (first, *medians))
        print(f"| {size:,} | {cells} |", flush=True)


def main() -> None:
    """Print one of the tables."""
    if sys.argv[1:] not in (["turns"], ["times"]):
        sys.exit(str(__doc__))
    build = run_path(str(ROOT / ".ci" / "astrbot_plugin.py"))["build"]
    measure = measure_turns if sys.argv[1] == "turns" else measure_times
    model = NeedingModel({})
    with tempfile.TemporaryDirectory() as folder, StandInServer(model=model) as server:
        plugin = Path(folder) / "plugin.zip"
        build(plugin)
        measure(server, plugin)


if __name__ == "__main__":
    main()
