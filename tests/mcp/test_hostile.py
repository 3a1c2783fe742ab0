"""A hostile MCP server costs a failed call, and nothing else: within bounds, and it goes on."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from tests.mcp.helpers import call, plain
from tool_search.adapters.mcp import MCPSource
from tool_search.config.limits import LimitSettings
from tool_search.testing.hostile import ATTACKS, Bounds, HostileServer

# Its peak of memory is that of a process, so each attack has one.
PROGRAM = "import sys; from tests.mcp.test_hostile import main; main(sys.argv[1])"


async def attacked(attack: str) -> None:
    with HostileServer() as server:
        entry = {"url": server.mcp(attack), "timeout": 100}
        async with MCPSource({"a": entry}, start_s=60) as source:
            assert (await call(source, "fine")).content == "fine"
            with Bounds() as bounds:
                refused = await call(source, "attack")
            assert refused.is_error, refused.content[:300]
            assert (await call(source, "fine")).content == "fine"
            assert [each.state for each in source.status] == ["connected"]
    bounds.check()


def main(attack: str) -> None:
    asyncio.run(attacked(attack))


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_a_failed_call_within_bounds(attack: str) -> None:
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-c", PROGRAM, attack], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]


NARROW = {"bytes": LimitSettings(max_bytes=50_000), "items": LimitSettings(max_items=1_000)}


@pytest.mark.parametrize("bound", ["bytes", "items"])
async def test_a_process_that_says_too_much_goes_on(bound: str) -> None:
    result = {"content": [{"type": "text", "text": "x" * 60_000}] * 2, "x": [[]] * 2_000}
    async with MCPSource({"a": plain("raw", "pid")}, limits=NARROW[bound]) as source:
        before = (await call(source, "pid")).content
        refused = await call(source, "raw", value=json.dumps(result))
        assert refused.is_error
        assert "more than" in refused.content
        assert (await call(source, "pid")).content == before
