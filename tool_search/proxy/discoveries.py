"""The tools that a history shows as found, and what its searches teach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tool_search.conversation.view import ToolView
from tool_search.proxy.history import Moment
from tool_search.proxy.tools import ClientTools
from tool_search.search.index.protocol import SearchResult

__all__ = ["found_in", "split_turn", "take_in"]


def split_turn(moments: Sequence[Moment]) -> tuple[Sequence[Moment], Sequence[Moment]]:
    """Return the moments before the user's last message, and those from it on."""
    last = max((index for index, moment in enumerate(moments) if moment.asked), default=0)
    return moments[:last], moments[last:]


def found_in(moments: Sequence[Moment], tools: ClientTools) -> Iterator[str]:
    """Yield the names that searches found or calls named, in order."""
    for moment in moments:
        for written in moment.results:
            result = SearchResult.from_json(written)
            yield from result.names if result else ()
        for call in moment.calls:
            yield tools.name_of(call.namespace, call.name)


def take_in(view: ToolView, moments: Sequence[Moment], tools: ClientTools) -> None:
    """Let a view know the searches and calls of the current turn.

    The results after the last reply are new: what led to their calls is learned.
    """
    last = max((index for index, moment in enumerate(moments) if moment.calls), default=0)
    new = {call_id: failed for each in moments[last:] for call_id, failed in each.answered}
    for moment in moments:
        if moment.results:
            view.read(results=moment.results)
        for call in moment.calls:
            name = tools.name_of(call.namespace, call.name)
            if call.id in new:
                view.returned(name, failed=new[call.id])
            else:
                view.read(called=[name])
