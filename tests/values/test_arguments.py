"""Arguments as models write them, repaired if they can mean one thing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.core.values.json import read_arguments

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n```', {"a": 1}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{"a": "one\ntwo\t."}', {"a": "one\ntwo\t."}),
        ("{'a': True, 'b': None, 'c': 'it\\'s'}", {"a": True, "b": None, "c": "it's"}),
        ('{"a": ",]"}', {"a": ",]"}),
    ],
)
def test_what_can_mean_one_thing_is_repaired(written: str, meant: dict[str, Any]) -> None:
    assert read_arguments(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        '{"city": "Par', '{"count": 1', '{"a": [1, 2}', '{"a": 1} and more', '{"a": 1,,}', "{,}",
        '{"a": NaN}', "{'a': 1e999}", "{'a': {1, 2}}", "{'a': print()}", "{**{}}", "[1]", '"x"',
        "{" * 50_000, "{'a':" * 5_000, "\x00", "```json\n```", '"[1]"', '{"a": "\\d"}',
    ],
)  # fmt: skip
def test_what_is_cut_off_or_ambiguous_is_not_guessed(written: str) -> None:
    assert read_arguments(written) is None


@given(st.dictionaries(st.text(max_size=5), _JSON, max_size=4))
def test_an_object_is_read_in_every_way_it_may_be_written(value: dict[str, Any]) -> None:
    written = json.dumps(value)
    for way in (written, f"```json\n{written}\n```", json.dumps(written), repr(value)):
        assert read_arguments(way) == value


@given(st.text(max_size=40) | _JSON.map(json.dumps).map(lambda text: text[:-1]))
def test_no_text_raises(written: str) -> None:
    assert read_arguments(written) is None or isinstance(read_arguments(written), dict)
