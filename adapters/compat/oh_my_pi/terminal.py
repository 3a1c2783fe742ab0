"""oh-my-pi's terminal block of a search: a status line, and short matches."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from tool_search.adapters.compat.oh_my_pi.answer import (
    QUERY_MISSING,
    QUERY_WITHOUT_WORDS,
    DiscoveryAnswer,
    DiscoveryDetails,
    DiscoveryMatch,
    rounded,
)
from tool_search.adapters.compat.oh_my_pi.ranking import discoverable, oh_my_pi_tokens
from tool_search.adapters.compat.weighted_bm25 import WeightedBm25Index
from tool_search.search.discovery.search_tool import clean_description

__all__ = ["discovery_block", "search_answer"]

_TITLE = "Tool Discovery"
_COLLAPSED = 5
_LABEL_CELLS = 72
_DESCRIPTION_CELLS = 96
_LINE_CELLS = 110


def search_answer(index: WeightedBm25Index, query: str, *, limit: int) -> DiscoveryAnswer:
    """Return the answer to a search of all tools of an index, with nothing activated."""
    if not oh_my_pi_tokens(query):
        return DiscoveryAnswer.error(QUERY_WITHOUT_WORDS if query.strip() else QUERY_MISSING)
    ranked = index.ranked(query, limit=limit)
    details = DiscoveryDetails(
        query=query.strip(),
        limit=limit,
        total_tools=len(index),
        activated_tools=(),
        active_selected_tools=(),
        tools=tuple(DiscoveryMatch.of(discoverable(tool), score) for tool, score in ranked),
    )
    return DiscoveryAnswer(content=details.to_json(), details=details)


def discovery_block(answer: DiscoveryAnswer, *, expanded: bool = False) -> Text:
    """Return an answer of the search tool for people.

    Widths are in terminal cells, of which a Chinese character takes two. Texts of servers are
    shown on one line, without tabs, control and invisible characters.

    Args:
        answer: An answer of `search_tool_bm25`.
        expanded: Shows every match, not the first five.
    """
    details = answer.details
    if details is None:
        lines = [Text(f"⚠ {_TITLE}", style="yellow")]
        lines += [
            _cut(line, _LINE_CELLS, style="dim") for line in answer.content.splitlines() or [""]
        ]
        return Text("\n").join(lines)
    if not details.tools:
        empty = (
            "No matching tools found."
            if details.total_tools
            else "No discoverable tools are currently loaded."
        )
        return Text("\n").join([_status(details, "⚠"), Text(empty, style="dim")])
    shown = details.tools if expanded else details.tools[:_COLLAPSED]
    lines = [_status(details, "⌕"), *(line for match in shown for line in _match_lines(match))]
    more = len(details.tools) - len(shown)
    if more:
        lines.append(Text(f"… {more} more tool{'' if more == 1 else 's'}", style="dim"))
    return Text("\n").join(lines)


def _status(details: DiscoveryDetails, icon: str) -> Text:
    count = len(details.tools)
    counts = (
        f"{count} match{'' if count == 1 else 'es'}",
        f"{len(details.active_selected_tools)} active",
        f"{details.total_tools} total",
        f"limit:{details.limit}",
    )
    line = Text(f"{icon} {_TITLE}: ", style="bold")
    line.append_text(_cut(details.query, _LABEL_CELLS))
    return line.append(f" · {' · '.join(counts)}", style="dim")


def _match_lines(match: DiscoveryMatch) -> Iterator[Text]:
    parts = [clean_description(match.server_name)] if match.server_name else []
    parts.append(f"score {rounded(match.score, 3):.3f}")
    head = Text("• ", style="dim")
    head.append_text(_cut(match.label, _LABEL_CELLS, style="cyan"))
    head.append(f" {' · '.join(parts)}", style="dim")
    yield head
    description = _cut(match.description, _DESCRIPTION_CELLS)
    if description.plain:
        yield Text("  ").append_text(description)


def _cut(text: str, cells: int, *, style: str = "") -> Text:
    cut = Text(clean_description(text), style=style)
    cut.truncate(cells, overflow="ellipsis")
    return cut
