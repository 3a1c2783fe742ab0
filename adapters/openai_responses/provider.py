"""Chat over OpenAI's Responses API and over compatible endpoints.

SDK: the asynchronous client of openai 2.20 or later. The format is in the other modules of this
folder, which need no SDK.
Source: OpenAI, "Responses API", "Streaming events", "Error codes".

Usage::

    from tool_search.adapters.openai_responses import OpenAIResponsesProvider
    from tool_search.providers.profile_choice import profile_for

    profile = profile_for("openai_responses", "gpt-5.4")
    async with OpenAIResponsesProvider(profile=profile, api_key=key) as provider:
        async for event in provider.stream(plan): ...
"""

from __future__ import annotations

from tool_search.adapters.openai_responses.reply import StreamedReply, from_wire
from tool_search.adapters.openai_responses.wire import encode
from tool_search.adapters.sdk.provider import SDKProvider, WireFormat, vendor_sdk

__all__ = ["OpenAIResponsesProvider"]


class OpenAIResponsesProvider(SDKProvider):
    """One model of OpenAI, or of a compatible endpoint.

    Takes the options of `SDKProvider`; `id` is `openai` by default.
    """

    _sdk = vendor_sdk("openai", "AsyncOpenAI", "OpenAIError", "https://api.openai.com/v1")
    _format = WireFormat(
        path="/responses", encode=encode, from_wire=from_wire, reader=StreamedReply
    )
