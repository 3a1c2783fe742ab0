"""A strategy that is written outside the package: registered, chosen, planned, refused."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.conversations import OPENAI, Chat, toolbox
from tool_search import (
    ConfigurationError,
    Done,
    GenericToolSearchStrategy,
    ProviderError,
    SearchResult,
    SessionError,
    ToolSearchConfig,
    ToolSearchRunner,
    ToolSearchStrategy,
    UnsupportedStrategyError,
    load_config,
    profile_for,
    register_strategy,
)
from tool_search.adapters import build_provider
from tool_search.adapters.openai_chat.wire import to_wire
from tool_search.core.messages import DeclaredTool, ReferencePart, RequestPlan, ResultPart, TextPart
from tool_search.core.messages import ToolList as Tools
from tool_search.core.strategies import STRATEGY_GROUP, PlanInput, base, strategy_names
from tool_search.providers.errors import classify_error
from tool_search.providers.prompt_cache import cache_plan
from tool_search.providers.refusals import SentTools
from tool_search.testing import (
    ModelCall,
    ModelReply,
    ScriptedModel,
    StandInServer,
    check_openai_chat,
)

ROOT = Path(__file__).resolve().parents[2]
OFFERED = profile_for("openai_chat", "m")


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test register strategies for itself alone."""
    monkeypatch.setattr(base, "_registered", dict(vars(base)["_registered"]))


class Mine(GenericToolSearchStrategy):
    """Declare core tools and the search tool; found tools are called through `call_tool`."""

    name: ClassVar[str] = "mine"
    list_grows = False

    def declare(self, conversation: PlanInput) -> Tools:
        """Return the core, the search tool and `call_tool`."""
        own = [tool for tool in (conversation.search_tool, conversation.call_tool) if tool]
        return Tools(DeclaredTool(tool) for tool in own)

    def format_result(self, result: SearchResult) -> ResultPart:
        """Return the names alone."""
        return TextPart(f"Found: {', '.join(result.names) or 'nothing'}")


class InMessages(ToolSearchStrategy):
    """Declare the core; definitions follow a search in a developer's message."""

    name: ClassVar[str] = "in_messages"
    sends_definitions_in_messages = True
    definitions_role = "developer"
    dialect = "openai_chat"
    rejected_by = re.compile("no developer tools")

    def declare(self, conversation: PlanInput) -> Tools:
        """Return the core and the search tool."""
        return self._assembler.fixed(conversation)

    def format_result(self, result: SearchResult) -> ResultPart:
        """Return references, which get their definitions."""
        return ReferencePart(result.names) if result.names else TextPart("nothing")


class Broken(Mine):
    """Declare what a test says."""

    name: ClassVar[str] = "broken"
    declared: ClassVar[Any] = ()

    def declare(self, conversation: PlanInput) -> Tools:
        """Return a wrong list, or fail."""
        if isinstance(self.declared, Exception):
            raise self.declared
        tools = (conversation.catalog.get(name) or toolbox(1)[0] for name in self.declared)
        return Tools(DeclaredTool(tool) for tool in tools)


def planned(strategy: type[ToolSearchStrategy], *found: str) -> RequestPlan:
    """Return the request after a search for each of these tools, with a session's strategy."""
    profile = profile_for("openai_chat", "m", strategy=strategy)
    chat = Chat(toolbox(6, core=1), strategies=[strategy()])
    chat.begin(profile)
    chat.find(*found)
    return chat.session.plan(profile)


async def test_registered_strategy_is_chosen_by_configuration_and_used(tmp_path: Path) -> None:
    register_strategy(Mine)
    script = [
        ModelReply(calls=(ModelCall(name="tool_search", arguments={"query": "forecast"}),)),
        ModelReply(text="Sunny."),
    ]
    with StandInServer(model=ScriptedModel(script)) as server:
        file = tmp_path / "bot.yaml"
        file.write_text(
            "providers:\n- {id: p, type: openai_chat, model: m, strategy: mine, "
            f"api_key_env: null, base_url: '{server.openai_base_url}'}}\n",
            encoding="utf-8",
        )
        provider = build_provider(load_config(file).providers[0])
        runner = ToolSearchRunner(
            providers={"p": provider},
            tools=[get_forecast],
            config=ToolSearchConfig(tool_schema_mode="tool_search"),
        )
        events = [event async for event in runner.run("Weather?")]
        await runner.aclose()
        await provider.aclose()
    assert isinstance(events[-1], Done)
    assert events[-1].answer == "Sunny."
    first, second = server.requests
    assert first.tool_names == second.tool_names == ("tool_search", "call_tool")
    (result,) = (m for m in second.body["messages"] if m["role"] == "tool")
    assert result["content"] == "Found: get_forecast"


def get_forecast(city: str) -> str:
    """Get the weather forecast of a city."""
    return f"{city}: sunny"


def test_strategy_of_one_session_wins_over_the_registered_one() -> None:
    class Other(Mine):
        name: ClassVar[str] = "generic"

    chats = Chat(toolbox(6), strategies=[Other()]), Chat(toolbox(6))
    names = [chat.begin(OPENAI).tools.names for chat in chats]
    assert names == [("tool_search", "call_tool"), ("tool_search",)]


def test_facts_of_an_unregistered_strategy_reach_cache_and_errors() -> None:
    """Its class is in no registry: the plan carries it."""
    plan = planned(InMessages)
    profile = profile_for("openai_chat", "m", strategy=InMessages)
    assert cache_plan(plan, profile).tools_change == "never"
    assert cache_plan(planned(GenericToolSearchStrategy), profile).tools_change == "at its end"
    error = ProviderError("no developer tools here", provider="p", status=400)
    said = classify_error(error, profile, SentTools(listed=plan.tools, facts=plan.facts))
    assert (said.remedy, said.profile) == ("generic_strategy", profile.generic())


def test_definitions_follow_what_found_them_in_the_role_of_the_strategy() -> None:
    plan = planned(InMessages, "tool_003")
    body = to_wire(plan, OFFERED)
    (brought,) = (message for message in body["messages"] if "tools" in message)
    assert brought["role"] == "developer"
    assert [item["function"]["name"] for item in brought["tools"]] == ["tool_003"]
    assert "tool_003" not in [item["function"]["name"] for item in body["tools"]]


def test_text_of_a_result_has_the_names_that_the_request_calls_by() -> None:
    plan = planned(Mine, "tool_003", "tool_003")
    assert check_openai_chat(to_wire(plan, OFFERED)) is None
    results = [message.text for message in plan.messages if message.role == "tool"]
    assert results == ["Found: tool_003", "Found: tool_003"]


def test_dialect_that_a_strategy_does_not_speak_is_refused_when_a_profile_is_read() -> None:
    register_strategy(InMessages)
    with pytest.raises(UnsupportedStrategyError, match=r"'in_messages' needs type openai_chat"):
        profile_for("anthropic", "claude-sonnet-4-6", strategy="in_messages")


def test_dialect_that_a_strategy_does_not_speak_is_refused_when_a_request_is_planned() -> None:
    """A session's own strategy may replace one that speaks every dialect."""

    class Narrow(InMessages):
        name: ClassVar[str] = "generic"

    claude = profile_for("anthropic", "claude-sonnet-4-6", strategy="generic")
    chat = Chat(toolbox(3), strategies=[Narrow()])
    with pytest.raises(UnsupportedStrategyError, match="not 'anthropic'"):
        chat.begin(claude)
    assert chat.session.plan(OPENAI).strategy == "generic"


def test_name_without_a_strategy_lists_the_known_ones_and_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedStrategyError) as caught:
        profile_for("openai_chat", "m", strategy="genericc")
    assert "the nearest is 'generic'" in str(caught.value)
    assert all(repr(name) in str(caught.value) for name in strategy_names())
    file = tmp_path / "bot.yaml"
    file.write_text(
        "providers:\n- {id: p, type: openai_chat, model: m, strategy: brigde}\n", encoding="utf-8"
    )
    with pytest.raises(ConfigurationError, match=r"line 2: .*strategy.*the nearest is 'bridge'"):
        load_config(file)


def test_name_that_another_class_has_is_an_error() -> None:
    assert register_strategy(register_strategy(Mine)) is Mine
    again = type("Again", (Mine,), {})
    with pytest.raises(ConfigurationError, match=r"two strategies have the name 'mine'.*Again"):
        register_strategy(again)
    with pytest.raises(ConfigurationError, match="two of the name 'mine'"):
        Chat(toolbox(1), strategies=[Mine(), Mine()])


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (type("Nameless", (InMessages,), {"name": None}), "its name is None"),
        (type("Auto", (InMessages,), {"name": "auto"}), "its name is 'auto'"),
        (type("Spaced", (InMessages,), {"name": "a b"}), "its name is 'a b'"),
        (type("Half", (ToolSearchStrategy,), {"name": "half"}), "declare, format_result"),
        (Mine(), "must be a subclass of ToolSearchStrategy"),
    ],
)
def test_class_that_cannot_be_used_is_not_registered(made: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        register_strategy(made)


def test_session_takes_strategies_and_no_classes() -> None:
    with pytest.raises(ConfigurationError, match="must hold instances"):
        Chat(toolbox(1), strategies=[Mine])


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (("tool_001", "tool_001"), "'broken' declares the tool 'tool_001' twice"),
        (("tool_001", "gone"), "'broken' declares the tool 'tool_000', which the catalog lacks"),
        (ZeroDivisionError("by zero"), "'broken' failed to plan .*ZeroDivisionError: by zero"),
    ],
)
def test_wrong_plan_names_the_strategy_and_the_conversation_goes_on(
    monkeypatch: pytest.MonkeyPatch, declared: Any, said: str
) -> None:
    monkeypatch.setattr(Broken, "declared", declared)
    profile = profile_for("openai_chat", "m", strategy=Broken)
    chat = Chat(toolbox(3)[1:], strategies=[Broken()])
    with pytest.raises(SessionError, match=said) as caught:
        chat.begin(profile)
    assert caught.value.__cause__ is (declared if isinstance(declared, Exception) else None)
    assert [message.text for message in chat.session.plan(OPENAI).messages] == ["hello"]
    monkeypatch.setattr(Broken, "declared", ("tool_001",))
    assert chat.session.plan(profile).tools.names == ("tool_001",)


def test_strategy_of_an_installed_distribution_is_imported_when_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = EntryPoint("mine", f"{__name__}:Mine", STRATEGY_GROUP)
    wrong = EntryPoint("other", f"{__name__}:Mine", STRATEGY_GROUP)
    lost = EntryPoint("lost", f"{__name__}:NoSuch", STRATEGY_GROUP)
    installed = EntryPoints([entry, wrong, lost])
    monkeypatch.setattr(base, "entry_points", installed.select)
    assert {"mine", "other"} <= set(strategy_names())
    assert profile_for("openai_chat", "m", strategy="mine").strategy == "mine"
    for name, said in (("other", "must have this name, not 'mine'"), ("lost", "be imported")):
        with pytest.raises(ConfigurationError, match=said):
            profile_for("openai_chat", "m", strategy=name)


def test_former_name_in_yaml_works_and_says_the_new_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "bot.yaml"
    file.write_text(
        "providers:\n- {id: p, type: openai_chat, model: kimi-k3, strategy: late_tools}\n"
        "- {id: q, type: openai_chat, model: m, strategy: bridge}\n",
        encoding="utf-8",
    )
    config = load_config(file)
    assert [entry.strategy for entry in config.providers] == ["tools_in_messages", "bridge"]
    assert [record.getMessage() for record in caplog.records] == [
        "strategy 'late_tools' is now named 'tools_in_messages'; the old name still works"
    ]


def test_program_of_the_page_runs() -> None:
    page = (ROOT / "docs" / "extending" / "strategy.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    done = subprocess.run(  # noqa: S603  # our own page
        [sys.executable, "-c", block],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert "Done\nFound: get_forecast\n('tool_search', 'get_forecast')" in done.stdout
