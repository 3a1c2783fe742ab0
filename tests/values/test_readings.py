"""The kinds of values in rules: numbers, paths, hosts and mail addresses."""

from __future__ import annotations

import posixpath
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search.core.values.readings import KINDS, readings

LABELS = st.from_regex(r"[a-z_][a-z0-9_-]{0,20}", fullmatch=True)
NAMES = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
LOCALS = st.from_regex(r"[A-Za-z0-9_'-]{1,20}", fullmatch=True)


@given(st.integers(-(10**30), 10**30), st.sampled_from(["", "0b", "0o", "0x", "0"]))
def test_a_number_has_one_spelling_in_every_base(number: int, base: str) -> None:
    digits = format(abs(number), {"0b": "b", "0x": "x", "": "d"}.get(base, "o"))
    text = f" {'-' if number < 0 else '+'}{base}{digits}\n"
    assert (str(number),) in (KINDS["number"](text) or ())
    assert (str(number),) in (KINDS["number"](f"{number}_0e-1") or ())


@pytest.mark.parametrize("text", ["0o8", "0b2", "0xg", "0x", "1e", "NaN", "inf", "--1", ""])
def test_other_text_is_no_number(text: str) -> None:
    assert not KINDS["number"](text)


@given(st.lists(st.sampled_from(["a", "b c", "..", ".", "", "ä"]), min_size=1, max_size=8))
def test_a_path_is_read_without_steps_up_in_every_disguise(steps: list[str]) -> None:
    path = "/" + "/".join(steps)
    plain = posixpath.normpath(f"/{path.lstrip('/')}")
    disguises = (path, path.replace("/", "\\"), f"file://{path}")
    assert all(KINDS["path"](one) == ((plain,),) for one in disguises)
    assert all(plain in readings(quote(quote(one))) for one in disguises if one == one.strip())


@given(NAMES, st.sampled_from(["", "//", "http://", "HTTPS://", "https://bo:x@"]))
def test_a_host_is_read_without_what_stands_around_it(name: str, before: str) -> None:
    assert KINDS["host"](f"{before}{name.upper()}./a?b") == ((name,),)
    assert KINDS["host"](f"ftp://{name}/?b=http://evil.example") == (("", name),)
    assert KINDS["host"](f"http://evil.example@a@{name}/") is None


@given(st.lists(st.tuples(LOCALS, NAMES), min_size=1, max_size=4))
def test_each_mailbox_is_read_with_and_without_its_tag(boxes: list[tuple[str, str]]) -> None:
    text = ", ".join(f"Bo <{local}+tag@{host.upper()}>" for local, host in boxes)
    assert KINDS["address"](text) == tuple(
        (f"{local.lower()}+tag@{host}", f"{local.lower()}@{host}") for local, host in boxes
    )
    assert KINDS["address"](text.replace("@", "@a@", 1)) is None


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://X.org:8/a", "x.org"),
        ("x.org/a", "x.org"),
        ("//x.org", "x.org"),
        ("https://x.org./", "x.org"),
        ("https://x.org@evil.example/", "evil.example"),
        ("https://x.org.evil.example/", "x.org.evil.example"),
        ("https://Ｘ．ｏｒｇ/", "x.org"),
        ("https://ПРИМЕР.рф/", "xn--e1afmkfd.xn--p1ai"),
        ("http://127.0.0.1:80", "127.0.0.1"),
        ("http://[0:0:0:0:0:0:0:1]/", "::1"),
        ("http://①②⑦.⓪.⓪.①/", "127.0.0.1"),
        ("https://db1/", "db1"),
    ],
)
def test_host_is_as_it_goes_over_the_wire(address: str, host: str) -> None:
    assert KINDS["host"](address) == ((host,),)


@pytest.mark.parametrize(
    "address",
    [
        "", "http://", "https:x.org", "https:///x.org", "http:\\\\x.org", "https://a\\@x.org/",
        "http://x.org:80:90/", "http://a@b@x.org/", "http://%78.org/", "http://x.org%2f.evil.example",
        "http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/", "http://0/",
        "http://1.1.1.256/", "http://[::1]x.org/", "http://[fe80::1%25eth0]/", "http://[::g]/",
        "http://x..org/", f"http://{'a' * 64}.org/", f"http://{'a.' * 200}org/", "http://℀.org/",
        "http://i❤.ws/", "http://x.org\t/", " http://x.org/", "http://x.or\ng/", "mailto:bo@x.org",
        "file:///etc/passwd", "data:text/plain,x.org", "http://a.org,b.org/", "http://x.org:٣/",
    ],
)  # fmt: skip
def test_what_clients_read_in_different_ways_has_no_host(address: str) -> None:
    assert KINDS["host"](address) is None


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
    assert [box[0] for box in KINDS["address"](text) or ()] == boxes


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
    assert KINDS["address"](text) is None
