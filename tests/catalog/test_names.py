"""Behaviour of names and ids as providers take them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.core.catalog.naming import NameRule, NameShape, unique_id, wire_id, wire_name

RULES: dict[NameShape, str] = {
    "common": r"[a-zA-Z0-9_-]{1,64}",
    "identifier": r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}",
}
NAMES = st.text(max_size=90) | st.from_regex(r"[a-zA-Z0-9_.:/-]{1,80}", fullmatch=True)


@pytest.mark.parametrize("rule", RULES)
@given(name=NAMES)
def test_every_name_becomes_one_that_its_rule_takes(rule: NameShape, name: str) -> None:
    assert re.fullmatch(RULES[rule], wire_name(name, NameRule(rule)))


@pytest.mark.parametrize("name", ["get_weather", "a", "A-b_9", "9lives", "x" * 64])
def test_a_valid_name_is_kept(name: str) -> None:
    assert wire_name(name) == name


@given(st.lists(NAMES, unique=True, max_size=20))
def test_different_names_stay_different(names: list[str]) -> None:
    """Two tools never have one name in a request."""
    assert len({wire_name(name) for name in names}) == len(names)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a.b", "a b"), ("a.b", "a_b"), ("天气", "时间"), ("x" * 65, "x" * 66), ("天气", "__")],
)
def test_names_that_lose_the_same_characters_stay_different(one: str, other: str) -> None:
    assert wire_name(one) != wire_name(other)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("files.read", "files_read_601e4eb6"),
        ("天气", "___4d947325"),
        ("x" * 65, f"{'x' * 55}_9537c5fd"),
    ],
)
def test_a_changed_name_ends_in_the_hash_of_the_canonical_one(name: str, written: str) -> None:
    """A name in a stored history must fit the list of a later release."""
    assert wire_name(name) == written


def test_an_identifier_never_starts_with_a_digit_or_a_dash() -> None:
    assert wire_name("2fa", NameRule("identifier")).startswith("t_2fa_")
    assert wire_name("_2fa", NameRule("identifier")) == "_2fa"


@given(st.text(max_size=60))
def test_every_call_id_becomes_one_that_providers_take(call_id: str) -> None:
    """Ids such as `functions.get_weather:0` are refused by others than their maker."""
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", wire_id(call_id))


def test_a_valid_call_id_is_kept() -> None:
    assert wire_id("toolu_016VbLFv") == "toolu_016VbLFv"


@given(st.lists(st.sampled_from(["call_0", "call_0_2", "", "x"]), max_size=12))
def test_unique_ids_are_unique_and_keep_the_first(ids: list[str]) -> None:
    taken: list[str] = []
    for call_id in ids:
        made = unique_id(call_id, taken)
        assert made
        assert made not in taken
        assert made == call_id or not call_id or call_id in taken
        taken.append(made)
