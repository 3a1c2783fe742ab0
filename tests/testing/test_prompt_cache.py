"""The prompt cache of the stand-in server: prefixes, by each vendor's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tool_search.testing import ModelReply, ModelView, StandInServer

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

LONG = "Be brief and kind. " * 400
ENDS = {"cache_control": {"type": "ephemeral"}}


class Answers:
    """A model that always says the same."""

    def reply(self, view: ModelView) -> ModelReply:
        """Two words."""
        assert view.messages
        return ModelReply(text="Very well.")


@pytest.fixture(autouse=True)
def answering(server: StandInServer) -> None:
    """Return a server whose cache is empty."""
    server.reset(model=Answers())


async def claude_usage(claude: AsyncAnthropic, body: Any) -> tuple[int, int, int]:
    """Fresh, written and read tokens of one request."""
    usage = (await claude.messages.create(**body)).usage
    written, read = usage.cache_creation_input_tokens, usage.cache_read_input_tokens
    return usage.input_tokens, written or 0, read or 0


async def test_claude_caches_nothing_without_a_breakpoint(
    claude: AsyncAnthropic, claude_body: Any
) -> None:
    claude_body["system"] = LONG
    first = await claude_usage(claude, claude_body)
    assert await claude_usage(claude, claude_body) == first
    assert first[1:] == (0, 0)


async def test_claude_reads_what_was_written_at_a_breakpoint(
    claude: AsyncAnthropic, claude_body: Any
) -> None:
    claude_body["system"] = [{"type": "text", "text": LONG, **ENDS}]
    fresh, written, read = await claude_usage(claude, claude_body)
    assert (written > 1_024, read) == (True, 0)
    assert await claude_usage(claude, claude_body) == (fresh, 0, written)
    claude_body["messages"] += [
        {"role": "assistant", "content": "Very well."},
        {"role": "user", "content": [{"type": "text", "text": "And tomorrow?", **ENDS}]},
    ]
    _, written_next, read_next = await claude_usage(claude, claude_body)
    assert (written_next > 0, read_next) == (True, written)


async def test_claude_cache_outlives_a_found_tool_and_not_a_new_one(
    claude: AsyncAnthropic, claude_body: Any
) -> None:
    """A deferred definition is outside of the prefix; a loaded one is its beginning."""
    claude_body["system"] = [{"type": "text", "text": LONG, **ENDS}]
    hidden = {**claude_body["tools"][0], "name": "get_time", "defer_loading": True}
    claude_body["tools"].append(hidden)
    _, written, _ = await claude_usage(claude, claude_body)
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
    found = [{"type": "tool_reference", "tool_name": "get_time"}]
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": found}
    claude_body["messages"] += [
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    assert (await claude_usage(claude, claude_body))[2] == written
    hidden.pop("defer_loading")
    assert (await claude_usage(claude, claude_body))[2] == 0


async def test_claude_caches_no_prefix_below_the_least(
    claude: AsyncAnthropic, claude_body: Any
) -> None:
    claude_body["system"] = [{"type": "text", "text": "Be brief.", **ENDS}]
    await claude_usage(claude, claude_body)
    assert (await claude_usage(claude, claude_body))[1:] == (0, 0)


async def test_openai_caches_by_itself_and_in_steps(gpt: AsyncOpenAI, gpt_body: Any) -> None:
    """Appended messages keep the prefix; an appended tool comes before all of them."""
    gpt_body["messages"].insert(0, {"role": "system", "content": LONG})

    async def cached() -> int:
        usage = (await gpt.chat.completions.create(**gpt_body)).usage
        assert usage is not None
        assert usage.prompt_tokens_details is not None
        return usage.prompt_tokens_details.cached_tokens or 0

    assert await cached() == 0
    gpt_body["messages"].append({"role": "assistant", "content": "Very well."})
    read = await cached()
    assert (read >= 1_024, read % 128) == (True, 0)
    function = {"name": "get_time", "parameters": {"type": "object"}}
    gpt_body["tools"].append({"type": "function", "function": function})
    assert await cached() == 0


async def test_models_do_not_share_a_cache(gpt: AsyncOpenAI, gpt_body: Any) -> None:
    gpt_body["messages"].insert(0, {"role": "system", "content": LONG})
    await gpt.chat.completions.create(**gpt_body)
    usage = (await gpt.chat.completions.create(**{**gpt_body, "model": "gpt-5.5"})).usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.cached_tokens == 0
