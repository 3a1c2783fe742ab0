"""The requests that may read the inspector."""

from __future__ import annotations

import pytest

from tool_search.serving.door import TOKEN_HEADER, Access

OWN = {"host": "127.0.0.1:8787"}


@pytest.mark.parametrize(
    "headers",
    [
        OWN,
        {"host": "localhost:1"},
        {"host": "[::1]:8787"},
        {**OWN, "origin": "http://127.0.0.1:8787"},
        {**OWN, "sec-fetch-site": "same-origin"},
        {**OWN, "sec-fetch-site": "none"},
    ],
)
def test_this_machine_reads_without_a_token(headers: dict[str, str]) -> None:
    assert Access().refusal(headers, "127.0.0.1") is None


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": ""},
        {"host": "rebound.example:8787"},
        {"host": "127.0.0.1.example"},
        {"host": "127.0.0.1@rebound.example"},
        {"host": "[::1"},
        {**OWN, "origin": "http://rebound.example"},
        {**OWN, "origin": "http://127.0.0.1:3000"},
        {**OWN, "origin": "null"},
        {**OWN, "sec-fetch-site": "cross-site"},
        {**OWN, "sec-fetch-site": "same-site"},
        {**OWN, "x-forwarded-for": "203.0.113.9"},
        {**OWN, "forwarded": "for=203.0.113.9"},
    ],
)
def test_another_origin_and_another_name_read_nothing(headers: dict[str, str]) -> None:
    refused = Access().refusal(headers, "127.0.0.1")
    assert refused is not None
    assert refused[0] == 403


def test_another_machine_reads_nothing_without_a_token() -> None:
    refused = Access().refusal(OWN, "203.0.113.9")
    assert refused is not None
    assert refused[0] == 403


@pytest.mark.parametrize(
    "given", [{TOKEN_HEADER: "t1"}, {TOKEN_HEADER: "t2"}, {"authorization": "Bearer t1"}]
)
def test_a_token_reads_from_anywhere(given: dict[str, str]) -> None:
    access = Access((b"t1", b"t2"))
    headers = {"host": "proxy.example", **given}
    assert access.refusal(headers, "203.0.113.9") is None
    crossed = access.refusal({**headers, "origin": "http://other.example"}, "203.0.113.9")
    assert crossed is not None
    assert crossed[0] == 403


@pytest.mark.parametrize("given", [{}, {TOKEN_HEADER: "t"}, {"authorization": "Bearer é"}])
def test_where_tokens_are_set_this_machine_needs_one_too(given: dict[str, str]) -> None:
    refused = Access((b"t1",)).refusal({**OWN, **given}, "127.0.0.1")
    assert refused is not None
    assert refused[0] == 401


@pytest.mark.parametrize(
    ("access", "headers"),
    [
        (Access(), {"host": "localhost:1", "origin": "http://localhost:3000"}),
        (Access(), {}),
        (Access(hosts=("LLM.example",)), {"host": "llm.example:443"}),
        (Access(cors=("app://x",)), {**OWN, "origin": "app://x", "sec-fetch-site": "cross-site"}),
        (Access(cors=("*",)), {"host": "any.example", "origin": "null"}),
        (Access(is_local=False), {"host": "any.example", "origin": "https://any.example"}),
    ],
)
def test_the_door_is_open_to(access: Access, headers: dict[str, str]) -> None:
    assert access.stranger(headers) is None


@pytest.mark.parametrize(
    ("access", "headers", "setting"),
    [
        (Access(), {"host": "rebound.example"}, 'listen.hosts: ["rebound.example"]'),
        (Access(section="transport"), {"host": "x"}, "transport.hosts"),
        (Access(is_local=False, hosts=("a",)), {"host": "b"}, "listen.hosts"),
        (Access(), {**OWN, "origin": "https://127.0.0.1"}, "listen.cors"),
        (Access(cors=("https://a",)), {**OWN, "origin": "https://b"}, "listen.cors"),
        (Access(is_local=False), {"host": "x", "origin": "https://evil.example"}, "listen.cors"),
        (Access(), {**OWN, "sec-fetch-site": "cross-site"}, "listen.cors"),
        (
            Access(),
            {**OWN, "origin": "http://localhost:3000", "sec-fetch-site": "cross-site"},
            'listen.cors: ["http://localhost:3000"]',
        ),
    ],
)
def test_the_door_is_shut_and_says_what_opens_it(
    access: Access, headers: dict[str, str], setting: str
) -> None:
    refused = access.stranger(headers)
    assert refused is not None
    assert setting in refused[1]
