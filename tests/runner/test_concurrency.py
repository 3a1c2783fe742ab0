"""Turns of one conversation queue; conversations run side by side and share nothing."""

from __future__ import annotations

import asyncio

from tests.runner.bench import PATIENCE_S, Bench, call, calling, named, say, search, turn
from tool_search import Done, ExecutableTool, Tool, ToolContext
from tool_search.testing import ModelReply, ModelView, ScriptedModel


class Meeting:
    """A tool that returns once two calls of it are under way at the same time."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.both = asyncio.Event()

    async def meet(self, context: ToolContext) -> str:
        """Waits for the other."""
        self.inside.append(context.conversation)
        if len(self.inside) == 2:
            self.both.set()
        async with asyncio.timeout(PATIENCE_S):
            await self.both.wait()
        return "met"

    @property
    def tool(self) -> ExecutableTool:
        """The tool."""
        return ExecutableTool(tool=Tool(name="meet", always_load=True), function=self.meet)


class Echo:
    """A model that repeats what the user said last."""

    def reply(self, view: ModelView) -> ModelReply:
        """The user's words."""
        return ModelReply(text=f"You said {view.last_user_text}")


async def test_turns_of_one_conversation_queue_in_order(bench: Bench) -> None:
    bench.server.reset(model=Echo())
    runner = await bench.runner("gpt")
    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(turn(runner, f"message {number}"))
    session = runner.session()
    assert session is not None
    expected = [t for n in range(5) for t in (f"message {n}", f"You said message {n}")]
    assert [message.text for message in session.history] == expected


async def test_conversations_run_side_by_side(bench: Bench) -> None:
    """Two tools run at the same time, each for its own."""
    meeting = Meeting()
    script = {name: [calling(call("meet")), say(f"{name} met.")] for name in ("anna", "boris")}
    bench.server.reset(model=ScriptedModel(turns=script))
    runner = await bench.runner("gpt", tools=[meeting.tool])
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(turn(runner, name, conversation=name)) for name in script]
    assert sorted(meeting.inside) == ["anna", "boris"]
    assert [named(task.result(), Done)[0].answer for task in tasks] == ["anna met.", "boris met."]


async def test_no_conversation_sees_the_discoveries_of_another(bench: Bench) -> None:
    script = {
        "weather": [search("weather"), say("Found.")],
        "mail": [search("weather mail"), say("Found.")],
    }
    bench.server.reset(model=ScriptedModel(turns=script))
    runner = await bench.runner("gpt")
    await turn(runner, "weather", conversation="a")
    await turn(runner, "mail", conversation="b")
    second = [request for request in bench.requests if "mail" in str(request.body["messages"])]
    assert "get_forecast" not in second[0].tool_names
    assert '"loaded"' not in str(second[-1].body["messages"])
    names = [s.discoveries.names for s in map(runner.session, ("a", "b")) if s is not None]
    assert names[0] == ("get_forecast",)
    assert set(names[1]) == {"get_forecast", "send_mail"}


async def test_many_conversations_share_one_list_of_bytes(bench: Bench) -> None:
    bench.server.reset(model=Echo())
    runner = await bench.runner("claude")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(turn(runner, "hi", conversation=f"c{n}")) for n in range(12)]
    assert {named(task.result(), Done)[0].answer for task in tasks} == {"You said hi"}
    assert len({request.tools_bytes for request in bench.requests}) == 1
