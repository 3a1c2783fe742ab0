"""The base of providers that use a vendor's SDK: the connection, and the reading of a reply.

A provider adds an `SDK`, which is a vendor's client and the meaning of its exceptions, and a
`WireFormat`, which writes a plan and reads its reply.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self, Unpack

from pydantic import SecretStr

from tool_search.adapters.sdk.connection import (
    CONNECT_TIMEOUT_S,
    bounded_client,
    check_extra_body,
    check_key,
)
from tool_search.adapters.sdk.failures import (
    ErrorMap,
    Failure,
    ReplyFailedError,
    body_failure,
    connection_failure,
    http_errors,
    malformed_reply,
    raise_failure,
    read_failure,
    reply_failure,
    retry_after_s,
    timeout_failure,
    unknown_failure,
)
from tool_search.adapters.sdk.reply_stream import (
    ReplyLimits,
    ReplyMeter,
    ReplyReader,
    read_stream,
    read_whole,
    reply_events,
)
from tool_search.adapters.wire.requests import RequestOptions
from tool_search.adapters.wire.values import mapping_of
from tool_search.config.limits import LimitSettings
from tool_search.core.messages import RequestPlan
from tool_search.core.profiles import ProviderProfile
from tool_search.core.values.aside import LARGE_CATALOG
from tool_search.providers.base import ReplyEnd, ReplyEvent

__all__ = ["SDK", "SDKProvider", "WireFormat", "vendor_sdk"]

_MAX_MESSAGES_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SDK:
    """A vendor's asynchronous client.

    Attributes:
        name: The name of its package.
        client: The class of the client.
        http_client: The class of its HTTP client.
        timeout: The class of its HTTP time-outs.
        stream: The class of a streamed reply.
        base_url: The vendor's own endpoint.
        errors: The meaning of each exception.
    """

    name: str
    client: Callable[..., Any]
    http_client: Any
    timeout: Callable[..., Any]
    stream: Any
    base_url: str
    errors: ErrorMap


def vendor_sdk(name: str, client: str, error: str, base_url: str) -> SDK:
    """Return the SDK of a vendor: Anthropic's and OpenAI's name their parts alike.

    Args:
        name: The name of the package, and of the extra that installs it.
        client: The name of the client's class.
        error: The name of the class of all its exceptions.
        base_url: The vendor's own endpoint.

    Raises:
        ImportError: The package is not installed.
    """
    try:
        module: Any = import_module(name)
    except ImportError as exc:
        raise ImportError(
            f"the {name} adapter needs the {name} SDK: "
            f"pip install 'tool-search-middleware[{name}]'; in a clone: pip install '.[{name}]'"
        ) from exc
    return SDK(
        name=name,
        client=getattr(module, client),
        http_client=module.DefaultAsyncHttpxClient,
        timeout=module.Timeout,
        stream=module.AsyncStream[object],
        base_url=base_url,
        errors={
            module.APIStatusError: _status_failure,
            module.APITimeoutError: timeout_failure,
            module.APIConnectionError: connection_failure,
            module.APIResponseValidationError: malformed_reply,
            module.APIError: _api_failure,
            getattr(module, error): unknown_failure,
            # What the SDK lets through while it reads a reply.
            ValueError: malformed_reply,
            ReplyFailedError: reply_failure,
        },
    )


def _status_failure(exc: Any) -> Failure:
    """Return the service's error; OpenAI's SDK keeps the object under `error` alone."""
    status, body = exc.status_code, exc.body
    if isinstance(body, str):
        # xAI has a sentence there, and its code beside it.
        with suppress(ValueError, RecursionError):
            body = exc.response.json()
    is_unwrapped = "message" in mapping_of(exc.body)
    return (
        body_failure(None if is_unwrapped else body, status=status)
        or body_failure({"error": exc.body}, status=status)
        or Failure(detail=exc.message, status=None if status == 200 else status)
    )


def _api_failure(exc: Any) -> Failure:
    """Return an error inside a stream, which OpenAI's SDK raises without a status."""
    return body_failure({"error": exc.body}, status=200) or Failure(detail=exc.message)


class _Encode(Protocol):
    def __call__(
        self, plan: RequestPlan, profile: ProviderProfile, **options: Unpack[RequestOptions]
    ) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WireFormat:
    """A dialect's format, as a provider uses it.

    Attributes:
        path: The address of its requests, below the base URL.
        encode: Writes a request.
        from_wire: Reads a reply that came in one piece.
        reader: The class that reads a streamed reply.
        refused_call: Returns the reply that an error's body has, if a call was refused.
    """

    path: str
    encode: _Encode
    from_wire: Callable[[object, RequestPlan, ProviderProfile], ReplyEnd]
    reader: Callable[[RequestPlan, ProviderProfile], ReplyReader]
    refused_call: Callable[[object], object | None] = lambda _: None


class SDKProvider:
    """One model at one endpoint, through a vendor's asynchronous client.

    A provider belongs to the event loop in which it is first used.

    Args:
        profile: The abilities of the model.
        api_key: The key; it appears in no message, log or error.
        api_key_env: The environment variable that the key came from, for errors.
        id: The name of the provider in errors; empty for that of the SDK.
        base_url: The endpoint; None for the vendor's own.
        timeout_s: Seconds without anything new, after a reply has begun, before it counts
            as failed; keep-alives are not new.
        first_byte_timeout_s: Seconds before a reply begins. Also the longest silence while
            the model thinks, or while Claude writes a call, which comes in few pieces.
        reply_timeout_s: Seconds for a whole reply; None for no limit.
        max_retries: The number of times that the SDK repeats a request that failed before
            its reply.
        extra_body: More fields for every request; a null removes one of ours, and
            `stream: false` switches streaming off.
        streaming: True if replies are streamed.
        limits: Bounds of a reply's size; the three times above replace those in it.
        incoming: The `limits` section of a configuration, in place of those in it.
        client: A client of the SDK to use, which the caller closes; key, address and
            retries are then the client's own.

    Attributes:
        id: The name of the provider in errors.
        profile: The abilities of the model.
    """

    _sdk: ClassVar[SDK]
    _format: ClassVar[WireFormat]

    def __init__(
        self,
        *,
        profile: ProviderProfile,
        api_key: str | SecretStr,
        id: str = "",  # noqa: A002 - the configuration's word
        api_key_env: str | None = None,
        base_url: str | None = None,
        timeout_s: float = 60.0,
        first_byte_timeout_s: float = 600.0,
        reply_timeout_s: float | None = None,
        max_retries: int = 0,
        extra_body: Mapping[str, Any] | None = None,
        streaming: bool = True,
        limits: ReplyLimits | None = None,
        incoming: LimitSettings | None = None,
        client: Any = None,
    ) -> None:
        self.id = id = id or self._sdk.name  # noqa: A001 - as above
        self.profile = profile
        self._api_key = check_key(api_key, provider=id)
        self._api_key_env = api_key_env
        self._base_url = base_url
        limits = limits or ReplyLimits()
        self._limits = replace(
            limits,
            incoming=incoming or limits.incoming,
            first_byte_s=first_byte_timeout_s,
            silence_s=timeout_s,
            reply_s=reply_timeout_s,
        )
        self._max_retries = max_retries
        self._extra_body = check_extra_body(extra_body, provider=id)
        self._streaming = streaming and self._extra_body.get("stream") is not False
        self._client = client
        self._owns_client = client is None

    async def stream(self, plan: RequestPlan) -> AsyncGenerator[ReplyEvent]:
        """Send the request; yield the reply as it arrives, `ReplyEnd` last.

        Raises:
            ProviderError: The provider refused, could not be reached, or broke off.
        """
        # One profile for the request and its reply: another turn may correct it meanwhile.
        profile = replace(self.profile, **plan.form)
        if not profile.takes_system:
            plan = plan.without_system()
        body = await self._encode_off_loop(plan, profile)
        try:
            async with aclosing(self._reply(body, plan, profile)) as events:
                async for event in events:
                    yield event
        except (*self._sdk.errors, *http_errors()) as exc:
            called = self._format.refused_call(getattr(exc, "body", None))
            if called is not None:
                for event in self._events_of(called, plan, profile):
                    yield event
                return
            failure = read_failure(exc, {**self._sdk.errors, **http_errors()})
            # Only `APIStatusError` has one.
            response = getattr(exc, "response", None)
            if response is not None:
                failure = replace(failure, retry_after_s=retry_after_s(response.headers))
            raise_failure(
                failure,
                provider=self.id,
                secret=self._api_key,
                cause=exc,
                key_env=self._api_key_env,
                body=body,
                base_url=None if self._format.path.startswith("/v1") else self._base_url,
            )

    async def _encode_off_loop(self, plan: RequestPlan, profile: ProviderProfile) -> bytes:
        """Return the request's body; a large one is written off the event loop."""
        if len(plan.tools) < LARGE_CATALOG and len(plan.messages) <= _MAX_MESSAGES_AT_ONCE:
            return self._encode(plan, profile)
        writing = asyncio.ensure_future(asyncio.to_thread(self._encode, plan, profile))
        try:
            return await asyncio.shield(writing)
        finally:
            # The written messages are kept with the conversation: a cancelled turn must not
            # write them at the same time as the next turn.
            await asyncio.wait([writing])

    def _encode(self, plan: RequestPlan, profile: ProviderProfile) -> bytes:
        extra = dict(self._extra_body) if profile.sends_extra_body else {}
        for place, value in profile.set_fields:
            name, *inner = place.split(".")
            written: Any = value
            for part in reversed(inner):
                written = {part: written}
            extra[name] = written
        is_streamed = self._streams(plan, profile)
        if not is_streamed and extra.get("stream"):
            del extra["stream"]
        return self._format.encode(plan, profile, stream=is_streamed, extra_body=extra)

    def _streams(self, plan: RequestPlan, profile: ProviderProfile) -> bool:
        return self._streaming and (profile.streams_calls or not plan.tools)

    async def aclose(self) -> None:
        """Close the connections, unless the client is the caller's."""
        if self._owns_client and self._client is not None:
            client, self._client = self._client, None
            await client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _reply(
        self, body: bytes, plan: RequestPlan, profile: ProviderProfile
    ) -> AsyncGenerator[ReplyEvent]:
        reader = self._format.reader(plan, profile)
        meter = ReplyMeter(self._limits, reader.progress)
        async with await meter.wait(self._send(body)) as stream:
            kind = stream.response.headers.get("content-type", "")
            # JSON in place of a stream: an endpoint without streaming, or an error of status 200.
            if self._streams(plan, profile) and "json" not in kind:
                async with aclosing(read_stream(stream.response, reader, meter)) as events:
                    async for event in events:
                        yield event
                return
            read = partial(self._events_of, plan=plan, profile=profile)
            whole = await read_whole(stream.response, meter, read)
        for event in whole:
            yield event

    def _events_of(
        self, reply: object, plan: RequestPlan, profile: ProviderProfile
    ) -> Iterable[ReplyEvent]:
        """Return the events of a whole reply."""
        return reply_events(self._format.from_wire(reply, plan, profile))

    async def _send(self, body: bytes) -> Any:
        """Return the open response; streamed or not, it is read here, within its limits."""
        client = self._open_client()
        return await client.post(
            self._format.path,
            **_raw_body(client, body),
            cast_to=object,
            stream=True,
            stream_cls=self._sdk.stream,
        )

    def _open_client(self) -> Any:
        """Return the client; the first call makes it."""
        if self._client is None:
            self._client = self._connect()
        return self._client

    def _connect(self) -> Any:
        sdk, limits = self._sdk, self._limits
        return sdk.client(
            api_key=self._api_key.get_secret_value(),
            # Never what ANTHROPIC_BASE_URL or OPENAI_BASE_URL says: the profile was made for
            # this address.
            base_url=self._base_url or sdk.base_url,
            # The reader has closer limits than the HTTP client.
            timeout=sdk.timeout(
                max(limits.first_byte_s, limits.silence_s),
                write=limits.silence_s,
                connect=min(limits.silence_s, CONNECT_TIMEOUT_S),
            ),
            max_retries=self._max_retries,
            http_client=bounded_client(sdk.http_client, limits.incoming),
        )


def _raw_body(client: Any, body: bytes) -> dict[str, bytes]:
    """Return the argument of `client.post` that sends bytes unchanged."""
    return {"content" if _takes_content(type(client).post) else "body": body}


@cache
def _takes_content(post: Callable[..., object]) -> bool:
    """True if a client's `post` has `content`.

    anthropic before 0.76 has none: its `body` takes bytes, which later versions warn of.
    """
    named = inspect.signature(post).parameters
    return "content" in named or "body" not in named
