"""Runners besides AstrBot's own agent, and its triggers: the clock, Dify, a knowledge base."""

from __future__ import annotations

from tests.astrbot.bot import AstrBot, lists, new_user
from tests.astrbot.loopback import service
from tool_search.testing import ModelCall, ModelReply, ScriptedModel, StandInServer

CORE = ("future_task", "send_message_to_user", "tool_search")
ASK = "convert a length from metres to feet"

# Waits until AstrBot's own clock has run the task, and taken it out of its list.
TASK = """
import asyncio
from datetime import datetime, timedelta, timezone
cron = bot.lifecycle.cron_manager
await cron.start(bot.lifecycle.star_context)
soon = datetime.now(timezone.utc) + timedelta(seconds=0.3)
job = await cron.add_active_job(
    name="feet", cron_expression=None, description="{ask}", run_once=True, run_at=soon,
    payload={{"session": "probe:FriendMessage:{user}", "note": "{ask}", "sender_id": "{user}"}})
for _ in range(600):
    if await cron.db.get_cron_job(job.job_id) is None:
        return True
    await asyncio.sleep(0.1)
return False
"""


def scheduled(bot: AstrBot, user: str) -> None:
    """A task that AstrBot's clock runs in a user's conversation."""
    assert bot.ask("run", code=TASK.format(ask=ASK, user=user))


def test_a_scheduled_task_searches(small_bot: AstrBot, server: StandInServer) -> None:
    arguments = {"value": 1, "from_unit": "m", "to_unit": "ft"}
    search = ModelCall(name="tool_search", arguments={"query": "convert a length"})
    found = ModelCall(name="convert_length", arguments=arguments)
    replies = (ModelReply(calls=(search,)), ModelReply(calls=(found,)), ModelReply(text="done"))
    server.reset(model=ScriptedModel(replies))
    scheduled(small_bot, new_user())
    first, second, *_ = lists(server.requests)
    assert "tool_search" in first
    assert len(first) < 10
    assert "convert_length" in second
    assert b"mcp convert_length" in server.requests[-1].raw_body
    assert not server.violations


def test_a_scheduled_task_knows_what_its_conversation_found(
    small_bot: AstrBot, server: StandInServer
) -> None:
    user = new_user()
    small_bot.say(ASK, user=user)
    before = server.requests[-1].tool_names
    server.reset(model=ScriptedModel([ModelReply(text="done"), ModelReply(text="hi")]))
    scheduled(small_bot, user)
    small_bot.say("hello there", user=user)
    first, second = lists(server.requests)
    assert "convert_length" in first
    assert set(before) <= set(second)
    assert not server.violations


def test_a_knowledge_base_is_core_and_asked(small_bot: AstrBot, server: StandInServer) -> None:
    call = ModelCall(name="astr_kb_search", arguments={"query": "the house rules"})
    server.reset(model=ScriptedModel([ModelReply(calls=(call,)), ModelReply(text="so it is")]))
    small_bot.ask("configure", changes={"kb_agentic_mode": True})
    try:
        assert small_bot.say("what are the house rules", user=new_user()) == "so it is"
    finally:
        small_bot.ask("configure", changes={"kb_agentic_mode": False})
    first, second = lists(server.requests)
    assert "astr_kb_search" in first
    assert "tool_search" in first
    assert second == first
    assert not server.violations


def test_dify_answers_as_without_the_plugin(small_bot: AstrBot, server: StandInServer) -> None:
    said = [
        {"event": "message", "answer": "dify says hi", "conversation_id": "c1"},
        {"event": "message_end", "conversation_id": "c1"},
    ]
    with service(lambda _: said) as dify:
        runner = {"dify_api_key": "k", "dify_api_base": f"{dify.address}/v1"}
        entry = {"id": "dify", "type": "dify", "provider_type": "agent_runner", **runner}
        old = {"agent_runner_type": "dify", "dify_agent_runner_provider_id": "dify"}
        small_bot.ask("run", code=f"bot.lifecycle.astrbot_config['provider'].append({entry!r})")
        small_bot.ask(
            "configure",
            changes={
                "agent_runner": {"runner_type": "dify", "config": runner},
                "provider_settings": old,
            },
        )
        try:
            answer = small_bot.say("hello there", user=new_user())
        finally:
            small_bot.ask("run", code="bot.lifecycle.astrbot_config['provider'].pop()")
            small_bot.ask(
                "configure",
                changes={
                    "agent_runner": {"runner_type": "local"},
                    "provider_settings": {"agent_runner_type": "local"},
                },
            )
    assert answer == "dify says hi"
    ((path, body),) = dify.asked
    assert path == "/v1/chat-messages"
    assert "tool_search" not in str(body)
    assert not server.requests
    assert "mcp convert_length" in small_bot.say(ASK, user=new_user())
