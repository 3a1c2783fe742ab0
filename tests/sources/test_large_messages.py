"""Messages of megabytes are read as any JSON is, in short steps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tool_search.adapters.mcp.large_messages import read_large_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)  # fmt: skip


@settings(max_examples=60)
@given(value=VALUES, indent=st.sampled_from([None, 0, 2, "\t"]), is_ascii=st.booleans())
def test_a_text_has_the_value_that_json_says(value: Any, indent: Any, is_ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
    assert read_large_json(f" {text}\r\n") == value


@settings(max_examples=60)
@given(VALUES.map(json.dumps), st.data())
def test_a_text_that_is_cut_or_changed_is_refused_as_json_refuses_it(
    text: str, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(text)))
    put = data.draw(st.text('[]{},:"\\ 1atn', max_size=2))
    changed = text[:place] + put + text[place + data.draw(st.integers(0, 2)) :]
    try:
        expected = json.loads(changed)
    except ValueError:
        with pytest.raises(ValueError, match=r".+"):
            read_large_json(changed)
        return
    assert read_large_json(changed) == expected


NOT_JSON = ["", " ", "[1,]", '{"a":1,}', '{"a" 1}', "[1 2]", "{1:2}", "NaN", '{"a": Infinity}',
            "[" * 100_000, '{"a":' * 100_000, "1 2"]  # fmt: skip


@pytest.mark.parametrize("text", NOT_JSON)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_large_json(text)


def test_many_small_values_are_read() -> None:
    rows = [{"a": number, "b": [str(number)]} for number in range(20_000)]
    content = {"result": {"structuredContent": {"rows": rows}}}
    assert read_large_json(json.dumps(content)) == content
