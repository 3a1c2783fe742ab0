"""Claude Code and Codex through the proxy, each with an MCP server of 61 tools.

`make test-proxy` installs both from npm. They are skipped only if it could not.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.conftest import serve, upstreams
from tests.proxy.test_conversations import changes
from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import ClientRule, ProxyConfig
from tool_search.testing import ModelCall, ModelReply, ModelView, StandInServer

pytestmark = pytest.mark.clients
ROOT = Path(__file__).resolve().parents[2]
COMMANDS = Path(os.environ.get("NODE_CLIENTS", ROOT / ".node-clients")) / "node_modules" / ".bin"
QUESTION = "Count the words of 'to be or not to be'"
SERVER = {
    "command": sys.executable,
    "args": [str(ROOT / "tests" / "proxy" / "toolbox_server.py")],
}


class Counting:
    """A model that searches, calls the tool that it found, and answers."""

    def reply(self, view: ModelView) -> ModelReply:
        """Return the next reply."""
        if not view.tools:
            return ModelReply(text="title")
        if any("'words': 6" in result.text for result in view.results):
            return ModelReply(text="There are six words.")
        names = [tool.name for tool in view.tools]
        known = [name for name in names if name.endswith("count_words")]
        arguments = {"text": "to be or not to be"}
        if known:
            call = ModelCall(name=known[0], arguments=arguments)
            return ModelReply(text="Calling.", calls=(call,))
        hidden = re.findall(r'"name":"(\w*count_words)"', "".join(r.text for r in view.results))
        if "call_tool" in names and hidden:
            inner = {"name": hidden[0], "arguments": arguments}
            return ModelReply(calls=(ModelCall(name="call_tool", arguments=inner),))
        found = [t.name for t in view.tools if t.name in ("tool_search", "ToolSearch")]
        if not found:
            return ModelReply(text=f"no search tool among {len(view.tools)}")
        query = "select:mcp__toolbox__count_words" if found[-1] == "ToolSearch" else "count words"
        return ModelReply(calls=(ModelCall(name=found[-1], arguments={"query": query}),))


@pytest.fixture
def server() -> Iterator[StandInServer]:
    """A stand-in provider; a test ends without a violation."""
    with StandInServer(model=Counting()) as running:
        yield running
        assert running.violations == ()


def command(name: str) -> str:
    """Return the path of a client; skip the test if it is not installed."""
    path = COMMANDS / name
    if not path.exists():
        pytest.skip(f"{name} is not installed: npm could not be reached by make test-proxy")
    return str(path)


def run(arguments: list[str], home: Path, environment: dict[str, str]) -> str:
    """Return what a client prints."""
    done = subprocess.run(  # noqa: S603  # a client that the target installed
        arguments,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        timeout=100,
        cwd=home,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def tool_count() -> str:
    """Return the number of tools that the server has, which a benchmark changes."""
    return os.environ.get("TOOLBOX_COUNT", "61")


def ask_claude(address: str, home: Path, *, own_search: str = "false") -> str:
    """Return the answer of Claude Code."""
    servers = home / "mcp.json"
    server = {**SERVER, "env": {"PYTHONPATH": str(ROOT), "TOOLBOX_COUNT": tool_count()}}
    servers.write_text(json.dumps({"mcpServers": {"toolbox": server}}))
    quiet = (
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER",
    )  # fmt: skip
    environment = {
        **dict.fromkeys(quiet, "1"),
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": "sk-ant-x",
        "ENABLE_TOOL_SEARCH": own_search,
        "MCP_CONNECTION_NONBLOCKING": "0",
        "MCP_TIMEOUT": "60000",
    }
    arguments = [
        command("claude"), "-p", QUESTION, "--mcp-config", str(servers), "--strict-mcp-config",
        "--output-format", "json", "--allowedTools", "mcp__toolbox",
        "--model", "claude-sonnet-4-6",
    ]  # fmt: skip
    return str(json.loads(run(arguments, home, environment))["result"])


def ask_codex(address: str, home: Path) -> str:
    """Return the answer of Codex."""
    (home / "config.toml").write_text(
        f"""model = "gpt-5.4"
model_provider = "proxied"
[model_providers.proxied]
name = "proxied"
base_url = "{address}/v1"
env_key = "PROXIED_KEY"
wire_api = "responses"
[mcp_servers.toolbox]
command = {json.dumps(SERVER["command"])}
args = {json.dumps(SERVER["args"])}
env = {{ PYTHONPATH = {json.dumps(str(ROOT))}, TOOLBOX_COUNT = "{tool_count()}" }}
startup_timeout_sec = 60
required = true
"""
    )
    arguments = [
        command("codex"), "exec", "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox", QUESTION,
    ]  # fmt: skip
    return run(arguments, home, {"CODEX_HOME": str(home), "PROXIED_KEY": "x"})


def assert_prefix(server: StandInServer, strategy: str) -> None:
    """Hold the prefix of requests to a list that grows at its end, or to no change at all."""
    found = changes(server)
    assert all("tool_added" in change for change in found) if strategy == "generic" else not found


def proxy(server: StandInServer, strategy: str, **settings: Any) -> ToolSearchProxy:
    """Return a proxy in front of the stand-in provider."""
    return ToolSearchProxy(ProxyConfig(upstreams=upstreams(server, strategy=strategy), **settings))


@pytest.mark.parametrize("strategy", ["generic", "claude", "bridge"])
def test_claude_code_finds_a_tool_of_its_server(
    server: StandInServer, tmp_path: Path, strategy: str
) -> None:
    with serve(proxy(server, strategy)) as address:
        answer = ask_claude(address, tmp_path)

    asked = [request for request in server.requests if len(request.tool_names) > 1]
    assert answer == "There are six words."
    if strategy != "claude":
        assert all(len(request.tool_names) < 40 for request in asked)
    assert_prefix(server, strategy)


def test_claude_code_with_everything_deferred(server: StandInServer, tmp_path: Path) -> None:
    rule = ClientRule(name="all-deferred")
    with serve(proxy(server, "generic", clients=(rule,))) as address:
        answer = ask_claude(address, tmp_path)

    asked = [request for request in server.requests if request.tool_names]
    assert answer == "There are six words."
    assert asked[0].tool_names == ("tool_search",)


def test_claude_code_that_defers_by_itself_on_a_provider_that_cannot(
    server: StandInServer, tmp_path: Path
) -> None:
    with serve(proxy(server, "generic", mode="emulate")) as address:
        answer = ask_claude(address, tmp_path, own_search="true")

    asked = [request for request in server.requests if request.tool_names]
    assert answer == "There are six words."
    assert "defer_loading" not in "".join(r.raw_body.decode() for r in asked)
    assert "tool_reference" not in "".join(r.raw_body.decode() for r in asked)


@pytest.mark.parametrize("strategy", ["generic", "openai_responses", "bridge"])
def test_codex_finds_a_tool_of_its_server(
    server: StandInServer, tmp_path_factory: pytest.TempPathFactory, strategy: str
) -> None:
    home = tmp_path_factory.mktemp("codex")
    with serve(proxy(server, strategy)) as address:
        answer = ask_codex(address, home)

    assert "There are six words." in answer
    assert_prefix(server, strategy)
    first = server.requests[0]
    assert "count_words" not in first.tool_names
