"""AstrBot's own modes of sending tools stay as an operator has set them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.astrbot.bot import AstrBot, new_user
from tool_search.testing import StandInServer

ASK = "convert a length from metres to feet"


@pytest.fixture
def skills_like(small_bot: AstrBot) -> Iterator[AstrBot]:
    """AstrBot asks for arguments only when a tool was chosen."""
    with small_bot.runner(tool_schema_mode="skills_like"):
        yield small_bot


def test_skills_like_is_left_alone(skills_like: AstrBot, server: StandInServer) -> None:
    skills_like.say(ASK, user=new_user())
    first = server.requests[0]
    assert len(first.tool_names) == 40
    assert b"tool_search" not in first.raw_body
    assert not first.body["tools"][0]["function"]["parameters"].get("properties")
    assert "skills_like" in skills_like.say("/tool_search status", user="boss")


def test_the_mode_tool_search_goes_before_skills_like(
    skills_like: AstrBot, server: StandInServer
) -> None:
    skills_like.say("/tool_search mode tool_search", user="boss")
    try:
        answer = skills_like.say(ASK, user="boss")
    finally:
        skills_like.say("/tool_search mode default", user="boss")
    assert "mcp convert_length" in answer
    assert len(server.requests[0].tool_names) < 10
    assert not server.violations


@pytest.mark.parametrize(("mode", "reason"), [("tool_search", "configured"), ("auto", "above")])
def test_a_mode_of_ours_in_astrbots_own_settings_counts(
    small_bot: AstrBot, server: StandInServer, mode: str, reason: str
) -> None:
    """AstrBot takes its default instead, and keeps the value."""
    small_bot.say("/new", user="boss")
    with small_bot.runner(tool_schema_mode=mode):
        small_bot.say(ASK, user="boss")
        status = small_bot.say("/tool_search status", user="boss")
    assert f"Mode: tool_search ({reason}" in status
    assert "tool_search" in server.requests[0].tool_names


def test_the_plugins_own_mode_goes_before_astrbots(
    small_bot: AstrBot, server: StandInServer
) -> None:
    small_bot.say("/tool_search mode full", user="boss")
    try:
        with small_bot.runner(tool_schema_mode="tool_search"):
            small_bot.say("hello there", user="boss")
    finally:
        small_bot.say("/tool_search mode default", user="boss")
    assert len(server.requests[0].tool_names) == 40
