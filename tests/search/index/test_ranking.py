"""An engine of somebody else's in a `RankedIndex`: scores alone are enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tool_search.core.catalog.tool import Tool
from tool_search.search.index.ranking import RankedIndex, Scores
from tool_search.search.index.storage import DocumentIds


class NameParts:
    """A ranking by the parts of names that are words of the query."""

    max_boost = 1.0

    def __init__(self, tools: Iterable[Tool]) -> None:
        self.doc_ids = DocumentIds(tools)

    def scores(self, query: str) -> Scores:
        words = query.split()
        values = [0.0] * len(self.doc_ids.tools)
        for doc_id, tool in self.doc_ids.taken():
            values[doc_id] = float(sum(word in tool.name.split("_") for word in words))
        return Scores(values, float(len(words)))

    def boosts(self, query: str, doc_ids: Sequence[int]) -> Sequence[float]:
        return [1.0] * len(doc_ids)

    def unmatched(self, query: str, has_tool: Callable[[Iterable[int]], bool]) -> list[str]:
        return [word for word in query.split() if not has_tool(self._having(word))]

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> NameParts:
        change = self.doc_ids.changed(added=added, removed=removed)
        return NameParts(tool for _, tool in change.doc_ids.taken())

    def _having(self, word: str) -> list[int]:
        return [n for n, tool in self.doc_ids.taken() if word in tool.name.split("_")]


INDEX = RankedIndex(
    NameParts([Tool(name="get_weather"), Tool(name="get_mail"), Tool(name="send_mail")]),
    min_relevance=0.1,
)


def test_an_engine_with_scores_alone_gets_operators_counts_and_exact_names() -> None:
    found = INDEX.search("mail -send", limit=5)
    assert ([match.name for match in found.matches], found.total_found) == (["get_mail"], 1)
    assert INDEX.search("send_mail", limit=1).matches[0].score == 1.0


def test_a_word_that_no_tool_has_is_reported_to_every_caller() -> None:
    assert INDEX.search("mail qwzx", limit=5).unmatched == ("qwzx",)
    only_weather = INDEX.search("mail qwzx", limit=5, allowed=lambda name: name == "get_weather")
    assert only_weather.unmatched == ("mail", "qwzx")


def test_an_updated_index_ranks_other_tools() -> None:
    index = INDEX.updated(added=[Tool(name="mail_rules")], removed=["get_mail"])
    assert index.search("mail", limit=5).names == ("mail_rules", "send_mail")
