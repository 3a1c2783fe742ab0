"""The names of a host, as clients connect to it."""

from __future__ import annotations

import pytest

from tool_search.core.values.host_names import connected_host, read_host


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
    assert set(found[1:]) == others


def test_refused_host_is_connected_to_nowhere() -> None:
    assert connected_host("Bücher.example") == "xn--bcher-kva.example"
    assert connected_host("0x7f.1") is None
