"""Credentials planted in each format: they are in no file, log, page, record or error."""

from __future__ import annotations

import logging
from pathlib import Path

import anthropic
import httpx2
import openai
import pytest
from typer.testing import CliRunner

from tests.proxy.clients import CLIENTS, Client
from tests.proxy.conftest import serve, upstreams
from tool_search.cli.application import app
from tool_search.serving.proxy.app import ToolSearchProxy
from tool_search.serving.proxy.settings import InspectorSettings, ProxyConfig, StateSettings
from tool_search.testing import Fault, KeywordModel, StandInServer

pytestmark = pytest.mark.clients
# Of no known form: only its value says that it is a key.
KEY = "planted-credential-0123456789"
QUESTION = 'Count the words of "to be or not to be".'
ERRORS = (anthropic.APIError, openai.APIError, RuntimeError)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.kind)
def test_a_key_is_passed_on_and_nowhere_else(
    kind: type[Client], stream: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    log = tmp_path / "log.jsonl"
    with StandInServer(model=KeywordModel(search_tool="tool_search")) as server:
        config = ProxyConfig(
            upstreams=upstreams(server),
            state=StateSettings(path=str(tmp_path / "state.db")),
            inspector=InspectorSettings(bodies=True, path=str(log)),
        )
        proxy = ToolSearchProxy(config)
        with serve(proxy) as address:
            client = kind(address, stream=stream, key=KEY)
            client.ask(QUESTION)
            server.faults.add(Fault(status=401, body=f'{{"error": "wrong: {KEY}"}}'.encode()))
            said += refused(client)
            server.faults.add(Fault(status=503, skip=1))
            said += refused(client)
            server.faults.add(Fault(broken=True, after_events=1))
            said += refused(client)
            server.close()
            said += refused(client)
            assert proxy.inspection is not None
            proxy.inspection.settle()
            said += pages(address)

    said += [caplog.text, CliRunner().invoke(app, ["inspect-log", str(log), "--json"]).output]
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) > 2
    assert [text for text in said if KEY in text] == []
    assert KEY.encode() not in kept
    assert any("wrong: ***" in text for text in said)


def refused(client: Client) -> list[str]:
    """Return the text of the error of the next request, but for the provider's own words."""
    try:
        client.ask(QUESTION)
    except ERRORS as exc:
        return [text for text in (str(exc), repr(exc)) if "wrong: " not in text]
    return []


def pages(address: str) -> list[str]:
    """Return everything that the inspector shows."""
    with httpx2.Client(base_url=f"{address}/inspector") as http:
        rows = http.get("/api/requests").json()["requests"]
        assert len(rows) > 3
        records = [http.get(f"/api/requests/{row['id']}").text for row in rows]
        return [*records, str(rows), http.get("/api/figures").text, http.get("").text]
