"""The parts of the AstrBot adapter that run without AstrBot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tool_search.adapters.astrbot import AstrBotToolSearch
from tool_search.adapters.astrbot.claude import ClaudeHook, with_references
from tool_search.adapters.astrbot.hooks import ResetHook
from tool_search.adapters.astrbot.kept import JsonFile, KeptConversation, KeptConversations
from tool_search.adapters.astrbot.run import AstrBotConversation, AstrBotRun
from tool_search.adapters.astrbot.settings import read_settings
from tool_search.adapters.astrbot.tools import TranslatedTools, is_new, kind_of, neutral_history
from tool_search.config.conversation import ToolSearchConfig
from tool_search.core.catalog.catalog import ToolCatalog
from tool_search.core.catalog.tool import Tool
from tool_search.providers.profile_choice import profile_for
from tool_search.runner.session.session import ToolSearchSession

CLAUDE = profile_for("anthropic", "claude-sonnet-4-6")


class FunctionTool:
    """As AstrBot's, in what the adapter looks at."""

    def __init__(self, name: str, **more: Any) -> None:
        self.name = name
        self.description = f"Does {name}."
        self.parameters: dict[str, Any] = {"type": "object", "properties": {}}
        self.handler_module_path: str | None = None
        self.active = True
        self.__dict__.update(more)


class HandoffTool(FunctionTool):
    """As AstrBot's."""


class MCPTool(FunctionTool):
    """As AstrBot's."""


def guarded(tool: FunctionTool) -> FunctionTool:
    """Return a tool in AstrBot's permission guard."""
    return FunctionTool(tool.name, _wrapped=tool, handler_module_path=tool.handler_module_path)


def no_builtin(_name: str) -> bool:
    """None is AstrBot's own."""
    return False


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        (MCPTool("a"), "mcp"),
        (HandoffTool("a"), "handoff"),
        (FunctionTool("a", handler_module_path="data.plugins.x.main"), "plugin"),
        (FunctionTool("own"), "builtin"),
        (FunctionTool("a"), "plugin"),
    ],
)
def test_the_kind_of_a_tool_shows_through_the_guard(tool: FunctionTool, kind: str) -> None:
    assert kind_of(tool, "own".__eq__) == kind
    assert kind_of(guarded(tool), "own".__eq__) == kind


def test_an_equal_tool_is_translated_once() -> None:
    tools = TranslatedTools()
    first = tools.definitions([MCPTool("a", mcp_server_name="s")], no_builtin)
    second = tools.definitions([MCPTool("a", mcp_server_name="s")], no_builtin)
    assert first["a"] is second["a"]
    assert first["a"].server == "s"


def test_a_tool_that_cannot_be_translated_is_left_out() -> None:
    assert not TranslatedTools().definitions([FunctionTool(" bad ")], no_builtin)


def _endless() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"again": schema}
    return schema


@pytest.mark.parametrize(
    "broken",
    [
        {"parameters": {"type": "array"}},
        {"parameters": "none"},
        {"parameters": {"properties": {"a": {"enum": {1, 2}}}}},
        {"parameters": {"properties": {"a": {"default": float("nan")}}}},
        {"parameters": _endless()},
        {"description": ["not", "a", "text"]},
        {"name": ["a"]},
    ],
    ids=["array", "text", "set", "nan", "endless", "description", "name"],
)
def test_one_broken_tool_takes_no_other_of_its_server_away(broken: dict[str, Any]) -> None:
    listed = [MCPTool(name, mcp_server_name="s") for name in ("first", "bad", "last")]
    listed[1].__dict__.update(broken)
    tools = TranslatedTools()
    for _ in range(2):
        assert list(tools.definitions(listed, no_builtin)) == ["first", "last"]


def test_a_history_loses_what_no_history_keeps() -> None:
    history = neutral_history(
        [
            {"role": "system", "content": "s"},
            {"role": "_checkpoint", "content": {"id": "1"}},
            {"role": "user", "content": "opening", "_no_save": True},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [{"type": "think", "think": "hm"}]},
            SimpleNamespace(model_dump=lambda: {"role": "assistant", "content": "yes"}),
        ]
    )
    assert [(said.role, said.text) for said in history] == [
        ("user", "hi"),
        ("assistant", ""),
        ("assistant", "yes"),
    ]


def test_ids_and_names_of_a_history_are_read_as_text() -> None:
    """A plugin may have written them; the session takes the history all the same."""
    calls = [
        {"id": 7, "function": {"name": 8, "arguments": "{}"}},
        {"id": None, "function": {"arguments": "{}"}},
        "odd",
    ]
    history = neutral_history(
        [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": 7, "content": "seven"},
            {"role": "tool", "tool_call_id": {}, "content": "none"},
        ]
    )
    assert [(call.id, call.name) for call in history[1].tool_calls] == [("7", "8"), ("", "")]
    session = ToolSearchSession(ToolCatalog([Tool(name="a")]))
    session.adopt_history(history)
    assert [m.text for m in session.history if m.role == "tool"] == ["seven", "none"]


def a_run(*names: str) -> AstrBotRun:
    """Return a run on some deferred tools, in `tool_search` mode."""
    catalog = ToolCatalog([Tool(name=name, description=f"Does {name}.") for name in names])
    session = ToolSearchSession(catalog, config=ToolSearchConfig(tool_schema_mode="tool_search"))
    session.begin_turn("hi", profile=CLAUDE)
    executors = {name: FunctionTool(name) for name in names}
    return AstrBotRun(AstrBotConversation(session), executors, search_tool_name="tool_search")


def test_a_filtered_list_grows_at_its_end_alone() -> None:
    """Whatever comes: discoveries, and tools of other plugins."""
    run = a_run("alpha", "beta", "gamma")
    lists = [run.declared()]
    run.search({"query": "gamma"})
    lists.append(run.declared())
    run.add("late", FunctionTool("late"))
    lists.append(run.declared())
    run.search({"query": "alpha"})
    lists.append(run.declared())
    assert lists[0] == ("tool_search",)
    assert lists[-1] == ("tool_search", "gamma", "late", "alpha")
    assert all(lists[-1][: len(names)] == names for names in lists)


def test_a_removed_tool_is_not_declared() -> None:
    run = a_run("alpha", "beta")
    run.search({"query": "alpha"})
    run.remove("alpha")
    assert run.declared() == ("tool_search",)


def test_only_undiscovered_tools_are_looked_at_before_they_run() -> None:
    run = a_run("alpha", "beta")
    assert run.definition_to_check("alpha") is not None
    run.search({"query": "alpha"})
    assert run.definition_to_check("alpha") is None
    assert run.definition_to_check("beta") is not None
    assert run.definition_to_check("nothing") is None


def test_a_search_result_becomes_references_and_keeps_notices() -> None:
    run = a_run("alpha", "beta")
    found = run.search({"query": "alpha"})
    contexts: list[dict[str, Any]] = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "function": {"name": "tool_search", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": f"{found}\n[NOTICE] slow down"},
    ]
    shown = with_references(contexts, run, run.plan(CLAUDE))
    assert shown[:2] == contexts[:2]
    assert shown[2]["content"] == [{"type": "tool_reference", "tool_name": "alpha"}]
    assert "slow down" in shown[3]["content"][0]["text"]
    assert contexts[2]["content"].startswith(found)


def test_results_without_a_declared_tool_stay_text() -> None:
    """A reference to anything else would be refused."""
    run, other = a_run("alpha"), a_run("beta")
    found = run.search({"query": "alpha"})
    contexts = [
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "tool_search"}}]},
        {"role": "tool", "tool_call_id": "1", "content": found},
    ]
    assert with_references(contexts, other, other.plan(CLAUDE)) == contexts


class Provider:
    """As AstrBot's Anthropic provider, in what the hook touches."""

    base_url = "https://api.anthropic.com"

    def get_model(self) -> str:
        """Return a model with tool search."""
        return "claude-sonnet-4-6"

    async def text_chat(self, **_given: Any) -> str:
        """Return a reply."""
        return "reply"

    async def text_chat_stream(self, **_given: Any) -> AsyncIterator[str]:
        """Yield the same in pieces."""
        yield "reply"


class Vendor(Provider):
    """Somebody else's provider, made from the same class."""


def test_the_hook_comes_and_goes_without_a_trace() -> None:
    originals = (Provider.text_chat, Provider.text_chat_stream)
    first, second = ClaudeHook(Provider), ClaudeHook(Provider)
    first.install()
    second.install()
    assert Provider.text_chat.__wrapped__ is originals[0]  # type: ignore[attr-defined]
    first.remove()
    second.remove()
    assert (Provider.text_chat, Provider.text_chat_stream) == originals


async def test_requests_of_others_pass_the_hook() -> None:
    hook = ClaudeHook(Provider)
    hook.install()
    try:
        assert await Provider().text_chat(func_tool=None) == "reply"
        assert [part async for part in Provider().text_chat_stream()] == ["reply"]
    finally:
        hook.remove()


@pytest.mark.parametrize(
    ("native", "address", "provider", "strategy"),
    [
        ("auto", "https://api.anthropic.com", Provider(), "claude"),
        ("auto", "https://proxy.example", Provider(), "generic"),
        ("on", "https://proxy.example", Provider(), "claude"),
        ("off", "https://api.anthropic.com", Provider(), "generic"),
        ("on", "https://api.anthropic.com", Vendor(), "generic"),
        ("auto", "https://api.anthropic.com", Vendor(), "generic"),
    ],
)
def test_claudes_own_search_is_for_claude(
    native: Any, address: str, provider: Provider, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "base_url", address, raising=False)
    assert ClaudeHook(Provider).profile(provider, native).strategy == strategy


async def test_the_start_of_an_agent_is_seen_and_given_back() -> None:
    seen: list[Any] = []

    class Runner:
        async def reset(self, provider: Any, request: Any, run_context: Any) -> str:
            return f"reset {request}"

    async def prepare(event: Any, request: Any, runner: Any, provider: Any) -> None:
        assert isinstance(runner, Runner)
        seen.append((event, request, provider))

    original = Runner.reset
    hook = ResetHook(Runner, prepare)
    hook.install()
    context = SimpleNamespace(context=SimpleNamespace(event="event"))
    done = await Runner().reset("provider", request="asked", run_context=context)
    assert (done, seen) == ("reset asked", [("event", "asked", "provider")])
    hook.remove()
    assert Runner.reset is original


async def test_a_request_without_tools_stays_as_it_is() -> None:
    request = SimpleNamespace(func_tool=None, contexts=[], system_prompt="s", prompt="hi")
    event = SimpleNamespace(unified_msg_origin="o", set_extra=lambda *_: None)
    await AstrBotToolSearch(SimpleNamespace()).prepare(event, request)
    assert request.func_tool is None
    assert request.system_prompt == "s"


class CronMessageEvent(SimpleNamespace):
    """As AstrBot's, for what wakes it up by the clock."""


@pytest.mark.parametrize(
    ("event", "setting"),
    [(SimpleNamespace(), "cover_subagents"), (CronMessageEvent(), "cover_scheduled_tasks")],
)
async def test_agents_are_covered_as_set(
    event: SimpleNamespace, setting: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each kind by its own setting; without AstrBot, covering fails and is logged."""
    request = SimpleNamespace(
        func_tool=SimpleNamespace(tools=[FunctionTool("a")]), conversation=None, contexts=[]
    )
    event.unified_msg_origin = "o"
    context = SimpleNamespace()
    off = AstrBotToolSearch(context, {setting: False})
    await off.prepare_agent(event, request, None, None)
    assert not caplog.text
    await AstrBotToolSearch(context).prepare_agent(event, request, None, None)
    assert "AstrBot's own list" in caplog.text


async def test_a_mistake_leaves_the_request_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    tools = SimpleNamespace(tools=[FunctionTool("a")])
    request = SimpleNamespace(func_tool=tools, contexts=[], system_prompt="", prompt="hi")
    event = SimpleNamespace(unified_msg_origin="o", set_extra=lambda *_: None)
    await AstrBotToolSearch(SimpleNamespace()).prepare(event, request)
    assert request.func_tool is tools
    assert "AstrBot's own list" in caplog.text


@pytest.mark.parametrize(("saved", "new"), [("[]", True), (None, True), ('[{"role":1}]', False)])
def test_a_conversation_is_new_while_nothing_is_saved(saved: str | None, new: bool) -> None:
    request = SimpleNamespace(conversation=SimpleNamespace(cid="1", history=saved), contexts=[])
    assert is_new(request) is new


def test_a_wrong_setting_has_its_default() -> None:
    """A bot must answer."""
    settings = read_settings({"threshold": -1, "max_results": 3, "native_claude": "maybe"})
    assert settings.config.threshold == 25
    assert settings.config.max_results == 3
    assert settings.native_claude == "auto"
    assert tuple(map(str, settings.problems)) == (
        (
            "threshold: -1 is not allowed; allowed: a whole number from 0 to 1000000; "
            "its default is used"
        ),
        "native_claude: 'maybe' is not allowed; allowed: auto, on, off; its default is used",
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("threshold", True),
        ("threshold", "30"),
        ("threshold", 2.5),
        ("threshold_tokens", -1),
        ("max_results", 0),
        ("max_results", 101),
        ("tool_schema_mode", "skills_like"),
        ("engine", "magic"),
        ("engine", 1),
        ("language", "tlh"),
        ("always_loaded_tools", "get_*"),
        ("always_loaded_tools", [1]),
        ("learning", "yes"),
        ("cover_subagents", 1),
    ],
)
def test_a_value_without_a_meaning_keeps_the_last_good_one(key: str, value: object) -> None:
    good = {"threshold": 7, "max_results": 2, "language": "ru-RU", "cover_subagents": False}
    settings = read_settings({**good, key: value}, good)
    assert replace(settings, problems=()) == read_settings({**good, key: good.get(key)})
    assert settings.problems
    assert f"{key}: {value!r} is not allowed; allowed:" in str(settings.problems[0])


def test_the_last_good_settings_outlive_a_restart(tmp_path: Path) -> None:
    AstrBotToolSearch(SimpleNamespace(), {"threshold": 7}, folder=tmp_path).remove()
    wrong = AstrBotToolSearch(SimpleNamespace(), {"threshold": -1}, folder=tmp_path)
    wrong.remove()
    assert wrong.settings.config.threshold == 7
    assert "threshold: -1 is not allowed" in wrong.reports.last[0]


def test_what_is_kept_is_bounded_and_read_again(tmp_path: Path) -> None:
    kept = KeptConversations(tmp_path / "conversations.json")
    for number in range(600):
        kept.put(("place", str(number)), KeptConversation(found=("a",), language="ru-RU"))
    assert len(kept) == 500
    kept.save()
    again = KeptConversations(tmp_path / "conversations.json")
    assert len(again) == 500
    assert again.get(("place", "599")) == KeptConversation(found=("a",), language="ru-RU")
    assert again.get(("place", "0")) == KeptConversation()


@pytest.mark.parametrize("content", ["", "[", "[1]", '{"version": 99}', '{"version": 1}', "\0"])
def test_a_file_that_is_not_ours_is_left_out(content: str, tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(content, encoding="utf-8")
    assert len(KeptConversations(file)) == 0


def test_a_folder_that_cannot_be_written_costs_only_what_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "data").write_text("a file, not a folder")
    JsonFile(tmp_path / "data" / "settings.json").write({})
    assert "cannot be written" in caplog.text


def test_no_token_threshold_is_a_zero() -> None:
    assert read_settings({"threshold_tokens": 0}).config.threshold_tokens is None
    assert read_settings({"threshold_tokens": 900}).config.threshold_tokens == 900
