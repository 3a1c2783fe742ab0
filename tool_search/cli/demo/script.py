"""The script of the demo conversation: the user's messages and the stand-in model's replies.

The stand-in follows the steps of each turn below. The searches, the calls and the results that
it quotes are real.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from tool_search.testing import ModelCall, ModelReply, ModelView, ScriptedModel

__all__ = ["TURNS", "script"]

MARATHON = "How many miles is a marathon of 42.195 kilometres?"
MORTGAGE = "贷款 100 万元，年利率 3.9%，30 年还清，每月要还多少？"
WAY_BACK = "And 26.2 miles in kilometres?"
NEW_YEAR = "从 2026 年 11 月 21 日到 2027 年春节还有多少天？"
TURNS = (MARATHON, MORTGAGE, WAY_BACK, NEW_YEAR)


def script() -> ScriptedModel:
    """Return a model that answers the demo's turns, on any provider."""
    return ScriptedModel(
        turns={
            MARATHON: (
                _search("convert length kilometres to miles"),
                _call("convert_length", value=42.195, from_unit="km", to_unit="mile"),
                _quote("A marathon is {} miles long."),
            ),
            MORTGAGE: (
                _search("贷款 月供 等额本息"),
                _call("loan_payment", principal=1_000_000, annual_rate=3.9, months=360),
                # Twice, because the first provider breaks off in the middle of it.
                _quote("每月还款 {monthly_payment} 元，共付利息 {total_interest} 元。"),
                _quote("每月还款 {monthly_payment} 元，共付利息 {total_interest} 元。"),
            ),
            WAY_BACK: (
                _call("convert_length", value=26.2, from_unit="mile", to_unit="km"),
                _quote("26.2 miles are {} kilometres."),
            ),
            NEW_YEAR: (
                ModelReply(
                    calls=(
                        ModelCall(name="tool_search", arguments={"query": "春节 日期"}),
                        ModelCall(name="tool_search", arguments={"query": "日期 相差 天数"}),
                    )
                ),
                _call("chinese_new_year", year=2027),
                _call("days_between", start="2026-11-21", end="2027-02-06"),
                _quote("距离 2027 年春节还有 {} 天。"),
            ),
        }
    )


def _search(query: str) -> ModelReply:
    return ModelReply(calls=(ModelCall(name="tool_search", arguments={"query": query}),))


def _call(name: str, **arguments: object) -> ModelReply:
    return ModelReply(calls=(ModelCall(name=name, arguments=arguments),))


def _quote(sentence: str) -> Callable[[ModelView], ModelReply]:
    """Return a reply that quotes the last result, or its members by name."""

    def answer(view: ModelView) -> ModelReply:
        result = view.results[-1].text
        members = json.loads(result) if result.startswith("{") else {}
        return ModelReply(text=sentence.format(result, **members))

    return answer
