"""The token figures of a reply: the one place that estimates them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tool_search.testing.models import ModelReply
    from tool_search.testing.view import ModelView

__all__ = ["UsageFigures", "input_tokens", "reply_usage"]

_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFigures:
    """What a reply is billed, in tokens.

    Attributes:
        fresh: Input that no cache held and none now holds.
        cache_written: Input that went into the cache with this request.
        cache_read: Input that came from the cache.
        output: What the model wrote.
    """

    fresh: int
    cache_written: int
    cache_read: int
    output: int

    @property
    def input(self) -> int:
        """All input tokens, cached or not."""
        return self.fresh + self.cache_written + self.cache_read


def reply_usage(view: ModelView, reply: ModelReply) -> UsageFigures:
    """The figures of one reply, at four characters a token and without a cache."""
    written = len(reply.text) + len(reply.thinking or "")
    for call in reply.calls:
        arguments = call.arguments
        text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments))
        written += len(call.name) + len(text)
    return UsageFigures(
        fresh=input_tokens(view),
        cache_written=0,
        cache_read=0,
        output=max(1, written // _CHARACTERS_PER_TOKEN),
    )


def input_tokens(view: ModelView) -> int:
    """What the model is shown, at four characters a token: hidden tools are free."""
    characters = 0
    for tool in view.tools:
        characters += len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters))
    for message in view.messages:
        characters += len(message.text)
        characters += sum(
            len(call.name) + len(json.dumps(call.arguments)) for call in message.calls
        )
        characters += sum(len(result.text) for result in message.results)
    return max(1, characters // _CHARACTERS_PER_TOKEN)
