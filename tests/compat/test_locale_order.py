"""Names in the order of JavaScript's `localeCompare`."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.adapters.compat.oh_my_pi.ranking import locale_key

# As a JavaScript engine with ICU 78 sorts them.
SIGNS = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"


@pytest.mark.parametrize(
    "ascending",
    [
        ["_", "-", "0", "9", "a", "A", "é", "z", "Z"],
        ["a_b", "a-b", "a.b", "a1", "ab"],
        ["A1", "a10b", "a2", "ab", "aB", "Ab", "AB", "b"],
        ["resume", "Resume", "résumé", "resumes"],
        ["get_user", "get-user", "getuser", "getUser", "getusers"],
        ["е", "Е", "ё", "ж", "и", "й", "я"],
        ["z", "а", "가", "あ", "カ", "日"],
        ["", "a", "aa"],
        [*SIGNS, "0", "a"],
    ],
)
def test_names_sort_as_in_javascript(ascending: list[str]) -> None:
    by_code_point = sorted(ascending)
    assert sorted(by_code_point, key=locale_key) == ascending
    assert all(locale_key(a) < locale_key(b) for a, b in pairwise(ascending))


def test_control_characters_count_for_nothing() -> None:
    assert locale_key("a\x01b") == locale_key("ab")


@given(st.text(st.characters(codec=None)))
def test_every_name_has_a_place(name: str) -> None:
    assert locale_key(name) == locale_key(name) <= locale_key(f"{name}a")
