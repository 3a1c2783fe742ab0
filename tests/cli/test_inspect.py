"""`tool-search inspect`: the exact tool list of a request, and what it weighs."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ConfigDict, TypeAdapter

from tests.cli.conftest import Command
from tool_search.testing import check_anthropic, check_openai_chat, check_request

PROVIDERS = ("anthropic", "openai-chat", "openai-responses")
SUMMARY = ["tools_declared", "tools_loaded", "bytes", "tokens", "full_tokens", "saving"]
HEAD = ["provider", "model", "strategy", "mode"]
File = Callable[[str, str], Path]


def wire_names(tools: list[dict[str, Any]]) -> list[str]:
    """Return the names in a tool list of either dialect."""
    return [tool.get("function", tool)["name"] for tool in tools]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_inspect_json_has_the_documented_keys(
    command: Command, catalog: Path, provider: str
) -> None:
    shown = command("inspect", "--catalog", catalog, "--provider", provider).json
    assert list(shown) == [*HEAD, "tools"]
    assert shown["provider"] == provider
    assert shown["mode"] == "full"
    assert len(shown["tools"]) == 5


@pytest.mark.parametrize("provider", PROVIDERS)
def test_inspect_summary_has_figures_in_place_of_the_tools(
    command: Command, large_catalog: Path, provider: str
) -> None:
    options = ("--catalog", large_catalog, "--provider", provider, "--summary")
    shown = command("inspect", *options).json
    assert list(shown) == [*HEAD, *SUMMARY]
    assert shown["mode"] == "tool_search"
    assert shown["saving"] == round(1 - shown["tokens"] / shown["full_tokens"], 4)
    assert shown["saving"] > 0.9


def test_inspect_cache_says_where_a_prefix_may_end(command: Command, large_catalog: Path) -> None:
    options = ("--catalog", large_catalog, "--provider", "anthropic", "--cache")
    shown = command("inspect", *options).json
    assert list(shown) == [*HEAD, "cache"]
    assert shown["cache"] == {
        "kind": "explicit", "breakpoints": ["tools[1]", "system", "messages[0]"],
        "tools_change": "never", "stable_tools": 202, "stable_messages": 1,
    }  # fmt: skip
    assert list(command("inspect", *options, "--summary").json) == [*HEAD, *SUMMARY, "cache"]


def test_inspect_schemas_lists_what_is_declared_otherwise(command: Command, write: File) -> None:
    odd = {"$filter": {"type": "str"}, "odd": {"$ref": "#/none"}}
    tools = [
        {"name": "list_files", "parameters": {"type": "object", "properties": odd}},
        {"name": "refused"},
    ]
    catalog = write("odd.json", json.dumps(tools))
    bot = write("bot.yaml", "profiles: {c: {match: {model: 'claude-*'}, set_aside: [refused]}}")
    options = ("--catalog", catalog, "--provider", "anthropic", "--config", bot)
    shown = command("inspect", *options, "--schemas").json
    assert list(shown) == [*HEAD, "schemas", "set_aside"]
    assert shown["set_aside"] == ["refused"]
    assert {each["tool"] for each in shown["schemas"]} == {"list_files"}
    assert [(each["kind"], each["place"]) for each in shown["schemas"]] == [
        ("repaired", "/properties/$filter/type"),
        ("left_out", "/properties/odd/$ref"),
        ("renamed", "/properties/$filter"),
    ]
    plain = command("inspect", *options)
    assert wire_names(plain.json["tools"]) == ["list_files"]
    assert "schemas declared with changes: 1" in plain.err
    assert "tools set aside for this endpoint: 1" in plain.err


def test_inspect_anthropic_declares_all_and_loads_the_core(
    command: Command, large_catalog: Path
) -> None:
    options = ("--catalog", large_catalog, "--provider", "anthropic")
    shown = command("inspect", *options).json
    assert (shown["model"], shown["strategy"]) == ("claude-sonnet-4-6", "claude")
    assert sum("defer_loading" in tool for tool in shown["tools"]) == 200
    assert wire_names(shown["tools"])[:2] == ["hand_over", "tool_search"]
    figures = command("inspect", *options, "--summary").json
    assert (figures["tools_declared"], figures["tools_loaded"]) == (202, 2)


def test_inspect_openai_declares_the_core_alone(command: Command, large_catalog: Path) -> None:
    options = ("--catalog", large_catalog, "--provider", "openai-chat")
    shown = command("inspect", *options).json
    assert (shown["model"], shown["strategy"]) == ("gpt-5.4", "bridge")
    assert wire_names(shown["tools"]) == ["hand_over", "tool_search", "call_tool"]


def test_inspect_responses_declares_the_core_and_a_client_search(
    command: Command, large_catalog: Path
) -> None:
    """A discovered tool is in the history: it counts, and is not in the list."""
    options = ("--catalog", large_catalog, "--provider", "openai-responses")
    shown = command("inspect", *options).json
    assert (shown["model"], shown["strategy"]) == ("gpt-5.4", "openai_responses")
    search, core = shown["tools"]
    assert (search["type"], search["execution"]) == ("tool_search", "client")
    assert core["name"] == "hand_over"
    found = command("inspect", *options, "--discovered", "tool_009,tool_003").json
    assert found["tools"] == shown["tools"]
    before = command("inspect", *options, "--summary").json
    after = command("inspect", *options, "--discovered", "tool_009,tool_003", "--summary").json
    assert (before["tools_loaded"], after["tools_loaded"]) == (2, 4)
    assert before["tokens"] < after["tokens"]
    assert before["bytes"] == after["bytes"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_inspect_bytes_are_those_of_the_list(
    command: Command, large_catalog: Path, provider: str
) -> None:
    options = ("--catalog", large_catalog, "--provider", provider)
    printed = command("inspect", *options).out
    listed = printed[printed.index("[") : printed.rindex("]") + 1]
    assert command("inspect", *options, "--summary").json["bytes"] == len(listed.encode())


def test_inspect_discovered_tools_follow_in_their_order(
    command: Command, large_catalog: Path
) -> None:
    found = ("--discovered", "tool_009, tool_003,tool_009")
    options = ("--provider", "openai-chat", "--base-url", "http://localhost:8000/v1", *found)
    shown = command("inspect", "--catalog", large_catalog, *options).json
    assert wire_names(shown["tools"]) == ["hand_over", "tool_search", "tool_009", "tool_003"]


def test_inspect_discovered_tools_change_no_byte_for_claude(
    command: Command, large_catalog: Path
) -> None:
    options = ("--catalog", large_catalog, "--provider", "anthropic")
    found = ("--discovered", "tool_009,tool_003")
    assert command("inspect", *options, *found).out == command("inspect", *options).out
    assert command("inspect", *options, *found, "--summary").json["tools_loaded"] == 4


@pytest.mark.parametrize(
    ("mode", "model", "declared"),
    [("full", None, 5), ("tool_search", None, 3), ("skills_like", None, 5), ("full", "qwen3", 5)],
)
def test_inspect_mode_and_model_can_be_named(
    command: Command, catalog: Path, mode: str, model: str | None, declared: int
) -> None:
    named = ("--model", model) if model else ()
    options = ("--catalog", catalog, "--provider", "openai-chat", "--mode", mode, *named)
    shown = command("inspect", *options).json
    assert (shown["mode"], shown["model"]) == (mode, model or "gpt-5.4")
    assert len(shown["tools"]) == declared


def test_inspect_skills_like_shows_empty_schemas(command: Command, large_catalog: Path) -> None:
    options = ("--catalog", large_catalog, "--provider", "anthropic", "--mode", "skills_like")
    shown = command("inspect", *options).json
    assert all(not tool["input_schema"]["properties"] for tool in shown["tools"])


def test_inspect_says_why_the_mode_is_another(command: Command, large_catalog: Path) -> None:
    options = ("--catalog", large_catalog, "--provider", "openai-chat", "--mode", "full")
    outcome = command("inspect", *options)
    assert outcome.json["mode"] == "tool_search"
    assert "there are more tools than this provider accepts" in outcome.err


def test_inspect_of_a_claude_model_without_tool_search_is_generic(
    command: Command, large_catalog: Path
) -> None:
    options = ("--catalog", large_catalog, "--provider", "anthropic")
    shown = command("inspect", *options, "--model", "claude-3-5-haiku-20241022").json
    assert shown["strategy"] == "generic"
    assert wire_names(shown["tools"]) == ["hand_over", "tool_search"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("tool_3", "tool 'tool_3' is not in the catalog; similar names: tool_"),
        ("tool_003,nothing", "tool 'nothing' is not in the catalog"),
    ],
)
def test_inspect_refuses_unknown_discoveries(
    command: Command, large_catalog: Path, names: str, message: str
) -> None:
    options = ("--catalog", large_catalog, "--provider", "anthropic", "--discovered", names)
    outcome = command("inspect", *options)
    assert outcome.status == 2
    assert message in outcome.err


def test_inspect_notes_that_a_core_tool_needs_no_discovery(
    command: Command, large_catalog: Path
) -> None:
    options = ("--provider", "openai-chat", "--discovered", "hand_over")
    outcome = command("inspect", "--catalog", large_catalog, *options)
    assert wire_names(outcome.json["tools"]) == ["hand_over", "tool_search", "call_tool"]
    assert "'hand_over' is a core tool" in outcome.err


def test_inspect_of_a_catalog_with_a_reserved_name_is_full(command: Command, write: File) -> None:
    """As in a bot: no search, and a warning that names the cause."""
    lines = "".join(f'{{"name": "tool_{index}"}}\n' for index in range(30))
    tools = write("t.jsonl", lines + '{"name": "tool_search"}')
    outcome = command("inspect", "--catalog", tools, "--provider", "anthropic")
    assert outcome.json["mode"] == "full"
    assert "'tool_search'" in outcome.err


@pytest.mark.parametrize("provider", PROVIDERS)
def test_inspect_of_an_empty_catalog_shows_an_empty_list(
    command: Command, write: File, provider: str
) -> None:
    options = ("--catalog", write("e.jsonl", ""), "--provider", provider)
    assert command("inspect", *options).json["tools"] == []
    assert command("inspect", *options, "--summary").json["saving"] == 0


def test_inspect_saves_nearly_all_of_a_real_catalog(command: Command, shared: Path) -> None:
    tools = shared / "data" / "_distractors_smithery_mcp" / "tools.jsonl"
    options = ("--catalog", tools, "--provider", "openai-chat", "--summary")
    assert command("inspect", *options).json["saving"] >= 0.95


def test_inspect_tools_of_a_public_set_fit_the_types_of_the_anthropic_sdk(
    command: Command, shared: Path
) -> None:
    """All 2,309 and the search tool, strictly by `ToolParam`, and by the service's rules."""
    tools = shared / "data" / "acebench_en" / "tools.jsonl"
    listed = command("inspect", "--catalog", tools, "--provider", "anthropic").json["tools"]
    assert len(listed) == 2310
    validate = _validator("anthropic.types", "ToolParam")
    assert [validate(tool)["name"] for tool in listed] == wire_names(listed)
    asked = {"model": "claude-sonnet-4-6", "max_tokens": 9, "tools": listed}
    assert check_anthropic({**asked, "messages": [{"role": "user", "content": "Hi"}]}) is None


def test_inspect_tools_fit_the_types_of_the_openai_sdk(
    command: Command, large_catalog: Path
) -> None:
    options = ("--catalog", large_catalog, "--provider", "openai-chat")
    listed = command("inspect", *options, "--discovered", "tool_001").json["tools"]
    validate = _validator("openai.types.chat", "ChatCompletionFunctionToolParam")
    assert [validate(tool)["type"] for tool in listed] == ["function"] * 3
    asked = {"model": "gpt-5.4", "tools": listed, "messages": [{"role": "user", "content": "Hi"}]}
    assert check_openai_chat(asked) is None


def test_inspect_tools_fit_the_types_of_the_openai_sdk_for_responses(
    command: Command, large_catalog: Path
) -> None:
    """Strictly by `ToolSearchToolParam` and `FunctionToolParam`, and by the service's rules."""
    options = ("--catalog", large_catalog, "--provider", "openai-responses")
    search, core = command("inspect", *options).json["tools"]
    assert _validator("openai.types.responses", "ToolSearchToolParam")(search) == search
    assert _validator("openai.types.responses", "FunctionToolParam")(core) == core
    asked = {"model": "gpt-5.4", "tools": [search, core], "input": "Hi"}
    assert check_request("openai_responses", asked) is None


def _validator(module: str, name: str) -> Callable[[Any], Any]:
    """Read a TypedDict of an SDK, and takes no key which it does not have."""
    kind = getattr(importlib.import_module(module), name)
    kind.__pydantic_config__ = ConfigDict(extra="forbid")
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    return adapter.validate_python


def test_inspect_honours_the_profiles_of_a_bot(
    command: Command, large_catalog: Path, write: File
) -> None:
    """For the endpoint they match; the configuration's other settings count too."""
    bot = write(
        "bot.yaml",
        "tool_search: {search_tool_name: find_tools}\n"
        "profiles: {mine: {match: {host: llm.example.com}, strategy: bridge}}\n",
    )
    options = ("inspect", "--catalog", large_catalog, "--provider", "anthropic", "--config", bot)
    assert command(*options).json["strategy"] == "claude"
    shown = command(*options, "--base-url", "https://llm.example.com/v1").json
    assert shown["strategy"] == "bridge"
    assert wire_names(shown["tools"]) == ["hand_over", "find_tools", "call_tool"]
    assert "cache_control" in shown["tools"][-1]


@pytest.mark.parametrize(
    ("option", "spelling"),
    [("--mode", "skills-like"), ("--mode", "Skills_Like"), ("--provider", "openai_chat")],
)
def test_inspect_takes_a_dash_for_an_underscore(
    command: Command, catalog: Path, option: str, spelling: str
) -> None:
    plain = {"--provider": "openai-chat", "--mode": "skills_like"}
    options = [
        [part for pair in given.items() for part in pair]
        for given in (plain, {**plain, option: spelling})
    ]
    first, second = (command("inspect", "--catalog", catalog, *given).json for given in options)
    del first["provider"], second["provider"]  # as it was typed
    assert first == second
