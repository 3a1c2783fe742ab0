"""`search_tool_bm25` in a session: its answers, over any index."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.conversations import CLAUDE, OPENAI, Chat, tool, toolbox
from tool_search import SearchResult, Tool, ToolCatalog, ToolSearchIndex, build_index
from tool_search.adapters.compat.oh_my_pi.surface import DiscoverySettings, SearchToolBm25
from tool_search.core.messages import ReferencePart

CONFIG = DiscoverySettings(mode="mcp-only").session_config().model_dump()
TOOLS = [
    Tool(name="mcp__mail_send", description="Send.", kind="mcp", server="mail"),
    Tool(name="mcp__mail_read", description="Read.", kind="mcp", server="mail"),
    Tool(name="secret_mail", description="Read.", kind="mcp", server="vault", roles=["boss"]),
]


def chat(tools: Sequence[Tool] = TOOLS, **more: Any) -> Chat:
    """A conversation under oh-my-pi's settings, begun."""
    made = Chat(tools, {**CONFIG, **more})
    made.begin()
    return made


def test_the_session_has_oh_my_pis_tool() -> None:
    made = Chat(TOOLS, CONFIG)
    plan = made.begin(text="Отправь письмо")
    (entry,) = [entry.tool for entry in plan.tools if entry.tool.name == "search_tool_bm25"]
    assert entry.parameters["additionalProperties"] is False
    assert "mail (инструментов: 2)" in entry.description


def test_found_tools_leave_the_next_search() -> None:
    made = chat()
    first = made.search("mail", limit=1)
    second = made.search("mail", limit=1)
    assert (first["activated_tools"], second["activated_tools"]) == (
        ["mcp__mail_read"],
        ["mcp__mail_send"],
    )
    assert (first["total_tools"], second["total_tools"]) == (2, 1)
    assert made.search("mail")["match_count"] == 0


def test_tools_for_others_are_neither_found_nor_counted() -> None:
    made = chat()
    assert made.search("vault")["match_count"] == 0
    made.begin(roles=["boss"])
    assert made.search("vault")["activated_tools"] == ["secret_mail"]


def test_claude_gets_references() -> None:
    made = chat()
    made.search("send", limit=1)
    shown = made.session.plan(CLAUDE).messages[-1]
    parts = [part for part in shown.content if isinstance(part, ReferencePart)]
    assert [part.names for part in parts] == [("mcp__mail_send",)]


@pytest.mark.parametrize(("answer", "params"), [("names", None), ("tools", ["count"])])
def test_a_result_carries_the_schema_where_no_list_has_room(
    answer: str, params: list[str] | None
) -> None:
    """`call_tool` needs it; the later answer has the signature too."""
    search = {"preset": "oh-my-pi", "answer": answer}
    made = Chat(toolbox(40, server="s"), {**CONFIG, "search": search}, max_tools=4)
    narrow = replace(OPENAI, max_tools=4)
    made.begin(narrow)
    made.search("tool", limit=8)
    shown = json.loads(made.session.plan(narrow).messages[-1].text)
    carried = [entry for entry in shown["tools"] if "parameters" in entry]
    assert carried
    assert carried[0].get("params") == params
    assert carried[0]["description"]
    assert carried[0]["parameters"]["required"] == ["count"]


def test_the_answer_of_a_restarted_conversation_is_read_again() -> None:
    made = chat()
    made.search("send", limit=1)
    again = made.restarted()
    again.begin()
    assert again.session.discoveries.names == ("mcp__mail_send",)
    assert again.search("mail")["activated_tools"] == ["mcp__mail_read"]


def test_another_name_or_ranking_keeps_our_answer() -> None:
    """oh-my-pi's answers need both its name and its ranking."""
    renamed = chat(search_tool_name="find")
    assert "matches" in renamed.search("mail")
    assert "matches" in chat(search={"preset": None}).search("mail")


@pytest.mark.parametrize(
    "written",
    [
        (
            '{"query":"a","activated_tools":["x"],"match_count":1,"total_tools":3,'
            '"tools":[{"name":"x","description":"d","params":["k?"]}]}'
        ),
        '{"query":"a","activated_tools":[],"match_count":0,"total_tools":3,"tools":[]}',
    ],
)
def test_a_compact_answer_is_read_back_as_it_was(written: str) -> None:
    result = SearchResult.from_json(written + " a bot's notice")
    assert result is not None
    assert result.to_json() == written


def test_an_answer_of_oh_my_pis_first_versions_names_what_it_activated() -> None:
    result = SearchResult.from_json(
        '{"query":"a","activated_tools":["x","y"],"match_count":2,"total_tools":17}'
    )
    assert result is not None
    assert result.names == ("x", "y")


class _Failing:
    """An engine that fails, as a plugged-in one may."""

    def search(
        self,
        query: str | Sequence[str],
        *,
        limit: int,
        allowed: Callable[[str], bool] | None = None,
    ) -> SearchResult:
        raise ConnectionError("no route")

    def updated(self, *, added: Sequence[Tool], removed: Sequence[str]) -> ToolSearchIndex:
        return self


def test_a_failed_search_says_that_discovery_is_unavailable() -> None:
    searching = SearchToolBm25(_Failing(), ToolCatalog(TOOLS))
    assert searching.run({"query": "mail"}).error == (
        "Tool discovery is unavailable in this session."
    )


def test_any_engine_can_stand_behind_the_tool() -> None:
    """Its relevance takes the place of raw scores."""
    catalog = ToolCatalog([tool("alpha"), tool("beta")])
    searching = SearchToolBm25(build_index(catalog.deferred), catalog)
    found = searching.find({"query": "beta", "limit": 10**6})
    assert not isinstance(found, str)
    assert [(entry.name, score) for entry, score in found.ranked] == [("beta", 1.0)]
