"""The bytes of a captured request."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.testing import CapturedRequest


def captured(raw: bytes) -> CapturedRequest:
    """Return a request with that body."""
    return CapturedRequest(
        number=0, dialect="anthropic", path="/v1/messages", headers={}, raw_body=raw
    )


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"model":"m","tools":[ {"name" : "a"} ],"n":1}', b'[ {"name" : "a"} ]'),
        (b'\n{ "tools" :\t[1, 2]\n}', b"[1, 2]"),
        ('{"a":"\\"tools\\":[0]","tools":["天"]}'.encode(), '["天"]'.encode()),
        (b'{"messages":[{"tools":[9]}]}', None),
        (b"{}", None),
    ],
)
def test_tools_bytes_are_those_that_were_sent(raw: bytes, expected: bytes | None) -> None:
    assert captured(raw).tools_bytes == expected


@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.lists(st.integers()), max_size=4),
    st.lists(st.text(max_size=9), max_size=4),
    st.booleans(),
    st.sampled_from([None, 2]),
)
def test_tools_bytes_of_any_object(
    before: dict[str, object], tools: list[str], escaped: bool, indent: int | None
) -> None:
    body = {**before, "tools": tools, "last": 1}
    raw = json.dumps(body, ensure_ascii=escaped, indent=indent).encode("utf-8", "replace")
    found = captured(raw).tools_bytes
    assert found is not None
    assert json.loads(found) == json.loads(raw)["tools"]


def test_tool_names_of_both_dialects() -> None:
    tools = [{"name": "a"}, {"type": "function", "function": {"name": "b"}}]
    request = CapturedRequest(
        number=0, dialect="", path="", headers={}, raw_body=b"", body={"tools": tools}
    )
    assert request.tool_names == ("a", "b")
