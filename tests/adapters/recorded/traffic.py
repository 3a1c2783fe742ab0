"""The recorded traffic of the real services, with our readers and writers for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tool_search.adapters.anthropic import history as anthropic_history
from tool_search.adapters.anthropic import reply as anthropic_reply
from tool_search.adapters.anthropic import wire as anthropic_wire
from tool_search.adapters.openai_chat import history as openai_chat_history
from tool_search.adapters.openai_chat import reply as openai_chat_reply
from tool_search.adapters.openai_chat import wire as openai_chat_wire
from tool_search.adapters.openai_responses import history as openai_responses_history
from tool_search.adapters.openai_responses import reply as openai_responses_reply
from tool_search.adapters.openai_responses import wire as openai_responses_wire
from tool_search.core.settings import Dialect

RECORDED = Path(__file__).parents[4] / "shared" / "recorded"
REASON = "the recorded traffic is not there: ../shared/recorded beside the checkout"
DIALECTS: Mapping[str, Dialect] = {
    "https://api.anthropic.com/v1/messages": "anthropic",
    "https://api.openai.com/v1/chat/completions": "openai_chat",
    "https://api.openai.com/v1/responses": "openai_responses",
}
READERS: Mapping[str, Any] = {
    "anthropic": anthropic_reply,
    "openai_chat": openai_chat_reply,
    "openai_responses": openai_responses_reply,
}
WRITERS: Mapping[str, Any] = {
    "anthropic": anthropic_wire,
    "openai_chat": openai_chat_wire,
    "openai_responses": openai_responses_wire,
}
IMPORTERS: Mapping[str, Any] = {
    "anthropic": anthropic_history,
    "openai_chat": openai_chat_history,
    "openai_responses": openai_responses_history,
}
