"""Chat over OpenAI's Chat Completions API and over compatible endpoints.

SDK: the asynchronous client of openai 2.20 or later. With another `base_url` it talks to
DeepSeek, Qwen, Kimi, GLM, Gemini, Ollama, vLLM and others. The format is in the other modules
of this folder, which need no SDK.
Source: OpenAI, "Chat Completions API", "Error codes".

Usage::

    from tool_search.adapters.openai_chat import OpenAIChatProvider
    from tool_search.providers.profile_choice import profile_for

    profile = profile_for("openai_chat", "gpt-5.4")
    async with OpenAIChatProvider(profile=profile, api_key=key) as provider:
        async for event in provider.stream(plan): ...
"""

from __future__ import annotations

from tool_search.adapters.openai_chat.reply import StreamedReply, from_wire, refused_call
from tool_search.adapters.openai_chat.wire import encode
from tool_search.adapters.sdk.provider import SDKProvider, WireFormat, vendor_sdk

__all__ = ["OpenAIChatProvider"]


class OpenAIChatProvider(SDKProvider):
    """One model of OpenAI, or of a compatible endpoint.

    Takes the options of `SDKProvider`; `id` is `openai` by default.
    """

    _sdk = vendor_sdk("openai", "AsyncOpenAI", "OpenAIError", "https://api.openai.com/v1")
    _format = WireFormat(
        path="/chat/completions",
        encode=encode,
        from_wire=from_wire,
        reader=StreamedReply,
        refused_call=refused_call,
    )
