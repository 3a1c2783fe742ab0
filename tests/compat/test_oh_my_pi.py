"""oh-my-pi's tool discovery in an agent loop: visible tools, searches, sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_search import Tool
from tool_search.adapters.compat.oh_my_pi.ranking import oh_my_pi_recipe
from tool_search.adapters.compat.oh_my_pi.surface import (
    DiscoveryDetails,
    DiscoverySettings,
    ToolDiscovery,
)
from tool_search.adapters.compat.weighted_bm25 import WeightedBm25Index
from tool_search.i18n import LANGUAGES

SEARCH = "search_tool_bm25"
MCP_ONLY = DiscoverySettings(mode="mcp-only")
ALL = DiscoverySettings(mode="all")


def mcp(server: str, name: str, **fields: Any) -> Tool:
    """A tool of a server."""
    full = f"mcp__{server}_{name}"
    given = {"description": f"{name} of {server}", **fields}
    return Tool(name=full, kind="mcp", server=server, **given)


READ = Tool(name="read", kind="builtin", description="Reads a file.")
LSP = Tool(name="lsp", kind="builtin", description="Asks the language server for an issue.")
ISSUE = mcp(
    "github",
    "create_issue",
    title="Create issue",
    parameters={
        "type": "object",
        "properties": {"title": {"type": "string"}, "state": {"enum": ["open", "closed"]}},
        "required": ["title"],
    },
)
ISSUES = mcp("github", "list_issues")
COMMENT = mcp("github", "comment_issue")
POST = mcp("slack", "post_message")
TOOLS = [READ, LSP, ISSUE, ISSUES, COMMENT, POST]


def discovery(tools: Iterable[Tool] = TOOLS, **how: Any) -> ToolDiscovery:
    """A session that hides the tools of servers, unless the settings differ."""
    return ToolDiscovery(tools, **{"settings": MCP_ONLY, **how})


def active(session: ToolDiscovery, **how: Any) -> list[str]:
    """The names that the next request declares."""
    return [tool.name for tool in session.active_tools(**how)]


def found(session: ToolDiscovery, query: str, **more: Any) -> DiscoveryDetails:
    """The record of a search that finds something or nothing."""
    details = session.call({"query": query, **more}).details
    assert details is not None
    return details


def test_a_search_makes_what_it_finds_visible_in_the_next_request() -> None:
    session = discovery()
    assert active(session) == ["lsp", "read", SEARCH]
    assert found(session, "create issue", limit=1).activated_tools == (ISSUE.name,)
    assert active(session) == ["lsp", "read", SEARCH, ISSUE.name]


def test_the_model_reads_compact_json() -> None:
    assert discovery().call({"query": " create issue ", "limit": 1}).content == (
        '{"query":"create issue","activated_tools":["mcp__github_create_issue"],"match_count":1,'
        '"total_tools":4}'
    )


def test_the_later_answer_lists_tools() -> None:
    later = discovery(settings=DiscoverySettings(mode="mcp-only", answer="tools"))
    assert later.call({"query": "create issue", "limit": 1}).content == (
        '{"query":"create issue","activated_tools":["mcp__github_create_issue"],"match_count":1,'
        '"total_tools":4,"tools":[{"name":"mcp__github_create_issue",'
        '"description":"create_issue of github","params":["state?(open|closed)","title"]}]}'
    )


def test_no_match_is_an_answer_and_no_error() -> None:
    answer = discovery().call({"query": "qwzx"})
    assert answer.content == (
        '{"query":"qwzx","activated_tools":[],"match_count":0,"total_tools":4}'
    )
    assert not answer.is_error


def test_the_record_has_oh_my_pis_keys() -> None:
    session = discovery()
    record = json.loads(json.dumps(found(session, "create issue", limit=1).to_dict()))
    ranked = WeightedBm25Index([ISSUE, ISSUES, COMMENT, POST], oh_my_pi_recipe()).ranked(
        "create issue"
    )
    assert record == {
        "query": "create issue",
        "limit": 1,
        "total_tools": 4,
        "activated_tools": [ISSUE.name],
        "active_selected_tools": [ISSUE.name],
        "tools": [
            {
                "name": ISSUE.name,
                "label": "Create issue",
                "description": "create_issue of github",
                "server_name": "github",
                "mcp_tool_name": "create_issue",
                "schema_keys": ["state", "title"],
                "signature": ["state?(open|closed)", "title"],
                "score": round(ranked[0].score, 6),
            }
        ],
    }


def test_a_built_in_tool_has_no_server_in_the_record() -> None:
    (match,) = found(discovery(settings=ALL), "language server", limit=1).to_dict()["tools"]
    assert match["name"] == "lsp"
    assert not {"server_name", "mcp_tool_name"} & match.keys()


def test_selected_tools_are_left_out_before_the_cut() -> None:
    """A second search continues after the first; selections add up."""
    session = discovery()
    first = found(session, "github", limit=2)
    second = found(session, "github", limit=2)
    assert len(first.activated_tools) == 2
    assert len(second.activated_tools) == 1
    assert (first.total_tools, second.total_tools) == (4, 2)
    assert second.active_selected_tools == (*first.activated_tools, *second.activated_tools)
    assert session.selected == second.active_selected_tools
    assert found(session, "github").tools == ()


def test_what_is_active_is_no_part_of_the_ranking() -> None:
    """The corpus is the hidden tools: selected ones change neither rarity nor lengths."""
    session = discovery()
    found(session, "post message", limit=1)
    fresh = WeightedBm25Index([ISSUE, ISSUES, COMMENT], oh_my_pi_recipe()).ranked("list issues")
    matches = found(session, "list issues", limit=3).tools
    assert [(m.name, m.score) for m in matches] == [(t.name, round(s, 6)) for t, s in fresh]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Query is required and must not be empty."),
        ({"query": " \t\ufeff\u00a0 "}, "Query is required and must not be empty."),
        ({"query": None}, "Query is required and must not be empty."),
        ({"query": ["a"]}, "Query is required and must not be empty."),
        ({"query": "", "limit": 0}, "Query is required and must not be empty."),
        ({"query": "a", "limit": 0}, "Limit must be a positive integer."),
        ({"query": "a", "limit": -1}, "Limit must be a positive integer."),
        ({"query": "a", "limit": 2.5}, "Limit must be a positive integer."),
        ({"query": "a", "limit": "5"}, "Limit must be a positive integer."),
        ({"query": "a", "limit": True}, "Limit must be a positive integer."),
        ({"query": "a", "limit": float("nan")}, "Limit must be a positive integer."),
        ({"query": "!?", "limit": 0}, "Limit must be a positive integer."),
        ({"query": "!?"}, "Query must contain at least one letter or number."),
    ],
)
def test_errors_have_oh_my_pis_texts_in_its_order(arguments: dict[str, Any], message: str) -> None:
    answer = discovery(language="zh-CN").call(arguments)
    assert (answer.content, answer.is_error, answer.details) == (message, True, None)


def test_a_query_without_words_is_an_error_before_the_empty_index() -> None:
    session = discovery([READ])
    assert session.call({"query": "?"}).is_error
    assert found(session, "issue").total_tools == 0


def test_off_says_how_to_enable_discovery() -> None:
    session = discovery(settings=DiscoverySettings(mode="off"))
    answer = session.call({"query": "issue"})
    assert answer.content == (
        "Tool discovery is disabled. Enable tools.discoveryMode or mcp.discoveryMode to use "
        "search_tool_bm25."
    )
    assert answer.is_error
    assert active(session) == sorted(tool.name for tool in TOOLS)
    assert session.system_notice() == ""


@pytest.mark.parametrize(("limit", "count"), [(None, 8), (3.0, 3), (500, 12), (10**400, 12)])
def test_the_limit_is_eight_and_has_no_upper_end(limit: Any, count: int) -> None:
    session = discovery([mcp("many", f"thing{number}") for number in range(12)])
    more = {} if limit is None else {"limit": limit}
    assert len(found(session, "many", **more).tools) == count


def test_unknown_names_are_passed_over_when_activated() -> None:
    session = discovery()
    assert session.activate(["qwzx", POST.name, "read", POST.name]) == (POST.name,)
    assert session.activate([POST.name]) == ()


def test_a_forced_tool_is_declared() -> None:
    session = discovery()
    assert active(session, forced=[POST.name, "qwzx"])[-1] == POST.name
    assert session.selected == (POST.name,)


def test_a_server_that_is_away_keeps_its_selections() -> None:
    session = discovery()
    found(session, "create issue", limit=1)
    found(session, "post message", limit=1)
    assert session.set_tools([READ, LSP, POST])
    assert active(session) == ["lsp", "read", SEARCH, POST.name]
    assert session.selected == (ISSUE.name, POST.name)
    assert found(session, "issue").tools == ()
    assert session.set_tools(TOOLS)
    assert active(session) == ["lsp", "read", SEARCH, ISSUE.name, POST.name]


def test_selections_of_built_in_tools_count_only_while_they_are_there() -> None:
    session = discovery(settings=ALL)
    session.activate(["lsp"])
    session.set_tools([READ, ISSUE])
    assert "lsp" not in session.selected
    session.set_tools(TOOLS)
    assert "lsp" in session.selected


def test_a_late_server_is_found_without_a_restart() -> None:
    session = discovery([READ, POST])
    assert found(session, "issue").tools == ()
    session.set_tools([READ, POST, ISSUE])
    changed = mcp("github", "create_issue", description="Opens a ticket")
    session.set_tools([READ, POST, changed])
    assert found(session, "ticket").activated_tools == (ISSUE.name,)
    assert session.active_tools()[-1].description == "Opens a ticket"


def test_an_equal_list_changes_no_byte() -> None:
    session = discovery()
    before = session.active_tools()
    assert not session.set_tools([Tool.from_dict(tool.to_dict()) for tool in TOOLS[::-1]])
    after = session.active_tools()
    assert [tool.to_dict() for tool in after] == [tool.to_dict() for tool in before]
    assert after[2] is before[2]


def test_auto_goes_from_off_to_mcp_only_once() -> None:
    """It changes when servers come late, and never back."""
    session = discovery([READ, POST], settings=DiscoverySettings())
    assert active(session) == [POST.name, "read"]
    assert session.mode == "off"
    session.set_tools([READ, POST, *(mcp("big", f"t{n}") for n in range(60))])
    assert (session.mode, active(session)) == ("mcp-only", ["read", SEARCH])
    session.set_tools([READ, POST])
    assert (session.mode, active(session)) == ("mcp-only", ["read", SEARCH])


def test_the_search_tool_among_the_tools_counts_for_nothing() -> None:
    many = [mcp("big", f"t{number}") for number in range(40)]
    session = discovery([*many, Tool(name=SEARCH)], settings=None)
    assert (session.mode, SEARCH in active(session)) == ("off", False)
    session.set_tools([*many, POST, Tool(name=SEARCH)])
    assert active(session) == [SEARCH]


def test_the_list_grows_only_at_its_end() -> None:
    session = discovery()
    found(session, "create issue", limit=1)
    before = active(session)
    session.set_tools([Tool(name="ask", kind="builtin"), *TOOLS])
    assert active(session) == [*before, "ask"]


def test_a_session_goes_on_from_plain_json() -> None:
    session = discovery([*TOOLS, *(mcp("b", f"t{n}") for n in range(60))], settings=None)
    found(session, "create issue", limit=1)
    found(session, "post message", limit=1)
    saved = json.loads(json.dumps(session.to_dict()))
    assert saved == {"mode": "mcp-only", "selected_tools": [ISSUE.name, POST.name]}
    again = discovery([READ, POST], settings=None, saved=saved)
    assert (again.mode, active(again)) == ("mcp-only", ["read", SEARCH, POST.name])
    again.set_tools(TOOLS)
    assert active(again) == ["read", SEARCH, ISSUE.name, POST.name, "lsp"]
    other = discovery()
    other.restore(saved)
    assert other.selected == (ISSUE.name, POST.name)


@pytest.mark.parametrize(
    "saved",
    [
        None,
        {},
        {"selected_tools": None},
        {"selected_tools": ["", 3, "\n"]},
        {"selected_tools": "a"},
    ],
)
def test_resuming_without_selections_gives_the_defaults(saved: Any) -> None:
    settings = DiscoverySettings(mode="mcp-only", default_servers=("slack",))
    session = discovery(settings=settings, saved=saved)
    assert active(session) == ["lsp", POST.name, "read", SEARCH]
    assert session.selected == ()


def test_a_new_session_has_no_selections() -> None:
    session = discovery()
    found(session, "issue")
    session.new_session()
    assert (session.selected, active(session)) == ((), ["lsp", "read", SEARCH])
    assert found(session, "create issue", limit=1).activated_tools == (ISSUE.name,)


def test_what_a_profile_forbids_is_not_found() -> None:
    session = discovery(permits=lambda tool: tool.name != ISSUE.name)
    assert ISSUE.name not in found(session, "create issue").activated_tools
    assert session.activate([ISSUE.name]) == ()


def test_a_profile_is_asked_again_before_the_activation() -> None:
    answers = iter([True])

    def permits(tool: Tool) -> bool:
        return next(answers, False)

    session = discovery([READ, POST], permits=permits)
    answer = session.call({"query": "post"})
    assert answer.content == f"Tool activation denied by capability profile: {POST.name}"
    assert answer.is_error
    assert session.selected == ()


def test_tools_for_some_callers_are_found_by_nobody_without_a_profile() -> None:
    secret = mcp("vault", "open", roles=["boss"])
    session = discovery([READ, secret])
    assert found(session, "vault open").total_tools == 0
    assert "vault" not in session.search_tool().description
    boss = discovery([READ, secret], permits=lambda _: True)
    assert "vault (1 tool)" in boss.search_tool().description
    record = found(boss, "vault open")
    assert (record.activated_tools, record.total_tools) == ((secret.name,), 1)


def test_the_search_tool_has_oh_my_pis_schema() -> None:
    tool = discovery().search_tool()
    assert (tool.name, tool.title, tool.always_load) == (SEARCH, "SearchTools", True)
    assert tool.annotations == {"read_only": True, "load_mode": "essential"}
    parameters = json.loads(tool.parameters_json)
    assert [parameters["properties"][key].pop("description") for key in ("query", "limit")]
    assert parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "number", "exclusiveMinimum": 0},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_the_description_lists_servers_built_in_tools_and_the_total() -> None:
    description = discovery(settings=ALL).search_tool().description
    assert "github (3 tools), slack (1 tool)" in description
    assert "Built-in tools that can be found: lsp." in description
    assert "in all: 5." in description
    for word in ("`query`", "`limit`", "server", "this turn", "5 to 10", "files", "match_count"):
        assert word in description


def test_lines_without_content_are_left_out() -> None:
    description = discovery([READ]).search_tool().description
    assert "MCP" not in description
    assert "Built-in" not in description
    assert "in all" not in description
    assert "\n\n" not in description


def test_a_long_list_of_servers_is_cut_and_counted() -> None:
    tools = [mcp(f"server_of_a_long_name_{number:04}", "t") for number in range(500)]
    description = discovery(tools).search_tool().description
    assert len(description) < 2_000
    assert "more" in description


def test_the_description_is_rendered_anew_when_the_index_changes() -> None:
    """It is the same object until a tool is activated."""
    session = discovery()
    first = session.search_tool()
    assert session.search_tool() is first
    found(session, "qwzx")
    assert session.search_tool() is first
    found(session, "post message", limit=1)
    assert "slack" not in session.search_tool().description


def test_a_frozen_description_stays_as_it_first_was() -> None:
    session = discovery(frozen_description=True)
    first = session.search_tool().description
    found(session, "post message", limit=1)
    session.set_tools([READ, POST])
    assert session.search_tool().description == first
    saved = json.loads(json.dumps(session.to_dict()))
    again = discovery([READ], frozen_description=True, saved=saved)
    assert again.search_tool().description == first


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_notice_names_the_servers_and_stays(language: Any) -> None:
    session = discovery(language=language)
    notice = session.system_notice()
    assert "github, slack" in notice
    assert SEARCH in notice
    found(session, "github")
    assert session.system_notice() == notice


def test_summaries_of_the_host_are_searched_and_shown() -> None:
    session = discovery(summaries={POST.name: "Tells the crew"})
    (match,) = found(session, "crew").tools
    assert match.description == "Tells the crew"


def test_what_servers_wrote_is_cleaned() -> None:
    loud = mcp("x", "loud", description="Shout\n\x1b[31m now\u200b")
    (match,) = found(discovery([loud]), "loud").tools
    assert match.description == "Shout [31m now"


@given(
    arguments=st.dictionaries(
        st.sampled_from(["query", "limit", "more"]),
        st.none() | st.text() | st.integers() | st.floats() | st.lists(st.text(), max_size=2),
    )
)
def test_nothing_a_model_writes_raises(arguments: dict[str, Any]) -> None:
    answer = discovery().call(arguments)
    answer.content.encode()
    assert answer.is_error is (answer.details is None)
