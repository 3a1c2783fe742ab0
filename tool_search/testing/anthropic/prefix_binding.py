"""Thinking that is bound to the prefix before it.

A signature holds a digest of `system`, `tools` and every message before the
block. The check needs no memory of the conversation, and a block that one
stand-in server signed is valid at another, as with the real service.

Source: Anthropic, Preserved thinking; the anthropic SDK's
`BetaThinkingBlockBindingParam`. The service's own text for a changed prefix is
known only in part ("The block is bound to a different conversation").
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from tool_search.testing.violations import Violation, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["binds_thinking", "changed_prefixes", "signature"]

_PREFIX = "standin"
_BOUND_MODELS = re.compile(r"claude-(?:fable-5-[12]|mythos-5-2|(?:opus|sonnet|haiku)-5-5)(?!\d)")


def binds_thinking(model: str) -> bool:
    """True if a model rejects thinking after a changed prefix."""
    return _BOUND_MODELS.search(model) is not None


def signature(body: Mapping[str, Any], thinking: str) -> str:
    """Return the signature of a thinking block that answers this request."""
    digest = _hash_opening(body)
    for message in body["messages"]:
        digest.update(_canonical(_message(message)))
    return _sign(digest.hexdigest(), thinking)


def changed_prefixes(body: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield a violation for each thinking block that was changed or moved.

    A block that no stand-in server signed is accepted: its origin is unknown.
    """
    digest = None
    for index, message in enumerate(body["messages"]):
        if digest is None:
            digest = _hash_opening(body)
        for place, block in enumerate(_thinking_blocks(message)):
            where = f"messages.{index}.content.{place}"
            _, bound, thought = block["signature"].split(":")
            if thought != _hash(block["thinking"]):
                yield invalid(f"{where}: Invalid `signature` in `thinking` block")
            elif bound != digest.hexdigest() and not _drops(body):
                yield invalid(
                    f"{where}: The block is bound to a different conversation: `system`, `tools` "
                    "or an earlier message has changed since it was created. Send the "
                    "conversation unchanged, or set "
                    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
                )
        digest.update(_canonical(_message(message)))


def _drops(body: Mapping[str, Any]) -> bool:
    binding = (body.get("thinking") or {}).get("block_binding")
    return isinstance(binding, dict) and binding.get("prefix_mismatch_behavior") == "drop_block"


def _thinking_blocks(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if message["role"] != "assistant" or isinstance(message["content"], str):
        return
    for block in message["content"]:
        if block.get("type") == "thinking" and _ours(block.get("signature")):
            yield block


def _ours(text: object) -> bool:
    return isinstance(text, str) and text.startswith(f"{_PREFIX}:") and text.count(":") == 2


def _sign(bound: str, thinking: str) -> str:
    return f"{_PREFIX}:{bound}:{_hash(thinking)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _hash_opening(body: Mapping[str, Any]) -> hashlib._Hash:
    system = body.get("system") or []
    opening = [_content(system), body.get("tools") or []]
    return hashlib.sha256(_canonical(_without_breakpoints(opening)))


def _message(message: Mapping[str, Any]) -> object:
    return _without_breakpoints([message["role"], _content(message["content"])])


def _content(content: object) -> object:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _without_breakpoints(value: object) -> object:
    """Return the value without cache breakpoints, which are not content."""
    if isinstance(value, dict):
        return {
            key: _without_breakpoints(item) for key, item in value.items() if key != "cache_control"
        }
    if isinstance(value, list):
        return [_without_breakpoints(item) for item in value]
    return value


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
