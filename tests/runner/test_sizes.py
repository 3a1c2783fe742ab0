"""Conversations in a small context, and with pictures that cannot be read, at the stand-in."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conversations import OPENAI
from tests.runner.bench import Bench, named, say, turn
from tool_search import Done, ImagePart, Message, RunnerWarning, TextPart, ToolSearchRunner, Usage
from tool_search.adapters.openai_chat.wire import encode
from tool_search.adapters.wire.requests import WrittenHistory
from tool_search.core.messages import KeptWork, RequestPlan
from tool_search.providers.base import ReplyEnd, ReplyEvent
from tool_search.testing import Endpoint, ScriptedModel


@pytest.mark.parametrize("name", ["claude", "glm", "gpt", "responses", "kept", "late"])
async def test_conversation_goes_on_in_a_small_context(bench: Bench, name: str) -> None:
    tokens = 1_500
    bench.server.reset(
        model=ScriptedModel([say("It is so. " * 20)] * 40),
        endpoint=Endpoint(context_tokens=tokens),
    )
    bench.may_refuse = True
    runner = await bench.runner(name, "gpt-other")
    codes: list[str] = []
    for number in range(30):
        runner.use(name if number % 10 < 7 else "gpt-other")
        events = await turn(runner, f"Question {number}? " * 5)
        codes += [event.code for event in named(events, RunnerWarning)]
        assert [done.answer[:9] for done in named(events, Done)] == ["It is so."]
    assert set(codes) == {"turns_left_out"}
    assert 2 <= codes.count("turns_left_out") <= 20
    session = runner.session()
    assert session is not None
    assert len(session.history) == 60


@pytest.mark.parametrize("name", ["claude", "glm", "gpt", "responses", "kept"])
async def test_unreadable_picture_ends_no_conversation(bench: Bench, name: str) -> None:
    bench.server.reset(model=ScriptedModel([say("I see nothing.")] * 4))
    bench.may_refuse = True
    runner = await bench.runner(name)
    picture = ImagePart("data:image/png;base64,bm8gcGljdHVyZQ==")
    for message in ((TextPart("See?"), picture), (TextPart("Now?"),), (TextPart("Yes?"),)):
        events = await turn(runner, message)
        assert named(events, Done)[0].answer == "I see nothing."
    refused = [request for request in bench.requests if request.status == 400]
    assert len(refused) == 1


class Writing:
    """A provider that writes its requests and sends them nowhere."""

    def __init__(self) -> None:
        self.profile = OPENAI
        self.kept: list[KeptWork] = []

    async def stream(self, plan: RequestPlan) -> AsyncIterator[ReplyEvent]:
        """The same answer to everything."""
        encode(plan, self.profile)
        self.kept.append(plan.kept)
        message = Message(role="assistant", content="Yes.")
        yield ReplyEnd(message=message, stop_reason="answer", usage=Usage())


async def test_bytes_of_conversations_that_rest_are_not_held() -> None:
    provider = Writing()
    runner = ToolSearchRunner(providers={"p": provider})
    for number in range(300):
        await turn(runner, "Well?", conversation=str(number))
        # The first request of a conversation has nothing that the next repeats.
        await turn(runner, "And then?", conversation=str(number))
    held = [work.last(WrittenHistory) is not None for work in provider.kept[1::2]]
    assert held == [False] * 44 + [True] * 256
    assert named(await turn(runner, "And now?", conversation="0"), Done)[0].answer == "Yes."
    await runner.aclose()
