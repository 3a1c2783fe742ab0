"""The rule checker against recorded traffic: what the services took, it takes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tool_search.testing import Violation, check_anthropic, check_request

RECORDED = Path(__file__).parents[3] / "shared" / "recorded"
REASON = "the recorded traffic is not there: ../shared/recorded beside the checkout"
HOSTS = {
    "https://api.anthropic.com/v1/messages": "anthropic",
    "https://api.openai.com/v1/chat/completions": "openai_chat",
    "https://api.openai.com/v1/responses": "openai_responses",
}
COUNT = "https://api.anthropic.com/v1/messages/count_tokens"


def cassettes() -> list[Path]:
    """Return every cassette of every project; none if the recordings are missing."""
    return sorted(RECORDED.glob("*/**/*.yaml"))


def accepted_requests(cassette: Path) -> list[tuple[str, Any]]:
    """Return the URI, without its query, and body of each request that was answered with 2xx."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    recorded = yaml.load(cassette.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - a safe loader
    return [
        (entry["request"]["uri"].partition("?")[0], entry["request"].get("parsed_body"))
        for entry in recorded["interactions"]
        if 200 <= entry["response"]["status"]["code"] < 300
    ]


def verdict(uri: str, body: Any) -> Violation | None:
    """Return the checker's result for a recorded request of a known dialect."""
    if uri == COUNT:
        return check_anthropic(body, counting=True)
    return check_request(HOSTS[uri], body) if uri in HOSTS else None


@pytest.mark.skipif(not cassettes(), reason=REASON)
@pytest.mark.parametrize("cassette", cassettes(), ids=lambda path: path.stem)
def test_recorded_request_is_accepted(cassette: Path) -> None:
    verdicts = [verdict(uri, body) for uri, body in accepted_requests(cassette)]
    assert [found for found in verdicts if found is not None] == []


@pytest.mark.skipif(not cassettes(), reason=REASON)
def test_recorded_requests_of_every_dialect_are_there() -> None:
    """The test above would pass on an empty folder too; prints how many were judged."""
    uris = Counter(uri for cassette in cassettes() for uri, _ in accepted_requests(cassette))
    judged = {uri: count for uri, count in uris.items() if uri in (*HOSTS, COUNT)}
    others = sum(uris.values()) - sum(judged.values())
    print(f"accepted: {judged}; of services that speak none of our dialects: {others}")  # noqa: T201
    assert sum(judged.values()) >= 106
    assert {*HOSTS, COUNT} <= judged.keys()
