"""Servers of one rule each, written from the services' own texts and not from the stand-in.

A server knows three formats, one rule and one habit: asked for a tool, it searches, calls what
it was asked for, and answers. Replies have reasoning if the rule is about reasoning.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JSON = Mapping[str, Any]
Rule = Callable[[JSON], str | None]
"""The service's refusal of a request's body, or None."""
Reasoning = Callable[[str, JSON], dict[str, Any]]
"""The reasoning of a reply, as fields of a message (Chat) or one block or item, of a reply's id
and the request's body."""

_TEXTS = ("text", "input_text")
PATHS = {
    "/v1/chat/completions": "openai_chat",
    "/v1/messages": "anthropic",
    "/v1/responses": "openai_responses",
}


def vendor_error(message: str) -> object:
    """Return a refusal as Anthropic and OpenAI write it."""
    return {"type": "error", "error": {"message": message, "type": "invalid_request_error"}}


def openrouter_error(message: str) -> object:
    """A refusal of the model's own provider as OpenRouter passes it on (quoted: AionUi 2746)."""
    raw = json.dumps(vendor_error(message))
    metadata = {"raw": raw, "provider_name": "Moonshot AI"}
    return {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}


def google_error(message: str) -> object:
    """A refusal as Google's compatible endpoint writes it (quoted: its developers' forum)."""
    return [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]


def groq_error(message: str) -> object:
    """Return a call of the model's own that could not be read, as Groq writes it."""
    error = {"message": message, "type": "invalid_request_error", "code": "tool_use_failed"}
    return {"error": {**error, "failed_generation": "<function=tool_search{query}"}}


@dataclass(slots=True, kw_only=True)
class RawService:
    """A service on loopback.

    Attributes:
        rule: What it refuses, and how.
        reasoning: What its replies think; None: nothing.
        streams: It answers the Chat format in chunks.
        searches: The searches of a reply, side by side; Chat only.
        change: Changes a whole reply before it is sent.
        failing: A model that answers 503 once a turn of it has a result.
        status: Of its refusals.
        wrap: Makes the body of a refusal.
        bodies: The requests that it answered, in order.
        refused: The texts of its refusals, in order.
    """

    rule: Rule = lambda _: None
    reasoning: Reasoning | None = None
    streams: bool = False
    searches: int = 1
    change: Callable[[JSON], JSON] = lambda reply: reply
    failing: str | None = None
    status: int = 400
    wrap: Callable[[str], object] = vendor_error
    bodies: list[JSON] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    url: str = ""

    @contextmanager
    def running(self) -> Iterator[RawService]:
        """Serve until the block ends."""
        service = self

        class Handler(BaseHTTPRequestHandler):
            # One write a reply: the second of two would wait 40 ms for an acknowledgement.
            disable_nagle_algorithm = True
            wbufsize = -1
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                kind, status, data = service.answer(PATHS[self.path], body)
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Requests are kept, not printed."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def answer(self, dialect: str, body: JSON) -> tuple[str, int, bytes]:
        """Return the content type, the status and the bytes that answer a request."""
        refusal = self.rule(body)
        if refusal is not None:
            self.refused.append(refusal)
            return "application/json", self.status, json.dumps(self.wrap(refusal)).encode()
        step = replace(Step.of(dialect, body), searches=self.searches)
        if body["model"] == self.failing and step.answered:
            error = {"message": "overloaded", "type": "overloaded_error"}
            return "application/json", 503, json.dumps({"type": "error", "error": error}).encode()
        self.bodies.append(body)
        reply = self.change(_RENDER[dialect](step, body, self._reasoning(step, body)))
        if dialect == "openai_chat" and self.streams and body.get("stream"):
            return "text/event-stream", 200, _chunks(reply)
        return "application/json", 200, json.dumps(reply).encode()

    def _reasoning(self, step: Step, body: JSON) -> dict[str, Any]:
        return self.reasoning(step.id, body) if self.reasoning is not None else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The state of a turn.

    Attributes:
        wanted: The tool that the user's last message asks for.
        answered: The results since that message.
        id: A name for the reply.
        search: The name of the search tool in the request; empty: it may call no tool.
        native_search: The search tool is the service's own kind of tool.
        searches: The searches of its first reply, side by side; Chat only.
    """

    wanted: str
    answered: int
    id: str
    search: str = "tool_search"
    native_search: bool = False
    searches: int = 1

    @classmethod
    def of(cls, dialect: str, body: JSON) -> Step:
        """Read the place in the turn off a request."""
        texts, results = _said(dialect, body)
        wanted = _sent_name(texts[-1].rpartition(" ")[2], body)
        tools = body.get("tools") or ()
        native = dialect == "openai_responses" and any(t["type"] == "tool_search" for t in tools)
        return cls(
            wanted=wanted,
            answered=results,
            id=f"{len(texts)}_{results}",
            search=_search_tool(body),
            native_search=native,
        )

    @property
    def call(self) -> tuple[str, dict[str, Any]] | None:
        """The call of this reply, or None for an answer."""
        if not self.search:
            return None
        if self.answered == 0:
            return self.search, {"query": self.wanted.replace("_", " ")}
        return (self.wanted, {"text": self.id}) if self.answered == self.searches else None


def _sent_name(wanted: str, body: JSON) -> str:
    """Return the name under which a request has a tool: another one where its own is kept."""
    found = re.search(rf"\b(?:t_)?{wanted}_[0-9a-f]{{8}}\b", json.dumps(body))
    return found[0] if found else wanted


def _search_tool(body: JSON) -> str:
    """Return the name of the search tool that a request declares; empty if it may not be called.

    A list of which nothing is known to search has the name that the library gives it.
    """
    if not body.get("tools") or body.get("tool_choice") == "none":
        return ""
    named = (tool.get("function") or tool for tool in body["tools"])
    names = [str(tool.get("name")) for tool in named]
    return "find_tools" if "find_tools" in names else "tool_search"


def _said(dialect: str, body: JSON) -> tuple[list[str], int]:
    """Return the user's texts in order, and the results since the last of them."""
    texts: list[str] = []
    results = 0
    for entry in body["messages"] if dialect != "openai_responses" else body["input"]:
        content, kind = entry.get("content"), str(entry.get("type"))
        blocks = content if isinstance(content, list) else []
        if entry.get("role") == "tool" or kind in ("function_call_output", "tool_search_output"):
            results += 1
        elif entry.get("role") == "user":
            results += sum(block["type"] == "tool_result" for block in blocks)
            said = [block["text"] for block in blocks if block["type"] in _TEXTS]
            said = [content] if isinstance(content, str) else said
            # Text after results says that tools are loaded, or is the next question. AstrBot
            # writes the time behind a question.
            notes = ("Tools loaded.", "<system_reminder>")
            said = [text for text in said if not text.startswith(notes)]
            texts += said[-1:]
            results = 0 if said else results
    return texts, results


def _chat(step: Step, body: JSON, reasoning: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None, **reasoning}
    if step.call is None:
        message["content"] = f"answer {step.id}"
    else:
        name, arguments = step.call
        extra = message.pop("extra_content", None)
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call_{step.id}", "type": "function", "function": function}
        call |= {"extra_content": extra} if extra else {}
        more = step.searches if step.answered == 0 else 1
        ids = (f"{call['id']}_{n}" if n else call["id"] for n in range(more))
        message["tool_calls"] = [{**call, "id": one} for one in ids]
    finish = "tool_calls" if step.call else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion", "model": body["model"], "choices": [choice]}


def _chunks(reply: JSON) -> bytes:
    """The same reply as a stream: one chunk a field, text and reasoning in two pieces each."""
    (choice,) = reply["choices"]
    deltas: list[dict[str, Any]] = []
    for name, value in choice["message"].items():
        if name == "tool_calls":
            deltas.append({name: [{**call, "index": n} for n, call in enumerate(value)]})
        elif isinstance(value, str) and name != "role":
            half = len(value) // 2
            deltas += [{name: value[:half]}, {name: value[half:]}]
        else:
            deltas.append({name: value})
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]})
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": reply["model"]}
    lines = [f"data: {json.dumps({**chunk, 'choices': [each]})}\n\n" for each in choices]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def _messages(step: Step, body: JSON, reasoning: dict[str, Any]) -> dict[str, Any]:
    content: list[dict[str, Any]] = [reasoning] if reasoning else []
    if step.call is None:
        content.append({"type": "text", "text": f"answer {step.id}"})
    else:
        name, arguments = step.call
        call = {"type": "tool_use", "id": f"toolu_{step.id}", "name": name, "input": arguments}
        content.append(call)
    return {
        "id": "m", "type": "message", "role": "assistant", "model": body["model"],
        "content": content, "stop_reason": "tool_use" if step.call else "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def _responses(step: Step, body: JSON, reasoning: dict[str, Any]) -> dict[str, Any]:
    output: list[dict[str, Any]] = [reasoning] if reasoning else []
    if step.call is None:
        part = {"type": "output_text", "text": f"answer {step.id}", "annotations": []}
        message = {"type": "message", "id": f"msg_{step.id}", "role": "assistant"}
        output.append({**message, "content": [part], "phase": "final_answer"})
    else:
        name, arguments = step.call
        call: dict[str, Any] = {"call_id": f"call_{step.id}", "status": "completed"}
        if name == step.search and step.native_search:
            call |= {"type": "tool_search_call", "execution": "client", "arguments": arguments}
        else:
            text = json.dumps(arguments)
            call |= {"type": "function_call", "name": name, "arguments": text}
            call |= {"id": f"fc_{step.id}"}
        output.append(call)
    return {"id": f"r_{step.id}", "object": "response", "status": "completed", "output": output}


_RENDER: Mapping[str, Callable[[Step, JSON, dict[str, Any]], dict[str, Any]]] = {
    "openai_chat": _chat,
    "anthropic": _messages,
    "openai_responses": _responses,
}
