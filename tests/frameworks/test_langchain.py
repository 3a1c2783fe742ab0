"""LangChain's own agents with `ToolSearchMiddleware`, over real HTTP on the stand-in server."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from tests.services.rules import xai
from tool_search import MemoryStore, SQLiteStore, ToolSearch, ToolSearchConfig
from tool_search.adapters.langchain import ToolSearchMiddleware
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

COUNT = ModelCall(name="count_words", arguments={"text": "to be or not to be"})
DONE = ModelReply(text="Done.")


def searches(*queries: str) -> ModelReply:
    """Return a reply that searches."""
    call = ModelCall(name="tool_search", arguments={"queries": list(queries)})
    return ModelReply(calls=(call,))


def calls(*made: ModelCall) -> ModelReply:
    """Return a reply of calls."""
    return ModelReply(calls=made)


def gpt(server: StandInServer, **options: Any) -> ChatOpenAI:
    """Return an OpenAI model on the stand-in server."""
    return ChatOpenAI(
        model="gpt-5.4",
        base_url=server.openai_base_url,
        api_key="key",  # type: ignore[arg-type]
        use_responses_api=False,
        **options,
    )


def claude(server: StandInServer) -> ChatAnthropic:
    """Return a Claude model on the stand-in server."""
    return ChatAnthropic(  # type: ignore[call-arg]
        model_name="claude-sonnet-4-6",
        base_url=server.anthropic_base_url,
        api_key="key",  # type: ignore[arg-type]
    )


class Thread:
    """One conversation, whose state a checkpointer keeps.

    Args:
        middleware: The middleware of its agents.
        tools: The tools of its agents.
    """

    def __init__(
        self, middleware: ToolSearchMiddleware | None = None, *, tools: Any = TOOLBOX
    ) -> None:
        self.middleware = middleware or ToolSearchMiddleware()
        self.tools = list(tools)
        self.saver = InMemorySaver()

    def agent(self, model: Any) -> Any:
        """Return an agent that goes on with the conversation."""
        return create_agent(
            model, tools=self.tools, middleware=[self.middleware], checkpointer=self.saver
        )

    def ask(self, model: Any, text: str = "Count the words.") -> dict[str, Any]:
        """Return the state after a question."""
        asked = {"messages": [("user", text)]}
        state: dict[str, Any] = self.agent(model).invoke(
            asked, {"configurable": {"thread_id": "1"}}
        )
        return state


def names(server: StandInServer) -> list[list[str]]:
    """Return the declared names of each request."""
    found = []
    for request in server.requests:
        body: Any = request.body
        found.append([(t.get("function") or t)["name"] for t in body["tools"]])
    return found


def test_each_list_is_a_prefix_of_the_next_over_three_turns(server: StandInServer) -> None:
    turn = [searches("count words in a text"), calls(COUNT), DONE]
    other = [searches("convert miles"), DONE]
    server.reset(model=ScriptedModel([*turn, *other, *turn[1:]]))
    thread = Thread()
    for _ in range(3):
        thread.ask(gpt(server))
    lists = names(server)
    assert lists[0] == ["tool_search"]
    assert "count_words" in lists[1]
    assert all(late[: len(early)] == early for early, late in pairwise(lists))


@pytest.mark.parametrize(
    ("query", "found"),
    [("统计字数", "count_words"), ("подсчитать слова", "count_words"), ("emails", "email")],
)
def test_a_query_in_another_language_and_a_plural_find_their_tool(
    query: str, found: str, server: StandInServer
) -> None:
    server.reset(model=ScriptedModel([searches(query), DONE]))
    state = Thread().ask(gpt(server))
    assert any(found in name for name in state["discovered"])


def test_another_model_of_a_thread_goes_on_without_a_search(server: StandInServer) -> None:
    turn = [searches("count words in a text"), calls(COUNT), DONE]
    server.reset(model=ScriptedModel([*turn, *turn[1:], *turn[1:]]))
    thread = Thread()
    for model in (gpt(server), claude(server), gpt(server)):
        answers = [m for m in thread.ask(model)["messages"] if isinstance(m, ToolMessage)]
        assert answers[-1].name == "count_words"
        assert answers[-1].status == "success"
    bodies: list[Any] = [request.body for request in server.requests]
    deferred = [sum(bool(t.get("defer_loading")) for t in body["tools"]) for body in bodies]
    assert deferred == [0, 0, 0, 196, 196, 0, 0]
    assert bodies[3]["tools"] == bodies[4]["tools"]


def test_claude_gets_a_plain_list_without_native(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([searches("count words"), calls(COUNT), DONE]))
    Thread(ToolSearchMiddleware(native=False)).ask(claude(server))
    assert names(server)[0] == ["tool_search"]


async def test_an_agent_streams_asynchronously(server: StandInServer) -> None:
    server.reset(model=ScriptedModel([searches("count words"), calls(COUNT), DONE]))
    agent = Thread().agent(gpt(server, streaming=True))
    thread = {"configurable": {"thread_id": "1"}}
    asked = {"messages": [("user", "Count the words.")]}
    modes = [mode async for mode in agent.astream(asked, thread, stream_mode="messages")]
    assert modes
    state = await agent.aget_state(thread)
    assert state.values["messages"][-1].content == "Done."
    assert "count_words" in state.values["discovered"]


def test_parallel_calls_may_have_searches_among_them(server: StandInServer) -> None:
    many = ModelReply(calls=(*searches("count words").calls, *searches("convert miles").calls))
    server.reset(model=ScriptedModel([many, calls(COUNT), DONE]))
    state = Thread().ask(gpt(server))
    assert "count_words" in state["discovered"]
    assert any("convert" in name for name in state["discovered"])


def test_a_hidden_tool_that_is_called_by_name_runs_and_stays(server: StandInServer) -> None:
    hidden = ModelCall(name="count_words", arguments={"text": "a b"}, hidden=True)
    server.reset(model=ScriptedModel([calls(hidden), DONE]))
    state = Thread().ask(gpt(server))
    answers = [m for m in state["messages"] if isinstance(m, ToolMessage)]
    assert answers[0].status == "success"
    assert state["discovered"] == ["count_words"]
    assert names(server)[1] == ["tool_search", "count_words"]


def test_a_hidden_tool_with_wrong_arguments_is_answered_with_its_schema(
    server: StandInServer,
) -> None:
    hidden = ModelCall(name="count_words", arguments={"txt": 5}, hidden=True)
    server.reset(model=ScriptedModel([calls(hidden), DONE]))
    state = Thread().ask(gpt(server))
    answers = [m for m in state["messages"] if isinstance(m, ToolMessage)]
    assert answers[0].status == "error"
    assert "text" in str(answers[0].content)


def test_a_tool_that_raises_teaches_nothing(server: StandInServer) -> None:
    @tool
    def count_rainbows(text: str) -> str:
        """Count the rainbows of a text."""
        raise RuntimeError(text)

    search = ToolSearch((), None, store=MemoryStore())
    call = ModelCall(name="count_rainbows", arguments={"text": "x"})
    server.reset(model=ScriptedModel([searches("rainbows"), calls(call), DONE]))
    with pytest.raises(RuntimeError):
        Thread(ToolSearchMiddleware(search=search), tools=[*TOOLBOX, count_rainbows]).ask(
            gpt(server)
        )


async def test_what_was_learned_ranks_first_in_a_new_conversation_and_after_a_restart(
    server: StandInServer, tmp_path: Path
) -> None:
    path = tmp_path / "learned.sqlite"
    used = ModelCall(name="word_frequency", arguments={"text": "a b a"})
    first = await _first_found(server, path, "words in a text", used)
    again = await _first_found(server, path, "the words of texts", None)
    assert first != "word_frequency"
    assert again == "word_frequency"


async def _first_found(
    server: StandInServer, path: Path, query: str, lookup: ModelCall | None
) -> str:
    steps = [searches(query), *([calls(lookup)] if lookup else ()), DONE]
    server.reset(model=ScriptedModel(steps))
    async with SQLiteStore(path) as store:
        middleware = ToolSearchMiddleware(search=ToolSearch((), None, store=store))
        agent = Thread(middleware).agent(gpt(server))
        asked = {"messages": [("user", "How often is each word there?")]}
        state = await agent.ainvoke(asked, {"configurable": {"thread_id": "1"}})
    return str(next(iter(state["discovered"]), ""))


def test_few_tools_are_all_declared_and_providers_tools_are_left_alone(
    server: StandInServer,
) -> None:
    server.reset(model=ScriptedModel([DONE]))
    thread = Thread(tools=list(TOOLBOX)[:5])
    thread.ask(gpt(server))
    assert len(names(server)[0]) == 5
    server.reset(model=ScriptedModel([DONE]))
    full = ToolSearchMiddleware(ToolSearchConfig(tool_schema_mode="full"), native=False)
    Thread(full).ask(claude(server))
    assert len(names(server)[0]) == 196


@pytest.mark.parametrize("responses", [False, True])
@pytest.mark.parametrize(("name", "refused"), [("grok-4.5", 0), ("house-model", 1)])
def test_a_search_and_a_call_where_the_service_keeps_the_search_tools_name(
    responses: bool, name: str, refused: int
) -> None:
    with xai().running() as service:
        model = ChatOpenAI(
            model=name,
            base_url=f"{service.url}/v1",
            api_key="key",  # type: ignore[arg-type]
            use_responses_api=responses,
        )
        thread = Thread()
        state = thread.ask(model, "Please use count_words")
        state = thread.ask(model, "Again, please use count_words")
    assert len(service.refused) == refused
    made = [call["name"] for m in state["messages"] for call in getattr(m, "tool_calls", ())]
    assert made == ["tool_search", "count_words"] * 2
    assert state["messages"][-1].text.startswith("answer")
