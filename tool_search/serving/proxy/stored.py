"""Things that a provider keeps: replies by the ids that clients know, and their owners.

A reply of several steps has the id of the first, which the provider knows as another reply.
Source: OpenAI, "Retrieve a model response", "Delete a model response", "List input items".

Whoever has a key can read, delete and use all that was made with it: replies, conversations,
files, batches. Where clients share the proxy's key, each thing belongs to the client that made it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import parse_qsl, unquote, urlencode

import httpx2

from tool_search.adapters.hosts.chain import ExchangeChain, ExchangeStore, owner_digest
from tool_search.adapters.sdk.connection import read_body
from tool_search.adapters.wire.incoming import LARGE_BYTES, EventDecoder, joined
from tool_search.core.values.json import compact_json, json_bytes, read_object, unique_keys
from tool_search.serving.proxy.dialects.base import JSON, CallAnswers, VisibleCall
from tool_search.serving.proxy.dialects.openai_responses import OpenAIResponses
from tool_search.serving.proxy.history import Exchange, conversation_id, exchange_of_reply
from tool_search.serving.proxy.requests import owner_of
from tool_search.serving.proxy.requests import read_object as read_reply
from tool_search.serving.proxy.settings import UpstreamSettings
from tool_search.serving.proxy.upstreams import ProxyReply, Upstreams, plain_headers

__all__ = [
    "Asked",
    "KeptThings",
    "Owners",
    "StoredReply",
    "answers_of",
    "asked_in",
    "stored_answers",
    "stored_reply",
    "thing_of",
    "warn_of_lost_result",
]

_PATH = re.compile(r"(?:/v1)?/responses/(?P<id>[^/]+)(?P<rest>/input_items|/cancel)?")
_PLAIN = {"accept-encoding": "identity"}
_JSON_HEADERS = httpx2.Headers({"content-type": "application/json"})
_DIALECT = OpenAIResponses()
# The rest after the id is content in bytes, which has no further ids.
_THING = re.compile(
    r"(?:/v1)?/(?:responses|conversations|files|batches|messages/batches|chat/completions)"
    r"(?:/(?!(?:input_tokens|compact)$)(?P<id>[^/]+)(?P<rest>/.+)?)?"
)
_ID_FIELDS = ("previous_response_id", "input_file_id", "file_id")
_MADE_FIELDS = ("id", "output_file_id", "error_file_id")
# A model's own values, or a schema: none of them names a thing to the provider.
_OF_A_MODEL = ("input", "arguments", "parameters", "input_schema", "schema")
_MAX_EVENT_BYTES = 64_000_000
# Smaller bodies are read on the event loop: a thread would take longer.
_SMALL_BYTES = 20_000
_MAX_PAGES = 100
_NOT_YOURS = (
    "{thing} is not known as this client's: what is kept with a key of the proxy's own belongs "
    "to the token that made it. What is older than the proxy's state has no owner: set "
    "state.path, so that a restart loses none, or shared_account: true, so that every client "
    "may use what has none"
)
# "No tool output found for function call call_...", of OpenAI's Responses.
_UNANSWERED = b"No tool output found"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A request about a reply that a provider keeps.

    Attributes:
        reply_id: The id that the client knows.
        rest: The path after it.
    """

    reply_id: str
    rest: str

    def paths(self, method: str, exchange: Exchange) -> list[str]:
        """Return the paths of the provider's replies that a request is about, in order."""
        is_of_all = not self.rest and method in ("GET", "DELETE")
        ids = exchange.steps if is_of_all else exchange.steps[-1:]
        return [f"/v1/responses/{each}{self.rest}" for each in ids]

    def visible(self, replies: Sequence[JSON], exchange: Exchange) -> JSON:
        """Return the provider's answers as the one that the client gets."""
        last, answers = replies[-1], answers_of(exchange)
        if self.rest == "/input_items":
            items = [item for item in last.get("data") or () if not _is_hidden(item, answers)]
            return {**last, "data": items}
        if "output" in last and not self.rest:
            return _DIALECT.merged([_DIALECT.received(each, {}) for each in replies], answers)
        return {**last, "id": self.reply_id}


def stored_reply(path: str) -> StoredReply | None:
    """Return the reply that a path is about; None for any other path."""
    found = _PATH.fullmatch(path)
    return StoredReply(found["id"], found["rest"] or "") if found else None


def stored_answers(answers: CallAnswers) -> dict[str, list[str | None] | None]:
    """Return the calls that a client sees in another form as a store keeps them."""
    return {
        call_id: None if call is None else [call.name, call.arguments, call.namespace]
        for call_id, call in answers.items()
    }


def warn_of_lost_result(upstream: str, body: JSON, refusal: bytes) -> None:
    """Log the refusal of a request whose kept history may have a search without its result."""
    is_continued = body.get("previous_response_id") or conversation_id(body)
    if is_continued and _UNANSWERED in refusal:
        _log.warning(
            "upstream %s: a call in the kept history has no result; if it is a search, this "
            "proxy has lost its state: the client has to begin anew, or to send the history",
            upstream,
        )


def answers_of(exchange: Exchange) -> dict[str, VisibleCall | None]:
    """Return the calls that a client sees in another form."""
    return {
        call_id: None if call is None else VisibleCall(str(call[0]), str(call[1]), call[2])
        for call_id, call in exchange.answers.items()
    }


def _is_hidden(item: JSON, answers: Mapping[str, VisibleCall | None]) -> bool:
    call_id = str(item.get("call_id"))
    return call_id in answers and answers[call_id] is None


def thing_of(path: str) -> tuple[str, str] | None:
    """Return the id of the kept thing that a path is about, and the path after it.

    Returns:
        The id is empty for the list of all things of a kind; None: it is another path.
    """
    found = _THING.fullmatch(path)
    return (found["id"] or "", found["rest"] or "") if found else None


@dataclass(frozen=True, slots=True)
class Asked:
    """The request of a provider in a body.

    Attributes:
        models: The names of models.
        things: The ids of things that the provider keeps.
    """

    models: frozenset[str] = frozenset()
    things: frozenset[str] = frozenset()


async def asked_in(raw: bytes) -> Asked | None:
    """Return what a body asks for; None if it is no JSON object, or two readers may differ."""
    if not raw:
        return Asked()
    return (
        await asyncio.to_thread(_read_asked, raw) if len(raw) > _SMALL_BYTES else _read_asked(raw)
    )


def _read_asked(raw: bytes) -> Asked | None:
    try:
        body = json.loads(raw.decode("utf-8"), object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict):
        return None
    batch = body.get("requests")
    inner = [each.get("params") for each in batch if isinstance(each, dict)] if batch else ()
    bodies = [body, *(each for each in inner if isinstance(each, dict))]
    models = frozenset(str(each["model"]) for each in bodies if "model" in each)
    return Asked(models, frozenset(_named_things(body)))


def _named_things(body: object) -> Iterator[str]:
    """Yield the ids of kept things that a body refers to."""
    waiting = [body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
            # An item that is kept, with its type or without.
            yield from (each["id"] for each in value if _is_reference(each))
        elif isinstance(value, dict):
            more = value.get("file_ids")
            named = [value.get(field) for field in _ID_FIELDS]
            yield from (each for each in named if isinstance(each, str))
            yield from (each for each in more or () if isinstance(each, str))
            name = conversation_id(value)
            yield from (name,) if name else ()
            waiting += [
                inner
                for key, inner in value.items()
                if isinstance(inner, list) or (isinstance(inner, dict) and key not in _OF_A_MODEL)
            ]


def _is_reference(item: object) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        return False
    return item.get("type") == "item_reference" or set(item) <= {"id", "type"}


def _made_things(reply: JSON) -> Iterator[str]:
    """Yield the ids in a provider's reply, or in an event of one, that its client may use."""
    for value in (reply, reply.get("response"), reply.get("item")):
        if not isinstance(value, dict):
            continue
        yield from (each for key in _MADE_FIELDS if isinstance(each := value.get(key), str))
        for items in (value.get("output"), value.get("data")):
            for item in items if isinstance(items, list) else ():
                if isinstance(item, dict) and isinstance(item.get("id"), str):
                    yield item["id"]


class Owners:
    """The clients to which things belong that a provider keeps under the proxy's key.

    Args:
        store: Keeps the owner of each, beside the hidden exchanges.
        shared: True if what has no owner is every client's.
    """

    def __init__(self, store: ExchangeStore, *, shared: bool) -> None:
        self._store = store
        self._shared = shared

    async def refusal(self, client: str, things: Iterable[str]) -> str | None:
        """Return the reason for which a client may not use things; None: it may."""
        asked = {*things}
        foreign = asked - await self.own(client, asked)
        return _NOT_YOURS.format(thing=repr(min(foreign)[:200])) if foreign else None

    async def own(self, client: str, things: set[str]) -> set[str]:
        """Return those of some things that a client may use."""
        owners, of_none = await self._load_owners(things), client if self._shared else ""
        return {each for each in things if owners.get(each, of_none) == client}

    async def has_known(self, thing: str) -> bool:
        """True if the owner of a thing is known, or it is only made now, without an id."""
        return not thing or thing in await self._load_owners({thing})

    async def learn(self, client: str, reply: JSON | None) -> None:
        """Keep that what a reply tells of belongs to a client; an owner is never replaced."""
        made = {*_made_things(reply or {})}
        for thing in made - (await self._load_owners(made)).keys():
            await self._store.keep(_digest(thing), compact_json(client))

    async def learning(
        self, client: str, content: bytes | AsyncIterator[bytes], *, is_stream: bool
    ) -> AsyncIterator[bytes]:
        """Yield a reply, after its client is known as the owner of what each piece tells of."""
        if isinstance(content, bytes):
            await self.learn(client, await _object(content))
            yield content
            return
        decoder, whole = EventDecoder(max_bytes=_MAX_EVENT_BYTES), list[bytes]()
        async with aclosing(content) as pieces:  # type: ignore[type-var]  # a generator
            async for piece in pieces:
                if is_stream:
                    for event in await decoder.decode(piece):
                        # Pieces of text, which are most events, have no id of their own.
                        if b'"id"' in event.data:
                            await self.learn(client, await _object(event.data))
                    yield piece
                else:
                    whole.append(piece)
        if whole:
            content = await joined(whole)
            await self.learn(client, await _object(content))
            yield content

    async def _load_owners(self, things: Iterable[str]) -> dict[str, str]:
        digests = {_digest(thing): thing for thing in things}
        kept = await self._store.load([*digests])
        return {digests[digest]: owner.strip('"') for digest, owner in kept.items()}


class KeptThings:
    """Requests about what providers keep, and the bounds of a key that clients share.

    Args:
        upstreams: The providers.
        exchanges: The hidden exchanges.
        owners: The clients that things belong to.
        secret: The secret of the installation.
    """

    def __init__(
        self, upstreams: Upstreams, exchanges: ExchangeChain, owners: Owners, secret: bytes
    ) -> None:
        self._upstreams = upstreams
        self._exchanges = exchanges
        self._owners = owners
        self._secret = secret

    def owner_on(self, upstream: UpstreamSettings, client: str) -> str:
        """Return the owner of what a client's requests make; empty: nobody else uses the key."""
        return owner_digest(client, self._secret) if client and upstream.api_key_env else ""

    async def refusal(
        self,
        upstream: UpstreamSettings,
        owner: str,
        path: str,
        asked: Asked | None,
        *models: str,
    ) -> tuple[int, str] | None:
        """Return the status and the reason for which the proxy's own key is not used for a request.

        Args:
            upstream: The provider.
            owner: The owner of what the request makes; empty: nobody else uses the key.
            path: The path.
            asked: What its body asks for; None: it cannot be read.
            models: The models that it needs, of its body or not.
        """
        if asked is None:
            return 400, "the body is no JSON object whose keys are there once each"
        for model in (*models, *sorted(asked.models)):
            if not any(fnmatchcase(model, glob) for glob in upstream.models):
                return 404, f"no upstream has the model {model!r} in `models`"
        thing = thing_of(path)
        things = asked.things | {each for each in (thing or ())[:1] if each}
        reason = await self._owners.refusal(owner, things) if owner else None
        return None if reason is None else (403, reason)

    def learned(self, reply: ProxyReply, owner: str) -> ProxyReply:
        """Return a reply, whose owner is kept as the client reads it."""
        is_stream = "event-stream" in reply.headers.get("content-type", "")
        if reply.status < 400:
            reply.content = self._owners.learning(owner, reply.content, is_stream=is_stream)
        return reply

    async def answer(
        self,
        upstream: UpstreamSettings,
        method: str,
        path: str,
        *,
        headers: httpx2.Headers,
        content: bytes | AsyncIterator[bytes] | None,
        query: str,
        owner: str,
    ) -> ProxyReply:
        """Answer a request about what a provider keeps for its owner, or has to make.

        Raises:
            httpx2.HTTPError: There is no reply.
        """
        thing = thing_of(unquote(path))
        if owner and thing is not None:
            headers = headers | _PLAIN
        if owner and thing == ("", "") and method in ("GET", "HEAD"):
            return await self._list(upstream, path, headers=headers, query=query, owner=owner)
        reply = await self._answer_stored(
            upstream, method, path, headers=headers, query=query
        ) or await self._upstreams.forward(
            upstream, method, path, headers=headers, content=content, query=query
        )
        is_bytes = thing is None or thing[1] in ("/content", "/results") or method == "HEAD"
        if not owner or thing is None or is_bytes or not await self._owners.has_known(thing[0]):
            return reply
        return self.learned(reply, owner)

    async def _list(
        self,
        upstream: UpstreamSettings,
        path: str,
        *,
        headers: httpx2.Headers,
        query: str,
        owner: str,
    ) -> ProxyReply:
        """Answer with the owner's own things alone, from the first page that has one."""
        after = "after_id" if "anthropic-version" in headers else "after"
        asked = dict(parse_qsl(query))
        for _ in range(_MAX_PAGES):
            async with self._upstreams.send(
                upstream, "GET", path, headers=headers, query=urlencode(asked)
            ) as response:
                raw = await read_body(response)
            plain = plain_headers(response)
            reply = await read_reply(raw, self._upstreams.limits) or {}
            if response.status_code >= 400 or not isinstance(reply.get("data"), list):
                # A list of another form may be somebody else's.
                is_error = response.status_code >= 400
                return ProxyReply(response.status_code, plain, raw if is_error else b"{}")
            items = [each for each in reply["data"] if isinstance(each, dict)]
            ids = [str(each.get("id")) for each in items]
            own = await self._owners.own(owner, {*ids})
            if own or not ids or not reply.get("has_more") or asked.get(after) == ids[-1]:
                break
            asked[after] = ids[-1]
        else:
            _log.warning("upstream %s: a client has nothing on %d pages", upstream.id, _MAX_PAGES)
        shown = [each for each in items if each.get("id") in own]
        ends = {"first_id": shown[0]["id"], "last_id": shown[-1]["id"]} if shown else {}
        ends = ends or dict.fromkeys(("first_id", "last_id"))
        ends = {key: value for key, value in ends.items() if key in reply}
        body = await asyncio.to_thread(json_bytes, {**reply, **ends, "data": shown})
        return ProxyReply(200, plain, body)

    async def _answer_stored(
        self,
        upstream: UpstreamSettings,
        method: str,
        path: str,
        *,
        headers: httpx2.Headers,
        query: str,
    ) -> ProxyReply | None:
        """Answer a request about a reply that the provider keeps under another id.

        Returns:
            The reply; None if the provider knows it by the client's id, or the path is another.

        Raises:
            httpx2.HTTPError: There is no reply.
        """
        about = stored_reply(path)
        if about is None:
            return None
        owner = owner_of(headers, self._secret)
        exchange = await exchange_of_reply(self._exchanges, owner, about.reply_id)
        refused: ProxyReply | None = None
        replies: list[JSON] = []
        for each in about.paths(method, exchange):
            async with self._upstreams.send(
                upstream, method, each, headers=headers | _PLAIN, query=query
            ) as response:
                raw = await read_body(response)
            is_refused = response.status_code >= 400
            reply = None if is_refused else await read_reply(raw, self._upstreams.limits)
            if reply is None:
                kept = plain_headers(response)
                refused = ProxyReply(response.status_code, kept, raw)
                if method == "DELETE" and response.status_code == 404:
                    continue  # by an earlier try, which did not come to the next ones
                return refused
            replies.append(reply)
        if not replies:
            return refused
        body = await asyncio.to_thread(lambda: json_bytes(about.visible(replies, exchange)))
        return ProxyReply(200, _JSON_HEADERS, body)


async def _object(content: bytes) -> JSON | None:
    def read() -> JSON | None:
        return read_object(content.decode("utf-8", "replace"))

    return await asyncio.to_thread(read) if len(content) > LARGE_BYTES else read()


def _digest(thing: str) -> str:
    return hashlib.sha256(f"owner {thing}".encode("utf-8", "replace")).hexdigest()
