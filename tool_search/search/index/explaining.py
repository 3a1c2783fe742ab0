"""Puts together why tools have their scores, from what a search has of them anyway."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tool_search.search.index.explanation import NO_REASONS, Explanation, Reasons
from tool_search.search.index.scores import Weighed, relevance

if TYPE_CHECKING:
    from tool_search.search.index.ranking import Engine

__all__ = ["explanations"]

# Impacts are kept in steps of 2**-24.
_ROUNDING = 1e-6


@runtime_checkable
class Explains(Protocol):
    """An engine that can say what its scores are made of."""

    def reasons(self, query: str, slots: Sequence[int]) -> Sequence[Reasons]:
        """What gave these tools their scores, in their order."""
        ...


def explanations(
    engine: Engine, weighed: Weighed, slots: Sequence[int], *, named: Collection[int]
) -> Iterator[Explanation]:
    """Why the tools of these slots have their scores, in their order.

    Args:
        engine: What ranked them; one that cannot say why gives no reasons.
        weighed: What it made of the query.
        slots: Of tools that were found.
        named: Slots of tools that the query names.
    """
    reasons: Sequence[Reasons] = [NO_REASONS] * len(slots)
    if isinstance(engine, Explains):
        reasons = engine.reasons(weighed.text, slots)
    boosts = engine.boosts(weighed.text, slots)
    learned = dict(weighed.voted)
    for slot, why, boost in zip(slots, reasons, boosts, strict=True):
        tool = engine.slots.tools[slot]
        if tool is None:
            continue
        value, most = float(weighed.values[slot]), weighed.most or 1.0
        whole = value / most
        lifted = whole - sum(side.share for side in why.sides) - learned.get(slot, 0.0)
        is_lifted = slot in weighed.sure and lifted > _ROUNDING and bool(why.sides)
        yield Explanation(
            tool=tool.name,
            score=1.0 if slot in named else relevance(value * boost / most),
            is_named=slot in named,
            sum=whole,
            boost=boost,
            reasons=why,
            operators=lifted if is_lifted else 0.0,
            learned=learned.get(slot, 0.0),
        )
