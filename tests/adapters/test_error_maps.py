"""Every exception of the SDKs is some failure, and no failure shows a key."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import anthropic as anthropic_sdk
import httpx2
import openai as openai_sdk
import pytest

from tests.adapters.contract import KEY
from tool_search.adapters import anthropic, openai_client
from tool_search.adapters.failures import ErrorMap, Failure, raise_failure, read_failure
from tool_search.errors import ProviderError

REQUEST = httpx2.Request("POST", "https://api.example/v1", headers={"x-api-key": KEY})
MAPS: dict[ModuleType, ErrorMap] = {
    anthropic_sdk: anthropic._ERROR_MAP,
    openai_sdk: openai_client.ERROR_MAP,
}


def exceptions_of(sdk: ModuleType) -> Iterator[type[Exception]]:
    """The exception classes that an SDK has by a public name, and those below them.

    Only names of exceptions are asked for: the SDKs load the rest when it is.
    """
    names = (name for name in dir(sdk) if name.endswith(("Error", "Exception")))
    roots = (getattr(sdk, name) for name in names if not name.startswith("_"))
    found = [value for value in roots if isinstance(value, type) and issubclass(value, Exception)]
    for kind in found:
        yield kind
        yield from kind.__subclasses__()


CASES = [(sdk, kind) for sdk in MAPS for kind in dict.fromkeys(exceptions_of(sdk))]
IDS = [f"{sdk.__name__}-{kind.__name__}" for sdk, kind in CASES]


def made(kind: type[Exception], body: Any) -> Exception:
    """An exception as the SDK makes it, or as near to that as its arguments allow."""
    response = httpx2.Response(418, request=REQUEST, json=body)
    attempts: tuple[dict[str, Any], ...] = (
        {"message": "m", "response": response, "body": body},
        {"response": response, "body": body},
        {"message": "m", "request": REQUEST, "body": body},
        {"message": "m", "request": REQUEST},
        {"request": REQUEST},
    )
    for arguments in attempts:
        try:
            return kind(**arguments)
        except TypeError:
            continue
    try:
        return kind("m")
    except TypeError:
        pass
    exc = kind.__new__(kind)
    Exception.__init__(exc, "m")
    return exc


@pytest.mark.parametrize(("sdk", "kind"), CASES, ids=IDS)
def test_error_map_has_every_exception_of_the_sdk(sdk: ModuleType, kind: type[Exception]) -> None:
    """By a class of the SDK or of a kind that it lets through, never by luck."""
    body = {"error": {"type": "odd_error", "message": "No."}}
    exc = made(kind, body["error"] if sdk is openai_sdk else body)
    assert any(base in MAPS[sdk] for base in kind.__mro__)
    failure = read_failure(exc, MAPS[sdk])
    assert failure.detail
    if isinstance(exc, sdk.APIStatusError):
        assert failure == Failure(detail="No.", status=exc.status_code, code="odd_error")


@pytest.mark.parametrize(
    ("exc", "code"),
    [
        (httpx2.ReadTimeout("t", request=REQUEST), "timeout"),
        (httpx2.ReadError("r", request=REQUEST), "connection"),
        (httpx2.RemoteProtocolError("p", request=REQUEST), "connection"),
        (httpx2.StreamClosed(), "connection"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), "malformed_reply"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_error_map_has_what_the_anthropic_sdk_lets_through(exc: Exception, code: str) -> None:
    """It does not wrap what happens while a stream is read."""
    assert read_failure(exc, MAPS[anthropic_sdk]).code == code


def test_read_failure_of_an_unknown_exception_names_its_class() -> None:
    """A table that lacks a class still gives an error."""
    assert read_failure(KeyError("x"), {}).detail == "KeyError: 'x'"


@pytest.mark.parametrize(
    "text", [f"key {KEY} is wrong", f"illegal header value {KEY!r}", "Incorrect: sk-abc***xyz9."]
)
def test_raise_failure_masks_keys_in_the_error_and_its_cause(text: str) -> None:
    """A traceback prints the cause, so one that shows a key is not chained."""
    with pytest.raises(ProviderError) as caught:
        raise_failure(
            Failure(detail=text), provider="p", secret=KEY, cause=ValueError(f"body: {text}")
        )
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown
    assert "xyz9" not in shown
    assert "***" in caught.value.detail


def test_raise_failure_chains_a_clean_cause_and_cuts_a_long_text() -> None:
    """An HTML page is not shown whole."""
    cause = ValueError("x")
    with pytest.raises(ProviderError) as caught:
        raise_failure(Failure(detail="x" * 9999), provider="p", secret=KEY, cause=cause)
    assert caught.value.__cause__ is cause
    assert len(caught.value.detail) == 1_000


def test_connection_failure_does_not_quote_a_header() -> None:
    """The HTTP client quotes what it cannot send."""
    exc = anthropic_sdk.APIConnectionError(request=REQUEST)
    exc.__cause__ = httpx2.LocalProtocolError(f"Illegal header value b'{KEY}\\n'")
    assert KEY[-6:] not in read_failure(exc, MAPS[anthropic_sdk]).detail
