"""The settings that the first turn freezes, and the one change that a mode makes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.conversations import (
    BOUND,
    CLAUDE,
    OPENAI,
    PROFILES,
    Chat,
    deferred,
    tool,
    toolbox,
)
from tests.search.word_embedder import FailingEmbedder
from tool_search import SearchSettings, SessionError, Tool, ToolCatalog
from tool_search.catalog.schema.declared import text_bytes
from tool_search.core.profiles import ProviderProfile

AUTO = {"tool_schema_mode": "auto"}
FULL = {"tool_schema_mode": "full"}
SKILLS = {"tool_schema_mode": "skills_like"}


def names(chat: Chat, profile: ProviderProfile = OPENAI) -> tuple[str, ...]:
    """Return the names that a request to the provider declares now."""
    return chat.session.plan(profile).tools.names


def test_nothing_is_settled_before_the_first_turn() -> None:
    chat = Chat(toolbox(3))
    assert not chat.session.has_begun
    with pytest.raises(SessionError, match="begin_turn"):
        chat.session.plan(OPENAI)
    with pytest.raises(SessionError, match="begin_turn"):
        chat.session.record()


def test_full_mode_has_no_search_tool_and_no_prompt_text() -> None:
    """A small bot pays nothing for tool search."""
    chat = Chat(toolbox(3, core=1), AUTO, system_prompt="Be brief.")
    plan = chat.begin()
    assert chat.session.decision.reason == "below_threshold"
    assert plan.tools.names == ("core_000", "tool_000", "tool_001", "tool_002")
    assert plan.system == "Be brief."
    assert deferred(chat.session.plan(CLAUDE)) == []


def test_full_mode_moves_once_to_tool_search_when_late_tools_come() -> None:
    """At a user turn, with a notice, and with a prompt and a search tool from then on."""
    chat = Chat(toolbox(3, core=1), AUTO)
    chat.begin()
    chat.call("tool_001", {"count": 1})
    chat.answer()
    plan = chat.turn(tools=toolbox(40, core=1))
    assert chat.session.decision.mode == "tool_search"
    assert chat.codes == ["catalog_changed", "mode_changed"]
    assert plan.tools.names == ("core_000", "tool_search", "tool_001")
    assert "tool_search" in plan.system
    assert "39" in plan.tools[1].tool.description or "40" in plan.tools[1].tool.description


def test_the_mode_never_goes_back() -> None:
    chat = Chat(toolbox(40))
    chat.turn()
    plan = chat.turn(tools=toolbox(1))
    assert chat.session.decision.mode == "tool_search"
    assert plan.tools.names == ("tool_search",)


@pytest.mark.parametrize("first", [[], toolbox(0, core=2)], ids=["no tool", "core only"])
def test_configured_tool_search_starts_full_and_searches_when_tools_come(
    first: list[Tool],
) -> None:
    chat = Chat(first)
    start = chat.turn()
    assert chat.session.decision.reason == "nothing_deferred"
    assert start.system == ""
    plan = chat.turn(tools=[*first, *toolbox(4)])
    assert chat.session.decision.mode == "tool_search"
    assert plan.tools.names == (*start.tools.names, "tool_search")
    assert "4 more tools" in plan.tools[-1].tool.description
    assert chat.search("tool_002", limit=1)["matches"][0]["name"] == "tool_002"


def test_a_configured_full_mode_stays_full_within_the_limit() -> None:
    """Only what would be refused is searched."""
    chat = Chat(toolbox(3), FULL)
    chat.turn()
    chat.turn(tools=toolbox(128))
    assert chat.session.decision.mode == "full"
    chat.turn(tools=toolbox(129))
    assert chat.session.decision.reason == "above_provider_limit"


@pytest.mark.parametrize("config", [FULL, SKILLS], ids=["full", "skills_like"])
def test_a_swap_to_a_limited_provider_searches_what_it_has_no_room_for(
    config: dict[str, Any],
) -> None:
    chat = Chat(toolbox(150), config)
    chat.begin(CLAUDE)
    assert len(names(chat, CLAUDE)) == 150
    assert names(chat, OPENAI) == ("tool_search",)
    assert chat.codes == ["mode_changed"]


@pytest.mark.parametrize("count", [127, 128])
def test_a_list_that_just_fits_is_sent_in_full(count: int) -> None:
    chat = Chat([*toolbox(count - 1), tool("zz_last")], FULL)
    chat.begin(CLAUDE)
    assert len(names(chat, OPENAI)) == count
    assert chat.session.decision.mode == "full"


def test_skills_like_is_not_offered_on_models_with_bound_thinking() -> None:
    """Its second request would have another list in the same turn."""
    chat = Chat(toolbox(3), SKILLS)
    chat.begin(BOUND)
    assert chat.session.decision.mode == "tool_search"
    assert chat.session.decision.reason == "not_offered"
    assert chat.codes == ["mode_changed"]


def test_two_moves_of_one_kind_are_both_announced() -> None:
    chat = Chat(toolbox(0, core=1), SKILLS)
    chat.turn(BOUND)
    chat.turn(tools=toolbox(200, core=1))
    assert chat.codes.count("mode_changed") == 2


def test_skills_like_sends_empty_schemas_and_then_the_chosen_ones() -> None:
    """Two phases: names and descriptions, then the definitions of what was picked."""
    chat = Chat(toolbox(3), SKILLS)
    chat.begin()
    light = chat.session.plan(OPENAI, phase="select")
    full = chat.session.plan(OPENAI, phase="detail", selected=["tool_002", "tool_002", "no"])
    assert light.tools.names == ("tool_000", "tool_001", "tool_002")
    assert [entry.tool.parameters for entry in light.tools] == [{}, {}, {}]
    assert [entry.tool for entry in full.tools] == [chat.session.catalog["tool_002"]]
    assert (light.phase, full.phase, light.system) == ("select", "detail", "")


@pytest.mark.parametrize("phase", ["select", "detail"])
def test_other_modes_have_one_phase(phase: Any) -> None:
    """Whatever a loop asks for."""
    chat = Chat(toolbox(3))
    chat.begin()
    assert chat.session.plan(OPENAI, phase=phase).phase == "answer"


@pytest.mark.parametrize("name", ["tool_search", "call_tool"])
def test_a_tool_with_one_of_our_names_is_an_error_of_the_session(name: str) -> None:
    chat = Chat([*toolbox(3), tool(name)])
    with pytest.raises(SessionError, match=f"'{name}'.*search_tool_name"):
        chat.begin()
    assert not chat.session.has_begun


def test_a_late_tool_with_our_name_leaves_the_conversation_as_it_was() -> None:
    chat = Chat(toolbox(3))
    before = chat.turn().tools
    with pytest.raises(SessionError, match="'tool_search'"):
        chat.begin(tools=[*toolbox(3), tool("tool_search")])
    assert len(chat.session.history) == 2
    assert chat.turn().tools is before


@pytest.mark.parametrize("name", ["tool_search", "call_tool"])
@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_full_mode_serves_a_tool_with_our_name(name: str, profile: ProviderProfile) -> None:
    """There it is an ordinary tool: declared once, as it is, and callable."""
    own = tool(name)
    chat = Chat([*toolbox(2), own], FULL)
    plan = chat.begin(profile)
    assert sorted(plan.tools.names) == sorted(["tool_000", "tool_001", name])
    assert own in [entry.tool for entry in plan.tools]
    assert chat.call(name, {"count": 1}).text == "ok"


def test_full_mode_stays_if_our_name_is_taken() -> None:
    chat = Chat([*toolbox(2), tool("tool_search")], AUTO)
    chat.turn()
    chat.turn(tools=[*toolbox(60), tool("tool_search")])
    assert chat.session.decision.mode == "full"
    assert "search_unavailable" in chat.codes


def test_a_restart_with_a_tool_of_our_name_goes_on_without_it() -> None:
    chat = Chat(toolbox(3))
    before = chat.turn().tools
    again = chat.restarted([*toolbox(3), tool("call_tool")])
    with pytest.raises(SessionError, match="'call_tool'"):
        again.begin(tools=[*toolbox(3), tool("call_tool")])
    assert list(again.turn().tools) == list(before)


def test_another_search_tool_name_leaves_the_usual_one_free() -> None:
    chat = Chat([*toolbox(3), tool("tool_search")], {"search_tool_name": "find_tools"})
    assert chat.begin().tools.names == ("find_tools",)
    assert chat.search("tool_search", limit=1)["matches"][0]["name"] == "tool_search"


def test_if_tool_search_cannot_start_the_bot_runs_in_full_mode() -> None:
    broken = SearchSettings.model_construct(engine="missing")  # as where an extra is missing
    chat = Chat(toolbox(30), {"search": broken})
    plan = chat.begin()
    assert (chat.session.decision.mode, len(plan.tools)) == ("full", 30)
    (notice,) = chat.session.take_notices()
    assert notice.code == "search_unavailable"
    assert "'missing'" in notice.message


EMBEDDER = FailingEmbedder("of a conversation")


def test_a_changed_catalog_that_cannot_be_searched_leaves_the_conversation_as_it_was() -> None:
    search = SearchSettings(engine="semantic", embedder=f"{__name__}:EMBEDDER", vector_cache=None)
    chat = Chat(toolbox(30), {"search": search})
    before = chat.turn().tools
    EMBEDDER.is_broken = True
    with pytest.raises(SessionError, match=r"cannot be searched: .* no memory left"):
        chat.begin(tools=[*toolbox(30), tool("another")])
    EMBEDDER.is_broken = False
    assert chat.turn().tools == before


def test_the_search_tools_description_is_settled_with_the_first_turn() -> None:
    chat = Chat(toolbox(30, server="lab"))
    before = chat.turn().tools[0].tool
    after = chat.turn(tools=toolbox(60, server="lab")).tools[0].tool
    assert after == before == chat.restarted().turn().tools[0].tool
    assert '"lab" (30)' in after.description
    assert chat.search("tool_055", limit=1)["matches"][0]["name"] == "tool_055"


@pytest.mark.parametrize(
    ("configured", "said", "language"),
    [
        ("auto", "帮我查天气", "zh-CN"),
        ("auto", "Какая погода?", "ru-RU"),
        ("auto", "weather", "en-US"),
        ("auto", "👍", "en-US"),
        ("ru-RU", "帮我查天气", "ru-RU"),
    ],
)
def test_the_language_is_the_users_and_stays(configured: str, said: str, language: str) -> None:
    """The first message settles it, for hints, errors and prompts."""
    chat = Chat(toolbox(3), {"language": configured})
    plan = chat.turn(text=said)
    assert chat.session.language == language
    later = chat.turn(text="And in English? Или по-русски? 还是中文？")
    assert later.system == plan.system
    assert chat.restarted().session.language == language


def test_the_language_is_that_of_the_first_message_of_an_imported_history() -> None:
    first = Chat(toolbox(3))
    first.turn(text="帮我查天气")
    chat = Chat(toolbox(3))
    chat.session.adopt_history(first.session.history)
    chat.turn(text="thanks")
    assert chat.session.language == "zh-CN"


def test_always_loaded_tools_of_the_configuration_are_core() -> None:
    tools = [*toolbox(3), tool("w", kind="mcp", server="weather"), tool("b", kind="builtin")]
    config = {"always_loaded_tools": ["*_001", "weather:*"], "auto_always_load_builtin": False}
    assert Chat(tools, config).begin().tools.names == ("tool_001", "w", "tool_search")


def test_what_every_provider_has_no_room_for_is_deferred_though_it_is_core() -> None:
    """The list leaves places for discoveries, and the operator gets a notice."""
    chat = Chat(toolbox(0, core=200), max_tools=128)
    assert len(chat.begin().tools) == 113
    assert chat.codes == ["catalog_over_limit"]
    chat.find("core_199")
    assert names(chat)[-1] == "core_199"


@pytest.mark.parametrize("config", [FULL, SKILLS], ids=["full", "skills_like"])
def test_core_tools_that_fill_a_list_are_all_sent(config: dict[str, Any]) -> None:
    """An unknown limit is not a reason to search before it is passed."""
    declared = Chat(toolbox(0, core=128), config).begin().tools.names
    assert len(declared) == 128
    assert "tool_search" not in declared


@pytest.mark.parametrize("config", [FULL, SKILLS], ids=["full", "skills_like"])
@pytest.mark.parametrize("count", [129, 300])
def test_core_tools_beyond_a_limit_that_nobody_knew_of_are_searched(
    config: dict[str, Any], count: int
) -> None:
    """The request is valid, and the tools it has no room for are found."""
    chat = Chat(toolbox(0, core=count), config)
    declared = chat.begin().tools.names
    assert len(declared) == 113
    assert declared[-1] == "tool_search"
    chat.find(f"core_{count - 1}")
    assert names(chat)[-1] == f"core_{count - 1}"


@pytest.mark.parametrize(
    ("limit", "what"), [({"max_deferred": 5}, "deferred"), ({"max_tool_bytes": 500}, "bytes")]
)
def test_a_catalog_beyond_claudes_limits_gets_the_generic_strategy(
    limit: dict[str, Any], what: str
) -> None:
    chat = Chat(toolbox(6))
    small = replace(CLAUDE, **limit)
    assert chat.turn(small).strategy == "generic"
    assert chat.turn(small).strategy == "generic"
    (notice,) = chat.session.take_notices()
    assert notice.code == "catalog_over_limit"
    assert what in notice.message


def test_a_catalog_at_claudes_limits_is_declared_whole() -> None:
    chat = Chat(toolbox(6))
    exact = replace(CLAUDE, max_deferred=6, max_tool_bytes=text_bytes(ToolCatalog(toolbox(6))))
    assert chat.turn(exact).strategy == "claude"
