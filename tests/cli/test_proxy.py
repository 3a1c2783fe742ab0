"""`tool-search proxy`: the lines that it prints, and wrong options."""

from __future__ import annotations

import socket
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.conftest import Command
from tool_search.cli.application import app
from tool_search.cli.proxy import client_lines
from tool_search.serving.proxy.settings import (
    InspectorSettings,
    ListenSettings,
    ProxyConfig,
    proxy_config,
)


def values(config: ProxyConfig) -> list[str]:
    """Return the printed lines without their labels."""
    return [line[29:] for line in client_lines(config)]


def test_each_client_of_an_upstream_has_its_line() -> None:
    assert values(proxy_config("https://api.anthropic.com")) == [
        "ANTHROPIC_BASE_URL=http://127.0.0.1:8787",
        "http://127.0.0.1:8787/inspector",
    ]
    base, *codex, page = values(proxy_config("https://api.openai.com/v1"))

    assert base == "OPENAI_BASE_URL=http://127.0.0.1:8787/v1"
    assert page == "http://127.0.0.1:8787/inspector"
    assert tomllib.loads("\n".join(codex)) == {
        "model_provider": "search",
        "model_providers": {
            "search": {
                "name": "search",
                "base_url": "http://127.0.0.1:8787/v1",
                "env_key": "OPENAI_API_KEY",
                "wire_api": "responses",
            }
        },
    }


@pytest.mark.parametrize(
    ("host", "shown"),
    [("::1", "http://[::1]:8787"), ("0.0.0.0", "http://127.0.0.1:8787")],  # noqa: S104
)
def test_an_address_is_one_that_a_client_can_connect_to(host: str, shown: str) -> None:
    config = proxy_config("https://api.deepseek.com").model_copy(
        update={
            "listen": ListenSettings(host=host, tokens_env="TOKENS"),
            "inspector": InspectorSettings(enabled=False),
        }
    )

    assert values(config) == [f"OPENAI_BASE_URL={shown}/v1", "x-tool-search-token: one of $TOKENS"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give exactly one of --config FILE and --upstream URL"),
        (["--upstream", "https://example.com"], "are not known; set dialects to"),
        (
            ["--upstream", "https://example.com", "--dialect", "soap"],
            "--dialect 'soap' must be one of",
        ),
    ],
)
def test_wrong_options_say_what_to_do(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["proxy", *arguments])

    assert result.exit_code != 0
    assert message in f"{result.output}{result.exception}"


@pytest.mark.parametrize("name", ["proxy", "inspect-log"])
def test_a_taken_address_is_named_before_anything_is_announced(
    name: str, command: Command, tmp_path: Path
) -> None:
    log = tmp_path / "requests.jsonl"
    log.touch()
    proxy: list[object] = ["--upstream", "https://api.openai.com/v1"]
    arguments = proxy if name == "proxy" else [log]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = command(name, *arguments, "--port", port)
    assert (refused.status, refused.out) == (2, "")
    assert f"127.0.0.1:{port} cannot be used: Address already in use" in refused.err


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_a_port_that_cannot_be_is_refused(port: str, command: Command) -> None:
    refused = command("proxy", "--upstream", "https://api.openai.com/v1", "--port", port)
    assert (refused.status, refused.out) == (2, "")
    assert f"--port '{port}' is not allowed" in refused.err
