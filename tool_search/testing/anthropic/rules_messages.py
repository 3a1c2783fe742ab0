"""Anthropic's rules for the shape of `messages` and their content blocks.

Source: Anthropic, Messages API; the content block types of the anthropic SDK;
GitHub issues that quote the service's texts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tool_search.testing.anthropic.rules_tools import NAME, bad_name
from tool_search.testing.violations import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tool_search.testing.server.endpoint import Endpoint
    from tool_search.testing.violations import Violation

__all__ = ["message_violations"]

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_MAX_REFERENCE = 64

_FIELDS: dict[str, tuple[dict[str, type], set[str]]] = {
    "text": ({"text": str}, {"cache_control", "citations"}),
    "tool_use": (
        {"id": str, "name": str, "input": dict},
        {"cache_control", "caller", "toolset_name"},
    ),
    "tool_result": (
        {"tool_use_id": str},
        {"cache_control", "content", "is_error", "toolset_name"},
    ),
    "server_tool_use": ({"id": str, "name": str, "input": dict}, {"cache_control", "caller"}),
    "tool_search_tool_result": ({"tool_use_id": str, "content": dict}, {"cache_control"}),
    "thinking": ({"thinking": str, "signature": str}, set()),
    "redacted_thinking": ({"data": str}, set()),
    "tool_addition": ({"tool": dict}, {"cache_control"}),
    "tool_removal": ({"tool": dict}, {"cache_control"}),
    "tool_reference": ({"tool_name": str}, {"cache_control"}),
}
_SAYS: dict[type, str] = {str: "a valid string", dict: "a valid dictionary"}

_USER_ONLY = {"tool_result", "image", "document", "search_result", "container_upload"}
_ASSISTANT_ONLY = {
    "tool_use",
    "server_tool_use",
    "tool_search_tool_result",
    "thinking",
    "redacted_thinking",
}
_SYSTEM = {"text", "tool_addition", "tool_removal"}
_OTHER = {
    "advisor_tool_result",
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "compaction",
    "fallback",
    "mcp_tool_listing",
    "mcp_tool_result",
    "mcp_tool_use",
    "text_editor_code_execution_tool_result",
    "web_fetch_tool_result",
    "web_search_tool_result",
}
_SEARCH_BLOCKS = {"tool_search_tool_result", "tool_addition", "tool_removal"}
_KNOWN = _USER_ONLY | _ASSISTANT_ONLY | _SYSTEM | _OTHER
_IN_RESULT = ("document", "image", "search_result", "text")


def message_violations(messages: list[Any], endpoint: Endpoint) -> Iterator[Violation]:
    """Yield the violations of the shape of messages."""
    if not messages:
        yield invalid("messages: at least one message is required")
        return
    last = len(messages) - 1
    for index, message in enumerate(messages):
        yield from _message(index, message, is_last=index == last, endpoint=endpoint)
    # Recorded: an assistant's message is accepted in the first place (claude-sonnet-4-5).
    if messages[0]["role"] == "system":
        yield invalid('messages: first message must use the "user" role')


def _message(index: int, message: Any, *, is_last: bool, endpoint: Endpoint) -> Iterator[Violation]:
    if not isinstance(message, dict):
        yield invalid(f"messages.{index}: Input should be a valid dictionary")
        return
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        yield invalid(f"messages.{index}.role: Input should be 'user' or 'assistant'")
    for key in message:
        if key not in ("role", "content"):
            yield invalid(f"messages.{index}.{key}: Extra inputs are not permitted")
    if content is None:
        yield invalid(f"messages.{index}.content: Field required")
    elif not isinstance(content, str | list):
        yield invalid(f"messages.{index}.content: Input should be a valid string")
    elif not content and not (is_last and role == "assistant"):
        yield invalid(
            f"messages.{index}: all messages must have non-empty content except for the optional "
            "final assistant message"
        )
    else:
        yield from _content(index, str(role), content, endpoint)


def _content(
    index: int, role: str, content: str | list[Any], endpoint: Endpoint
) -> Iterator[Violation]:
    if isinstance(content, str):
        if content and not content.strip():
            yield invalid("messages: text content blocks must contain non-whitespace text")
        return
    for place, block in enumerate(content):
        yield from _block(f"messages.{index}.content.{place}", role, block, endpoint)


def _block(where: str, role: str, block: Any, endpoint: Endpoint) -> Iterator[Violation]:
    kind = str(block.get("type")) if isinstance(block, dict) else "None"
    unknown = kind not in _KNOWN or (kind in _SEARCH_BLOCKS and not endpoint.supports_tool_search)
    if unknown:
        expected = ", ".join(repr(tag) for tag in ("document", "image", "text", "tool_result"))
        yield invalid(
            f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected "
            f"tags: {expected}, ..."
        )
        return
    yield from _fields(f"{where}.{kind}", block)
    yield from _role(where.rpartition(".content.")[0], role, kind)
    if kind == "text" and not block["text"].strip():
        reason = "contain non-whitespace text" if block["text"] else "be non-empty"
        yield invalid(f"messages: text content blocks must {reason}")
    elif kind in ("tool_use", "server_tool_use"):
        yield from _use(f"{where}.{kind}", block)
    elif kind == "tool_result":
        yield from _result(f"{where}.tool_result", block, endpoint)
    elif kind == "tool_search_tool_result":
        yield from _search_result(f"{where}.tool_search_tool_result", block["content"])


def _fields(where: str, block: Mapping[str, Any]) -> Iterator[Violation]:
    if block["type"] not in _FIELDS:
        return
    required, optional = _FIELDS[block["type"]]
    for name, kind in required.items():
        if name not in block:
            yield invalid(f"{where}.{name}: Field required")
        elif not isinstance(block[name], kind):
            yield invalid(f"{where}.{name}: Input should be {_SAYS[kind]}")
    for name in block:
        if name not in required and name not in optional and name != "type":
            yield invalid(f"{where}.{name}: Extra inputs are not permitted")


def _role(where: str, role: str, kind: str) -> Iterator[Violation]:
    if role == "system" and kind not in _SYSTEM:
        yield invalid(f"{where}: `{kind}` blocks cannot be in `system` messages")
    elif role != "user" and kind in _USER_ONLY:
        yield invalid(f"{where}: `{kind}` blocks can only be in `user` messages")
    elif role != "assistant" and kind in _ASSISTANT_ONLY:
        yield invalid(f"{where}: `{kind}` blocks can only be in `assistant` messages")
    elif role != "system" and kind in ("tool_addition", "tool_removal"):
        yield invalid(f"{where}: `{kind}` blocks can only be in `system` messages")


def _use(where: str, block: Mapping[str, Any]) -> Iterator[Violation]:
    server = block["type"] == "server_tool_use"
    pattern = _SERVER_ID if server else _ID
    if not pattern.fullmatch(block["id"]):
        yield invalid(f"{where}.id: String should match pattern '^{pattern.pattern}$'")
    if not NAME.fullmatch(block["name"]):
        yield from bad_name(f"{where}.name", block["name"])
    given = block["input"]
    if block["name"] == "tool_search_tool_regex" and "query" in given and "pattern" not in given:
        yield invalid(f"{where}.input.pattern: Field required")
    if block["name"] == "tool_search_tool_bm25" and "pattern" in given and "query" not in given:
        yield invalid(f"{where}.input.query: Field required")


def _result(where: str, block: Mapping[str, Any], endpoint: Endpoint) -> Iterator[Violation]:
    content = block.get("content")
    if not isinstance(block.get("is_error", False), bool | None):
        yield invalid(f"{where}.is_error: Input should be a valid boolean")
    if not _ID.fullmatch(block["tool_use_id"]):
        yield invalid(f"{where}.tool_use_id: String should match pattern '^{_ID.pattern}$'")
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        yield invalid(f"{where}.content: Input should be a valid list")
        return
    if not content:
        yield invalid(f"{where}.content: List should have at least 1 item after validation, not 0")
    for place, item in enumerate(content):
        yield from _in_result(f"{where}.content.{place}", item, endpoint)
    kinds = {item["type"] for item in content}
    if block.get("is_error") and kinds != {"text"}:
        yield invalid(f'{where}: all content must be type "text" if "is_error" is true')
    if "tool_reference" in kinds and len(kinds) > 1:
        yield invalid(
            f"{where}.content: `tool_reference` blocks cannot be mixed with other content"
        )


def _in_result(where: str, item: Any, endpoint: Endpoint) -> Iterator[Violation]:
    kind = str(item.get("type")) if isinstance(item, dict) else None
    known = kind in (*_IN_RESULT, "browser_state")
    if not known and not (kind == "tool_reference" and endpoint.supports_tool_search):
        tags = _IN_RESULT if not endpoint.supports_tool_search else (*_IN_RESULT, "tool_reference")
        expected = ", ".join(repr(tag) for tag in tags)
        yield invalid(
            f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected "
            f"tags: {expected}"
        )
        return
    yield from _fields(f"{where}.{kind}", item)
    if kind == "text" and not item["text"]:
        yield invalid("messages: text content blocks must be non-empty")
    if kind == "tool_reference":
        yield from _reference(f"{where}.tool_reference", item)


def _search_result(where: str, content: Mapping[str, Any]) -> Iterator[Violation]:
    kind = content.get("type")
    if kind == "tool_search_tool_result_error":
        if not isinstance(content.get("error_code"), str):
            yield invalid(f"{where}.content.{kind}.error_code: Field required")
        return
    if kind != "tool_search_tool_search_result":
        yield invalid(
            f"{where}.content: Input tag '{kind}' found using 'type' does not match any of the "
            "expected tags: 'tool_search_tool_result_error', 'tool_search_tool_search_result'"
        )
        return
    references = content.get("tool_references")
    if not isinstance(references, list):
        yield invalid(f"{where}.content.{kind}.tool_references: Field required")
        return
    for place, item in enumerate(references):
        inner = f"{where}.content.{kind}.tool_references.{place}"
        if not isinstance(item, dict) or item.get("type") != "tool_reference":
            yield invalid(f"{inner}.type: Input should be 'tool_reference'")
            continue
        yield from _fields(inner, item)
        yield from _reference(inner, item)


def _reference(where: str, item: Mapping[str, Any]) -> Iterator[Violation]:
    if len(item["tool_name"]) > _MAX_REFERENCE:
        yield invalid(f"{where}.tool_name: String should have at most {_MAX_REFERENCE} characters")
