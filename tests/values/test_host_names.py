"""The host that an address leads to."""

from __future__ import annotations

import pytest

from tool_search.core.values.host_names import connected_host, read_address, read_host


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
        ("https://straße.de/", "xn--strae-oqa.de"),
        ("https://ПРИМЕР.рф/", "xn--e1afmkfd.xn--p1ai"),
        ("http://127.0.0.1:80", "127.0.0.1"),
        ("http://[0:0:0:0:0:0:0:1]/", "::1"),
        ("http://①②⑦.⓪.⓪.①/", "127.0.0.1"),
        ("https://db1/", "db1"),
    ],
)
def test_host_is_as_it_goes_over_the_wire(address: str, host: str) -> None:
    found = read_address(address)
    assert found is not None
    assert found.name == host


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
    assert read_address(address) is None


@pytest.mark.parametrize(
    ("host", "others"),
    [
        ("straße.de", {"strasse.de"}),
        ("::ffff:127.0.0.1", {"127.0.0.1"}),
        ("64:ff9b::7f00:1", {"127.0.0.1"}),
        ("2002:7f00:1::", {"127.0.0.1"}),
        ("::127.0.0.1", {"127.0.0.1"}),
        ("::1", set()),
        ("x.org", set()),
    ],
)
def test_hosts_of_other_readings_are_known(host: str, others: set[str]) -> None:
    found = read_host(host)
    assert found is not None
    assert found.names == others | {found.name}


def test_refused_host_is_connected_to_nowhere() -> None:
    assert connected_host("Bücher.example") == "xn--bcher-kva.example"
    assert connected_host("0x7f.1") is None
