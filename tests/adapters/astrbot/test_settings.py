"""Settings and kept files that somebody has edited by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tool_search.adapters.astrbot.kept import KeptConversations
from tool_search.adapters.astrbot.settings import AstrBotSettings, good_values, read_settings
from tool_search.i18n import Language

SCHEMA = json.loads(
    (
        Path(__file__).resolve().parents[3]
        / "examples/astrbot_plugin_tool_search/_conf_schema.json"
    ).read_text(encoding="utf-8")
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
DEFAULTS = {key: entry["default"] for key, entry in SCHEMA.items()}


@settings(max_examples=40)
@given(
    written=st.dictionaries(st.sampled_from(sorted(SCHEMA)), ANYTHING),
    before=st.dictionaries(st.sampled_from(sorted(SCHEMA)), ANYTHING),
)
@example(written={"engine": ["bm25"], "language": {}, "learning": []}, before={})
@example(written={"threshold": float("inf"), "max_discovered": float("nan")}, before={})
def test_no_value_in_the_file_keeps_the_plugin_from_loading(
    written: Mapping[str, Any], before: Mapping[str, Any]
) -> None:
    read = read_settings({**DEFAULTS, **written}, good_values(before))
    assert isinstance(read, AstrBotSettings)
    wrong = set(written) - set(good_values(written))
    assert {problem.key for problem in read.problems} == wrong
    assert not read_settings(good_values(written)).problems


@pytest.mark.parametrize("key", sorted(SCHEMA))
def test_a_value_that_is_not_allowed_is_named_with_what_is(key: str) -> None:
    (problem,) = map(str, read_settings({key: {"odd": ["one"]}}).problems)
    assert problem.startswith(f"{key}: {{'odd': ['one']}} is not allowed; allowed: ")
    assert problem.endswith("; its default is used")


@settings(max_examples=40)
@given(content=ANYTHING)
def test_no_content_of_a_kept_file_keeps_the_plugin_from_loading(
    content: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "conversations.json"
    for written in (content, {"version": 1, "conversations": content}, [content]):
        path.write_text(json.dumps(written), encoding="utf-8")
        kept = KeptConversations(path)
        kept.save()
        assert len(KeptConversations(path)) == len(kept)


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("zh-CN", "threshold：不允许 'many'；允许：0 到 1000000 的整数；使用上一个有效值 30"),
        (
            "ru-RU",
            (
                "threshold: значение 'many' недопустимо; можно: целое число от 0 до 1000000; "
                "действует прежнее 30"
            ),
        ),
    ],
)
def test_a_problem_is_said_in_the_administrators_language(language: Language, said: str) -> None:
    (problem,) = read_settings({"threshold": "many"}, {"threshold": 30}).problems
    assert problem.said(language) == said
