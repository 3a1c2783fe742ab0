"""Single faults in an otherwise clean configuration: each is found, with nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.doctor.test_doctor import KEYS, doctor
from tool_search.providers.known import likely_model

CLEAN = """\
providers:
  - {id: claude, type: anthropic, model: claude-sonnet-4-6}
tools: [aquarium]
"""
TOOLS = '''
from tool_search import ExecutableTool, Tool

def feed_fish(tank: str, grams: float) -> str:
    """Drop flakes of food into a tank, weighed in grams."""

def test_water(tank: str) -> str:
    """Measure acidity, nitrate and hardness of the water in one tank."""

def set_light(tank: str, hours: int) -> str:
    """Switch lamps above the plants on for a number of hours each day."""

def sell_fish(species: str, count: int, price: float) -> str:
    """Record a sale to a customer, and print the invoice."""

def order_supplies(article: str, count: int) -> str:
    """Order filters, gravel or medicine from the wholesaler."""

def tool(name, description, **parameters):
    schema = {"type": "object", **parameters}
    return ExecutableTool(
        tool=Tool(name=name, description=description, parameters=schema), function=lambda **_: "ok"
    )
'''
LISTED = "TOOLS = [feed_fish, test_water, set_light, sell_fish, order_supplies, {}]\n"
WEIGH = "Weigh several animals on the scale in the yard."


def found_in(folder: Path, content: str, *options: str, tools: str = "") -> list[Any]:
    """Return the findings of a file, without those of packages that are not installed here."""
    (folder / "aquarium.py").write_text(TOOLS + LISTED.format(tools), encoding="utf-8")
    path = folder / "bot.yaml"
    path.write_text(content, encoding="utf-8")
    found, _ = doctor("--config", path, *options, env={**KEYS, "REDIS_URL": ""})
    missing = ("sdk_missing", "adapter_missing")
    return [each for each in found["findings"] if each["code"] not in missing]


@pytest.fixture(autouse=True)
def _own_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "aquarium", raising=False)


def test_nothing_is_found_without_a_fault(tmp_path: Path) -> None:
    assert found_in(tmp_path, CLEAN) == []


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (f"threshold: 5\n{CLEAN}", 1, "'threshold' belongs in 'tool_search'"),
        (f"{CLEAN}deny: [sell_fish]\n", 4, "'deny' belongs in 'permissions'"),
        (
            f"{CLEAN}tool_search:\n  search:\n    max_results: 4\n",
            6,
            "'max_results' belongs in 'tool_search'",
        ),
        (CLEAN.replace("[aquarium]", "aquarium"), 3, "should be a list"),
        (CLEAN.replace("  - {", "  {"), 1, "should be a list"),
        (f"{CLEAN}telemetry: {{enabled: 'yes'}}\n", 4, "should be 'auto' or a valid boolean"),
        (f"{CLEAN}tool_search: {{search: {{embedder: 7}}}}\n", 4, "or a section of keys"),
        (f"{CLEAN}tool_search: {{search: {{embedder: {{kind: openai}}}}}}\n", 4, "is missing"),
        (f"{CLEAN}mcpServers:\n  a: {{url: 'https://h.example.com', type: strem}}\n", 5, "'sse'"),
    ],
)
def test_a_setting_in_a_wrong_place_is_one_finding(
    content: str, line: int, said: str, tmp_path: Path
) -> None:
    (found,) = found_in(tmp_path, content)
    assert (found["code"], found["line"]) == ("setting_wrong", line)
    assert said in found["message"]


@pytest.mark.parametrize(
    ("entry", "code", "fix"),
    [
        ("model: claude-sonet-4-6", "model_unknown", "claude-sonnet-4-6"),
        ("model: claude-sonnet-4.6", "model_unknown", "claude-sonnet-4-6"),
        ("model: gpt-5.4", "model_unknown", None),
        (
            "model: claude-x, base_url: 'https://h.example.com/anthropic/v1/'",
            "address_path",
            "https://h.example.com/anthropic",
        ),
        ("model: x, base_url: 'https://u:pw@h.example.com/v1/messages'", "address_path", None),
    ],
)
def test_a_wrong_name_or_address_of_a_provider_is_found(
    entry: str, code: str, fix: str | None, tmp_path: Path
) -> None:
    content = CLEAN.replace("model: claude-sonnet-4-6", entry)
    every = found_in(tmp_path, content)
    (found,) = [each for each in every if each["code"] == code]
    assert found["line"] == 2
    assert found.get("fix", {}).get("new") == fix
    assert "pw" not in json.dumps(every)
    if fix is not None:
        codes = {each["code"] for each in found_in(tmp_path, content, "--fix")}
        assert code not in codes
        assert fix in (tmp_path / "bot.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("entry", "codes"),
    [
        ("model: gpt-6-sol", ["reasoning_off"]),
        ("model: gpt-6-sol, extra_body: {reasoning_effort: low}", []),
        ("model: gpt-5.5", []),
    ],
)
def test_model_that_does_not_reason_with_tools_is_named_before_the_first_message(
    entry: str, codes: list[str], tmp_path: Path
) -> None:
    content = CLEAN.replace("model: claude-sonnet-4-6", entry).replace("anthropic", "openai-chat")
    found = found_in(tmp_path, content)
    assert [each["code"] for each in found] == codes
    assert all("openai_responses" in each["remedy"] for each in found)


@pytest.mark.parametrize(
    "model",
    [
        "claude-opus-4-1-20250805", "claude-3-5-sonnet-latest", "claude-haiku-5-5",
        "claude-somenewname-9",
    ],
)  # fmt: skip
def test_a_name_that_may_be_right_is_no_finding(model: str) -> None:
    assert likely_model("anthropic", "api.anthropic.com", model) is None


@pytest.mark.parametrize(
    "model",
    ["gpt-5.4-mini", "o3", "o4-mini-deep-research", "gpt-4o-audio-preview", "codex-mini-latest",
     "chatgpt-4o-latest", "gpt-image-1", "computer-use-preview", "ft:gpt-4o-mini:acme::abc"],
)  # fmt: skip
def test_names_of_the_other_vendor_may_be_right_too(model: str) -> None:
    assert likely_model("openai_chat", "api.openai.com", model) is None
    assert likely_model("anthropic", "gateway.example.com", model) is None


@pytest.mark.parametrize(
    ("server", "code", "key"),
    [
        ("url: 'ws://h.example.com/mcp'", "server_unusable", "url"),
        ("url: 'h.example.com/mcp'", "server_unusable", "url"),
        (f"command: {sys.executable}, cwd: /no/such/folder", "server_unusable", "cwd"),
        ("url: 'https://u:hunter2@h.example.com/mcp'", "server_secret", "url"),
    ],
)
def test_an_entry_of_a_server_that_cannot_work_is_found(
    server: str, code: str, key: str, tmp_path: Path
) -> None:
    (found,) = found_in(tmp_path, f"{CLEAN}mcpServers:\n  shop: {{{server}}}\n")
    assert (found["code"], found["key"], found["line"]) == (code, f"mcpServers.shop.{key}", 5)
    assert "hunter2" not in json.dumps(found)


def test_a_secret_of_a_variable_is_no_finding(tmp_path: Path) -> None:
    server = "{url: 'https://u:${PASSWORD:-x}@h.example.com/mcp', disabled: false}"
    assert found_in(tmp_path, f"{CLEAN}mcpServers:\n  shop: {server}\n") == []


def test_rules_about_a_server_that_gives_no_tools_are_not_called_wrong(tmp_path: Path) -> None:
    servers = "mcpServers:\n  gone: {url: 'http://127.0.0.1:9/mcp'}\n"
    rules = "permissions: {deny: [mcp__gone__wipe], ask: [mcp__other__wipe]}\n"
    found = found_in(tmp_path, "tools: [aquarium]\n" + servers + rules, "--live")
    wrong = [each["values"]["rule"] for each in found if each["code"] == "rule_unmatched"]
    assert wrong == ["mcp__other__wipe"]


@pytest.mark.parametrize(
    ("tools", "code"),
    [
        (
            """tool("fish_price", "Look up the price of a fish in the catalogue by its species."),
            tool("price_of_fish", "Looks up prices of fish in the catalogue by species.")""",
            "description_repeats",
        ),
        ('tool("weigh", "Взвешивает рыбу и записывает её вес в журнал.")', "description_foreign"),
        ('tool("weigh", "TODO: write a description of this.")', "description_short"),
        (f'tool("weigh", {WEIGH!r}, oneOf=[{{"properties": {{"a": {{}}}}}}])', "schema_changed"),
        (f'tool("weigh", {WEIGH!r}, properties={{"$top": {{}}}})', "schema_changed"),
    ],
)
def test_a_definition_that_misleads_is_found(tools: str, code: str, tmp_path: Path) -> None:
    (found,) = found_in(tmp_path, CLEAN, tools=tools)
    assert (found["code"], found["key"], found["line"]) == (code, "tools[0]", 3)


def test_a_store_setting_of_another_type_is_found(tmp_path: Path) -> None:
    found = found_in(tmp_path, f"{CLEAN}store:\n  type: memory\n  path: x.db\n")
    assert [(each["code"], each["line"]) for each in found] == [
        ("setting_idle", 6),
        ("store_temporary", 5),
    ]


def test_a_key_in_the_file_is_not_renamed(tmp_path: Path) -> None:
    content = CLEAN.replace("claude-sonnet-4-6", "claude-sonnet-4-6, api_key: sk-ant-hunter2")
    (found,) = found_in(tmp_path, content, "--fix")
    assert (found["code"], "fix" in found) == ("setting_wrong", False)
    assert "hunter2" not in json.dumps(found)
    assert (tmp_path / "bot.yaml").read_text(encoding="utf-8") == content


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_fix_keeps_the_ends_of_lines_and_changes_nothing_twice(end: str, tmp_path: Path) -> None:
    wrong = f"# ours: treshold\ntool_search:\n  treshold: 40  # was 3\n{CLEAN}".replace("\n", end)
    (tmp_path / "aquarium.py").write_text(TOOLS + LISTED.format(""), encoding="utf-8")
    path = tmp_path / "bot.yaml"
    path.write_bytes(wrong.encode())
    for fixed in (["setting_wrong"], []):
        found, status = doctor("--config", path, "--fix")
        assert [each["code"] for each in found["fixed"]] == fixed
        assert status == 0
        assert path.read_bytes() == wrong.replace("  treshold", "  threshold").encode()
