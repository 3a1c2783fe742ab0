"""Try each extra: install it alone and run what it promises, and look for wheels elsewhere.

Run: python .ci/extras.py run [NAME...]       an environment for each extra, and its program
     python .ci/extras.py wheels [NAME...]    wheels for other systems and Pythons, by pip

`none` is the package without an extra. By default every extra is tried but those that bring
gigabytes. The package index is asked; nothing but loopback is called besides.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_HEAVY = ("sentence-transformers",)
# jieba is pure Python and has no wheel for any system; fastembed's models need a download.
_WITHOUT_WHEEL = {"jieba": "jieba"}
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_SYSTEMS = {
    "Linux": ("manylinux_2_17_x86_64", "manylinux_2_28_x86_64", "manylinux2014_x86_64"),
    "Linux, ARM": ("manylinux_2_17_aarch64", "manylinux_2_28_aarch64", "manylinux2014_aarch64"),
    "musl": ("musllinux_1_1_x86_64", "musllinux_1_2_x86_64"),
    "Windows": ("win_amd64",),
    "macOS, ARM": ("macosx_11_0_arm64", "macosx_12_0_arm64", "macosx_14_0_arm64"),
}

_TURN = """
import asyncio
from tool_search import Bot, ProviderConfig
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import KeywordModel, StandInServer

async def main(kind, model):
    with StandInServer(model=KeywordModel()) as server:
        base = server.anthropic_base_url if kind == "anthropic" else server.openai_base_url
        given = ProviderConfig(id="main", type=kind, model=model, base_url=base, api_key_env=None)
        async with Bot([given], tools=TOOLBOX) as bot:
            answer = await bot.ask('Count the words of "to be or not to be".')
        assert "6" in answer, answer
        assert len(server.requests) > 1 and not server.violations, server.violations
"""
_SEARCH = """
from tool_search import Tool, build_index
from tool_search.config import SearchSettings
tools = [Tool(name="get_forecast", description="Weather forecast for a city"),
         Tool(name="send_mail", description="Send a mail to somebody"),
         Tool(name="convert_length", description="Convert miles and kilometres")]
def first(query, **settings):
    return build_index(tools, SearchSettings(**settings)).search(query, limit=1).matches[0].name
"""
# What each extra promises, as a program of Python, a file of examples/ or a command.
_PROGRAMS: dict[str, tuple[str, ...]] = {
    "none": (
        "examples/01_local_search.py",
        """
from tool_search import ToolSearch
from tool_search.sources.toolbox import TOOLBOX
view = ToolSearch().view(tools=TOOLBOX)
assert len(view.tools()) == 1
assert "count_words" in str(view.search({"query": "count the words of a text"}).to_json())
assert "count_words" in [entry.tool.name for entry in view.tools()]
""",
    ),
    "anthropic": (
        f"{_TURN}\nasyncio.run(main('anthropic', 'claude-sonnet-4-6'))",
        "examples/frameworks/with_anthropic_runner.py",
    ),
    "openai": (
        f"{_TURN}\nasyncio.run(main('openai_chat', 'gpt-5.4'))",
        f"{_TURN}\nasyncio.run(main('openai_responses', 'gpt-5.4'))",
    ),
    "cli": (
        "$ tool-search search --catalog {tools} --query weather",
        "$ tool-search inspect --catalog {tools} --provider openai",
        "$ tool-search --help",
    ),
    "jieba": (
        f"{_SEARCH}\nassert first('weather', engine='rank_bm25') == 'get_forecast'",
        f"{_SEARCH}\nassert first('weather', segmenter='jieba') == 'get_forecast'",
    ),
    "regex": (f"{_SEARCH}\nassert first('(?i)^send', engine='regex') == 'send_mail'",),
    "semantic": (f"{_SEARCH}\nassert first('明天会下雨吗', engine='hybrid') == 'get_forecast'",),
    "workspace": ("examples/08_workspace.py",),
    "langchain": ("import tool_search.adapters.langchain",),
    "pydantic-ai": ("import tool_search.adapters.pydantic_ai",),
    "openai-agents": ("examples/frameworks/with_openai_agents.py",),
    "fastmcp": ("import tool_search.adapters.fastmcp",),
    "litellm": ("examples/frameworks/with_litellm.py",),
    "proxy": (
        """
import httpx2, threading, uvicorn
from tool_search.serving.proxy import ToolSearchProxy
from tool_search.testing import KeywordModel, StandInServer
with StandInServer(model=KeywordModel()) as server:
    upstream = {"id": "main", "base_url": server.openai_base_url, "dialects": ["openai_chat"]}
    app = ToolSearchProxy({"upstreams": [upstream], "state": {"path": ":memory:"}}).asgi()
    running = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        pass
    port = running.servers[0].sockets[0].getsockname()[1]
    body = {"model": "gpt-5.4", "messages": [{"role": "user", "content": "hello"}]}
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    reply = httpx2.post(url, json=body, headers={"authorization": "Bearer none"})
    assert reply.status_code == 200, reply.text
    running.should_exit = True
    thread.join()
""",
    ),
    "mcp": (
        """
import asyncio, sys
from pathlib import Path
from tool_search.adapters.mcp import MCPSource
Path("server.py").write_text('''
from mcp.server.lowlevel import Server
try:
    from mcp.server.fastmcp import FastMCP as App
except ImportError:
    from mcp.server import MCPServer as App
app = App("own")
@app.tool()
def double(number: int) -> int:
    return 2 * number
app.run()
''')
async def main():
    servers = {"mcpServers": {"own": {"command": sys.executable, "args": ["server.py"]}}}
    async with MCPSource(servers) as source:
        assert [tool.name for tool in source.tools] == ["double"], source.status
asyncio.run(main())
""",
    ),
    "gateway": ("import tool_search.serving.gateway; tool_search.serving.gateway.Gateway",),
    "otel": (
        """
from tool_search.adapters.opentelemetry import OpenTelemetry
OpenTelemetry()
""",
    ),
    "redis": (
        """
import asyncio
from tool_search import StoreError
from tool_search.stores.redis import RedisStore
async def main():
    try:
        async with RedisStore("redis://127.0.0.1:1", patience_s=0.1):
            return ""
    except StoreError as exc:
        return str(exc)
assert "127.0.0.1" in asyncio.run(main())
""",
    ),
    "fastembed": ("import tool_search.adapters.embeddings",),
    "all": (
        f"{_TURN}\nasyncio.run(main('anthropic', 'claude-sonnet-4-6'))",
        "$ tool-search demo",
    ),
}


def run(wheel: Path, name: str) -> str:
    """Install an extra in an environment of its own, run its programs, and return its row.

    Raises:
        SystemExit: A program of it failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder, "env"), with_pip=True)
        python = str(Path(folder, "env", "bin", "python"))
        began = time.monotonic()
        wanted = str(wheel) if name == "none" else f"{wheel}[{name}]"
        _checked([python, "-m", "pip", "install", "--quiet", wanted], folder, name)
        seconds = time.monotonic() - began
        tools = Path(folder, "tools.json")
        tools.write_text('[{"name": "get_forecast", "description": "The weather"}]', "utf-8")
        for program in _PROGRAMS[name]:
            _checked(_command(program, python, tools), folder, name)
    return f"| `{name}` | {len(_PROGRAMS[name])} | {seconds:.0f} |"


def _command(program: str, python: str, tools: Path) -> list[str]:
    if program.startswith("$ "):
        words = program.format(tools=tools).split()[1:]
        return [str(Path(python).parent / words[0]), *words[1:]]
    if program.startswith("examples/"):
        return [python, str(ROOT / program)]
    return [python, "-c", program]


def _checked(command: list[str], folder: str, name: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603  # our own commands
    if done.returncode:
        sys.exit(f"{name}: {' '.join(command)[:200]}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


def wheels(wheel: Path, name: str) -> str:
    """Return the row of an extra: for each system, the Pythons for which pip finds wheels alone."""
    cells = []
    for tags in _SYSTEMS.values():
        found = [python for python in _PYTHONS if _resolves(wheel, name, python, tags)]
        cells.append("all" if len(found) == len(_PYTHONS) else ", ".join(found) or "none")
    return f"| `{name}` | {' | '.join(cells)} |"


def _resolves(wheel: Path, name: str, python: str, tags: tuple[str, ...]) -> bool:
    wanted = [str(wheel)] if name == "none" else [f"{wheel}[{name}]"]
    if name in _WITHOUT_WHEEL:
        wanted = [str(wheel), *_requirements(name)]
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed",
            "--disable-pip-version-check", "--target", folder, "--only-binary=:all:",
            "--python-version", python, *(f"--platform={tag}" for tag in tags), *wanted,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own command
    return done.returncode == 0


def _requirements(name: str) -> Iterator[str]:
    """Yield the requirements of an extra but the one that has no wheel anywhere."""
    for each in _project()["optional-dependencies"][name]:
        if not each.startswith(_WITHOUT_WHEEL[name]):
            yield each


def _project() -> dict[str, dict[str, list[str]]]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    described: dict[str, dict[str, list[str]]] = tomllib.loads(text)["project"]
    return described


def main() -> None:
    """Build the wheel, then print the rows."""
    what, *given = sys.argv[1:] or ["run"]
    left_out = _HEAVY if what == "run" else (*_HEAVY, "all")
    extras = _project()["optional-dependencies"]
    names = given or ["none", *(name for name in extras if name not in left_out)]
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, "."]
        subprocess.run(build, cwd=ROOT, check=True)  # noqa: S603  # our own command
        (wheel,) = Path(folder).glob("*.whl")
        columns = ("programs", "s to install") if what == "run" else _SYSTEMS
        print(f"| extra | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
        row = partial(run if what == "run" else wheels, wheel)
        # Each mostly waits for pip, and pip for the package index.
        with ThreadPoolExecutor(1 + (os.cpu_count() or 1)) as pool:
            for each in pool.map(row, names):
                print(each, flush=True)


if __name__ == "__main__":
    main()
