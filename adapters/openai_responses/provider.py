"""Chat over OpenAI's Responses API and over compatible endpoints.

SDK: the asynchronous client of openai 2.20 or later. The format is in `wire`, `tools`, `reply`,
`items` and `history` of this folder, which need no SDK.
Source: OpenAI, "Responses API", "Streaming events", "Error codes".

Usage::

    from tool_search.adapters.openai_responses import OpenAIResponsesProvider
    from tool_search.providers.profile_choice import profile_for

    profile = profile_for("openai_responses", "gpt-5.4")
    async with OpenAIResponsesProvider(profile=profile, api_key=key) as provider:
        async for event in provider.stream(plan): ...
"""

from __future__ import annotations

from tool_search.adapters.openai_responses.history import history_from_wire
from tool_search.adapters.openai_responses.reply import StreamedReply, events_of, from_wire
from tool_search.adapters.openai_responses.wire import encode, encode_tools, to_wire
from tool_search.adapters.sdk.openai_client import OpenAIProvider
from tool_search.adapters.sdk.provider import WireFormat

__all__ = [
    "OpenAIResponsesProvider",
    "encode",
    "encode_tools",
    "from_wire",
    "history_from_wire",
    "to_wire",
]


class OpenAIResponsesProvider(OpenAIProvider):
    """One model of OpenAI, or of a compatible endpoint.

    Takes the options of `SDKProvider`; `id` is `openai` by default.
    """

    _format = WireFormat(
        path="/responses",
        encode=encode,
        events_of=events_of,
        reader=StreamedReply,
    )
