"""Every exception of the SDKs is some failure, and no failure shows a key."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import anthropic as anthropic_sdk
import openai as openai_sdk
import pytest
from pydantic import SecretStr

from tests.adapters.contract import KEY, http_library
from tool_search.adapters.anthropic import AnthropicProvider
from tool_search.adapters.openai_chat import OpenAIChatProvider
from tool_search.adapters.sdk.connection import tls_context
from tool_search.adapters.sdk.failures import (
    ErrorMap,
    Failure,
    http_errors,
    raise_failure,
    read_failure,
)
from tool_search.errors import ConfigurationError, ProviderError

HTTP = {sdk: http_library(sdk) for sdk in (anthropic_sdk, openai_sdk)}
REQUESTS = {
    sdk: http.Request("POST", "https://api.example/v1", headers={"x-api-key": KEY})
    for sdk, http in HTTP.items()
}
MAPS: dict[ModuleType, ErrorMap] = {
    anthropic_sdk: AnthropicProvider._sdk.errors,
    openai_sdk: OpenAIChatProvider._sdk.errors,
}


def exceptions_of(sdk: ModuleType) -> Iterator[type[Exception]]:
    """Yield the exception classes that an SDK has by a public name, and those below them.

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


def made(sdk: ModuleType, kind: type[Exception], body: Any) -> Exception:
    """Return an exception as the SDK makes it, or as near to that as its arguments allow."""
    request = REQUESTS[sdk]
    response = HTTP[sdk].Response(418, request=request, json=body)
    attempts: tuple[dict[str, Any], ...] = (
        {"message": "m", "response": response, "body": body},
        {"response": response, "body": body},
        {"message": "m", "request": request, "body": body},
        {"message": "m", "request": request},
        {"request": request},
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
    exc = made(sdk, kind, body["error"] if sdk is openai_sdk else body)
    assert any(base in MAPS[sdk] for base in kind.__mro__)
    failure = read_failure(exc, MAPS[sdk])
    assert failure.detail
    if isinstance(exc, sdk.APIStatusError):
        assert failure == Failure(detail="No.", status=exc.status_code, code="odd_error")


@pytest.mark.parametrize("sdk", MAPS, ids=lambda sdk: sdk.__name__)
@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("ReadTimeout", "timeout"),
        ("ReadError", "connection"),
        ("RemoteProtocolError", "connection"),
        ("StreamClosed", "connection"),
    ],
)
def test_what_the_sdk_lets_through_is_a_failure(sdk: ModuleType, kind: str, code: str) -> None:
    """Anthropic does not wrap what happens while a stream is read, nor does openai before 3."""
    lets_through = getattr(HTTP[sdk], kind)
    exc = lets_through() if kind == "StreamClosed" else lets_through("x", request=REQUESTS[sdk])
    assert read_failure(exc, {**MAPS[sdk], **http_errors()}).code == code


@pytest.mark.parametrize("sdk", MAPS, ids=lambda sdk: sdk.__name__)
def test_reply_that_is_not_utf_8_is_malformed(sdk: ModuleType) -> None:
    exc = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x")
    assert read_failure(exc, MAPS[sdk]).code == "malformed_reply"


def test_tls_context_of_an_unknown_http_library_is_an_error_that_names_the_known() -> None:
    class Client:
        pass

    with pytest.raises(ConfigurationError, match=r"Client' is not an HTTP client of httpx or"):
        tls_context(Client)


def test_read_failure_of_an_unknown_exception_names_its_class() -> None:
    assert read_failure(KeyError("x"), {}).detail == "KeyError: 'x'"


@pytest.mark.parametrize(
    "text", [f"key {KEY} is wrong", f"illegal header value {KEY!r}", "Incorrect: sk-abc***xyz9."]
)
def test_raise_failure_masks_keys_in_the_error_and_its_cause(text: str) -> None:
    with pytest.raises(ProviderError) as caught:
        raise_failure(
            Failure(detail=text),
            provider="p",
            secret=SecretStr(KEY),
            cause=ValueError(f"body: {text}"),
        )
    shown = "".join(traceback.format_exception(caught.value))
    assert KEY not in shown
    assert "xyz9" not in shown
    assert "***" in caught.value.detail


def test_raise_failure_chains_a_clean_cause_and_cuts_a_long_text() -> None:
    cause = ValueError("x")
    with pytest.raises(ProviderError) as caught:
        raise_failure(Failure(detail="x" * 9999), provider="p", secret=SecretStr(KEY), cause=cause)
    assert caught.value.__cause__ is cause
    assert len(caught.value.detail) == 1_000


def test_connection_failure_does_not_quote_a_header() -> None:
    """The HTTP client quotes what it cannot send."""
    exc = anthropic_sdk.APIConnectionError(request=REQUESTS[anthropic_sdk])
    exc.__cause__ = HTTP[anthropic_sdk].LocalProtocolError(f"Illegal header value b'{KEY}\\n'")
    assert KEY[-6:] not in read_failure(exc, MAPS[anthropic_sdk]).detail


@pytest.mark.parametrize(
    ("detail", "base_url", "is_hinted"),
    [
        ("Not Found", "http://user:secret@host", True),
        ("404 page not found", "http://host/", True),
        ("Unexpected endpoint or method. (POST /chat/completions)", "http://host", True),
        ("The model `m` was not found", "http://host", False),
        ("Not Found", "http://host/v1", False),
        ("Not Found", None, False),
    ],
)
def test_address_without_a_path_is_told_of_after_a_bare_404(
    detail: str, base_url: str | None, is_hinted: bool
) -> None:
    failure = Failure(detail=detail, status=404)
    with pytest.raises(ProviderError) as error:
        raise_failure(failure, provider="p", secret=SecretStr(KEY), base_url=base_url)
    assert ("/v1 at its end" in str(error.value)) == is_hinted
    assert "secret" not in str(error.value)
