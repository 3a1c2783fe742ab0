"""Behaviour of the settings, and of reading them from YAML."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tool_search import (
    BotConfig,
    ConfigurationError,
    ProviderConfig,
    ToolSearchConfig,
    load_config,
)

WHOLE = """\
provider_settings:
  tool_schema_mode: tool_search
  tool_search:
    threshold: 30
    always_loaded_tools: [get_time, "weather:*"]
    search: {engine: rank_bm25, min_relevance: 0}
system_prompt: Be brief.
max_steps: 8
turn_timeout_s: 120
providers:
  - {id: claude, type: anthropic, model: claude-sonnet-4-6, timeout_s: 30, cooldown_s: 0,
     first_byte_timeout_s: 90, reply_timeout_s: 300}
  - {id: local, type: openai_chat, model: qwen, api_key_env: null, base_url: "http://localhost:1",
     extra_body: {tags: [a, b]}}
tools: ["mybot.tools"]
"""
PROVIDER = "providers:\n  - {{id: a, type: anthropic, model: m, {}}}\n"


def read(folder: Path, text: str) -> BotConfig:
    """The settings in a file with this text."""
    path = folder / "bot.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(path)


def complaint(folder: Path, text: str) -> str:
    """Return the error about a file with this text, without the file's place."""
    with pytest.raises(ConfigurationError) as caught:
        read(folder, text)
    return str(caught.value).replace(str(folder / "bot.yaml"), "bot.yaml")


def test_a_whole_file_is_read_as_it_is(tmp_path: Path) -> None:
    config = read(tmp_path, WHOLE)
    claude, local = config.providers
    assert config.tool_search.tool_schema_mode == "tool_search"
    assert config.tool_search.always_loaded_tools == ("get_time", "weather:*")
    assert (config.max_steps, config.tools) == (8, ("mybot.tools",))
    assert (claude.api_key_env, claude.timeout_s) == ("ANTHROPIC_API_KEY", 30.0)
    assert (claude.first_byte_timeout_s, claude.reply_timeout_s) == (90.0, 300.0)
    assert config.turn_timeout_s == 120.0
    assert (local.api_key_env, local.extra_body) == (None, {"tags": ["a", "b"]})


@pytest.mark.parametrize("text", ["", "# nothing\n", "tool_search:\n", "---\n"])
def test_an_empty_file_gives_the_defaults(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == BotConfig()


def test_the_designed_defaults_hold() -> None:
    config = ToolSearchConfig()
    assert (config.tool_schema_mode, config.threshold, config.threshold_tokens) == (
        "auto", 25, None,
    )  # fmt: skip
    assert (config.max_results, config.search_tool_name) == (5, "tool_search")
    assert (config.search.engine, config.search.min_relevance) == ("bm25", 0.1)
    assert (BotConfig().max_steps, BotConfig().turn_timeout_s) == (20, None)
    provider = ProviderConfig(id="a", type="openai_chat", model="m")
    assert (provider.first_byte_timeout_s, provider.timeout_s) == (600.0, 60.0)
    assert (provider.reply_timeout_s, provider.cooldown_s) == (None, 60.0)
    assert BotConfig().history.longest_result == 30_000


@pytest.mark.parametrize(
    ("silence", "first"), [(5, 120.0), (30, 300.0), (60.0, 600.0), (900, 600.0)]
)
def test_first_byte_follows_a_timeout_that_is_set_alone(silence: float, first: float) -> None:
    provider = ProviderConfig(id="a", type="openai_chat", model="m", timeout_s=silence)
    assert provider.first_byte_timeout_s == first
    provider = ProviderConfig(
        id="a", type="openai_chat", model="m", timeout_s=silence, first_byte_timeout_s=7
    )
    assert provider.first_byte_timeout_s == 7.0


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("tool_search:\n  threshold: -1\n", 2, "tool_search.threshold"),
        ("tool_search:\n  threshold: 2.5\n", 2, "tool_search.threshold"),
        ("tool_search:\n  threshold: '25'\n", 2, "tool_search.threshold"),
        ("tool_search:\n\n  max_results: 0\n", 3, "tool_search.max_results"),
        ("tool_search:\n  language: no\n", 2, "tool_search.language"),
        ("tool_search:\n  search_tool_name: a b\n", 2, "tool_search.search_tool_name"),
        ("tool_search:\n  search:\n    min_relevance: .nan\n", 3, "min_relevance"),
        ("tool_search:\n  search:\n    engine: magic\n", 3, "tool_search.search.engine"),
        ("tool_search: 5\n", 1, "tool_search"),
        ("tool_search:\n  always_loaded_tools: get_time\n", 2, "always_loaded_tools"),
        ("max_steps: 3\ntool_schema_mode: off\n", 2, "tool_schema_mode"),
        ("provider_settings:\n  tool_search:\n    threshold: x\n", 3, "tool_search.threshold"),
        ("providers:\n  - {id: a, type: openai_chat}\n", 2, "providers[0].model"),
        (PROVIDER.format("timeout_s: 0"), 2, "providers[0].timeout_s"),
        (PROVIDER.format("timeout_s: .inf"), 2, "providers[0].timeout_s"),
        (PROVIDER.format("first_byte_timeout_s: null"), 2, "providers[0].first_byte_timeout_s"),
        (PROVIDER.format("reply_timeout_s: soon"), 2, "providers[0].reply_timeout_s"),
        ("turn_timeout_s: 0\n", 1, "turn_timeout_s"),
        (PROVIDER.format("base_url: localhost"), 2, "providers[0].base_url"),
        (PROVIDER.format("id: b"), 2, "providers[0].id is there twice"),
        ("providers:\n  - {id: a, type: {x: y}, model: m}\n", 2, "providers[0].type"),
        ("history: {longest_result: 10}\n", 1, "history.longest_result"),
        ("max_steps: 1\nmax_steps: 2\n", 2, "max_steps is there twice"),
    ],
)
def test_a_wrong_value_is_named_with_its_line_and_key(
    tmp_path: Path, text: str, line: int, key: str
) -> None:
    said = complaint(tmp_path, text)
    assert said.startswith(f"bot.yaml, line {line}: ")
    assert key in said


@pytest.mark.parametrize(
    ("text", "key", "known"),
    [
        ("max_step: 3\n", "max_step is unknown", "max_steps"),
        ("tool_search:\n  treshold: 3\n", "tool_search.treshold is unknown", "threshold"),
        ("history: {longest: 2}\n", "history.longest is unknown", "longest_result"),
        ("tool_search: {search: {k1: 2}}\n", "tool_search.search.k1 is unknown", "engine"),
        (PROVIDER.format("timeout: 3"), "providers[0].timeout is unknown", "timeout_s"),
        ("provider_settings:\n  x: 1\n", "provider_settings.x is unknown", "tool_schema_mode"),
    ],
)
def test_an_unknown_key_is_refused_with_the_known_ones(
    tmp_path: Path, text: str, key: str, known: str
) -> None:
    """A misspelt key is never passed over."""
    said = complaint(tmp_path, text)
    assert key in said
    assert known in said.split("known here: ")[1]


@pytest.mark.parametrize(
    "text",
    [
        "a: b: c\n", "\t- x\n", "--- 1\n--- 2\n", "- 1\n", "5\n", "{[a]: b}\n", "? [a, b]\n: 1\n",
        "d: 2024-13-45\n", "!!python/object:os.system {}\n", "a: &x [*x]\n", "1: x\n", "a: \x07\n",
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_settings_is_a_configuration_error(tmp_path: Path, text: str) -> None:
    assert complaint(tmp_path, text).startswith("bot.yaml")


def test_permissions_are_read_with_their_levels(tmp_path: Path) -> None:
    """The file of grants is relative to the file that names it."""
    text = """
permissions:
  mode: never-ask
  deny: [run, "send_mail(to=*@x.org)"]
  policy: {ask: ["mcp__bank__*"]}
  roles: {guest: {deny: ["*"]}}
  grants: grants.json
"""
    permissions = read(tmp_path, text).permissions
    assert (permissions.mode, permissions.otherwise) == ("never-ask", "allow")
    assert permissions.deny == ("run", "send_mail(to=*@x.org)")
    assert permissions.policy.ask == ("mcp__bank__*",)
    assert permissions.roles["guest"].deny == ("*",)
    assert permissions.grants_file(tmp_path / "bot.yaml") == tmp_path / "grants.json"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("permissions: {mode: maybe}\n", 1, "permissions.mode is 'maybe'"),
        (
            "permissions:\n  denied: [x]\n",
            2,
            "permissions.denied is unknown; known here: allow, ask",
        ),
        (
            "permissions:\n  policy: {mode: plan}\n",
            2,
            "policy.mode is unknown; known here: allow, ",
        ),
        ("permissions:\n  roles: {guest: {forbid: [x]}}\n", 2, "roles.guest.forbid is unknown"),
        ("permissions:\n  deny: ['run(']\n", 2, "the rule 'run(' must be tool or tool(pattern)"),
        ("permissions:\n  deny: run\n", 2, "permissions.deny is 'run'"),
        ("permissions:\n  ask_timeout_s: 0\n", 2, "permissions.ask_timeout_s is 0"),
    ],
)
def test_a_mistake_in_permissions_names_its_key(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    """A rule that is passed over would be worse than none."""
    found = complaint(tmp_path, text)
    assert found.startswith(f"bot.yaml, line {line}: permissions")
    assert said in found


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    assert "line 2, column" in complaint(tmp_path, "max_steps: 3\na: b: c\n")


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_a_file_that_cannot_be_read_is_a_configuration_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_config(tmp_path / name)


def test_a_file_that_is_not_utf_8_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "bot.yaml").write_bytes("system_prompt: привет\n".encode("cp1251"))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_config(tmp_path / "bot.yaml")


def test_whole_numbers_are_taken_for_fractions(tmp_path: Path) -> None:
    """YAML writes 1 for 1.0."""
    config = read(tmp_path, "tool_search: {search: {min_relevance: 1}}\n")
    assert config.tool_search.search.min_relevance == 1.0


def test_the_mode_in_the_tool_search_section_is_sent_next_to_it(tmp_path: Path) -> None:
    said = complaint(tmp_path, "tool_search:\n  tool_schema_mode: full\n")
    assert "line 2: tool_schema_mode belongs next to tool_search" in said


def test_a_section_in_both_places_is_refused(tmp_path: Path) -> None:
    text = "tool_schema_mode: full\nprovider_settings: {tool_schema_mode: auto}\n"
    assert "is set here and under provider_settings" in complaint(tmp_path, text)


def test_two_providers_of_one_id_are_refused(tmp_path: Path) -> None:
    entry = "  - {id: a, type: openai_chat, model: m}\n"
    assert "two providers have the id 'a'" in complaint(tmp_path, f"providers:\n{entry}{entry}")


@pytest.mark.parametrize(
    "text",
    [
        PROVIDER.format("api_key: sk-secret-1"),
        PROVIDER.format("api_key_env: sk-secret-1"),
        PROVIDER.format("base_url: 'user:sk-secret-1@host'"),
        "providers: {id: a, api_key: sk-secret-1}\n",
        "provider_settings: [sk-secret-1]\n",
        "providers:\n  - [sk-secret-1]\n",
    ],
)
def test_a_key_in_the_file_is_in_no_error(tmp_path: Path, text: str) -> None:
    assert "sk-secret" not in complaint(tmp_path, text)


def test_a_key_in_code_is_in_no_error() -> None:
    with pytest.raises(ConfigurationError) as caught:
        ProviderConfig(id="a", type="anthropic", model="m", api_key_env="sk-secret-1")
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("environment", [{}, {"ANTHROPIC_API_KEY": "  "}])
def test_a_missing_key_names_the_variable(environment: dict[str, str]) -> None:
    provider = ProviderConfig(id="a", type="anthropic", model="m")
    with pytest.raises(ConfigurationError, match=r"'a'.*ANTHROPIC_API_KEY is not set"):
        provider.api_key(environment)


def test_a_key_is_read_from_its_variable_without_spaces() -> None:
    provider = ProviderConfig(id="a", type="openai_chat", model="m", api_key_env="MY_KEY")
    assert provider.api_key({"MY_KEY": "k1\n"}).get_secret_value() == "k1"


def test_an_endpoint_without_a_key_needs_no_variable() -> None:
    provider = ProviderConfig(id="a", type="openai_chat", model="m", api_key_env=None)
    assert provider.api_key({}).get_secret_value() == "unused"


def test_a_responses_provider_has_its_own_options() -> None:
    provider = ProviderConfig(
        id="a", type="openai_responses", model="m", tool_search="hosted", previous_response_id=True
    )
    assert (provider.tool_search, provider.previous_response_id) == ("hosted", True)
    assert provider.api_key({"OPENAI_API_KEY": "k1"}).get_secret_value() == "k1"


@pytest.mark.parametrize("option", ["tool_search: hosted", "previous_response_id: true"])
def test_an_option_of_responses_is_refused_elsewhere(tmp_path: Path, option: str) -> None:
    """It would do nothing."""
    entry = f"{{id: a, type: openai_chat, model: m, {option}}}"
    said = complaint(tmp_path, f"providers:\n  - {entry}\n")
    assert f"providers[0].{option.partition(':')[0]}" in said
    assert "is for providers of type openai_responses, not openai_chat" in said


def test_lists_do_in_code_as_they_do_in_yaml() -> None:
    provider = ProviderConfig(id="a", type="openai_chat", model="m")
    assert BotConfig.model_validate({"providers": [provider]}).providers == (provider,)


def test_settings_do_not_change() -> None:
    config: Any = ToolSearchConfig()
    with pytest.raises(ValidationError):
        config.threshold = 3


@pytest.mark.parametrize(
    ("written", "today"),
    [
        ("tools: {discoveryMode: all}", "instead of discoveryMode, write tool_schema_mode"),
        ("discoveryMode: all", "instead of discoveryMode, write tool_schema_mode"),
        ("tool_search: {essentialOverride: [read]}", "write tool_search.always_loaded_tools"),
        ("tool_search: {maxToolsLimit: 50}", "write tool_search.threshold"),
        ("tool_search: {search: {searchThreshold: 0.1}}", "write tool_search.search.min_relevance"),
        ("tool_search: {search: {NameBoost: 3}}", "write tool_search.search.boosts.name"),
        ("permissions: {mode: acceptEdits}", "instead of acceptEdits, write accept"),
        ("permissions: {mode: bypassPermissions}", "write bypass"),
        ("permissions: {mode: dontAsk}", "write never-ask"),
        ("permissions: {defaultMode: plan}", "write permissions.mode"),
    ],
)
def test_a_setting_of_another_system_is_an_error_with_the_name_of_today(
    written: str, today: str, tmp_path: Path
) -> None:
    bot = tmp_path / "bot.yaml"
    provider = "providers: [{id: a, type: anthropic, model: claude-sonnet-4-6}]\n"
    bot.write_text(provider + written, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_config(bot)
    assert today in str(caught.value)
    assert "line 2" in str(caught.value)


def test_aliases_that_multiply_are_refused_at_once(tmp_path: Path) -> None:
    """Seven levels of nine are five million values in 373 bytes."""
    names = "abcdefg"
    lines = [f"a: &a [{', '.join(['x'] * 9)}]"]
    lines += [
        f"{name}: &{name} [{', '.join([f'*{below}'] * 9)}]"
        for below, name in itertools.pairwise(names)
    ]
    with pytest.raises(ConfigurationError, match=r"aliases .* repeat"):
        read(tmp_path, "\n".join(lines))
    with pytest.raises(ConfigurationError, match="not YAML"):
        read(tmp_path, "tools: &a [*a]")


def test_ordinary_anchors_and_merges_stay(tmp_path: Path) -> None:
    common = "{type: openai_chat, model: m, api_key_env: null}"
    text = "providers:\n  - &one {id: one, <<: &all " + common + "}\n  - {<<: *all, id: two}\n"
    assert [provider.id for provider in read(tmp_path, text).providers] == ["one", "two"]
