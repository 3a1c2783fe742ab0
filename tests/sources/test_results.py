"""Answers of servers that are read apart from the event loop."""

from __future__ import annotations

from typing import Any

import pytest

from tool_search.sources.results import is_long_answer

TEXT = {"type": "text", "text": "x"}
SHORT: list[dict[str, Any]] = [
    {"content": []},
    {"content": [TEXT] * 20},
    {"content": [TEXT], "structuredContent": {"result": 3}},
    {"content": [TEXT], "structuredContent": {"result": "x" * 1_000}},
    {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}, "odd", 7]},
]
LONG: list[dict[str, Any]] = [
    {},
    {"content": "text"},
    {"content": [TEXT] * 21},
    {"content": [{"type": "text", "text": "x" * 60_000}]},
    {"content": [{"type": "image", "data": "A" * 60_000}]},
    {"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "A" * 60_000}}]},
    {"content": [], "structuredContent": {"rows": [{"a": 1}]}},
    {"content": [], "structuredContent": {str(number): number for number in range(30)}},
    {"content": [], "structuredContent": {"result": "x" * 60_000}},
]


@pytest.mark.parametrize("answer", SHORT)
def test_a_short_answer_is_read_at_once(answer: dict[str, Any]) -> None:
    assert not is_long_answer(answer)


@pytest.mark.parametrize("answer", LONG)
def test_an_answer_that_may_be_long_is_not(answer: dict[str, Any]) -> None:
    assert is_long_answer(answer)
