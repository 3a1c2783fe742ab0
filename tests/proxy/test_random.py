"""Random conversations through the proxy: requests are valid, and clients see their own alone."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args

import anthropic
import httpx2
import openai
import pytest
from anthropic import AsyncAnthropic
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openai import AsyncOpenAI

from tests.proxy.conftest import upstreams
from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import InspectorSettings, ProxyConfig, StateSettings
from tool_search.testing import Endpoint, Fault, ModelCall, ModelReply, ModelView, StandInServer

Kind = Literal["anthropic", "openai_chat", "openai_responses"]
SUBJECTS = ("invoice", "ticket", "calendar", "weather", "photo", "song", "parcel", "recipe")
VERBS = ("create", "delete", "list", "rename", "share")
NAMES = tuple(f"{verb}_{subject}" for subject in SUBJECTS for verb in VERBS)
TOOLS = tuple((name, f"Can {name.replace('_', ' a ')}.") for name in NAMES)
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
MODELS = {"anthropic": "claude-sonnet-4-6", "openai_chat": "kimi-k3", "openai_responses": "gpt-5.4"}
NATIVE = {
    "anthropic": "claude",
    "openai_chat": "tools_in_messages",
    "openai_responses": "openai_responses",
}

# Of each dialect.
EXAMPLES = 1_700 if IS_LONG else 15


class OverloadedError(Exception):
    """The provider answered 529."""


@dataclass(frozen=True)
class Step:
    """One reply of the model: searches, calls of the client's tools, and text."""

    text: str = ""
    searches: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()


@dataclass
class Played:
    """A model that plays steps in order, whatever it is shown."""

    steps: list[Step] = field(default_factory=list)
    count: int = 0

    def reply(self, view: ModelView) -> ModelReply:
        """Return the next step as a reply."""
        step = self.steps.pop(0)
        shown = {tool.name for tool in view.tools}
        calls = [ModelCall(name="tool_search", arguments={"query": q}) for q in step.searches]
        for name in step.calls:
            self.count += 1
            arguments: dict[str, Any] = {"id": str(self.count)}
            if name in shown or "call_tool" not in shown:
                call = ModelCall(name=name, arguments=arguments, hidden=name not in shown)
            else:
                inner = {"name": name, "arguments": arguments}
                call = ModelCall(name="call_tool", arguments=inner)
            calls.append(call)
        return ModelReply(text=step.text, calls=tuple(calls))


@dataclass
class Talk:
    """A client's conversation."""

    kind: Kind
    key: str
    stream: bool
    # The history is the client's, or at the provider: by the last reply, or in a conversation.
    kept: Literal["", "reply", "conversation"] = ""
    place: str = ""
    history: list[Any] = field(default_factory=list)

    async def send(self, http: httpx2.AsyncClient) -> tuple[str, list[str]]:
        """Send the history; return the reply's text and the names of its calls."""
        send = {
            "anthropic": self._anthropic,
            "openai_chat": self._openai_chat,
            "openai_responses": self._openai_responses,
        }
        return await send[self.kind](http)

    async def _whole(self, http: httpx2.AsyncClient, path: str, wish: dict[str, Any]) -> Any:
        key = {"x-api-key": self.key, "authorization": f"Bearer {self.key}"}
        reply = await http.post(path, json=wish, headers={**key, "anthropic-version": "2023-06-01"})
        if reply.status_code == 529:
            raise OverloadedError
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def _anthropic(self, http: httpx2.AsyncClient) -> tuple[str, list[str]]:
        wish: Any = {
            "model": MODELS[self.kind], "max_tokens": 900, "messages": self.history,
            "tools": [{"name": n, "description": d, "input_schema": SCHEMA} for n, d in TOOLS],
        }  # fmt: skip
        if self.stream:
            client = AsyncAnthropic(
                base_url="http://127.0.0.1", api_key=self.key, http_client=http, max_retries=0
            )
            async with client.messages.stream(**_untyped(wish)) as events:
                message = await events.get_final_message()
            blocks = [block.model_dump(exclude_none=True) for block in message.content]
        else:
            blocks = (await self._whole(http, "/v1/messages", wish))["content"]
        uses = [block for block in blocks if block["type"] == "tool_use"]
        self.history.append({"role": "assistant", "content": blocks or "…"})
        results = [
            {"type": "tool_result", "tool_use_id": use["id"], "content": use["input"]["id"]}
            for use in uses
        ]
        if results:
            self.history.append({"role": "user", "content": results})
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        return text, [use["name"] for use in uses]

    async def _openai_chat(self, http: httpx2.AsyncClient) -> tuple[str, list[str]]:
        functions = [{"name": n, "description": d, "parameters": SCHEMA} for n, d in TOOLS]
        wish: Any = {
            "model": MODELS[self.kind], "messages": self.history,
            "tools": [{"type": "function", "function": function} for function in functions],
        }  # fmt: skip
        # Kimi thinks unless it is told not to, and wants its thoughts back with each reply.
        more = {"thinking": {"type": "disabled"}}
        if self.stream:
            client = AsyncOpenAI(
                base_url="http://127.0.0.1/v1", api_key=self.key, http_client=http, max_retries=0
            )
            asked = _untyped(wish)
            asked["extra_body"].update(more)
            async with client.chat.completions.stream(**asked) as events:
                completion = await events.get_final_completion()
            said = completion.choices[0].message.model_dump(exclude_none=True)
            for call in said.get("tool_calls") or ():
                call["function"].pop("parsed_arguments", None)
            said.pop("parsed", None)
        else:
            reply = await self._whole(http, "/v1/chat/completions", {**wish, **more})
            said = reply["choices"][0]["message"]
        calls = said.get("tool_calls") or []
        kept = {"role": "assistant", "content": said.get("content")}
        self.history.append({**kept, **({"tool_calls": calls} if calls else {})})
        for call in calls:
            content = json.loads(call["function"]["arguments"])["id"]
            result = {"role": "tool", "tool_call_id": call["id"], "content": content}
            self.history.append(result)
        return said.get("content") or "", [call["function"]["name"] for call in calls]

    async def _openai_responses(self, http: httpx2.AsyncClient) -> tuple[str, list[str]]:
        plain = [{"name": n, "description": d, "parameters": SCHEMA} for n, d in TOOLS]
        wish: Any = {
            "model": MODELS[self.kind], "input": self.history, "store": bool(self.kept),
            "tools": [{"type": "function", **each, "strict": False} for each in plain],
        }  # fmt: skip
        if self.kept == "conversation" and not self.place:
            self.place = (await self._whole(http, "/v1/conversations", {}))["id"]
        if self.place:
            name = "conversation" if self.kept == "conversation" else "previous_response_id"
            wish[name] = self.place
        if self.stream:
            client = AsyncOpenAI(
                base_url="http://127.0.0.1/v1", api_key=self.key, http_client=http, max_retries=0
            )
            async with client.responses.stream(**_untyped(wish)) as events:
                response: Any = await events.get_final_response()
            items = [
                item.model_dump(exclude_none=True, exclude={"parsed_arguments", "parsed"})
                for item in response.output
            ]
            reply_id = response.id
        else:
            reply = await self._whole(http, "/v1/responses", wish)
            items, reply_id = reply["output"], reply["id"]
        calls = [item for item in items if item["type"] == "function_call"]
        if self.kept == "reply":
            self.place = reply_id
        self.history = [] if self.kept else [*self.history, *items]
        self.history += [
            {
                "type": "function_call_output",
                "call_id": call["call_id"],
                "output": json.loads(call["arguments"])["id"],
            }
            for call in calls
        ]
        parts = [p for item in items if item["type"] == "message" for p in item["content"]]
        return "".join(part["text"] for part in parts), [call["name"] for call in calls]


def _untyped(wish: dict[str, Any]) -> dict[str, Any]:
    """Return a request whose lists the SDK sends as they are: converting them takes it 50 ms."""
    lists = {key: value for key, value in wish.items() if isinstance(value, list)}
    return {**wish, **dict.fromkeys(lists, ()), "extra_body": lists}


QUERIES = st.sampled_from([name.replace("_", " ") for name in NAMES])
CALLS = st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple)
WORDS = st.sampled_from(["", "I look.", "Now.", "Так.", "好的"])
STEPS = st.builds(
    Step, text=WORDS, searches=st.lists(QUERIES, max_size=2).map(tuple), calls=CALLS
).filter(lambda step: bool(step.searches or step.calls))
TURNS = st.tuples(st.lists(STEPS, max_size=3), st.sampled_from(["done", "готово", "完成"]))
Change = Literal["none", "restart", "lost", "edit", "fault"]
# The steps and the answer, a change before them, the request that fails, and True to stream.
Turn = tuple[tuple[list[Step], str], Change, int, bool]
CHANGES: tuple[Change, ...] = get_args(Change)
CONVERSATIONS = st.lists(
    st.tuples(
        TURNS,
        st.sampled_from(CHANGES),
        st.integers(0, 2),
        st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=4,
)
STREAMED_THEN_WHOLE: list[Turn] = [
    (([Step(searches=("create invoice",))], "done"), "none", 0, stream) for stream in (True, False)
]
NUMBERS = count()
KEEPING = ("openai_responses",)


class Proxies:
    """A proxy for each strategy, which conversations share; its state is in a file.

    Each conversation has credentials of its own, so nothing of one may appear in another.
    """

    def __init__(self, server: StandInServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._open: dict[str, ToolSearchProxy] = {}
        self._files = dict.fromkeys(("generic", "bridge", *NATIVE.values()), 0)

    def served(self, strategy: str) -> ToolSearchProxy:
        """Return the proxy of a strategy."""
        if strategy not in self._open:
            path = self._folder / f"{strategy}{self._files[strategy]}.db"
            config = ProxyConfig(
                upstreams=upstreams(self._server, strategy=strategy),
                state=StateSettings(path=str(path)),
                inspector=InspectorSettings(enabled=False),
                max_searches=20,
            )
            self._open[strategy] = ToolSearchProxy(config)
        return self._open[strategy]

    async def restart(self, strategy: str, *, lost: bool = False) -> None:
        """End the proxy of a strategy, and lose its state if asked to."""
        proxy = self._open.pop(strategy, None)
        self._files[strategy] += lost
        if proxy is not None:
            await proxy.close()

    async def close(self) -> None:
        """End all proxies."""
        for strategy in [*self._open]:
            await self.restart(strategy)


async def play(
    server: StandInServer,
    model: Played,
    talk: Talk,
    steps: Sequence[Step],
    *,
    proxy: ToolSearchProxy,
    fault: int | None,
) -> None:
    """Play one turn: what the client sees is what the script says, without searches."""
    transport = httpx2.ASGITransport(app=proxy.asgi())
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        expected: list[tuple[str, list[str]]] = []
        text = ""
        for step in steps:
            text += step.text
            if step.calls or step is steps[-1]:
                expected.append((text, sorted(step.calls)))
                text = ""
        model.steps = list(steps)
        if fault is not None:
            server.faults.add(Fault(status=529, skip=fault))
        for text, calls in expected:
            before, left = list(talk.history), list(model.steps)
            try:
                seen = await talk.send(http)
            except (anthropic.APIError, openai.APIError, RuntimeError, OverloadedError):
                # The client asks again from the same history, and so does the script.
                talk.history, model.steps = before, left
                server.faults.clear()
                seen = await talk.send(http)
            assert (seen[0], sorted(seen[1])) == (text, calls)
        server.faults.clear()


@pytest.mark.parametrize("kind", ["anthropic", "openai_chat", "openai_responses"])
def test_a_client_sees_its_script_and_the_provider_valid_requests(
    kind: Kind, tmp_path: Path
) -> None:
    model = Played()
    endpoint = Endpoint(extra_parameters=frozenset(("thinking",)))
    with StandInServer(model=model, endpoint=endpoint) as server, asyncio.Runner() as runner:
        proxies = Proxies(server, tmp_path)

        @settings(max_examples=EXAMPLES)
        # The SDK, which streams, sends the key in one header, and this client in two.
        @example(strategy="generic", kept="reply", turns=STREAMED_THEN_WHOLE)
        @given(
            strategy=st.sampled_from(["generic", "bridge", "native"]),
            kept=st.sampled_from(["", "", "reply", "conversation"] if kind in KEEPING else [""]),
            turns=CONVERSATIONS,
        )
        def check(strategy: str, kept: Any, turns: list[Turn]) -> None:
            server.reset()
            # A call by name without its namespace cannot be mended in a history that the
            # provider keeps.
            native = "generic" if kept else NATIVE[kind]
            chosen = native if strategy == "native" else strategy
            alice, bob = (
                Talk(kind, f"{name}{next(NUMBERS)}", stream=False, kept=kept)
                for name in ("alice", "bob")
            )
            talks = converse(server, model, (alice, bob), turns, proxies=proxies, strategy=chosen)
            runner.run(talks)
            assert server.violations == ()

        try:
            check()
        finally:
            runner.run(proxies.close())


async def converse(
    server: StandInServer,
    model: Played,
    talks: tuple[Talk, Talk],
    turns: list[Turn],
    *,
    proxies: Proxies,
    strategy: str,
) -> None:
    """Hold the conversation of a client, and its beginning again as another client."""
    alice, bob = talks
    for (steps, answer), change, skip, stream in turns:
        if change in ("restart", "lost"):
            # Who keeps the history at the provider needs the state: no other has the calls.
            await proxies.restart(strategy, lost=change == "lost" and not alice.kept)
        alice.stream = bob.stream = stream
        if change == "edit" and not alice.kept:
            alice.history = alice.history[: len(alice.history) // 2]
            while alice.history and alice.history[-1].get("role") != "user":
                alice.history.pop()
            alice.history = [] if is_open(alice.history) else alice.history
        # Equal texts at once are enough to get somebody else's searches.
        for talk in (alice, bob) if (steps, answer) == turns[0][0] else (alice,):
            talk.history.append({"role": "user", "content": "Please go on."})
            marked = [
                Step(s.text, tuple(f"{q} {talk.key}" for q in s.searches), s.calls) for s in steps
            ]
            fault = skip if change == "fault" else None
            seen = len(server.requests)
            whole = [*marked, Step(answer)]
            await play(server, model, talk, whole, proxy=proxies.served(strategy), fault=fault)
            others = re.compile(rf" (?!{talk.key}\b)(?:alice|bob)\d+".encode())
            assert not any(others.search(r.raw_body) for r in server.requests[seen:])


def is_open(history: list[Any]) -> bool:
    """True if a cut history ends with results alone, or lacks the calls of its results."""
    return bool(history) and not isinstance(history[-1].get("content"), str)
