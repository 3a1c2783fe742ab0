"""The last prompt of each conversation, which the next one is compared with."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from tool_search.providers.prefix_change import kept_prefix
from tool_search.serving.inspector.records import PrefixRecord

__all__ = ["LastPrompts", "SentPrompt", "compare_prompts"]

_MAX_PROMPTS = 2_000
_MAX_BYTES = 32_000_000
# Longer ones would take long to read, and hold the interpreter.
_MAX_COMPARED_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """A request that was sent to a provider.

    Attributes:
        request_id: The id of its record.
        conversation: The conversation.
        body: The body.
    """

    request_id: str
    conversation: str
    body: bytes


class LastPrompts:
    """The last prompts of conversations, bounded by number and size; one thread uses it."""

    def __init__(self) -> None:
        self._prompts: OrderedDict[str, SentPrompt] = OrderedDict()
        self._bytes = 0

    def find(self, keys: Iterable[str]) -> SentPrompt | None:
        """Return the prompt of the first key that is known."""
        return next((self._prompts[key] for key in keys if key in self._prompts), None)

    def keep(self, keys: Iterable[str], prompt: SentPrompt) -> None:
        """Keep a prompt, in place of an earlier one with the same key."""
        for key in keys:
            before = self._prompts.pop(key, None)
            self._bytes += len(prompt.body) - (len(before.body) if before else 0)
            self._prompts[key] = prompt
        while self._bytes > _MAX_BYTES or len(self._prompts) > _MAX_PROMPTS:
            _, dropped = self._prompts.popitem(last=False)
            self._bytes -= len(dropped.body)


def compare_prompts(before: SentPrompt, body: bytes, *, texts: bool) -> PrefixRecord | None:
    """Return the difference of a prompt to the one before; None if they cannot be compared.

    Args:
        before: The prompt before.
        body: The body of the request.
        texts: True to keep the texts at the difference.
    """
    if max(len(before.body), len(body)) > _MAX_COMPARED_BYTES:
        return None
    try:
        kept = kept_prefix(before.body, body)
    except (ValueError, RecursionError):
        return None
    change = kept.change
    record = PrefixRecord(
        before=before.request_id, kept_bytes=kept.kept_bytes, total_bytes=kept.total_bytes
    )
    if change is None:
        return record
    return record.model_copy(
        update={
            "cause": change.cause,
            "path": change.path,
            "subject": change.subject,
            "in_prompt": change.in_prompt,
            "old": change.before if texts else "",
            "new": change.after if texts else "",
        }
    )
