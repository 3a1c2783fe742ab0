"""What comes in: JSON of megabytes in short steps, bounded; events and lines of any cut."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tool_search.adapters.wire import incoming
from tool_search.adapters.wire.incoming import (
    EventDecoder,
    Inflater,
    LineDecoder,
    TooLargeError,
    check_json,
)
from tool_search.config.limits import LimitSettings

NARROW = LimitSettings(max_items=1_000, max_depth=50)


def large(text: str) -> Any:
    """Read a text as one of megabytes is read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incoming, "LARGE_BYTES", -1)
        return incoming.parse_json(text.encode("utf-8", "surrogatepass"))


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
    assert large(f" {text}\r\n") == value


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
            large(changed)
        return
    assert large(changed) == expected


NOT_JSON = ["", " ", "[1,]", '{"a":1,}', '{"a" 1}', "[1 2]", "{1:2}",
            "[" * 100_000, '{"a":' * 100_000, "1 2"]  # fmt: skip


@pytest.mark.parametrize("text", NOT_JSON)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        large(text)


def test_many_small_values_are_read() -> None:
    rows = [{"a": number, "b": [str(number)]} for number in range(20_000)]
    content = {"result": {"structuredContent": {"rows": rows}}}
    assert large(json.dumps(content)) == content


@pytest.mark.parametrize(
    "text",
    ["[" + "1," * 2_000 + "1]", "[" + "[]," * 1_000 + "1]", '["a\\"",' + '"\\\\",' * 1_000 + "1]",
     "[" * 60 + "]" * 60],
)  # fmt: skip
@pytest.mark.parametrize("step", [7, 64 * 1024])
def test_json_beyond_a_bound_is_refused(
    text: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming, "_STEP_BYTES", step)
    with pytest.raises(TooLargeError, match=r"max_items|max_depth"):
        incoming.parse_json(text.encode(), NARROW)


@pytest.mark.parametrize("step", [2, 7, 64 * 1024])
def test_commas_in_a_text_are_no_values(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "_STEP_BYTES", step)
    for inside in ("a,[{" * 1_000, '\\",[' * 1_000, "\\\\" * 999 + ",\\u002c" * 2_000):
        check_json(f'["{inside}", "{inside}"]'.encode(), NARROW)


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "raw"]), st.data())
def test_packed_bytes_are_unpacked_however_they_are_cut(
    data: bytes, kind: str, draw: st.DataObject
) -> None:
    wide = {"gzip": 31, "deflate": 15, "raw": -15}[kind]
    packer = zlib.compressobj(9, zlib.DEFLATED, wide)
    packed = packer.compress(data) + packer.flush()
    if kind == "gzip":
        packed, data = packed * 2, data * 2
    cut = draw.draw(st.integers(0, len(packed)))
    inflater = Inflater("deflate" if kind == "raw" else kind)
    pieces = [*inflater.feed(packed[:cut]), *inflater.feed(packed[cut:])]
    assert b"".join(pieces) == data


def test_a_hundred_megabytes_are_unpacked_in_small_steps() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(bytes(1_000_000)) for _ in range(100)) + packer.flush()
    assert max(map(len, Inflater("gzip").feed(packed))) <= 64 * 1024


def test_of_a_line_that_is_too_long_the_head_is_given_and_the_next_is_whole() -> None:
    for size in (1, 3, 1_000_000):
        lines = LineDecoder(max_bytes=100)
        data = b"one\n" + b"x" * 5_000 + b"\n\ntwo\n" + b"y" * 100 + b"\nrest"
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        given = [line for piece in pieces for line in lines.feed(piece)]
        assert [line for line, is_cut in given if not is_cut] == [b"one", b"", b"two", b"y" * 100]
        assert [set(line) for line, is_cut in given if is_cut] == [set(b"x")]


def test_of_an_event_that_is_too_long_the_head_is_given_and_the_next_is_whole() -> None:
    wire = (
        b"id: 1\ndata: a\ndata: b\n\nevent: big\ndata: {%b}\nid: 9\n\nretry: 5\n\n: no\ndata: c\n\n"
    )
    for ends in (b"\n", b"\r\n", b"\r"):
        for size in (1, 2, 7, 1_000_000):
            data = (wire % (b"x" * 5_000)).replace(b"\n", ends)
            decoder = EventDecoder(max_bytes=100, is_whole=True)
            pieces = [data[at : at + size] for at in range(0, len(data), size)]
            given = [sent for piece in pieces for sent in decoder.feed(piece)]
            whole = [(sent.data, sent.others) for sent in given if not sent.is_cut]
            assert whole == [(b"a\nb", b"id: 1\n"), (b"", b"retry: 5\n"), (b"c", b"")]
            assert len(given) == 4
            strict = EventDecoder(max_bytes=100)
            with pytest.raises(TooLargeError):
                _ = [sent for piece in pieces for sent in strict.feed(piece)]


async def test_of_a_piece_the_events_before_one_that_is_too_long_are_given() -> None:
    """Also after one that is large enough to be completed off the event loop."""
    size = 1_500_000
    decoder = EventDecoder(max_bytes=size + 10)
    assert not [*await decoder.decode(b"data: " + b"x" * size)]
    rest = b"\n\ndata: short\n\ndata: " + b"y" * 2 * size
    events = iter(await decoder.decode(rest))
    given = [len(next(events).data), len(next(events).data)]
    with pytest.raises(TooLargeError):
        next(events)
    assert given == [size, len("short")]
