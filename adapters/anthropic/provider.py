"""Chat over Anthropic's Messages API and over compatible endpoints.

SDK: the asynchronous client of anthropic 0.73 or later. The format is in the other modules of
this folder, which need no SDK.
Source: Anthropic, "Messages API", "Streaming Messages", "Errors".

Usage::

    from tool_search.adapters.anthropic import AnthropicProvider
    from tool_search.providers.profile_choice import profile_for

    profile = profile_for("anthropic", "claude-sonnet-4-6")
    async with AnthropicProvider(profile=profile, api_key=key) as provider:
        async for event in provider.stream(plan): ...
"""

from __future__ import annotations

from tool_search.adapters.anthropic.reply import StreamedReply, from_wire
from tool_search.adapters.anthropic.wire import encode
from tool_search.adapters.sdk.provider import SDKProvider, WireFormat, vendor_sdk

__all__ = ["AnthropicProvider"]


class AnthropicProvider(SDKProvider):
    """One Claude model, or one model of a compatible endpoint.

    Takes the options of `SDKProvider`; `id` is `anthropic` by default.
    """

    _sdk = vendor_sdk("anthropic", "AsyncAnthropic", "AnthropicError", "https://api.anthropic.com")
    _format = WireFormat(
        path="/v1/messages", encode=encode, from_wire=from_wire, reader=StreamedReply
    )
