"""Tool search in LiteLLM's proxy, for any client of Chat Completions.

In its YAML::

    litellm_settings:
      callbacks: ["tool_search.adapters.litellm.handler"]

The model gets the declared tools and a search tool; the proxy answers searches, and clients
see only calls of their own tools, whole and streamed. The settings are in the file that the
environment variable TOOL_SEARCH_CONFIG names, a `bot.yaml`.

litellm 1.96 or later: earlier ones cannot load a callback from a package. Source: LiteLLM,
"Modify / Reject Incoming Requests" (`async_pre_call_hook`, `async_post_call_success_hook`,
`async_post_call_streaming_iterator_hook`). Its agentic-loop hooks are not called for streams,
and have changed their names.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

try:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger
    from litellm.types.utils import (
        ChatCompletionMessageToolCall,
        Delta,
        ModelResponse,
        ModelResponseStream,
    )
except ImportError as exc:
    raise ImportError(
        "tool_search.adapters.litellm needs litellm 1.96 or later: "
        "pip install 'tool-search-middleware[litellm]'; in a clone: pip install '.[litellm]'"
    ) from exc

from tool_search.adapters.hosts.chain import owner_digest
from tool_search.adapters.hosts.kept_names import KeptNames
from tool_search.adapters.hosts.tool_search import ToolSearch
from tool_search.adapters.openai_chat.requests import ChatRequest, ChatRequests
from tool_search.config.conversation import ToolSearchConfig
from tool_search.config.loading import load_config
from tool_search.errors import ConfigurationError
from tool_search.stores.opening import open_store

__all__ = ["ToolSearchHandler", "handler"]

_CHAT = {"completion", "acompletion"}
# Of one step alone: each step has a log entry of its own.
_OF_ONE_STEP = {"litellm_logging_obj", "litellm_call_id", "deployment"}

# Vendors for which LiteLLM translates signed thinking; others refuse it as an unknown field.
_TAKE_THINKING = {"anthropic", "azure_ai", "bedrock", "databricks", "gemini", "vertex_ai"}

handler: ToolSearchHandler


class ToolSearchHandler(CustomLogger):
    """Searches tools for the clients of LiteLLM's proxy.

    Args:
        config: The settings; `load_config("bot.yaml").tool_search` fits.
        search: A `ToolSearch` that several handlers share, instead of `config`.

    Raises:
        ConfigurationError: The settings cannot be used.
    """

    def __init__(
        self, config: ToolSearchConfig | None = None, *, search: ToolSearch | None = None
    ) -> None:
        super().__init__()
        self.search = search or ToolSearch((), config)
        if self.search.config.tool_schema_mode == "skills_like":
            raise ConfigurationError(
                "tool_schema_mode is 'skills_like', which a proxy cannot offer to its clients; "
                "set it to auto, tool_search or full"
            )
        self._requests = ChatRequests(self.search)
        # Only this process knows whose searches are whose.
        self._secret = secrets.token_bytes(32)
        # By LiteLLM's log object of a request, with which an entry ends.
        self._open: WeakKeyDictionary[Any, ChatRequest] = WeakKeyDictionary()

    async def async_pre_call_hook(
        self,
        user_api_key_dict: Any,
        cache: Any,  # noqa: ARG002  # LiteLLM passes it by name
        data: dict[str, Any],
        call_type: Any,
    ) -> dict[str, Any]:
        """Put the declared tools and the hidden searches into a client's request."""
        log = data.get("litellm_logging_obj")
        if call_type not in _CHAT or log is None:
            return data
        owner = owner_digest(str(user_api_key_dict.api_key), self._secret)
        request = await self._requests.open(owner, data, user=user_api_key_dict.user_id)
        if request is not None:
            self._open[log] = request
            data.update(messages=request.messages, tools=request.tools)
        return data

    async def async_pre_call_deployment_hook(
        self,
        kwargs: dict[str, Any],
        call_type: Any,  # noqa: ARG002  # as above
    ) -> dict[str, Any]:
        """Write a request as its deployment takes it.

        Tools whose names the service keeps for itself get others, and a fallback of another
        vendor gets no thinking of hidden replies.
        """
        messages, tools = kwargs.get("messages"), kwargs.get("tools") or []
        if not isinstance(messages, list):
            return kwargs
        model, given = str(kwargs.get("model")), kwargs.get("custom_llm_provider")
        _, provider, _, base = litellm.get_llm_provider(model, given)
        address = (
            kwargs.get("api_base") or base or ("" if provider == "openai" else f"//{provider}")
        )
        names = [str(tool.get("function", tool).get("name")) for tool in tools]
        kept = KeptNames("openai_chat", model, str(address), names)
        own = self.search.config.search_tool_name
        if kept and own in names:
            written = [kept.instructed(kept.sent(message), own) for message in messages]
            kwargs = {**kwargs, "messages": written, "tools": kept.sent(tools)}
        if provider in _TAKE_THINKING or "claude" in model:
            return kwargs
        return {**kwargs, "messages": [_without_thinking(each) for each in kwargs["messages"]]}

    async def async_post_call_success_hook(
        self,
        data: dict[str, Any],
        user_api_key_dict: Any,  # noqa: ARG002  # as above
        response: Any,
    ) -> Any:
        """Answer the searches of a whole reply, and return the one for the client."""
        request = self._open_request(data)
        if request is None or not isinstance(response, ModelResponse) or not response.choices:
            return response
        written = _written(response)
        while await request.take(_message(response)):
            response = await self._ask(request, data)
            written += _written(response)
        choice: Any = response.choices[0]
        calls = [ChatCompletionMessageToolCall(**call) for call in request.calls]
        choice.message.content = request.text or None
        choice.message.tool_calls = calls or None
        choice.finish_reason = _finish_reason(choice.finish_reason, request)
        _set_written(response, written)
        return response

    async def async_post_call_streaming_iterator_hook(
        self,
        user_api_key_dict: Any,  # noqa: ARG002  # as above
        response: Any,
        request_data: dict[str, Any],
    ) -> AsyncGenerator[ModelResponseStream, None]:
        """Pass text of a streamed reply at once, and its calls without the searches."""
        request = self._open_request(request_data)
        if request is None:
            async for chunk in response:
                yield chunk
            return
        reply = _StreamedReply()
        while True:
            async for chunk in response:
                shown = reply.read(chunk)
                if shown is not None:
                    yield shown
            if not await request.take(await asyncio.to_thread(reply.end_step)):
                break
            response = await self._ask(request, request_data)
        for chunk in reply.end(request):
            yield chunk

    def _open_request(self, data: Mapping[str, Any]) -> ChatRequest | None:
        log = data.get("litellm_logging_obj")
        return None if log is None else self._open.get(log)

    async def _ask(self, request: ChatRequest, data: Mapping[str, Any]) -> Any:
        """Ask the model again, by the router: with its fallbacks, limits and logs."""
        # The router is made after this module is loaded.
        from litellm.proxy.proxy_server import llm_router  # noqa: PLC0415

        kept = {key: value for key, value in data.items() if key not in _OF_ONE_STEP}
        # What other callbacks have done to the messages stays, such as masking.
        messages = [*data["messages"], *request.steps]
        kept |= {"messages": messages, "tools": request.tools}
        caller: Any = llm_router or litellm
        return await caller.acompletion(**{k: v for k, v in kept.items() if k[0] != "_"})


class _StreamedReply:
    """The streamed replies of one request, which the client sees as one."""

    def __init__(self) -> None:
        self._chunks: list[Any] = []
        self._first: Any = None
        self._finish: Any = None
        self._usage: Any = None
        self._written = 0
        self._has_text = False
        self._begins_text = False

    def read(self, chunk: Any) -> Any:
        """Return the part of a chunk that the client sees at once; None for none."""
        self._chunks.append(chunk.model_copy(deep=True))
        if self._first is None:
            self._first = chunk
        # Clients refuse a stream whose id changes.
        chunk.id, chunk.created, chunk.model = (
            self._first.id,
            self._first.created,
            self._first.model,
        )
        if getattr(chunk, "usage", None) is not None:
            self._usage = chunk
            self._written += chunk.usage.completion_tokens or 0
            return None
        choice = chunk.choices[0] if chunk.choices else None
        if choice is None:
            return None
        if choice.finish_reason is not None:
            self._finish = chunk.model_copy(deep=True)
        delta = choice.delta
        delta.tool_calls, choice.finish_reason = None, None
        if delta.content:
            if self._begins_text and self._has_text:
                delta.content = f"\n\n{delta.content}"
            self._begins_text, self._has_text = False, True
        has_thought = getattr(delta, "reasoning_content", None) or getattr(
            delta, "thinking_blocks", None
        )
        is_first = chunk is self._first
        return chunk if delta.content or has_thought or is_first else None

    def end_step(self) -> dict[str, Any]:
        """Return the reply that this step's chunks make."""
        made = litellm.stream_chunk_builder(self._chunks) if self._chunks else None
        self._chunks, self._begins_text = [], True
        return _message(made) if isinstance(made, ModelResponse) else {}

    def end(self, request: ChatRequest) -> list[Any]:
        """Return the last chunks: calls of the client's tools, the finish and the usage."""
        finish = self._finish or self._first
        if finish is None:
            return []
        reason = finish.choices[0].finish_reason
        finish = finish.model_copy(deep=True)
        finish.choices[0].delta = Delta(content=None)
        finish.choices[0].finish_reason = None
        chunks = []
        if request.calls:
            calls = [{**call, "index": index} for index, call in enumerate(request.calls)]
            called = finish.model_copy(deep=True)
            called.choices[0].delta = Delta(content=None, tool_calls=calls)
            chunks.append(called)
        finish.choices[0].finish_reason = _finish_reason(reason, request)
        chunks.append(finish)
        if self._usage is not None:
            _set_written(self._usage, self._written)
            chunks.append(self._usage)
        return chunks


def _message(response: ModelResponse) -> dict[str, Any]:
    choice: Any = response.choices[0]
    message: dict[str, Any] = choice.message.model_dump(exclude_none=True)
    return message


def _has_signed_thinking(message: Any) -> bool:
    """True for a reply with calls and thinking, as hidden replies of Claude are."""
    return isinstance(message, dict) and bool(
        message.get("thinking_blocks") and message.get("tool_calls")
    )


def _without_thinking(message: Any) -> Any:
    if not _has_signed_thinking(message):
        return message
    thinking = {"thinking_blocks", "reasoning_content"}
    return {key: value for key, value in message.items() if key not in thinking}


def _finish_reason(reason: str | None, request: ChatRequest) -> str:
    if request.calls:
        return "tool_calls"
    return "stop" if reason in {None, "tool_calls"} else str(reason)


def _written(response: Any) -> int:
    usage = getattr(response, "usage", None)
    return (usage.completion_tokens or 0) if usage is not None else 0


def _set_written(response: Any, written: int) -> None:
    """Count what every step wrote; what was read is the last step's.

    Clients take from it how full the context is.
    """
    usage = getattr(response, "usage", None)
    if usage is not None:
        usage.completion_tokens = written
        usage.total_tokens = (usage.prompt_tokens or 0) + written


@cache
def _configured_handler() -> ToolSearchHandler:
    given = os.environ.get("TOOL_SEARCH_CONFIG")
    if not given:
        return ToolSearchHandler()
    source = Path(given)
    config = load_config(source)
    store = open_store(config.store, source)
    return ToolSearchHandler(search=ToolSearch((), config.tool_search, store=store))


def __getattr__(name: str) -> ToolSearchHandler:
    """Return the `handler` of TOOL_SEARCH_CONFIG; an import alone reads no file."""
    if name == "handler":
        return _configured_handler()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
