"""A provider that stalls, floods or talks nonsense: the fallback is asked, on any dialect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.adapters.sdk.raw_server import (
    BEGINNINGS,
    DIALECTS,
    ENDS,
    Script,
    Send,
    begun,
    event,
    keep_alive,
    sends,
    sends_for_ever,
    serving,
)
from tests.runner.bench import KEY, Bench, kinds, named, say, turn
from tool_search import ChatProvider, Done, ProviderSwitched, TextDelta, ToolSearchRunner
from tool_search.adapters import build_provider
from tool_search.config.bot import ProviderConfig
from tool_search.testing import Fault, ScriptedModel

EACH = pytest.mark.parametrize("dialect", DIALECTS)
DEEP = b'data: {"a":' + b"[" * 200_000 + b"\n\n"


@asynccontextmanager
async def bot(
    bench: Bench, dialect: str, script: Script, **settings: Any
) -> AsyncIterator[ToolSearchRunner]:
    """A bot whose primary is a raw server, and whose fallback answers."""
    async with serving(script) as server:
        url = f"http://127.0.0.1:{server.port}" + ("" if dialect == "anthropic" else "/v1")
        common: dict[str, Any] = {"id": "raw", "type": dialect, "api_key_env": None}
        model = DIALECTS[dialect].model
        config = ProviderConfig(**common, model=model, base_url=url, **settings)
        raw = build_provider(config, api_key=KEY, fallbacks=True)
        bench.server.reset(model=ScriptedModel([say("Here I am.")]))
        providers: dict[str, ChatProvider] = {"raw": raw, "gpt": await bench.provider("gpt")}
        async with raw:
            yield await bench.runner(providers=providers)


def wires(dialect: str) -> Iterator[tuple[str, Script]]:
    """The streams that a service may send, by what is wrong with them."""
    adapter = DIALECTS[dialect]
    start = begun(adapter)
    odd = [dict.fromkeys(one, 7) | {"type": one.get("type")} for one in BEGINNINGS[dialect]]
    yield "silence", sends_for_ever([start], b"")
    yield "keep-alives", sends_for_ever([start], keep_alive(adapter))
    yield "brackets", sends(start, DEEP)
    yield "not UTF-8", sends(start, b"data: \xff\n\n")
    yield "no JSON", sends(start, b"data: {\n\n")
    yield "a long number", sends(start, b"data: " + b"9" * 10_000 + b"\n\n")
    yield "wrong types", sends(*map(event, odd), start)
    yield "an array", sends(start, event([1]))
    yield "nothing", sends()
    yield "no end", sends(start)


@EACH
@pytest.mark.parametrize("index", range(10), ids=[name for name, _ in wires("anthropic")])
async def test_fallback_answers_whatever_the_primary_sends(
    bench: Bench, dialect: str, index: int
) -> None:
    _, script = list(wires(dialect))[index]
    async with bot(bench, dialect, script, timeout_s=0.5) as runner:
        events = await turn(runner)
    assert kinds(events) == ["ProviderSwitched", "Done"]
    shown = "".join(e.text for e in named(events, TextDelta))
    switched = named(events, ProviderSwitched)[0]
    assert shown == switched.discarded_text + "Here I am."
    assert named(events, Done)[0].provider == "gpt"


@EACH
async def test_reply_beyond_its_time_goes_to_the_fallback(bench: Bench, dialect: str) -> None:
    """A drip that never ends: `reply_timeout_s` is of the provider's entry."""
    adapter = DIALECTS[dialect]
    script = sends_for_ever([begun(adapter)], begun(adapter).split(b"\n\n")[-2] + b"\n\n")
    async with bot(bench, dialect, script, reply_timeout_s=0.1) as runner:
        events = await turn(runner)
    assert "reply_timeout_s" in named(events, ProviderSwitched)[0].cause
    assert named(events, Done)[0].answer == "Here I am."


@pytest.mark.parametrize("name", ["claude", "gpt", "responses"])
@pytest.mark.parametrize("keep_alive_s", [None, 0.01])
async def test_stand_in_that_stalls_is_given_up(
    bench: Bench, name: str, keep_alive_s: float | None
) -> None:
    # The time to connect is as short, and a busy machine may need a tenth of a second. The
    # fault is the primary's alone: the fallback would wait for a minute.
    primary = await bench.provider(name, timeout_s=1.0)
    other = "kept" if name == "claude" else "glm"
    providers = {name: primary, other: await bench.provider(other)}
    bench.server.reset(model=ScriptedModel([say("One two three four five.")] * 2))
    dialect, after = {
        "claude": ("anthropic", 4),
        "gpt": ("openai_chat", 3),
        "responses": ("openai_responses", 6),
    }[name]
    bench.server.faults.add(
        Fault(dialect=dialect, stalls=True, keep_alive_s=keep_alive_s, after_events=after)
    )
    events = await turn(await bench.runner(providers=providers))
    switched = named(events, ProviderSwitched)[0]
    assert "(timeout_s)" in switched.cause
    assert switched.discarded_text
    assert named(events, Done)[0].provider == other


async def test_thinking_may_be_silent_for_longer(bench: Bench) -> None:
    adapter = DIALECTS["anthropic"]
    thinking = [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "Hm"},
        },
    ]
    close = {"type": "content_block_stop", "index": 0}
    rest = [{**one, "index": 1} if "index" in one else one for one in BEGINNINGS["anthropic"][1:]]
    ends = [{**one, "index": 1} if "index" in one else one for one in ENDS["anthropic"]]

    async def script(send: Send) -> None:
        await sends(event(BEGINNINGS["anthropic"][0]), *map(event, thinking))(send)
        for _ in range(30):
            await asyncio.sleep(0.01)
            await sends(keep_alive(adapter))(send)
        await sends(*map(event, [close, *rest, *ends]))(send)

    async with bot(bench, "anthropic", script, timeout_s=0.2) as runner:
        events = await turn(runner)
    assert named(events, Done)[0].answer == "Well"
