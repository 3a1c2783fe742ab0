"""Names of property keys on the wire."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.catalog.schema.vocabulary import WireKeys, is_wire_key, wire_key

TAKEN = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


@pytest.mark.parametrize("key", ["city", "a.b-c_D9", "x" * 64, "_", "-"])
def test_a_key_that_fits_is_its_own_name(key: str) -> None:
    assert is_wire_key(key)
    assert wire_key(key) == key
    assert not WireKeys([key])


@pytest.mark.parametrize(
    ("key", "head"),
    [
        ("$filter", "filter_"), ("año", "ano_"), ("user id", "user_id_"), ("名字", "key_"),
        ("政策ID", "ID_"), ("filter[name]", "filter_name_"), ("", "key_"), ("60+", "60_"),
        ("x" * 65, "x" * 55 + "_"), ("a\n", "a_"), ("\u200b", "key_"),
    ],
)  # fmt: skip
def test_another_key_keeps_its_readable_part_and_stays_distinct(key: str, head: str) -> None:
    assert not is_wire_key(key)
    assert re.fullmatch(re.escape(head) + "[0-9a-f]{8}", wire_key(key))


@given(st.text(max_size=80), st.integers(0, 3))
def test_every_name_is_taken_by_every_provider(key: str, attempt: int) -> None:
    assert TAKEN.fullmatch(wire_key(key, attempt))


@given(st.lists(st.text(max_size=4) | st.sampled_from(["$a", "a b"]).map(wire_key)))
def test_names_are_one_to_one_whatever_else_the_schema_has(keys: list[str]) -> None:
    """A schema may have another key's wire name for a key of its own."""
    names = WireKeys(keys)
    shown = {key: names[key] for key in keys}
    assert len(set(shown.values())) == len(shown)
    assert all(TAKEN.fullmatch(name) for name in shown.values())
    assert all(names.original.get(name, name) == key for key, name in shown.items())
    assert dict(WireKeys(reversed(keys)).wire) == dict(names.wire)


def test_a_key_whose_name_is_taken_gets_the_next() -> None:
    names = WireKeys(["$filter", wire_key("$filter")])
    assert names[wire_key("$filter")] == wire_key("$filter")
    assert names["$filter"] == wire_key("$filter", 1)
