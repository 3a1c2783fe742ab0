"""Token figures of a reply, estimated in this one place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tool_search.testing.server.prompt_cache import CHARACTERS_PER_TOKEN, prompt_parts

if TYPE_CHECKING:
    from tool_search.testing.models.scripted import ModelReply
    from tool_search.testing.server.prompt_cache import PromptCache
    from tool_search.testing.view import ModelView

__all__ = ["UsageFigures", "input_tokens", "reply_usage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFigures:
    """The billed tokens of a reply.

    Attributes:
        fresh: Input that was not in the cache and does not go into it.
        cache_written: Input that goes into the cache with this request.
        cache_read: Input that came from the cache.
        output: The model's own tokens.
    """

    fresh: int
    cache_written: int
    cache_read: int
    output: int

    @property
    def input(self) -> int:
        """All input tokens, cached or not."""
        return self.fresh + self.cache_written + self.cache_read


def reply_usage(view: ModelView, reply: ModelReply, cache: PromptCache) -> UsageFigures:
    """Return the figures of one reply, at four characters a token."""
    written = len(reply.text) + len(reply.thinking or "")
    for call in reply.calls:
        arguments = call.arguments
        text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments))
        written += len(call.name) + len(text)
    cached = cache.charge(view)
    return UsageFigures(
        fresh=input_tokens(view) - cached.read - cached.written,
        cache_written=cached.written,
        cache_read=cached.read,
        output=max(1, written // CHARACTERS_PER_TOKEN),
    )


def input_tokens(view: ModelView) -> int:
    """Return the tokens of the model's view, at four characters a token."""
    characters = sum(len(part.text) for part in prompt_parts(view))
    return max(1, characters // CHARACTERS_PER_TOKEN)
