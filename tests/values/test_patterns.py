"""Patterns of rules, held against single values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.core.values.patterns import read_pattern
from tool_search.core.values.readings import numbers, written

PATTERNS = st.one_of(
    st.sampled_from(
        [
            "*",
            "a*",
            "*@x.org",
            "100",
            "1e2",
            "1?0",
            "true",
            "git:*",
            "rm -rf:*",
            "/data/*",
            "nocase:A*",
            "domain:x.org",
            "domain:*.x.org",
            "domain:127.0.0.1",
            "email:*@x.org",
            "email:bo@*",
            "[ab]*",
        ]
    ),
    st.text("ab*?[]!-1./@", min_size=1, max_size=6),
)
TEXTS = st.text('aAb1.0e+@x/:\\%5 \n\u200b\u0301Ａ١，,<>[]{}"', max_size=12)
VALUES = st.one_of(
    TEXTS,
    st.sampled_from(["bo@x.org", "https://x.org/", "git log", "/data/../a", "100.0", "0x64"]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)


@given(pattern=PATTERNS, value=VALUES)
def test_what_surely_fits_may_fit(pattern: str, value: Any) -> None:
    """So a rule that denies is never narrower than the same rule that allows."""
    read = read_pattern(pattern)
    if read.fits_surely(value):
        assert read.may_fit(value)
    if read.fits_surely(value, is_subject=True):
        assert read.may_fit(value)


@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
def test_number_is_one_in_every_spelling(number: float) -> None:
    spellings = {repr(number), written(number), f" {number!r} ", f"{number!r}".upper()}
    assert all(numbers(number) <= numbers(spelling) for spelling in spellings)
    pattern = read_pattern(written(number))
    assert pattern.fits_surely(number)
    assert all(map(pattern.may_fit, spellings))


@given(TEXTS)
def test_denied_text_is_found_in_text_that_a_program_strips_or_decodes(text: str) -> None:
    encoded = "".join(f"%{byte:02x}" for byte in text.encode())
    disguises = [f" {text}\n", f"\u200b{text}", encoded, encoded.replace("%", "%25")]
    if text == text.strip() and text.isprintable() and text.isascii() and text:
        exact = "".join(f"[{char}]" if char in "*?[" else char for char in text)
        if not exact.startswith(("domain:", "email:", "nocase:")) and not exact.endswith(":*"):
            assert all(map(read_pattern(exact).may_fit, disguises))


@pytest.mark.parametrize("value", ["a" * 20_001, "a" + "\u0301" * 31 + "b"])
def test_value_that_is_not_read_is_never_allowed_and_always_denied(value: str) -> None:
    assert read_pattern("zzz").may_fit(value)
    assert not read_pattern("a*z").fits_surely(value)
    assert read_pattern("*").fits_surely(value)


@pytest.mark.parametrize(
    "address",
    [
        "file://example.com/etc/passwd", "ftp://example.com/", "FILE://example.com/etc/passwd",
        "gopher://example.com/", "ws://example.com/", "smb://example.com/share",
    ],
)  # fmt: skip
def test_domain_admits_the_web_alone(address: str) -> None:
    domain = read_pattern("domain:example.com")
    assert not domain.fits_surely(address)
    assert domain.may_fit(address)
    for web in ("http", "https", "HTTPS"):
        assert domain.fits_surely(f"{web}://example.com/a?b=ftp://x")
    assert domain.fits_surely("example.com/a")
