"""Anthropic's message threads: conversations that the service keeps.

A request with `thread: {"type": "create"}` is kept under the id of its reply; one that
continues it has only new messages. The texts come from the anthropic SDK's error
types; the one about cache breakpoints was reported verbatim.

Source: Anthropic, Message threads (beta `message-threads-2026-08-12`);
`BetaMessageThreadParam` and `Thread…ErrorDetails` of the anthropic SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tool_search.testing.violations import Violation, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tool_search.testing.server.memory import ReplyMemory

    JSON = Mapping[str, Any]

__all__ = ["MAX_THREAD_BREAKPOINTS", "continues", "recall", "remember", "thread_violations"]

MAX_THREAD_BREAKPOINTS = 3
"""The most cache breakpoints of a request in a thread; the service sets one more."""

_KEPT_FIELDS = ("system", "tools")


def thread_violations(thread: object) -> Iterator[Violation]:
    """Yield the violations of the shape of a request's `thread`."""
    if thread is None:
        return
    if not isinstance(thread, dict):
        yield invalid("thread: Input should be a valid dictionary")
        return
    kind = thread.get("type")
    if kind not in ("continue", "create"):
        yield invalid(
            f"thread: Input tag '{kind}' found using 'type' does not match any of the expected "
            "tags: 'continue', 'create'"
        )
        return
    known = {"type", "previous_message_id"} if kind == "continue" else {"type"}
    for name in thread:
        if name not in known:
            yield invalid(f"thread.{kind}.{name}: Extra inputs are not permitted")
    previous = thread.get("previous_message_id")
    if kind == "continue" and previous is None:
        yield invalid("thread.continue.previous_message_id: Field required")
    elif previous is not None and not isinstance(previous, str):
        yield invalid("thread.continue.previous_message_id: Input should be a valid string")


def continues(body: JSON) -> bool:
    """True if a request holds only what follows a reply that the service keeps."""
    return (body.get("thread") or {}).get("type") == "continue"


def recall(body: JSON, memory: ReplyMemory) -> JSON | Violation:
    """Return the request after the conversation that it continues, or a violation."""
    if not continues(body):
        return body
    previous = body["thread"]["previous_message_id"]
    kept = memory.thread(previous)
    if kept is None:
        return Violation(
            status=404,
            error_type="not_found_error",
            message="No usable Thread state was found for `previous_message_id`. Replay the full "
            'conversation with `thread: {"type": "create"}` to start a new Thread.',
            code="thread_not_found",
        )
    if memory.is_continued(previous):
        return invalid(
            "The response that `previous_message_id` names has already been continued, and each "
            "response can be continued only once. Continue from the Thread's most recent response "
            "`id`.",
            code="thread_already_continued",
        )
    changed = [name for name in _KEPT_FIELDS if name in body and body[name] != kept.get(name)]
    if changed:
        names = ", ".join(f"`{name}`" for name in changed)
        return invalid(
            f"A field that must stay the same across a Thread's turns differs from the value "
            f"stored with the Thread: {names}. Send the stored values, or replay the full "
            'conversation with `thread: {"type": "create"}` to change them.',
            code="thread_fingerprint_mismatch",
        )
    own = {key: value for key, value in body.items() if key != "thread"}
    return {**kept, **own, "messages": [*kept["messages"], *body["messages"]]}


def remember(
    reply: str, request: JSON, conversation: JSON, content: Sequence[JSON], memory: ReplyMemory
) -> None:
    """Keep a conversation in a thread, with its last reply.

    Args:
        reply: The reply's id.
        request: The body as sent.
        conversation: The request after the messages that the service kept.
        content: The reply's blocks.
        memory: The store of replies.
    """
    if not request.get("thread"):
        return
    said = [
        *map(_without_breakpoints, conversation["messages"]),
        {"role": "assistant", "content": content},
    ]
    fields = {name: conversation[name] for name in _KEPT_FIELDS if name in conversation}
    memory.keep_thread(reply, {**fields, "messages": said})
    if continues(request):
        memory.continued(request["thread"]["previous_message_id"])


def _without_breakpoints(message: JSON) -> JSON:
    """Return a message without its cache breakpoints, each of which was set for one request."""
    content = message["content"]
    if isinstance(content, str):
        return message
    blocks = [{k: v for k, v in block.items() if k != "cache_control"} for block in content]
    return {**message, "content": blocks}
