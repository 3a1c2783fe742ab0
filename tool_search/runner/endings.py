"""The ends of replies that an operator should know of."""

from __future__ import annotations

from tool_search.core.messages import Notice
from tool_search.providers.base import ReplyEnd

__all__ = ["ending_notice"]


def ending_notice(reply: ReplyEnd, provider: str) -> Notice | None:
    """Return a notice if a reply was refused or cut, else None."""
    detail = f" ({reply.detail})" if reply.detail else ""
    cut = sum(call.is_cut for call in reply.message.tool_calls)
    if reply.stop_reason == "refusal":
        return Notice("reply_refused", f"{provider!r} refused to answer{detail}")
    if reply.stop_reason == "length" or cut:
        what = f"; {cut} of its calls were cut, and not run" if cut else ""
        return Notice(
            "reply_cut",
            f"{provider!r} ended its reply before it was complete{detail}{what}; if that "
            "happens often, raise the limit of a reply's tokens (extra_body)",
        )
    return None
