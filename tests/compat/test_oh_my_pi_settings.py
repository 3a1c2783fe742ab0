"""oh-my-pi's settings: the mode, and the core and deferred tools that follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tool_search import ConfigurationError, Tool
from tool_search.adapters.compat.oh_my_pi.surface import DiscoverySettings

BUILTINS = [Tool(name=name, kind="builtin") for name in ("read", "bash", "lsp", "notebook")]
SERVERS = [
    Tool(name=f"mcp__{server}_{name}", kind="mcp", server=server)
    for server in ("github", "slack")
    for name in ("list", "create")
]
TOOLS = [*BUILTINS, *SERVERS, Tool(name="extension")]


def many(count: int, **fields: Any) -> list[Tool]:
    """This many tools."""
    return [Tool(name=f"t{number:02}", **fields) for number in range(count)]


def hidden(settings: DiscoverySettings, tools: Sequence[Tool] = TOOLS, **how: Any) -> list[str]:
    """The names that the settings hide."""
    catalog = settings.catalog(tools, mode=settings.resolved(tools), **how)
    return [tool.name for tool in catalog.deferred]


def test_keys_are_oh_my_pis_own_dotted_or_nested() -> None:
    nested = {
        "theme": "dark",
        "tools": {"discoveryMode": "all", "essentialOverride": ["lsp"], "other": 1},
        "mcp": {"discoveryMode": True, "discoveryDefaultServers": ["github"]},
    }
    dotted = {
        "tools.discoveryMode": "all",
        "tools.essentialOverride": ["lsp"],
        "mcp.discoveryMode": True,
        "mcp.discoveryDefaultServers": ["github"],
    }
    expected = DiscoverySettings(
        mode="all", mcp_discovery=True, essential_override=("lsp",), default_servers=("github",)
    )
    assert DiscoverySettings.from_mapping(nested) == expected
    assert DiscoverySettings.from_mapping(dotted) == expected
    assert DiscoverySettings.from_mapping({"tools": {"discoveryMode": None}, "mcp": 3}) == (
        DiscoverySettings()
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"tools.discoveryMode": "on"}, "tools.discoveryMode is 'on': .*auto, off, mcp-only, all"),
        ({"mcp": {"discoveryMode": "yes"}}, "mcp.discoveryMode is 'yes'"),
        ({"tools.essentialOverride": "read"}, "tools.essentialOverride is 'read'"),
        ({"mcp.discoveryDefaultServers": [1]}, "mcp.discoveryDefaultServers is "),
    ],
)
def test_a_wrong_value_is_an_error_that_names_its_key(
    content: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        DiscoverySettings.from_mapping(content)


@pytest.mark.parametrize(
    ("mode", "legacy", "resolved"),
    [
        ("all", False, "all"),
        ("all", True, "all"),
        ("mcp-only", True, "mcp-only"),
        ("off", True, "mcp-only"),
        ("auto", True, "mcp-only"),
        ("off", False, "off"),
        ("auto", False, "off"),
    ],
)
def test_all_and_mcp_only_win_then_the_legacy_setting(
    mode: Any, legacy: bool, resolved: str
) -> None:
    assert DiscoverySettings(mode=mode, mcp_discovery=legacy).resolved(TOOLS) == resolved


@pytest.mark.parametrize(("count", "resolved"), [(40, "off"), (41, "mcp-only")])
def test_auto_hides_above_40_tools(count: int, resolved: str) -> None:
    tools = [*many(count - 1), Tool(name="one", kind="mcp")]
    assert DiscoverySettings().resolved(tools) == resolved


@pytest.mark.parametrize(("words", "resolved"), [(14_000, "off"), (18_000, "mcp-only")])
def test_auto_hides_above_16000_tokens_of_definitions(words: int, resolved: str) -> None:
    tool = Tool(name="heavy", kind="mcp", description="word " * words)
    assert DiscoverySettings().resolved([tool]) == resolved


def test_auto_stays_off_where_nothing_could_be_hidden() -> None:
    assert DiscoverySettings().resolved(many(60, kind="builtin")) == "off"


def test_off_hides_nothing() -> None:
    assert hidden(DiscoverySettings(mode="off")) == []


def test_mcp_only_hides_the_tools_of_servers() -> None:
    assert hidden(DiscoverySettings(mode="mcp-only")) == sorted(tool.name for tool in SERVERS)


def test_all_hides_built_in_tools_but_essential_ones_too() -> None:
    found = hidden(DiscoverySettings(mode="all"))
    assert found == ["lsp", *sorted(tool.name for tool in SERVERS), "notebook"]


def test_essential_tools_are_those_of_the_document() -> None:
    """Later versions show four more, which the override names."""
    later = ("read", "bash", "edit", "write", "find", "glob", "eval")
    assert DiscoverySettings().essential(later) == ("read", "bash", "edit")
    assert DiscoverySettings(essential_override=later).essential(later) == later


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"tools": {"discoverymode": "all"}}, "tools.discoveryMode"),
        ({"tools.discovery_mode": "all"}, "tools.discoveryMode"),
        ({"tools": {"essentialsOverride": ["read"]}}, "tools.essentialOverride"),
        ({"mcp": {"discoveryDefaultServer": ["a"]}}, "mcp.discoveryDefaultServers"),
    ],
)
def test_a_misspelt_key_is_an_error_with_the_right_name(
    written: dict[str, Any], meant: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"write {meant}"):
        DiscoverySettings.from_mapping(written)


def test_other_settings_of_oh_my_pi_are_passed_over() -> None:
    theirs = {"tools": {"artifactSpillThreshold": 50}, "mcp": {"enabled": True}, "theme": "dark"}
    assert DiscoverySettings.from_mapping(theirs) == DiscoverySettings()


@pytest.mark.parametrize(
    ("override", "left"),
    [
        ((), ["bash", "read"]),
        ((" lsp ", "", "qwzx"), ["lsp"]),
        (("qwzx",), []),
        (("  ",), ["bash", "read"]),
    ],
)
def test_the_override_replaces_the_essential_tools(
    override: tuple[str, ...], left: list[str]
) -> None:
    settings = DiscoverySettings(mode="all", essential_override=override)
    known = [tool.name for tool in BUILTINS]
    assert sorted(settings.essential(known)) == left
    assert set(known) - set(hidden(settings)) == set(left)


def test_default_servers_stay_visible() -> None:
    for mode in ("mcp-only", "all"):
        settings: Any = {"mode": mode, "default_servers": (" github ", "missing")}
        found = hidden(DiscoverySettings(**settings))
        assert "mcp__github_list" not in found
        assert "mcp__slack_list" in found


def test_requested_and_forced_names_stay_visible() -> None:
    found = hidden(DiscoverySettings(mode="all"), requested=["mcp__slack_list", "lsp", "qwzx"])
    assert found == ["mcp__github_create", "mcp__github_list", "mcp__slack_create", "notebook"]


def test_a_tool_may_say_its_load_mode() -> None:
    tools = [
        Tool(name="a", kind="builtin", always_load=True),
        Tool(name="b", kind="builtin", annotations={"load_mode": "essential"}),
        Tool(name="c", annotations={"load_mode": "discoverable"}),
        Tool(name="d", kind="builtin"),
    ]
    assert hidden(DiscoverySettings(mode="all"), tools) == ["c", "d"]


def test_internal_tools_are_never_found() -> None:
    tools = [Tool(name=n, kind="builtin") for n in ("resolve", "yield", "report_finding", "lsp")]
    assert hidden(DiscoverySettings(mode="all"), tools) == ["lsp"]


@pytest.mark.parametrize(
    ("settings", "mode", "deferred"),
    [
        (DiscoverySettings(), "auto", 4),
        (DiscoverySettings(mode="off"), "full", 0),
        (DiscoverySettings(mode="mcp-only"), "tool_search", 4),
        (DiscoverySettings(mode="all"), "tool_search", 6),
        (DiscoverySettings(mode="off", mcp_discovery=True), "tool_search", 4),
    ],
)
def test_a_session_takes_the_same_modes(
    settings: DiscoverySettings, mode: str, deferred: int
) -> None:
    config = settings.session_config()
    assert config.tool_schema_mode == mode
    assert (config.threshold, config.threshold_tokens, config.max_results) == (40, 16_000, 8)
    assert (config.search_tool_name, config.search.preset) == ("search_tool_bm25", "oh-my-pi")
    assert len(settings.session_catalog(TOOLS).deferred) == deferred
