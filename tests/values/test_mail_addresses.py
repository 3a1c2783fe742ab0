"""The recipients in a text."""

from __future__ import annotations

import pytest

from tool_search.core.values.mail_addresses import read_mailboxes


@pytest.mark.parametrize(
    ("text", "boxes"),
    [
        ("Bo@X.org", ["bo@x.org"]),
        ("bo+news@x.org", ["bo+news@x.org"]),
        ("Bo O'Hara <bo@x.org>, ann@y.org", ["bo@x.org", "ann@y.org"]),
        ("<bo@x.org>", ["bo@x.org"]),
        ("бо <bo@пример.рф>", ["bo@xn--e1afmkfd.xn--p1ai"]),
        ("", []),
    ],
)
def test_plain_addresses_are_read(text: str, boxes: list[str]) -> None:
    found = read_mailboxes(text)
    assert found is not None
    assert [f"{box.local}@{box.host.name}" for box in found] == boxes


@pytest.mark.parametrize(
    "text",
    [
        "bo", "@x.org", "bo@", "bo@x.org,", "bo@x.org;eve@y.org", "bo@x.org eve@y.org",
        '"eve@y.org"@x.org', "eve@y.org(@x.org)", "bo@x.org (eve@y.org)", "<@y.org:bo@x.org>",
        "eve%y.org@x.org", "y.org!eve@x.org", "bo@[127.0.0.1]", "bo@127.0.0.1", "bo@x.org\n",
        "bo@x.org\r\nBcc: eve@y.org", "eve@y.org <bo@x.org>", "Bo <bo@x.org> <eve@y.org>",
        '"Bo, eve@y.org" <bo@x.org>', "mailto:bo@x.org", "bo..o@x.org", ".bo@x.org", "bo@x..org",
        f"{'a' * 65}@x.org", "bо@x.org", "everybody: bo@x.org, eve@y.org;", "bo＠x.org",
        "bo@x.org\u200b",
    ],
)  # fmt: skip
def test_an_ambiguous_mailbox_is_not_an_address(text: str) -> None:
    assert read_mailboxes(text) is None
