"""Clients of a proxy: the official SDKs, each in a loop of its own that knows no search."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from anthropic import Anthropic
from openai import DefaultHttpxClient, OpenAI

from tool_search import tool_from_function
from tool_search.sources.toolbox import TOOLBOX

_TOOLS = {each.tool.name: each for each in map(tool_from_function, TOOLBOX)}
_SCHEMA = {"type": "object", "properties": {}}
_ALL = [
    (each.tool.name, each.tool.description, dict(each.tool.parameters) or _SCHEMA)
    for each in _TOOLS.values()
]
ANTHROPIC = [{"name": n, "description": d, "input_schema": s} for n, d, s in _ALL]
CHAT = [
    {"type": "function", "function": {"name": n, "description": d, "parameters": s}}
    for n, d, s in _ALL
]
RESPONSES = [
    {"type": "function", "name": n, "description": d, "parameters": s, "strict": False}
    for n, d, s in _ALL
]
QUESTIONS = (
    'Count the words of "to be or not to be".',
    "Convert 10 km to miles",
    'Count the words of "not to be".',
)


@cache
def http_client() -> DefaultHttpxClient:
    """Return the HTTP client of all SDKs.

    One lives as long as the process: an SDK's own, collected with a failed test's frames, warns
    of open sockets in whatever test runs by then.
    """
    return DefaultHttpxClient()


def run(name: str, arguments: dict[str, Any]) -> str:
    """Return the result of a tool of the toolbox."""
    return str(_TOOLS[name].function(**arguments))


class MessagesClient:
    """A client of Anthropic's Messages, with its history."""

    kind = "anthropic"

    def __init__(
        self, address: str, *, stream: bool, key: str = "x", model: str = "claude-sonnet-4-6"
    ) -> None:
        self._client = Anthropic(
            base_url=address, api_key=key, max_retries=0, http_client=http_client()
        )
        self._stream = stream
        self._model = model
        self.history: list[Any] = []
        self.called: list[str] = []
        self.tools: list[Any] = ANTHROPIC
        self.more: dict[str, Any] = {}

    def ask(self, text: str) -> str:
        """Return the answer to a message, after all calls."""
        self.history.append({"role": "user", "content": text})
        while True:
            wish: Any = {
                "model": self._model,
                "max_tokens": 3000,
                "messages": self.history,
                "tools": self.tools,
                **self.more,
            }
            if self._stream:
                with self._client.messages.stream(**wish) as events:
                    reply = events.get_final_message()
            else:
                reply = self._client.messages.create(**wish)
            blocks = [block.model_dump(exclude_none=True) for block in reply.content]
            self.history.append({"role": "assistant", "content": blocks})
            uses = [block for block in blocks if block["type"] == "tool_use"]
            if not uses:
                return "".join(b["text"] for b in blocks if b["type"] == "text")
            results = [self._result(use) for use in uses]
            self.history.append({"role": "user", "content": results})

    def _result(self, use: dict[str, Any]) -> dict[str, Any]:
        self.called.append(use["name"])
        content = run(use["name"], use["input"])
        return {"type": "tool_result", "tool_use_id": use["id"], "content": content}


class ChatClient:
    """A client of Chat Completions, with its history."""

    kind = "openai_chat"

    def __init__(
        self, address: str, *, stream: bool, key: str = "x", model: str = "gpt-5.4"
    ) -> None:
        self._client = OpenAI(
            base_url=f"{address}/v1", api_key=key, max_retries=0, http_client=http_client()
        )
        self._stream = stream
        self._model = model
        self.history: list[Any] = []
        self.called: list[str] = []
        self.tools: list[Any] = CHAT
        self.more: dict[str, Any] = {}

    def ask(self, text: str) -> str:
        """Return the answer to a message, after all calls."""
        self.history.append({"role": "user", "content": text})
        while True:
            wish: Any = {
                "model": self._model,
                "messages": self.history,
                "tools": self.tools,
                **self.more,
            }
            if self._stream:
                with self._client.chat.completions.stream(**wish) as events:
                    for _ in events:
                        pass
                    reply = events.get_final_completion()
            else:
                reply = self._client.chat.completions.create(**wish)
            said = reply.choices[0].message
            calls = [
                call.model_dump(exclude={"function": {"parsed_arguments"}}, exclude_none=True)
                for call in said.tool_calls or []
            ]
            more = {"tool_calls": calls} if calls else {}
            self.history.append({"role": "assistant", "content": said.content, **more})
            if not calls:
                return said.content or ""
            for call in calls:
                function = call["function"]
                self.called.append(function["name"])
                content = run(function["name"], json.loads(function["arguments"]))
                result = {"role": "tool", "tool_call_id": call["id"], "content": content}
                self.history.append(result)


class ResponsesClient:
    """A client of Responses, with its history, or with the provider's."""

    kind = "openai_responses"

    def __init__(
        self,
        address: str,
        *,
        stream: bool,
        key: str = "x",
        model: str = "gpt-5.4",
        stored: bool = False,
        in_conversation: bool = False,
    ) -> None:
        self._client = OpenAI(
            base_url=f"{address}/v1", api_key=key, max_retries=0, http_client=http_client()
        )
        self._stream = stream
        self._model = model
        self._stored = stored or in_conversation
        self._conversation = self._client.conversations.create().id if in_conversation else None
        self._last: str | None = None
        self.history: list[Any] = []
        self.called: list[str] = []
        self.tools: list[Any] = RESPONSES
        self.more: dict[str, Any] = {}

    def ask(self, text: str) -> str:
        """Return the answer to a message, after all calls."""
        self.history.append({"role": "user", "content": text})
        while True:
            reply = self._reply()
            items = [
                item.model_dump(exclude_none=True, exclude={"parsed_arguments", "parsed"})
                for item in reply.output
            ]
            self._last = reply.id if self._stored else None
            self.history = [] if self._stored else [*self.history, *items]
            calls = [item for item in items if item["type"] == "function_call"]
            if not calls:
                return str(reply.output_text)
            self.history += map(self._result, calls)

    def _reply(self) -> Any:
        wish: Any = {
            "model": self._model,
            "input": self.history,
            "tools": self.tools,
            "store": self._stored,
            **self.more,
        }
        if self._conversation:
            wish["conversation"] = self._conversation
        elif self._last:
            wish["previous_response_id"] = self._last
        if not self._stream:
            return self._client.responses.create(**wish)
        with self._client.responses.stream(**wish) as events:
            for _ in events:
                pass
            return events.get_final_response()

    def _result(self, call: dict[str, Any]) -> dict[str, Any]:
        self.called.append(call["name"])
        output = run(call["name"], json.loads(call["arguments"]))
        return {"type": "function_call_output", "call_id": call["call_id"], "output": output}


CLIENTS = (MessagesClient, ChatClient, ResponsesClient)
Client = MessagesClient | ChatClient | ResponsesClient


def ask_all(client: Client, questions: Iterable[str] = QUESTIONS) -> list[str]:
    """Return the answers to questions."""
    return [client.ask(question) for question in questions]
