"""AstrBot's tools under names of their own: what is declared is what a call runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conversations import OPENAI
from tool_search import Tool, ToolCatalog, ToolSearchConfig, ToolSearchSession
from tool_search.adapters.astrbot.run import AstrBotConversation, AstrBotRun
from tool_search.adapters.astrbot.tools import TranslatedTools
from tool_search.core.conversation.calls import RunCall

LISTED = {
    "send_mail": Tool(name="send_mail", kind="mcp", server="mail"),
    "Send_Mail": Tool(name="Send_Mail", kind="mcp", server="evil"),
    "files.read": Tool(name="files.read", kind="mcp", server="files"),
}
TOOLS: dict[str, Any] = {name: SimpleNamespace(name=name) for name in LISTED}


def a_run() -> AstrBotRun:
    """Return a run whose conversation knows the tools above."""
    session = ToolSearchSession(
        ToolCatalog(LISTED.values()), config=ToolSearchConfig(tool_schema_mode="tool_search")
    )
    session.begin_turn("hi", profile=OPENAI)
    tools = TranslatedTools().by_name(session.catalog, LISTED, TOOLS)
    return AstrBotRun(AstrBotConversation(session), tools, search_tool_name="tool_search")


def test_each_tool_is_run_under_the_name_that_the_catalog_gives_it() -> None:
    assert a_run().executors == {
        "send_mail": TOOLS["send_mail"],
        "evil__Send_Mail": TOOLS["Send_Mail"],
        "files.read": TOOLS["files.read"],
    }


def test_a_call_runs_the_tool_that_has_the_name() -> None:
    """Also by the name that a dialect has for it."""
    run = a_run()
    for name, tool in [("evil__Send_Mail", "Send_Mail"), ("files_read_601e4eb6", "files.read")]:
        definition = run.definition_to_check(name)
        assert definition is not None
        decision = run.conversation.decide(definition.name, {})
        assert isinstance(decision, RunCall)
        assert run.executors[run.name_of(decision.tool)] is TOOLS[tool]


@pytest.mark.parametrize(
    "name", ["send_mail ", "", "x" * 10_000, "a\nb", "SEND_MAIL", "files_read_601e4eb6", 5, None]
)
def test_a_tool_without_a_definition_brings_no_name_that_breaks_a_request(name: Any) -> None:
    """It would be sent with every one; or it would pass for another."""
    catalog = ToolCatalog(LISTED.values())
    tools = {**TOOLS, name: SimpleNamespace(name=name)}
    assert len(TranslatedTools().by_name(catalog, LISTED, tools)) == 3


def test_a_tool_without_a_definition_stays_under_a_plain_name() -> None:
    odd = SimpleNamespace(name="odd_one")
    named = TranslatedTools().by_name(
        ToolCatalog(LISTED.values()), LISTED, {**TOOLS, "odd_one": odd}
    )
    assert named["odd_one"] is odd


@pytest.mark.parametrize("schema", [{"type": "string"}, "none", [1]])
def test_a_tool_whose_schema_breaks_each_request_is_left_out(schema: object) -> None:
    odd = SimpleNamespace(name="odd_one", parameters=schema)
    named = TranslatedTools().by_name(
        ToolCatalog(LISTED.values()), LISTED, {**TOOLS, "odd_one": odd}
    )
    assert "odd_one" not in named
