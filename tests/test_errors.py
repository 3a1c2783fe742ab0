"""The tree of errors."""

from __future__ import annotations

import inspect

import pytest

from tool_search import AllProvidersFailedError, ProviderError, ToolSearchError, errors

ERRORS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]


def test_every_error_is_one_of_ours_and_drawn_in_the_tree() -> None:
    assert sorted(kind.__name__ for kind in ERRORS) == errors.__all__
    for kind in ERRORS:
        assert issubclass(kind, ToolSearchError)
        assert kind.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (None, None, "provider 'p' failed (no answer): refused"),
        (400, None, "provider 'p' failed (HTTP 400): refused"),
        (429, "rate_limit_error", "provider 'p' failed (HTTP 429, rate_limit_error): refused"),
    ],
)
def test_a_providers_error_says_who_failed_and_how(
    status: int | None, code: str | None, said: str
) -> None:
    error = ProviderError("refused", provider="p", status=status, code=code)
    assert str(error) == said
    assert (error.provider, error.status, error.code, error.detail) == (
        "p", status, code, "refused",
    )  # fmt: skip


def test_when_all_have_failed_each_is_listed_with_its_cause() -> None:
    causes = {name: ProviderError(said, provider=name) for name, said in (("b", "x"), ("a", "y"))}
    error = AllProvidersFailedError(causes)
    assert list(error.causes) == ["b", "a"]
    listed = "b: provider 'b' failed (no answer): x; a: provider 'a' failed (no answer): y"
    assert listed in str(error)
