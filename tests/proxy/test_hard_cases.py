"""Searches beside calls, failures in a later step, restarts, thinking, and equal clients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tests.proxy.clients import (
    CLIENTS,
    ChatClient,
    Client,
    MessagesClient,
    ResponsesClient,
    ask_all,
)
from tests.proxy.conftest import serve, upstreams
from tool_search.config.conversation import LearningSettings, ToolSearchConfig
from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import ProxyConfig, StateSettings
from tool_search.testing import (
    Fault,
    KeywordModel,
    ModelCall,
    ModelReply,
    ModelView,
    ScriptedModel,
    StandInModel,
    StandInServer,
)
from tool_search.testing.prefix import prefix_change

pytestmark = pytest.mark.clients
KINDS = pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.kind)
STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def search(*queries: str) -> tuple[ModelCall, ...]:
    """Return calls of the search tool, one for each query."""
    return tuple(ModelCall(name="tool_search", arguments={"query": q}) for q in queries)


def count(*, hidden: bool = False) -> ModelCall:
    """Return a call of a tool of the client."""
    return ModelCall(name="count_words", arguments={"text": "a b"}, hidden=hidden)


class Server(StandInServer):
    """A stand-in provider whose model can be changed."""

    def __init__(self) -> None:
        self.plays: StandInModel = ScriptedModel([])
        super().__init__(model=self)

    def reply(self, view: ModelView) -> ModelReply:
        """Return the reply of the model."""
        return self.plays.reply(view)


@pytest.fixture
def server() -> Iterator[Server]:
    """A stand-in provider whose model follows the test's script."""
    with Server() as running:
        yield running
        assert running.violations == ()


def play(server: Server, *replies: ModelReply) -> None:
    """Let the model give these replies, in order."""
    server.plays = ScriptedModel(list(replies))


def proxy(server: Server, strategy: str = "generic", **settings: Any) -> ToolSearchProxy:
    """Return a proxy in front of the stand-in provider."""
    return ToolSearchProxy(ProxyConfig(upstreams=upstreams(server, strategy=strategy), **settings))


def moved(server: Server) -> list[str]:
    """Return the changes of the prefix between requests, without lists that grew."""
    found = [prefix_change(a.raw_body, b.raw_body) for a, b in pairwise(server.requests)]
    return [str(change) for change in found if change and "tool_added" not in str(change)]


@KINDS
@STREAMS
def test_two_searches_and_a_search_beside_a_call_are_answered(
    server: Server, kind: type[Client], stream: bool
) -> None:
    play(
        server,
        ModelReply(text="I look.", calls=search("convert kilometers to miles", "count words")),
        ModelReply(text="Now.", calls=(count(), *search("roman numerals"))),
        ModelReply(text="done"),
        ModelReply(text="again"),
    )
    with serve(proxy(server)) as address:
        client = kind(address, stream=stream)

        answers = ask_all(client, ("x", "y"))

    assert [answer.strip() for answer in answers] == ["done", "again"]
    assert client.called == ["count_words"]
    assert "convert_length" in server.requests[-1].tool_names
    assert moved(server) == []


@KINDS
@STREAMS
def test_a_hidden_tool_that_is_called_rightly_runs_at_the_client(
    server: Server, kind: type[Client], stream: bool
) -> None:
    play(server, ModelReply(text="At once.", calls=(count(hidden=True),)), ModelReply(text="two"))
    with serve(proxy(server)) as address:
        client = kind(address, stream=stream)

        client.ask("x")

    assert client.called == ["count_words"]
    assert "count_words" in server.requests[1].tool_names


@KINDS
@STREAMS
def test_a_hidden_tool_with_wrong_arguments_is_answered_with_its_schema(
    server: Server, kind: type[Client], stream: bool
) -> None:
    wrong = ModelCall(name="count_words", arguments={"words": 3}, hidden=True)
    play(server, ModelReply(calls=(wrong,)), ModelReply(calls=(count(),)), ModelReply(text="two"))
    with serve(proxy(server)) as address:
        client = kind(address, stream=stream)

        client.ask("x")

    assert client.called == ["count_words"]
    assert "text" in server.requests[1].raw_body.decode()


@KINDS
@STREAMS
def test_a_model_that_searches_for_ever_comes_to_an_end(
    server: Server, kind: type[Client], stream: bool
) -> None:
    play(server, *(ModelReply(calls=search(f"words {n}")) for n in range(20)))
    with serve(proxy(server, max_searches=2)) as address:
        client = kind(address, stream=stream)

        client.ask("x")

    assert len(server.requests) == 5
    assert "No more searches" in server.requests[-1].raw_body.decode()


@KINDS
def test_a_failure_of_a_later_step_is_the_dialects_own_error(
    server: Server, kind: type[Client]
) -> None:
    play(server, ModelReply(calls=search("count words")), ModelReply(text="never"))
    server.faults.add(Fault(status=529 if kind is MessagesClient else 503, skip=1))
    with serve(proxy(server)) as address:
        client = kind(address, stream=True)

        with pytest.raises((anthropic.APIStatusError, openai.APIError, RuntimeError)):
            client.ask("x")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_conversation_of_the_provider_goes_on_after_a_failure_of_a_later_step(
    server: Server, *, stream: bool
) -> None:
    play(server, ModelReply(calls=search("count words")), ModelReply(text="done"))
    server.faults.add(Fault(status=503, skip=1))
    with serve(proxy(server)) as address:
        client = ResponsesClient(address, stream=stream, in_conversation=True)
        with pytest.raises((openai.APIError, RuntimeError)):
            client.ask("x")
        client.history = []

        # The conversation has a call of the search tool, which the next request answers.
        assert client.ask("y") == "done"


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_result_that_is_sent_again_after_a_failure_is_in_a_conversation_once(
    server: Server, *, stream: bool
) -> None:
    again = [ModelReply(calls=search("convert length")), ModelReply(text="done")]
    play(server, ModelReply(calls=search("count words")), ModelReply(calls=(count(),)), *again)
    server.faults.add(Fault(status=503, skip=3))
    with serve(proxy(server)) as address:
        client = ResponsesClient(address, stream=stream, in_conversation=True)
        with pytest.raises((openai.APIError, RuntimeError)):
            client.ask("x")

        # The history is the result, which the conversation has, and the message.
        assert client.ask("y") == "done"


@KINDS
def test_a_break_in_a_later_step_is_the_dialects_own_error(
    server: Server, kind: type[Client]
) -> None:
    play(server, ModelReply(calls=search("count words")), ModelReply(text="never ends"))
    server.faults.add(Fault(broken=True, skip=1, after_events=2))
    with serve(proxy(server)) as address:
        client = kind(address, stream=True)

        with pytest.raises((anthropic.APIError, openai.APIError, RuntimeError)):
            client.ask("x")


@KINDS
@STREAMS
def test_an_error_before_the_reply_is_the_providers_own(
    server: Server, kind: type[Client], stream: bool
) -> None:
    server.faults.add(Fault(status=429, headers={"retry-after": "7"}))
    with serve(proxy(server)) as address:
        client = kind(address, stream=stream)

        with pytest.raises((anthropic.RateLimitError, openai.RateLimitError)) as caught:
            client.ask("x")

    assert isinstance(caught.value, anthropic.RateLimitError | openai.RateLimitError)
    assert caught.value.response.headers["retry-after"] == "7"


@pytest.mark.parametrize(
    ("model", "thinking", "strategy"),
    [
        ("claude-sonnet-4-6", {"type": "enabled", "budget_tokens": 1024}, "generic"),
        ("claude-sonnet-4-6", {"type": "enabled", "budget_tokens": 1024}, "claude"),
        ("claude-opus-5-5", {"type": "adaptive"}, "claude"),
        ("claude-opus-5-5", {"type": "adaptive"}, "auto"),
        ("claude-opus-5-5", {"type": "adaptive"}, "bridge"),
    ],
)
def test_thinking_of_hidden_steps_goes_back(
    server: Server, model: str, thinking: dict[str, Any], strategy: str
) -> None:
    name = "call_tool" if strategy in ("auto", "bridge") else "count_words"
    arguments = {"text": "a b"}
    bridged = {"name": "count_words", "arguments": arguments}
    call = ModelCall(name=name, arguments=bridged if name == "call_tool" else arguments)
    play(
        server,
        ModelReply(thinking="I need a tool.", calls=search("count words")),
        ModelReply(thinking="Now I call.", calls=(call,)),
        ModelReply(thinking="fine", text="two"),
        ModelReply(thinking="fine", text="again"),
    )
    with serve(proxy(server, strategy)) as address:
        client = MessagesClient(address, stream=True, model=model)
        client.more = {"thinking": thinking}

        answers = ask_all(client, ("x", "y"))

    assert answers == ["two", "again"]
    assert client.called == ["count_words"]


@KINDS
def test_lost_state_costs_a_search_at_most(server: Server, kind: type[Client]) -> None:
    server.plays = KeywordModel(search_tool="tool_search")
    with serve(proxy(server)) as address:
        client = kind(address, stream=True)
        ask_all(client)
    with serve(proxy(server)) as address:
        moved_to = kind(address, stream=True)
        moved_to.history = client.history

        answer = moved_to.ask("Count the words of 'one two'")

    assert "2" in answer
    # The tools that the history names are declared, so nothing is searched again.
    assert "count_words" in server.requests[-1].tool_names


@KINDS
def test_state_in_a_file_outlives_a_restart(
    server: Server, kind: type[Client], tmp_path: Path
) -> None:
    server.plays = KeywordModel(search_tool="tool_search")
    state = StateSettings(path=str(tmp_path / "state.db"))
    with serve(proxy(server, state=state)) as address:
        client = kind(address, stream=True)
        ask_all(client)
    with serve(proxy(server, state=state)) as address:
        moved_to = kind(address, stream=True)
        moved_to.history = client.history

        moved_to.ask("Count the words of 'one two'")

    assert moved(server) == []
    assert (tmp_path / "state.db").stat().st_mode & 0o077 == 0


@KINDS
def test_clients_whose_replies_read_the_same_do_not_share_searches(
    server: Server, kind: type[Client]
) -> None:
    play(
        server,
        ModelReply(calls=search("SECRET of Alice: merger tax")),
        *(ModelReply(text=text) for text in ("Hello.", "Hello.", "ok")),
    )
    with serve(proxy(server)) as address:
        kind(address, stream=False, key="alice").ask("x")
        bob = kind(address, stream=False, key="bob")

        ask_all(bob, ("x", "y"))

    assert "SECRET" not in server.requests[-1].raw_body.decode()


def test_a_tool_named_like_the_search_tool_stays_the_clients(server: Server) -> None:
    play(server, ModelReply(text="hi"))
    with serve(proxy(server)) as address:
        client = ChatClient(address, stream=False)
        function = {"name": "tool_search", "description": "Mine.", "parameters": {"type": "object"}}
        client.tools = [*client.tools, {"type": "function", "function": function}]

        client.ask("x")

    assert "tool_search_proxy" in server.requests[0].tool_names


def found_by(server: Server, text: str) -> list[str]:
    """Return the names that the last search for a text found."""
    bodies = [json.loads(request.raw_body) for request in server.requests]
    results = [m["content"] for body in bodies for m in body["messages"] if m["role"] == "tool"]
    found = [json.loads(r) for r in results if r.startswith("{") and text in r]
    return [match["name"] for match in found[-1]["matches"]]


@pytest.mark.parametrize("shared", [None, True])
def test_a_credential_has_what_its_own_calls_taught(
    server: Server, tmp_path: Path, shared: bool | None
) -> None:
    learning = LearningSettings(shared=shared)
    settings: dict[str, Any] = {
        "state": StateSettings(path=str(tmp_path / "state.db")),
        "tool_search": ToolSearchConfig(learning=learning),
    }
    words = "words in my essay text statistics"
    taught = (
        ModelReply(calls=search(words)),
        ModelReply(calls=(ModelCall(name="reading_time", arguments={"text": "a b"}),)),
        ModelReply(text="soon"),
    )
    found = {}
    with serve(proxy(server, **settings)) as address:
        for key in ("alice", "carol"):
            play(server, *taught)
            ChatClient(address, stream=False, key=key).ask("x")
    with serve(proxy(server, **settings)) as address:
        for key in ("alice", "bob"):
            play(server, ModelReply(calls=search(words)), ModelReply(text="done"))
            ChatClient(address, stream=False, key=key).ask("x")
            found[key] = found_by(server, words)

    assert found["alice"][0] == "reading_time"
    # What two new accounts taught comes after the best match by words for others.
    assert ("reading_time" in found["bob"][:3]) is (shared is True), found
