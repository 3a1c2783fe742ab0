"""The size of messages, estimated: in tokens for a model's context, in bytes for a request."""

from __future__ import annotations

from typing import Literal

from tool_search.catalog.schema.plain import compact_json
from tool_search.catalog.tokens import estimate_tokens
from tool_search.messages import ImagePart, Message

__all__ = ["Measure", "MessageWeights", "weight_of"]

Measure = Literal["tokens", "bytes"]

# Anthropic, Vision: 1,568 tokens a picture at most; OpenAI: 765 for a square in high detail.
_PICTURE_TOKENS = 1_500
# A message's own marks: its role, its beginning and its end.
_FRAME = {"tokens": 4, "bytes": 40}
_BYTES_PER_TOKEN = 4


def weight_of(message: Message, measure: Measure) -> int:
    """Estimate a message's size.

    What its provider keeps beside the text (thinking, encrypted items) counts by its length.
    """
    texts = [message.text, *(f"{call.name}{call.arguments}" for call in message.tool_calls)]
    parts = () if isinstance(message.content, str) else message.content
    urls = [part.url for part in parts if isinstance(part, ImagePart)]
    own = len(compact_json(list(message.native.blocks))) if message.native else 0
    if measure == "bytes":
        said = sum(len(text.encode("utf-8", "replace")) for text in texts)
        return _FRAME[measure] + max(said + sum(map(len, urls)), own)
    said = sum(map(estimate_tokens, texts)) + _PICTURE_TOKENS * len(urls)
    return _FRAME[measure] + max(said, own // _BYTES_PER_TOKEN)


class MessageWeights:
    """The sizes of a history's messages, estimated once each."""

    def __init__(self) -> None:
        self._messages: tuple[Message, ...] = ()
        self._weights: dict[Measure, list[int]] = {}

    def of(self, messages: tuple[Message, ...], measure: Measure) -> list[int]:
        """Return the sizes of these messages, in order."""
        # Equal tuples are compared by identity first, which takes no time.
        if messages[: len(self._messages)] != self._messages:
            self._weights.clear()
        self._messages = messages
        known = self._weights.setdefault(measure, [])
        known += [weight_of(message, measure) for message in messages[len(known) :]]
        return known[: len(messages)]
