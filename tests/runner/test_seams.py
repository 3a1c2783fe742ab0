"""Stores and providers of somebody's own, and endpoints that do not stream."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.runner.bench import (
    FORECAST,
    Bench,
    calling,
    named,
    say,
    search,
    turn,
)
from tests.search.word_embedder import WordEmbedder
from tool_search import (
    Done,
    ProviderError,
    ProviderSwitched,
    RequestPlan,
    RunnerWarning,
    SearchSettings,
    TextDelta,
    ToolSearchConfig,
    profile_for,
)
from tool_search.core.messages import Message
from tool_search.providers.base import ReplyDelta, ReplyEnd, ReplyEvent, Usage
from tool_search.testing import Fault, ScriptedModel

BOTH = pytest.mark.parametrize("name", ["claude", "gpt"])


@BOTH
async def test_endpoint_that_does_not_stream_gives_the_same_events(bench: Bench, name: str) -> None:
    script = [search("weather"), calling(FORECAST), say("Sunny.")]
    bench.server.reset(model=ScriptedModel(script))
    provider = await bench.provider(name, extra_body={"stream": False})
    events = await turn(await bench.runner(providers={name: provider}), "Weather?")
    assert not any(request.stream for request in bench.requests)
    assert "".join(event.text for event in named(events, TextDelta)) == "Sunny."
    assert bench.ran == [("get_forecast", {"city": "Paris"})]


async def test_reference_refused_in_a_stream_begins_the_reply_again(bench: Bench) -> None:
    message = "Tool reference 'get_forecast' not found in available tools"
    script = [search("weather"), say("One two three."), say("Sunny at last.")]
    bench.server.reset(model=ScriptedModel(script))
    bench.server.faults.add(
        Fault(dialect="anthropic", status=400, message=message, skip=1, after_events=5)
    )
    events = await turn(await bench.runner("claude"), "Weather?")
    switch = named(events, ProviderSwitched)[0]
    assert (switch.from_provider, switch.to_provider) == ("claude", "claude")
    assert switch.discarded_text
    behind = events[events.index(switch) :]
    assert "".join(event.text for event in named(behind, TextDelta)) == "Sunny at last."
    assert [event.code for event in named(events, RunnerWarning)] == ["request_repaired"]


class Scripted:
    """A provider of somebody's own, without HTTP; an iterator that cannot be closed."""

    def __init__(self, *events: ReplyEvent | Exception) -> None:
        self.profile = profile_for("openai_chat", "local")
        self.events = list(events)
        self.plans: list[RequestPlan] = []

    def stream(self, plan: RequestPlan) -> AsyncIterator[ReplyEvent]:
        """The next of its events, until one ends a reply."""
        self.plans.append(plan)
        return self

    def __aiter__(self) -> AsyncIterator[ReplyEvent]:
        return self

    async def __anext__(self) -> ReplyEvent:
        if not self.events:
            raise StopAsyncIteration
        event = self.events.pop(0)
        if isinstance(event, Exception):
            raise event
        return event


def _end(text: str) -> ReplyEnd:
    message = Message(role="assistant", content=text)
    return ReplyEnd(message=message, stop_reason="answer", usage=Usage(output_tokens=1))


async def test_provider_without_an_end_is_a_failed_one(bench: Bench) -> None:
    bench.server.reset(model=ScriptedModel([say("Whole.")]))
    providers = {"own": Scripted(ReplyDelta("Ha")), "gpt": await bench.provider("gpt")}
    events = await turn(await bench.runner(providers=providers))
    assert named(events, ProviderSwitched)[0].discarded_text == "Ha"
    assert "no end" in named(events, ProviderSwitched)[0].cause
    assert named(events, Done)[0].answer == "Whole."


async def test_provider_that_breaks_its_promise_ends_the_turn_alone(bench: Bench) -> None:
    """An exception that is no `ProviderError` is a bug: it is shown, and nothing is lost."""
    own = Scripted(KeyError("a bug"), _end("Fine."))
    runner = await bench.runner(providers={"own": own})
    with pytest.raises(KeyError, match="a bug"):
        await turn(runner, "First")
    assert named(await turn(runner, "Second"), Done)[0].answer == "Fine."
    assert [message.text for message in own.plans[-1].messages] == ["First", "Second"]


async def test_provider_learns_what_its_endpoint_taught(bench: Bench) -> None:
    """Its own profile is replaced, so that it writes what the plan means."""
    refusal = ProviderError(
        "Invalid 'tools': array too long. Expected an array with maximum length 3",
        provider="own",
        status=400,
    )
    own = Scripted(refusal, _end("Fine."))
    runner = await bench.runner(providers={"own": own})
    events = await turn(runner)
    assert [event.code for event in named(events, RunnerWarning)] == ["rendered_within_limit"]
    assert own.profile.max_tools == 4


class ThreadNoting(WordEmbedder):
    """An embedder that notes which threads it was asked in, tool by tool."""

    threads: ClassVar[list[tuple[str, int]]] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row for each text."""
        ThreadNoting.threads += [(text, threading.get_ident()) for text in texts]
        return super().embed(texts)


async def test_tools_that_replace_others_are_embedded_off_the_event_loop(
    bench: Bench, tmp_path: Path
) -> None:
    bench.server.reset(model=ScriptedModel([say("Hello."), say("Hello again.")]))
    search_settings = SearchSettings(
        engine="semantic",
        embedder=f"{__name__}:ThreadNoting",
        vector_cache=str(tmp_path / "vectors.sqlite"),
    )
    config = ToolSearchConfig(tool_schema_mode="tool_search", search=search_settings)
    runner = await bench.runner("gpt", config=config)
    await turn(runner, "Hello?")
    runner.replace_tools([plant_finder])
    await turn(runner, "And now?")
    asked_in = {number for text, number in ThreadNoting.threads if "plant" in text.lower()}
    assert asked_in
    assert threading.get_ident() not in asked_in


def plant_finder(name: str) -> str:
    """Find a plant by its name."""
    return name
