"""A service on loopback that sends what a test says, byte by byte: it knows no rule but one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from tests.adapters.contract import ADAPTERS, KEY, Adapter, Provider
from tests.loopback import listening
from tool_search.providers.profile_choice import profile_for

STREAM = "text/event-stream"
Send = Callable[[bytes], Awaitable[None]]
Script = Callable[[Send], Awaitable[None]]


class RawServer:
    """Answers each request by a script.

    Attributes:
        port: The port that it listens on.
        requests: The bodies of the requests, in order.
        gone: The number of clients that hung up before the script's end.
    """

    def __init__(self, script: Script, *, head: bytes) -> None:
        self.port = 0
        self.requests: list[bytes] = []
        self.gone = 0
        self._script = script
        self._head = head

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request, and sends the head and what the script says."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            (length,) = [
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            ]
            self.requests.append(await reader.readexactly(length))
            if self._head:
                writer.write(self._head)

            async def send(data: bytes) -> None:
                writer.write(data)
                await writer.drain()

            await self._script(send)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The client has hung up, or the test is over.
            self.gone += 1
        finally:
            writer.close()

    def provider(self, adapter: Adapter, **options: Any) -> Provider:
        """Return a provider of a dialect that asks this server."""
        url = f"http://127.0.0.1:{self.port}"
        if adapter.dialect != "anthropic":
            url += "/v1"
        profile = profile_for(adapter.dialect, adapter.model, base_url=url)
        return adapter.provider(profile=profile, api_key=KEY, id="raw", base_url=url, **options)


def head_of(content_type: str = STREAM, *, status: str = "200 OK", more: str = "") -> bytes:
    """Return the head of an answer that ends with its connection."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}", "connection: close"]
    return "\r\n".join([*lines, more, "", ""] if more else [*lines, "", ""]).encode()


@asynccontextmanager
async def serving(script: Script, *, head: bytes | None = None) -> AsyncIterator[RawServer]:
    """A server for as long as the block lasts; what it still sends then is cut."""
    made = RawServer(script, head=head_of() if head is None else head)
    async with listening(made.answer) as made.port:
        yield made


def event(data: object, *, name: str | None = None) -> bytes:
    """Return a server-sent event of JSON, or of a text as it is."""
    text = data if isinstance(data, str) else json.dumps(data)
    if name is None and isinstance(data, dict) and isinstance(data.get("type"), str):
        name = data["type"]
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {text}\n\n".encode("utf-8", "surrogatepass")


def begun(adapter: Adapter) -> bytes:
    """Return a reply's beginning, up to a first word."""
    return b"".join(event(data) for data in BEGINNINGS[adapter.dialect])


def word(adapter: Adapter, text: str = "x") -> bytes:
    """One more piece of the text."""
    return event(WORDS[adapter.dialect](text))


def ended(adapter: Adapter) -> bytes:
    """Return the end of a reply that said one word."""
    return b"".join(event(data) for data in ENDS[adapter.dialect])


def keep_alive(adapter: Adapter) -> bytes:
    """Return the bytes that the service sends while nothing happens."""
    return KEEP_ALIVES[adapter.dialect]


def sends(*pieces: bytes) -> Script:
    """Return a script that sends these pieces."""

    async def script(send: Send) -> None:
        for piece in pieces:
            await send(piece)

    return script


def sends_for_ever(first: Iterable[bytes], then: bytes, *, every_s: float = 0.005) -> Script:
    """Return a script that sends some pieces, and another one again and again."""

    async def script(send: Send) -> None:
        for piece in first:
            await send(piece)
        while True:
            await asyncio.sleep(every_s)
            await send(then)

    return script


def _chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


_MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
_ITEM = {**_MESSAGE, "content": [{"type": "output_text", "text": "Well", "annotations": []}]}
BEGINNINGS: dict[str, list[Any]] = {
    "anthropic": [
        {"type": "message_start", "message": {"usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "Well"},
        },
    ],
    "openai_chat": [_chunk(role="assistant", content=""), _chunk(content="Well")],
    "openai_responses": [
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**_MESSAGE, "content": []},
        },
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Well"},
    ],
}
WORDS: dict[str, Callable[[str], Any]] = {
    "anthropic": lambda text: {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": text},
    },
    "openai_chat": lambda text: _chunk(content=text),
    "openai_responses": lambda text: {
        "type": "response.output_text.delta",
        "output_index": 0,
        "delta": text,
    },
}
ENDS: dict[str, list[Any]] = {
    "anthropic": [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
    ],
    "openai_chat": [
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        "[DONE]",
    ],
    "openai_responses": [
        {"type": "response.output_item.done", "output_index": 0, "item": _ITEM},
        {
            "type": "response.completed",
            "response": {"id": "resp_1", "status": "completed", "output": [_ITEM]},
        },
    ],
}
KEEP_ALIVES = {
    "anthropic": b'event: ping\ndata: {"type": "ping"}\n\n',
    "openai_chat": b": keep-alive\n\n",
    "openai_responses": b": keep-alive\n\n",
}
DIALECTS: dict[str, Adapter] = {adapter.dialect: adapter for adapter in ADAPTERS}
