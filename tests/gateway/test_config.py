"""The configuration of a gateway: its own form, MCProxy's file, and mistakes in both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tool_search import ConfigurationError
from tool_search.serving.gateway import ExposureSettings, gateway_config, load_gateway_config
from tool_search.serving.gateway.middleware import (
    CallLogging,
    Enricher,
    SecurityMiddleware,
    SecurityRule,
    ToolFilter,
)

OWN = """
mcpServers: {time: {command: mcp-server-time}, git: {command: mcp-server-git}}
tool_search: {enabled: true, maxToolsLimit: 50, searchThreshold: 0.1,
              toolSelectionOrder: [server_priority], exposure: add, maxResults: 10,
              always_loaded_tools: [], fill: true, engine: bm25, learning: {enabled: true},
              language: auto, debug: false}
transport: stdio
permissions: {}
registry: false
"""
# As MCProxy's users have it.
MCPROXY: dict[str, Any] = {
    "mcpServers": {"github": {"url": "https://x.y/mcp", "authorizationToken": "Bearer t"}},
    "httpServer": {
        "host": "0.0.0.0",  # noqa: S104  # an example
        "port": 9000,
        "corsEnabled": True,
        "corsOrigins": ["https://a.b"],
        "shutdownTimeout": 5,
        "middleware": {
            "proxy": [
                {"type": "description_enricher", "enabled": True, "config": {}},
                {"type": "tool_search", "enabled": True,
                 "config": {"maxToolsLimit": 20, "searchThreshold": 0.2}},
            ],
            "client": {
                "default": [{"type": "logging", "config": {"level": "debug"}}],
                "servers": {
                    "github": [
                        {"type": "tool_filter", "config": {"disallow": "^delete_"}},
                        {"type": "security"},
                    ]
                },
            },
        },
    },
}  # fmt: skip


def changed(path: str, value: Any) -> dict[str, Any]:
    """MCProxy's file with another value at a place."""
    content: dict[str, Any] = json.loads(json.dumps(MCPROXY))
    *outer, last = path.split(".")
    section: Any = content
    for step in outer:
        section = section[int(step) if step.isdigit() else step]
    section[last] = value
    return content


def test_the_documented_configuration_is_the_default(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(OWN, encoding="utf-8")
    config = load_gateway_config(path)
    assert list(config.mcp_servers) == ["time", "git"]
    assert config.tool_search == gateway_config({}).tool_search
    assert config.tool_search.shown == ExposureSettings()
    assert (config.transport.type, config.registry) == ("stdio", False)


def test_json_is_read_as_people_write_it(tmp_path: Path) -> None:
    path = tmp_path / "gateway.json"
    content = {"mcpServers": {"b": {"command": "x"}, "a": {"command": "y"}}, "transport": "http"}
    path.write_text("\ufeff" + json.dumps(content, indent="\t"), encoding="utf-8")
    config = load_gateway_config(path)
    assert list(config.mcp_servers) == ["b", "a"]
    assert (config.transport.host, config.transport.port, config.transport.path) == (
        "127.0.0.1", 8080, "/mcp",
    )  # fmt: skip


def test_the_transport_is_a_word_or_a_section() -> None:
    full = {
        "type": "http",
        "host": "::1",
        "port": 0,
        "path": "/x",
        "tokens_env": "T",
        "cors": ["*"],
    }
    transport = gateway_config({"transport": full}).transport
    assert (transport.type, transport.host, transport.port) == ("http", "::1", 0)
    assert (transport.path, transport.tokens_env, transport.cors) == ("/x", "T", ("*",))


def test_mcproxys_own_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mcproxy.json"
    path.write_text(json.dumps(MCPROXY), encoding="utf-8")
    config = load_gateway_config(path)
    assert config == gateway_config(MCPROXY)
    assert config.mcp_servers["github"].token.get_secret_value() == "t"
    search = config.tool_search
    assert (search.enabled, search.exposure, search.fill) == (True, "replace", True)
    assert (search.max_tools_limit, search.max_results, search.search_threshold) == (20, 20, 0.2)
    transport = config.transport
    assert (transport.type, transport.port, transport.cors) == ("http", 9000, ("https://a.b",))
    assert transport.shutdown_timeout_s == 5
    assert config.middleware.of_all == (Enricher(),)
    assert config.middleware.of_server("other") == (CallLogging(level="debug"),)
    assert config.middleware.of_server("github") == (
        ToolFilter(disallow="^delete_"),
        SecurityMiddleware(),
    )


def test_a_middleware_at_the_top_makes_a_file_mcproxys_too() -> None:
    middleware = MCPROXY["httpServer"]["middleware"]
    config = gateway_config({"mcpServers": {}, "middleware": middleware})
    assert config.tool_search.exposure == "replace"
    assert config.transport.type == "http"
    assert config.transport.cors == ()


@pytest.mark.parametrize(
    "proxy", [[], [{"type": "tool_search", "enabled": False, "config": {"maxToolsLimit": 3}}]]
)
def test_without_its_middleware_mcproxy_has_no_search(proxy: list[Any]) -> None:
    config = gateway_config(changed("httpServer.middleware.proxy", proxy))
    assert not config.tool_search.enabled


def test_a_limit_of_nothing_shows_everything() -> None:
    path = "httpServer.middleware.proxy.1.config"
    config = gateway_config(changed(path, {"maxToolsLimit": 0}))
    assert config.tool_search.shown.max_tools_limit == 0


def test_our_own_file_has_middleware_too() -> None:
    middleware = {"client": {"default": [{"type": "security"}]}}
    config = gateway_config({"registry": True, "middleware": middleware})
    assert (config.registry, config.tool_search.exposure) == (True, "add")
    assert config.middleware.of_server("any") == (SecurityMiddleware(),)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"tool_serch": {}}, r"tool_serch is unknown; known here: inspector, limits, mcpServers"),
        ({"tool_search": {"maxToolLimit": 1}}, r"tool_search.maxToolLimit is unknown.*maxToolsL"),
        ({"tool_search": {"max_tools_limit": 1}}, r"tool_search.max_tools_limit is unknown"),
        ({"tool_search": {"maxToolsLimit": "50"}}, r"tool_search.maxToolsLimit is '50'"),
        ({"tool_search": {"maxToolsLimit": -1}}, r"tool_search.maxToolsLimit is -1"),
        ({"tool_search": {"searchThreshold": 1.1}}, r"tool_search.searchThreshold is 1.1"),
        ({"tool_search": {"exposure": "swap"}}, r"exposure is 'swap': .*'replace' or 'keep'"),
        ({"tool_search": {"language": "de"}}, r"language is 'de': must be auto, zh-CN"),
        ({"tool_search": {"learning": {"on": True}}}, r"learning.on is unknown.*enabled"),
        ({"tool_search": []}, r"tool_search holds a list"),
        ({"transport": "ftp"}, r"transport.type is 'ftp'"),
        ({"transport": {"prt": 1}}, r"transport.prt is unknown; known here: cors, host"),
        ({"transport": {"port": 70_000}}, r"transport.port is 70000"),
        ({"transport": {"path": "mcp"}}, r"transport.path is 'mcp'"),
        ({"transport": {"tokens_env": "a-b"}}, r"transport.tokens_env"),
        ({"mcpServers": []}, r"mcpServers holds a list: input should be a section"),
        ({"mcpServers": {"x": "command"}}, r"mcpServers.x is not allowed: input should be"),
        ({"mcpServers": {"": {"command": "x"}}}, r"mcpServers .*: the name"),
        ({"mcpServers": {"x": {}}}, r"mcpServers.x .*neither a command nor a url"),
        ({"mcpServers": {"x": {"comand": "y"}}}, r"mcpServers.x.comand is unknown.*command"),
        ({"permissions": {"denny": []}}, r"permissions.denny is unknown; known here: .*deny"),
        ({"registry": "yes"}, r"registry is 'yes'"),
        ({"registry": True, "httpServer": {}}, r"httpServer belongs to MCProxy's form"),
        ([], r"must be a mapping"),
        (changed("httpServer.prt", 1), r"httpServer.prt is unknown; known here: host, port"),
        (changed("other", 1), r"configuration: other is unknown; known here: mcpServers"),
        (changed("httpServer", 7), r"httpServer must hold keys and values, not 7"),
        (changed("middleware", {}), r"middleware is there twice"),
        (changed("httpServer.middleware.proxy.1.config.limit", 1), r"tool_search.config.limit is"),
        (changed("httpServer.middleware.proxy.1.config.maxToolsLimit", "x"), r"Limit is 'x'"),
        (changed("httpServer.middleware.proxy.0.type", "cache"), r"unknown middleware type 'ca"),
        (changed("httpServer.middleware.proxy", {}), r"middleware.proxy must be a list"),
        (changed("httpServer.middleware.proxy.0.config", {"sufix": ""}), r"sufix: Extra inputs"),
        (changed("httpServer.middleware.client.default.0.type", "log"), r"unknown middleware type"),
        (changed("httpServer.middleware.client.default.0.config", {"level": "loud"}), r"level: "),
        (
            changed("httpServer.middleware.client.servers.github.0.config", {"disallow": "("}),
            r"'tool_filter': disallow: Invalid disallow regex pattern '\(': missing \)",
        ),
        (
            changed("httpServer.middleware.client.servers.github.0.config", {"allow": "(?=x)"}),
            r"Invalid allow regex pattern",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_key(content: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        gateway_config(content)


def test_a_mistake_in_yaml_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    path.write_text("mcpServers: {}\ntool_search:\n  maxToolsLimit: many\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"g\.yaml, line 3: tool_search\.maxToolsLimit is"):
        load_gateway_config(path)


@pytest.mark.parametrize(
    "text", ["a: [", "- a", '{\t"a": 1,\t"a": 2}', "registry: true\nregistry: true", "{\t"]
)
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "g.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"g\.yaml"):
        load_gateway_config(path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_gateway_config(tmp_path / "none.yaml")


def test_no_key_of_a_server_is_in_an_error_or_a_text() -> None:
    secret = "sk-very-secret"  # made up
    with pytest.raises(ConfigurationError) as caught:
        gateway_config({"mcpServers": {"x": secret}, "registry": 1})
    assert secret not in str(caught.value)
    config = gateway_config(
        {"mcpServers": {"x": {"url": "https://x.y", "authorizationToken": secret}}}
    )
    assert secret not in repr(config)


def test_a_filter_prefers_what_is_allowed() -> None:
    both = ToolFilter(allow="^read_", disallow="file")
    assert [both.admits(name) for name in ("read_file", "write_file", "list")] == [
        True, False, False,
    ]  # fmt: skip
    assert [ToolFilter(disallow="file").admits(name) for name in ("a_file", "list")] == [
        False,
        True,
    ]
    assert ToolFilter().admits("anything")


@pytest.mark.parametrize(
    ("tool", "arguments", "blocked"),
    [
        ("shell", {"command": "SUDO ls"}, "System commands are not allowed"),
        ("shell", {"command": "rm  -rf x"}, "System commands are not allowed"),
        ("read", {"path": "/etc/shadow"}, "Access to sensitive files is not allowed"),
        ("read", {"path": "~/.ssh/id"}, "Access to sensitive files is not allowed"),
        ("shell", {"command": "curl http://x"}, "Network commands are not allowed"),
        ("shell", {"command": "ls"}, None),
        ("weather", {"city": "Paris"}, None),
    ],
)
def test_the_default_rules_block_what_mcproxys_do(
    tool: str, arguments: dict[str, Any], blocked: str | None
) -> None:
    rule = SecurityMiddleware().blocking(tool, arguments)
    assert (rule.block_message if rule else None) == blocked


def test_rules_of_ones_own_replace_the_default_ones() -> None:
    rules = [
        {"name": "off", "pattern": ".", "enabled": False},
        {"name": "mail", "pattern": r"tool_name:mail args:\{\"to\":\"boss", "block_message": "No."},
    ]
    content = {"client": {"default": [{"type": "security", "config": {"rules": rules}}]}}
    (security,) = gateway_config({"registry": True, "middleware": content}).middleware.of_server(
        "x"
    )
    assert isinstance(security, SecurityMiddleware)
    found = security.blocking("mail", {"to": "boss@x.y"})
    assert isinstance(found, SecurityRule)
    assert found.block_message == "No."
    assert security.blocking("shell", {"command": "sudo"}) is None


def test_descriptions_are_replaced_and_ended() -> None:
    enricher = Enricher(suffix=" (here)", overrides={"a___b": "One.", "c": "Two."})
    assert [
        enricher.description("a___b", "b", "x"),
        enricher.description("a___c", "c", "x"),
        enricher.description("a___d", "d", "x"),
    ] == ["One. (here)", "Two. (here)", "x (here)"]


def test_a_pattern_takes_linear_time() -> None:
    slow = ToolFilter(disallow="(a+)+$")
    assert slow.admits("a" * 100_000 + "b")


def test_the_example_is_yaml() -> None:
    assert set(yaml.safe_load(OWN)) == {
        "mcpServers", "tool_search", "transport", "permissions", "registry",
    }  # fmt: skip
