"""LiteLLM's own proxy with `ToolSearchHandler`, the openai SDK, and the stand-in server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from openai import APIStatusError, DefaultHttpxClient, OpenAI

from tests.services.rules import xai
from tool_search import ToolSearchConfig, tool_from_function
from tool_search.sources.toolbox import TOOLBOX
from tool_search.testing import (
    Fault,
    ModelCall,
    ModelReply,
    ScriptedModel,
    StandInServer,
)

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-stand-in-4b1d9c07"
OTHER_KEY = "sk-stand-in-other-77e1"
CONFIG = """
model_list:
  - model_name: gpt
    litellm_params: {{model: openai/gpt-5.4, api_base: "{openai}", api_key: x}}
  - model_name: claude
    litellm_params: {{model: anthropic/claude-sonnet-4-6, api_base: "{anthropic}", api_key: x}}
  - model_name: grok
    litellm_params: {{model: xai/grok-4.5, api_base: "{grok}", api_key: x}}
router_settings:
  num_retries: 0
  disable_cooldowns: true
  fallbacks: [{{gpt: [claude]}}, {{claude: [gpt]}}]
litellm_settings:
  callbacks: ["tool_search.adapters.litellm.handler"]
general_settings:
  master_key: {key}
"""
FUNCTIONS = {made.tool.name: made for made in map(tool_from_function, TOOLBOX)}
COUNT = ModelCall(name="count_words", arguments={"text": "to be or not to be"})
DONE = ModelReply(text="Done.")


def definition(name: str, description: str, parameters: Any) -> dict[str, Any]:
    """Return a tool as Chat Completions write it."""
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [
    definition(
        name,
        made.tool.description,
        dict(made.tool.parameters) or {"type": "object", "properties": {}},
    )
    for name, made in FUNCTIONS.items()
]


def searches(*queries: str, text: str = "") -> ModelReply:
    """Return a reply that searches."""
    call = ModelCall(name="tool_search", arguments={"queries": list(queries)})
    return ModelReply(text=text, calls=(call,))


def calls(*made: ModelCall) -> ModelReply:
    """Return a reply of calls."""
    return ModelReply(calls=made)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


@contextmanager
def proxy(
    server: StandInServer, folder: Path, config: str = "", *, grok: str = ""
) -> Iterator[str]:
    """Run LiteLLM's proxy in front of a stand-in server, and of another; yield its address."""
    file = folder / "litellm.yaml"
    addresses = {
        "openai": server.openai_base_url,
        "anthropic": server.anthropic_base_url,
        "grok": grok,
    }
    file.write_text(CONFIG.format(key=KEY, **addresses), encoding="utf-8")
    settings = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONPATH": str(ROOT),
    }
    if config:
        bot = folder / "bot.yaml"
        bot.write_text(config, encoding="utf-8")
        settings["TOOL_SEARCH_CONFIG"] = str(bot)
    port = free_port()
    command = [str(Path(sys.executable).parent / "litellm"), "--config", str(file)]
    environment = {k: v for k, v in os.environ.items() if k != "DATABASE_URL"} | settings
    log = folder / "log.txt"
    with log.open("w", encoding="utf-8") as output:
        running = subprocess.Popen(  # noqa: S603  # LiteLLM's own command
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            env=environment,
            cwd=folder,
            stdout=output,
            stderr=output,
        )
        try:
            _wait(running, f"http://127.0.0.1:{port}/health/liveliness", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(20)


def _wait(running: subprocess.Popen[bytes], address: str, log: Path) -> None:
    while True:
        try:
            with urllib.request.urlopen(address, timeout=1):  # noqa: S310  # loopback
                return
        except OSError:
            ended = running.poll() is not None
            assert not ended, log.read_text(encoding="utf-8")[-3_000:]
            time.sleep(0.2)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StandInServer, str]]:
    """A stand-in server and the proxy in front of it, which take seconds to start."""
    with (
        StandInServer() as running,
        proxy(running, tmp_path_factory.mktemp("litellm")) as address,
    ):
        yield running, address


@pytest.fixture
def server(stage: tuple[StandInServer, str]) -> Iterator[StandInServer]:
    """The stand-in server; a test ends without a violation of its rules."""
    running, _ = stage
    running.reset()
    yield running
    assert running.violations == ()


@pytest.fixture
def address(stage: tuple[StandInServer, str]) -> str:
    """The proxy's address."""
    return stage[1]


@cache
def http_client() -> Any:
    """Return the HTTP client of all bots, which is not collected in another's test."""
    return DefaultHttpxClient()


class Bot:
    """A bot that knows nothing of tool search: it sends every tool, and runs what is called.

    Args:
        address: The address of its provider.
        tools: The tools of its requests.
        stream: True to stream.
    """

    def __init__(
        self, address: str, *, tools: Any = TOOLS, stream: bool = False, key: str = KEY
    ) -> None:
        self.client = OpenAI(
            base_url=address, api_key=key, max_retries=0, http_client=http_client()
        )
        self.tools = tools
        self.stream = stream
        self.messages: list[Any] = []
        self.called: list[str] = []

    def ask(self, text: str = "Count the words.", *, model: str = "gpt", **options: Any) -> str:
        """Return the answer to a question."""
        self.messages.append({"role": "user", "content": text})
        while True:
            said = self.reply(model, **options)
            self.messages.append(said)
            if not said.get("tool_calls"):
                return str(said["content"])
            for call in said["tool_calls"]:
                name = call["function"]["name"]
                self.called.append(name)
                result = self.run(name, json.loads(call["function"]["arguments"]))
                answer = {"role": "tool", "tool_call_id": call["id"], "content": result}
                self.messages.append(answer)

    def run(self, name: str, arguments: dict[str, Any]) -> str:
        """Return the result of a tool; its failure is text, as in most bots."""
        try:
            return str(FUNCTIONS[name].function(**arguments))
        except Exception as exc:  # noqa: BLE001  # a bot goes on after a tool has failed
            return f"Error: {exc}"

    def reply(self, model: str, **options: Any) -> dict[str, Any]:
        """Return the model's reply to the messages, with what a client sends back of it."""
        options = {"model": model, "messages": self.messages, "tools": self.tools, **options}
        if not self.stream:
            made = self.client.chat.completions.create(**options)
            said = made.choices[0].message
            parts = [
                (call.id, call.function.name, call.function.arguments)
                for call in said.tool_calls or []
            ]
            return _assistant(said.content or "", parts)
        text, ids = "", set()
        found: dict[int, list[str]] = {}
        for chunk in self.client.chat.completions.create(stream=True, **options):
            ids.add(chunk.id)
            delta = chunk.choices[0].delta if chunk.choices else None
            text += (delta and delta.content) or ""
            for call in (delta and delta.tool_calls) or []:
                part = found.setdefault(call.index, [call.id, call.function.name, ""])
                part[2] += call.function.arguments or ""
        assert len(ids) == 1
        return _assistant(text, [tuple(part) for part in found.values()])


def _assistant(text: str, parts: list[Any]) -> dict[str, Any]:
    made = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_, name, arguments in parts
    ]
    return {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {})}


def names(server: StandInServer) -> list[list[str]]:
    """Return the declared names of each request."""
    bodies: list[Any] = [request.body for request in server.requests]
    return [[(t.get("function") or t)["name"] for t in body.get("tools", [])] for body in bodies]


def searched(server: StandInServer) -> list[int]:
    """Return the number of searches in the history of each request."""
    return [json.dumps(request.body).count('"queries') for request in server.requests]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_each_list_is_a_prefix_of_the_next_and_the_client_sees_no_search(
    stream: bool, server: StandInServer, address: str
) -> None:
    turn = [searches("count words in a text", text="I look."), calls(COUNT), DONE]
    other = [searches("convert miles"), DONE]
    server.reset(model=ScriptedModel([*turn, *other, *turn[1:]]))
    bot = Bot(address, stream=stream)
    for _ in range(3):
        assert bot.ask().endswith("Done.")
    lists = names(server)
    assert lists[0] == ["tool_search"]
    assert lists[1][:2] == ["tool_search", "count_words"]
    assert all(late[: len(early)] == early for early, late in pairwise(lists))
    assert bot.called == ["count_words", "count_words"]
    assert "tool_search" not in json.dumps(bot.messages)
    assert bot.messages[1]["content"] == "I look."
    histories: list[Any] = [request.body["messages"] for request in server.requests]  # type: ignore[index]
    for early, late in pairwise(histories):
        assert late[: len(early)] == early


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_search_and_a_call_in_one_reply_go_to_the_proxy_and_the_client(
    stream: bool, server: StandInServer, address: str
) -> None:
    both = calls(*searches("convert miles").calls, COUNT, *searches("weather").calls)
    script = [searches("count words"), both, DONE]
    server.reset(model=ScriptedModel(script))
    bot = Bot(address, stream=stream)
    assert bot.ask() == "Done."
    assert bot.called == ["count_words"]
    assert any(name.startswith("convert") for name in names(server)[-1])
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("query", "found"),
    [("统计字数", "count_words"), ("подсчитать слова", "count_words"), ("emails", "email")],
)
def test_a_query_in_another_language_and_a_plural_find_their_tool(
    query: str, found: str, server: StandInServer, address: str
) -> None:
    server.reset(model=ScriptedModel([searches(query), DONE]))
    Bot(address).ask()
    assert any(found in name for name in names(server)[1])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_fallback_of_the_router_goes_on_without_a_search(
    stream: bool, server: StandInServer, address: str
) -> None:
    turn = [searches("count words in a text"), calls(COUNT), DONE]
    server.reset(model=ScriptedModel([*turn, *turn[1:], *turn[1:]]))
    bot = Bot(address, stream=stream)
    bot.ask()
    server.faults.add(Fault(status=500, dialect="openai_chat", times=2))
    bot.ask()
    server.faults.clear()
    bot.ask()
    assert bot.called == ["count_words"] * 3
    dialects = [r.dialect for r in server.requests if r.violation is None]
    assert "anthropic" in dialects
    assert dialects[-1] == "openai_chat"
    assert all("count_words" in each for each in names(server)[1:])


def test_a_search_that_a_fallback_model_made_is_not_made_again(
    server: StandInServer, address: str
) -> None:
    turn = [searches("count words in a text"), calls(COUNT), DONE]
    server.reset(model=ScriptedModel([*turn, *turn[1:]]))
    bot = Bot(address)
    bot.ask(model="claude")
    bot.ask(model="gpt")
    assert bot.called == ["count_words"] * 2
    assert "count_words" in names(server)[-1]


def test_a_hidden_tool_that_is_called_by_name_reaches_the_client(
    server: StandInServer, address: str
) -> None:
    hidden = ModelCall(name="count_words", arguments={"text": "a b"}, hidden=True)
    server.reset(model=ScriptedModel([calls(hidden), DONE]))
    bot = Bot(address)
    bot.ask()
    assert bot.called == ["count_words"]
    assert names(server)[1] == ["tool_search", "count_words"]


def test_a_hidden_tool_with_wrong_arguments_is_answered_with_its_schema(
    server: StandInServer, address: str
) -> None:
    hidden = ModelCall(name="count_words", arguments={"txt": 5}, hidden=True)
    server.reset(model=ScriptedModel([calls(hidden), calls(COUNT), DONE]))
    bot = Bot(address)
    bot.ask()
    assert bot.called == ["count_words"]
    body: Any = server.requests[1].body
    assert "text" in body["messages"][-1]["content"]


def test_a_tool_that_raises_and_a_search_with_broken_json_do_not_end_a_conversation(
    server: StandInServer, address: str
) -> None:
    wrong = ModelCall(name="count_words", arguments={"text": None}, hidden=True)
    script = [searches("count words"), searches("miles"), calls(wrong), calls(COUNT), DONE]
    server.reset(model=ScriptedModel(script))
    server.faults.add(Fault(arguments="cut", skip=1))
    bot = Bot(address)
    assert bot.ask() == "Done."
    assert bot.called[-1] == "count_words"


def test_an_error_of_the_second_step_reaches_the_client(
    server: StandInServer, address: str
) -> None:
    server.reset(model=ScriptedModel([searches("count words"), DONE]))
    server.faults.add(Fault(status=400, skip=1, times=None, message="no such thing"))
    with pytest.raises(APIStatusError, match="no such thing"):
        Bot(address).ask()
    server.reset(model=ScriptedModel([searches("count words"), DONE]))
    server.faults.add(Fault(status=400, skip=1, times=None, message="no such thing"))
    with pytest.raises(Exception, match="no such thing"):
        Bot(address, stream=True).ask()


def test_usage_is_what_the_last_step_read_and_all_steps_wrote(
    server: StandInServer, address: str
) -> None:
    server.reset(model=ScriptedModel([searches("count words"), DONE]))
    client = OpenAI(base_url=address, api_key=KEY, http_client=http_client())
    asked: Any = {"model": "gpt", "messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS}
    usage = client.chat.completions.create(**asked).usage
    server.reset(model=ScriptedModel([searches("count words"), DONE]))
    streamed = client.chat.completions.create(
        stream=True, stream_options={"include_usage": True}, **asked
    )
    last = [chunk.usage for chunk in streamed if chunk.usage][-1]
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (
        last.prompt_tokens,
        last.completion_tokens,
    )
    assert usage.completion_tokens > 5
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_an_edited_history_and_a_shorter_list_go_on_with_what_was_called(
    server: StandInServer, address: str
) -> None:
    turn = [searches("count words in a text"), calls(COUNT), DONE]
    server.reset(model=ScriptedModel([*turn, DONE, DONE]))
    bot = Bot(address)
    bot.ask()
    bot.messages[0] = {"role": "user", "content": "Something else."}
    bot.ask()
    assert names(server)[-1] == ["tool_search", "count_words"]
    bot.tools = [tool for tool in TOOLS if tool["function"]["name"] != "count_words"]
    bot.ask()
    assert names(server)[-1] == ["tool_search"]


def test_few_tools_and_providers_own_ones_are_left_alone(
    server: StandInServer, address: str
) -> None:
    server.reset(model=ScriptedModel([DONE] * 3))
    Bot(address, tools=TOOLS[:5]).ask()
    assert len(names(server)[0]) == 5
    Bot(address).ask(tool_choice={"type": "function", "function": {"name": "add_to_date"}})
    assert names(server)[1] == ["tool_search", "add_to_date"]


def test_bad_lists_of_a_client_are_sent_without_what_is_wrong(
    server: StandInServer, address: str
) -> None:
    twice = definition("count_words", "Another one.", {"type": "object", "properties": {}})
    broken = definition("broken_unicorn", "Breaks unicorns.", {"type": "array"})
    server.reset(model=ScriptedModel([searches("unicorns", "count words"), DONE]))
    Bot(address, tools=[*TOOLS, twice, broken]).ask()
    assert "broken_unicorn" not in names(server)[1]
    body: Any = server.requests[1].body
    counted = [t for t in body["tools"] if t["function"]["name"] == "count_words"]
    assert counted == [tool for tool in TOOLS if tool["function"]["name"] == "count_words"]
    taken = definition("tool_search", "The client's own.", {"type": "object", "properties": {}})
    server.reset(model=ScriptedModel([DONE]))
    Bot(address, tools=[*TOOLS[:100], taken]).ask()
    assert len(names(server)[0]) == 101


def test_two_conversations_of_the_same_words_do_not_see_each_other(
    server: StandInServer, address: str
) -> None:
    server.reset(model=ScriptedModel([searches("convert miles"), DONE, DONE, DONE]))
    alice, bob = Bot(address), Bot(address)
    alice.ask("Convert miles.")
    bob.ask("Count words.")
    bob.ask("And now?")
    assert names(server)[-1] == ["tool_search"]
    alice.messages[:0] = [{"role": "system", "content": "Be brief."}]
    server.reset(model=ScriptedModel([DONE]))
    alice.ask("Go on.")
    assert names(server)[-1] == ["tool_search"]


def test_what_was_learned_ranks_first_in_a_new_conversation_and_after_a_restart(
    tmp_path: Path,
) -> None:
    frequency = ModelCall(name="word_frequency", arguments={"text": "a b a"})
    config = "store: {type: sqlite, path: learned.sqlite}\ntool_search: {max_results: 5}\n"
    with StandInServer() as server:
        with proxy(server, tmp_path, config) as address:
            script = [searches("words in a text"), calls(frequency), DONE]
            server.reset(model=ScriptedModel([*script, searches("the words of texts"), DONE]))
            Bot(address).ask()
            assert names(server)[1][1] != "word_frequency"
            Bot(address).ask()
            assert names(server)[-1][1] == "word_frequency"
        with proxy(server, tmp_path, config) as address:
            server.reset(model=ScriptedModel([searches("the words of texts"), DONE]))
            Bot(address).ask()
            assert names(server)[-1][1] == "word_frequency"
        assert server.violations == ()


def test_the_handler_of_the_yaml_has_the_settings_of_the_named_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tool_search.adapters import litellm as adapter  # noqa: PLC0415

    adapter._configured_handler.cache_clear()
    file = tmp_path / "bot.yaml"
    file.write_text("tool_search: {threshold: 3}\nstore: {type: memory}\n", encoding="utf-8")
    monkeypatch.setenv("TOOL_SEARCH_CONFIG", str(file))
    assert adapter.handler.search.config == ToolSearchConfig(threshold=3)
    assert adapter.handler is adapter.handler
    adapter._configured_handler.cache_clear()


def test_thinking_of_a_hidden_search_does_not_end_a_fallback_to_another_vendor(
    server: StandInServer, address: str
) -> None:
    thinks = ModelReply(thinking="I look.", calls=searches("count words").calls)
    server.reset(model=ScriptedModel([thinks, calls(COUNT), DONE, calls(COUNT), DONE]))
    bot = Bot(address)
    bot.ask(model="claude", reasoning_effort="low")
    bodies: list[Any] = [request.body for request in server.requests]
    assert "thinking" in json.dumps(bodies[1]["messages"])
    bot.ask(model="gpt")
    assert bot.called == ["count_words"] * 2


def test_a_search_and_a_call_where_the_service_keeps_the_search_tools_name(tmp_path: Path) -> None:
    with (
        StandInServer() as server,
        xai().running() as service,
        proxy(server, tmp_path, grok=f"{service.url}/v1") as address,
    ):
        client = OpenAI(base_url=address, api_key=KEY)
        messages: list[Any] = [{"role": "user", "content": "Please use count_words"}]
        asked: Any = {"model": "grok", "messages": messages, "tools": TOOLS}
        called = client.chat.completions.create(**asked).choices[0].message
        assert called.tool_calls is not None
        (call,) = called.tool_calls
        assert call.function.name == "count_words"
        messages += [
            called.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call.id, "content": "6"},
        ]
        answer = client.chat.completions.create(**asked).choices[0].message.content
    assert service.refused == []
    assert answer is not None
    assert answer.startswith("answer")
    assert "tool_search" not in json.dumps(service.bodies)
