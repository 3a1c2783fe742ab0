"""A bot's own compaction: its summary of turns that requests leave out."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from tool_search.core.messages import Message, Notice
from tool_search.runner.session.session import ToolSearchSession

__all__ = ["Compact", "compacted"]

Compact = Callable[[Sequence[Message]], Awaitable[Iterable[Message] | None]]
"""A function from the turns before the last one to the messages that replace them.

It is called when requests would carry more than the settings or a provider allow. After None
or an exception, the library leaves old turns out itself.
"""

_log = logging.getLogger(__name__)


async def compacted(session: ToolSearchSession, compact: Compact) -> tuple[bool, Notice | None]:
    """Shorten the turns before the current one by a bot's own compaction.

    If it fails, the conversation goes on: the library leaves old turns out itself.

    Returns:
        True if the history was replaced, and a notice for the operator.
    """
    past = session.past
    if not past:
        return False, None
    try:
        made = await compact(past)
        if made is None:
            return False, None
        session.replace_past(made)
    except Exception as exc:  # noqa: BLE001  # the bot's own code must not end the turn
        _log.exception("the bot's compaction failed")
        what = f"the bot's compaction failed ({type(exc).__name__}: {exc}); old turns are left out"
        return False, Notice("compaction_failed", what)
    return True, Notice(
        "history_compacted",
        f"the bot's compaction made {len(session.past)} messages of {len(past)}",
    )
